//! `ebbtide-harness run`: a command with servers around it.

use super::{EndSignal, EndSignals, Servers, print_line};
use crate::ServerSelection;
use ebbtide_harness::{
    ENV_AMQP_URL, ENV_MYSQL_URL, ENV_POSTGRES_URL, PrivateServer, Process, ProcessCommand, Signal,
};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

/// As env(1), timeout(1) and their like: the wrapper itself failed, or the command was not found.
const HARNESS_FAILED: u8 = 125;
const NOT_FOUND: u8 = 127;

/// Starts the servers, runs the command, stops the servers.
pub(crate) async fn run(wanted: ServerSelection, command: Vec<OsString>) -> ExitCode {
    let mut signals = match EndSignals::catch() {
        Ok(signals) => signals,
        Err(error) => {
            print_line(&format!("cannot catch signals: {error}"));
            return ExitCode::from(HARNESS_FAILED);
        }
    };
    let servers = tokio::select! {
        started = Servers::start(wanted, None) => match started {
            Ok(servers) => servers,
            Err(error) => {
                print_line(&error.to_string());
                return ExitCode::from(HARNESS_FAILED);
            }
        },
        // What was started so far has ended with the future that held it.
        signal = signals.next() => return ExitCode::from(signal.exit_code()),
    };
    let code = match spawn(&servers, command) {
        Ok(process) => code_of(wait(&process, &mut signals).await),
        Err(error) => {
            print_line(&error.to_string());
            NOT_FOUND
        }
    };
    servers.stop().await;
    ExitCode::from(code)
}

fn spawn(servers: &Servers, command: Vec<OsString>) -> ebbtide_harness::Result<Process> {
    let mut words = command.into_iter();
    let program = words.next().unwrap_or_default();
    let mut command = ProcessCommand::new(program.to_string_lossy(), &program)
        .args(words)
        // It may be a test runner with children of its own to look after.
        .term_when_parent_dies();
    for (variable, url) in [
        (
            ENV_AMQP_URL,
            servers.rabbitmq.as_ref().map(PrivateServer::url),
        ),
        (
            ENV_MYSQL_URL,
            servers.mariadb.as_ref().map(PrivateServer::url),
        ),
        (
            ENV_POSTGRES_URL,
            servers.postgresql.as_ref().map(PrivateServer::url),
        ),
    ] {
        if let Some(url) = url {
            command = command.env(variable, url);
        }
    }
    command.spawn_in_foreground()
}

/// Waits for the command's end, and passes on to it what asks us to end. Not SIGINT: Ctrl-C reaches
/// the command by itself, being in the same process group, and many programs take a second one as
/// "at once".
async fn wait(process: &Process, signals: &mut EndSignals) -> ExitStatus {
    loop {
        tokio::select! {
            () = process.ended() => return process.exit_status().unwrap_or_default(),
            signal = signals.next() => {
                // An error means that it has just ended.
                let _ = match signal {
                    EndSignal::Term => process.signal(Signal::Term),
                    EndSignal::Hup => process.signal(Signal::Hup),
                    EndSignal::Int => Ok(()),
                };
            }
        }
    }
}

fn code_of(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok())
        .unwrap_or(HARNESS_FAILED)
}

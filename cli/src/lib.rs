//! The `ebbtide` command for operators and tenants, after the habits of the `openstack` client.
//!
//! - `args` says what may be typed, `config` what stands in files, `commands/*` does it, one file a
//!   noun.
//! - `output`, `layout` and `render` say how answers look, `json` turns messages of the contract
//!   into JSON, `errors` has every way to fail with its code, next step and exit code.
//!
//! Invariants: standard output carries data only, standard error talk only. Commands read
//! clocks, make ids and start tasks through `ebbtide-runtime`, and start processes through
//! `process`.

pub mod args;
pub mod backoff;
mod bag;
pub mod charts;
pub mod client;
pub mod commands;
pub mod config;
pub mod credentials;
pub mod decision_view;
pub mod drawn;
pub mod errors;
pub mod hours;
pub mod json;
pub mod layout;
pub mod moment;
pub mod output;
pub mod pages;
pub mod process;
pub mod render;
pub mod resolve;
pub mod slurm;

use args::Cli;
use clap::{CommandFactory, Parser};
use client::Region;
use credentials::{Bearer, Credentials};
use ebbtide_runtime::clock;
use errors::CliError;
use output::{ColorChoice, Format, Io, Output};
use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// What every command works with.
#[derive(Debug)]
pub struct Context {
    /// How to speak.
    pub output: Output,
    /// Address of the region.
    pub endpoint: String,
    /// On whose behalf.
    pub project: String,
    /// Proof of who we are.
    pub credentials: Credentials,
}

impl Context {
    /// Connects to the region.
    ///
    /// # Errors
    /// [`CliError::Unreachable`] if the region does not answer.
    pub async fn region(&self) -> Result<Region, CliError> {
        Region::connect(&self.endpoint, &self.credentials).await
    }
}

/// Runs the command with the process's arguments, streams and environment.
#[must_use]
pub fn main() -> ExitCode {
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2) // The command waits for the region; more threads would only take memory.
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "EB-CLI-013: cannot start: {error}");
            return ExitCode::from(errors::REFUSED);
        }
    };
    let code = runtime.block_on(run(std::env::args_os(), process_io()));
    // A task that hangs on the network must not keep the command from ending.
    runtime.shutdown_background();
    ExitCode::from(code)
}

/// The process's own streams and environment.
fn process_io() -> Io {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let home = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".config")));
    let out_is_terminal = std::io::stdout().is_terminal();
    Io {
        out: Box::new(std::io::stdout()),
        err: Box::new(std::io::stderr()),
        out_is_terminal,
        err_is_terminal: std::io::stderr().is_terminal(),
        width: comfy_table::Table::new()
            .width()
            .filter(|_| out_is_terminal),
        no_color: set("NO_COLOR").is_some() || set("TERM").is_some_and(|term| term == "dumb"),
        now: clock::utc,
        config_home: home,
        see_table: None,
        in_checkout: std::path::Path::new("devstack/up").is_file(),
        token: std::env::var("EBBTIDE_TOKEN")
            .ok()
            .filter(|token| !token.is_empty()),
    }
}

/// Runs one command line; the first argument is the program's name. Answers with the exit code.
pub async fn run(args: impl IntoIterator<Item = OsString>, mut io: Io) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = match Cli::try_parse_from(&args) {
        Ok(cli) => cli,
        Err(error) => return usage(&error, &args, &mut io),
    };
    let globals = cli.globals;
    let config = config::load(globals.config.as_deref(), io.config_home.as_deref());
    // Even a broken configuration file is reported in the format asked for.
    let settings = config.as_ref().cloned().unwrap_or_default();
    let format = globals.output.or(settings.output).unwrap_or(Format::Table);
    let color = globals
        .color
        .or(settings.color)
        .unwrap_or(ColorChoice::Auto);
    let named = globals.endpoint.or(settings.endpoint);
    let endpoint = config::endpoint(named.as_deref().unwrap_or(config::DEFAULT_ENDPOINT));
    let token_file = globals.token_file.or(settings.token_file);
    let token = match (&io.token, &token_file) {
        (Some(token), _) => Bearer::new(token),
        (None, Some(path)) => Bearer::from_file(path),
        (None, None) => Ok(Bearer::default()),
    };
    let mut context = Context {
        output: Output::new(io, format, color, globals.quiet, globals.column),
        endpoint: endpoint.as_ref().cloned().unwrap_or_default(),
        project: globals
            .project
            .or(settings.project)
            .unwrap_or_else(|| config::DEFAULT_PROJECT.to_owned()),
        credentials: Credentials {
            ca: globals.ca.or(settings.ca),
            certificate: globals.certificate.or(settings.certificate),
            key: globals.key.or(settings.key),
            token: token.as_ref().cloned().unwrap_or_default(),
            insecure: globals.insecure,
        },
    };
    let done = match (config, endpoint, token) {
        (Err(error), _, _) | (_, Err(error), _) | (_, _, Err(error)) => Err(error),
        _ => Box::pin(commands::run(&mut context, cli.command)).await,
    };
    match done {
        Ok(()) => errors::OK,
        Err(error) if error.is_broken_pipe() => errors::OK,
        // The exit code of the command that `run` started, not an error of this program.
        Err(CliError::Ended { code }) => code,
        Err(error) => {
            context.output.fail(&error, &context.endpoint);
            error.exit_code()
        }
    }
}

/// A value such as `-5h` that clap has taken for an option, and would have written behind `--`.
fn below_zero<'a>(error: &clap::Error, args: &'a [OsString]) -> Option<&'a str> {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let unknown = error.kind() == ErrorKind::UnknownArgument;
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let digits = option.strip_prefix('-')?;
    let number = digits.starts_with(|c: char| c.is_ascii_digit() || c == '.');
    let mut texts = args.iter().filter_map(|arg| arg.to_str());
    texts.find(|text| unknown && number && text.starts_with(option.as_str()))
}

/// The command that these arguments name, as far as they go.
fn named(root: &mut clap::Command, args: &[OsString]) -> clap::Command {
    root.build();
    let mut command = &*root;
    for word in args.iter().skip(1).filter_map(|word| word.to_str()) {
        command = command.find_subcommand(word).unwrap_or(command);
    }
    command.clone()
}

/// What clap has to say: help and version are data, mistakes are talk.
fn usage(error: &clap::Error, args: &[OsString], io: &mut Io) -> u8 {
    if let Some(value) = below_zero(error, args) {
        let words = format!(
            "error: {value:?} is below zero, which is not taken here\n\nFor more information, try '--help'."
        );
        let _ = writeln!(io.err, "{words}");
        return errors::USAGE;
    }
    if error.kind() == clap::error::ErrorKind::MissingSubcommand {
        // One line with the names of all commands does not help its reader.
        let help = named(&mut Cli::command(), args).render_help();
        let _ = write!(io.err, "{help}");
        return errors::USAGE;
    }
    let rendered = error.render();
    let (stream, colored) = if error.use_stderr() {
        (&mut io.err, io.err_is_terminal && !io.no_color)
    } else {
        (&mut io.out, io.out_is_terminal && !io.no_color)
    };
    let _ = if colored {
        write!(stream, "{}", rendered.ansi())
    } else {
        write!(stream, "{rendered}")
    };
    let _ = stream.flush();
    if error.use_stderr() {
        errors::USAGE
    } else {
        errors::OK
    }
}

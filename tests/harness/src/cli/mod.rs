//! What the two subcommands have in common.

mod run;
mod serve;

pub(crate) use run::run;
pub(crate) use serve::serve;

use crate::ServerSelection;
use ebbtide_harness::{
    MariaDb, Postgres, PrivateServer, RabbitMq, Result, ServerKind, ServerSettings,
};
use std::io::Write;
use std::path::Path;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Prints one line for the person at the terminal. Ignores a closed or broken standard error.
fn print_line(line: &str) {
    // In one piece, so that it is not mixed with what the servers' command prints.
    let line = format!("ebbtide-harness: {line}\n");
    let _ = std::io::stderr().lock().write_all(line.as_bytes());
}

/// The servers that were asked for.
#[derive(Debug)]
struct Servers {
    rabbitmq: Option<RabbitMq>,
    mariadb: Option<MariaDb>,
    postgresql: Option<Postgres>,
}

impl Servers {
    /// Starts them all at the same time: in temporary directories, or each in a directory of its
    /// own below `base`.
    async fn start(wanted: ServerSelection, base: Option<&Path>) -> Result<Self> {
        let (rabbitmq, mariadb, postgresql) = tokio::try_join!(
            Box::pin(start_if(wanted.rabbitmq, base)),
            Box::pin(start_if(wanted.mariadb, base)),
            Box::pin(start_if(wanted.postgresql, base)),
        )?;
        Ok(Self {
            rabbitmq,
            mariadb,
            postgresql,
        })
    }

    /// Ends them all at the same time, in the orderly way.
    async fn stop(mut self) {
        tokio::join!(
            stop(&mut self.rabbitmq),
            stop(&mut self.mariadb),
            stop(&mut self.postgresql),
        );
    }

    /// Waits until one of them ends by itself; returns its name.
    async fn one_ended(&self) -> &'static str {
        tokio::select! {
            name = ended(self.rabbitmq.as_ref()) => name,
            name = ended(self.mariadb.as_ref()) => name,
            name = ended(self.postgresql.as_ref()) => name,
        }
    }
}

async fn start_if<K: ServerKind>(
    wanted: bool,
    base: Option<&Path>,
) -> Result<Option<PrivateServer<K>>> {
    if !wanted {
        return Ok(None);
    }
    let settings = match base {
        Some(base) => ServerSettings::persistent(base.join(K::SLUG)),
        None => ServerSettings::temporary(),
    };
    let server = PrivateServer::<K>::start_with(settings).await?;
    print_line(&format!(
        "{} answers at {} (log: {})",
        K::NAME,
        server.url(),
        server.log_path().display()
    ));
    Ok(Some(server))
}

async fn stop<K: ServerKind>(server: &mut Option<PrivateServer<K>>) {
    if let Some(server) = server
        && let Err(error) = server.stop().await
    {
        print_line(&error.to_string());
    }
}

async fn ended<K: ServerKind>(server: Option<&PrivateServer<K>>) -> &'static str {
    match server {
        Some(server) => {
            server.ended().await;
            K::NAME
        }
        None => std::future::pending().await,
    }
}

/// The signals that ask a program to end.
#[derive(Debug)]
struct EndSignals {
    term: Signal,
    int: Signal,
    hup: Signal,
}

/// Which of them came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndSignal {
    Term,
    Int,
    Hup,
}

impl EndSignal {
    /// What a shell reports for a program that the signal ended: 128 + its number.
    fn exit_code(self) -> u8 {
        match self {
            Self::Hup => 129,
            Self::Int => 130,
            Self::Term => 143,
        }
    }
}

impl EndSignals {
    /// From now on they no longer end this process.
    fn catch() -> std::io::Result<Self> {
        Ok(Self {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> EndSignal {
        tokio::select! {
            _ = self.term.recv() => EndSignal::Term,
            _ = self.int.recv() => EndSignal::Int,
            _ = self.hup.recv() => EndSignal::Hup,
        }
    }
}

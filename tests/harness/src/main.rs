//! `ebbtide-harness`: private RabbitMQ, MariaDB and PostgreSQL servers around a command (`run`), or
//! for as long as it runs itself (`serve`).
//!
//! Standard output belongs to the command of `run`; the harness itself speaks on standard error.

mod cli;

use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Starts private RabbitMQ, MariaDB and PostgreSQL servers on free loopback ports, and ends them.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Runs COMMAND with servers that live no longer than it; returns its exit code (128 + n when
    /// signal n ended it).
    ///
    /// COMMAND finds the servers by the environment variables EBBTIDE_TEST_AMQP_URL,
    /// EBBTIDE_TEST_MYSQL_URL and EBBTIDE_TEST_POSTGRES_URL. Exit code 125: a server could not be
    /// started; 127: COMMAND is not there.
    Run {
        #[command(flatten)]
        wanted: ServerSelection,
        /// The command and its arguments.
        #[arg(last = true, required = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Runs servers until SIGTERM or SIGINT, with their data in DIR, where it stays.
    ///
    /// When all of them answer, DIR/services.json says where. Exit code 1: a server could not be
    /// started or ended by itself.
    Serve {
        #[command(flatten)]
        wanted: ServerSelection,
        /// The directory for data, logs and services.json. As root, for the databases: one that all
        /// users may enter.
        #[arg(long, value_name = "DIR")]
        dir: PathBuf,
    },
}

/// Which servers.
#[derive(Debug, Clone, Copy, Args)]
struct ServerSelection {
    /// Start a RabbitMQ.
    #[arg(long)]
    rabbitmq: bool,
    /// Start a MariaDB.
    #[arg(long)]
    mariadb: bool,
    /// Start a PostgreSQL.
    #[arg(long)]
    postgresql: bool,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    match Arguments::parse().task {
        Task::Run { wanted, command } => Box::pin(cli::run(wanted, command)).await,
        Task::Serve { wanted, dir } => Box::pin(cli::serve(wanted, &dir)).await,
    }
}

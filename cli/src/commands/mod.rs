//! The commands, one file a noun.

pub mod advice;
pub mod aggregate;
pub mod bag;
pub mod billing;
pub mod budget;
pub mod burst;
pub mod decision;
pub mod evacuation;
pub mod explain;
pub mod flavor;
pub mod host;
pub mod plugin;
pub mod price;
pub mod run;
pub mod server;
pub mod server_create;
pub mod server_group;
pub mod server_view;
pub mod status;
pub mod wait;
pub mod watch;
pub mod what_if;

use crate::args::{Cli, Command};
use ebbtide_shell::Context;
use ebbtide_shell::completion;
use ebbtide_shell::errors::CliError;

/// Runs a command.
///
/// # Errors
/// Whatever the command meets.
pub async fn run(context: &mut Context, command: Command) -> Result<(), CliError> {
    match command {
        Command::Host(command) => host::run(context, command).await,
        Command::Flavor(command) => flavor::run(context, command).await,
        Command::Server(command) => server::run(context, command).await,
        Command::Aggregate(command) => aggregate::run(context, command).await,
        Command::Budget(command) => budget::run(context, command).await,
        Command::Plugin(command) => plugin::run(context, command).await,
        Command::Advice(args) => advice::run(context, args).await,
        Command::WhatIf(args) => what_if::run(context, args).await,
        Command::Explain(args) => explain::run(context, args).await,
        Command::Decision(command) => decision::run(context, command).await,
        Command::Price(command) => price::run(context, command).await,
        Command::Billing(command) => billing::run(context, command).await,
        Command::Evacuation(command) => evacuation::run(context, command).await,
        Command::Watch(args) => watch::run(context, args).await,
        Command::Status(args) => status::run(context, args).await,
        Command::Bag(command) => Box::pin(bag::run(context, &command)).await,
        Command::Burst(command) => burst::run(context, &command),
        Command::Run(args) => Box::pin(run::run(context, *args)).await,
        Command::Completion(args) => completion::run::<Cli>(context, &args),
    }
}

//! The commands, one file a noun.

pub mod bench;
pub mod conform;
pub mod model;
pub mod plan;
pub mod plugin;
pub mod replay;
pub mod simulate;

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
        Command::Replay(args) => Box::pin(replay::run(context, *args)).await,
        Command::Conform(command) => conform::run(context, command),
        Command::Bench(command) => bench::run(context, command),
        Command::Simulate(command) => simulate::run(context, command),
        Command::Model(command) => model::run(context, command).await,
        Command::Plan(command) => plan::run(context, command),
        Command::Plugin(command) => plugin::run(context, command),
        Command::Completion(args) => completion::run::<Cli>(context, &args),
    }
}

//! The commands, one file a noun.

pub mod audit;
pub mod config;
pub mod init;
pub mod token;
pub mod upgrade;

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
        Command::Config(command) => config::run(context, &command),
        Command::Init(args) => init::run(context, &args),
        Command::Token(command) => token::run(context, command),
        Command::Audit(args) => Box::pin(audit::run(context, args)).await,
        Command::Upgrade(command) => Box::pin(upgrade::run(context, command)).await,
        Command::Completion(args) => completion::run::<Cli>(context, &args),
    }
}

//! `ebbtide plan`: what a tenant should do with preemptible instances. No region is needed.

mod bag;

use crate::Context;
use crate::errors::CliError;
use clap::Subcommand;

/// What is planned.
#[derive(Debug, Clone, Subcommand)]
pub enum PlanCommand {
    /// A bag of tasks with a deadline on preemptible instances that may hibernate
    #[command(after_help = bag::HELP)]
    Bag(bag::PlanBagArgs),
}

/// Plans and shows.
///
/// # Errors
/// What the planner refuses, and files that cannot be read.
pub fn run(context: &mut Context, command: PlanCommand) -> Result<(), CliError> {
    match command {
        PlanCommand::Bag(args) => bag::run(context, &args),
    }
}

//! `ebbtide plan`: what to do with preemptible instances. No region is needed.

mod bag;
mod checkpoint;
mod checkpoint_chart;
mod reuse;
mod reuse_chart;

use crate::Context;
use crate::errors::CliError;
use clap::Subcommand;

/// What to plan.
#[derive(Debug, Clone, Subcommand)]
pub enum PlanCommand {
    /// A bag of tasks with a deadline on preemptible instances that may hibernate
    #[command(after_help = bag::HELP)]
    Bag(Box<bag::PlanBagArgs>),
    /// When a job should write checkpoints, and what that costs
    #[command(after_help = checkpoint::HELP)]
    Checkpoint(checkpoint::CheckpointArgs),
    /// Whether to keep an instance for the next job or to take a new one
    #[command(after_help = reuse::HELP)]
    Reuse(reuse::ReuseArgs),
}

/// Plans and shows.
///
/// # Errors
/// What a planner refuses, files that cannot be read, and [`CliError::Lifetime`] for models and numbers that no plan can be made of.
pub fn run(context: &mut Context, command: PlanCommand) -> Result<(), CliError> {
    match command {
        PlanCommand::Bag(args) => bag::run(context, &args),
        PlanCommand::Checkpoint(args) => checkpoint::run(context, &args),
        PlanCommand::Reuse(args) => reuse::run(context, &args),
    }
}

//! `ebbtide-lab plan`: what to do with preemptible instances, given how long they live and what
//! they cost. No region is needed.

mod bag;
mod bid;
mod bid_methods;
mod checkpoint;
mod checkpoint_chart;
mod checkpoint_figures;
mod reuse;
mod reuse_chart;
mod reuse_figures;

use clap::Subcommand;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

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
    /// What to bid, on which instance type, by recorded prices
    #[command(after_help = bid::HELP)]
    Bid(Box<bid::BidArgs>),
}

/// Plans and shows.
///
/// # Errors
/// [`CliError::Lifetime`], [`CliError::Bag`] and [`CliError::Checkpointing`] for models, bags,
/// prices and numbers that no plan can be made of.
pub fn run(context: &mut Context, command: PlanCommand) -> Result<(), CliError> {
    match command {
        PlanCommand::Checkpoint(args) => checkpoint::run(context, &args),
        PlanCommand::Reuse(args) => reuse::run(context, &args),
        PlanCommand::Bid(args) => bid::run(context, &args),
        PlanCommand::Bag(args) => bag::run(context, &args),
    }
}

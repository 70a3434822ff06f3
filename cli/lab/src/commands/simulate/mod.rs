//! `ebbtide-lab simulate`: whole regions in virtual worlds, where everything goes wrong, and jobs
//! in recorded markets. No region is needed.

mod bag;
mod batch;
pub(in crate::commands) mod checkpointing;
mod deadline;
mod elastic;
mod evacuation;
mod tables;

use clap::Subcommand;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;

/// What is simulated.
#[derive(Debug, Clone, Subcommand)]
pub enum SimulateCommand {
    /// The way of victims from notice to gone, against crashes, lost answers, partitions, full
    /// disks and lies
    #[command(after_help = evacuation::HELP)]
    Evacuation(evacuation::EvacuationArgs),
    /// A job on spot instances in a recorded price history: six checkpoint schemes compared
    #[command(after_help = checkpointing::HELP)]
    Checkpointing(Box<checkpointing::CheckpointingArgs>),
    /// A bag of tasks with a deadline, while preemptible instances hibernate
    #[command(after_help = bag::HELP)]
    Bag(Box<bag::SimulateBagArgs>),
    /// Bags of equal jobs on a cluster of preemptible instances, against the same on demand
    #[command(after_help = batch::HELP)]
    Batch(Box<batch::BatchArgs>),
    /// A job with a deadline on recorded availability: the policies against the optimum
    #[command(after_help = deadline::HELP)]
    Deadline(Box<deadline::DeadlineArgs>),
    /// Preemptible servers for the short jobs of a batch cluster, on a recorded trace
    #[command(after_help = elastic::HELP)]
    Elastic(Box<elastic::ElasticArgs>),
}

/// Simulates and shows.
///
/// # Errors
/// [`CliError::Disagrees`] if a promise was broken, [`CliError::Usage`] for options that contradict
/// each other, [`CliError::Checkpointing`] for histories and bids that nothing can be said about,
/// [`CliError::Elastic`] for traces and clusters.
pub fn run(context: &mut Context, command: SimulateCommand) -> Result<(), CliError> {
    match command {
        SimulateCommand::Evacuation(args) => evacuation::run(context, &args),
        SimulateCommand::Checkpointing(args) => checkpointing::run(context, &args),
        SimulateCommand::Bag(args) => bag::run(context, &args),
        SimulateCommand::Batch(args) => batch::run(context, &args),
        SimulateCommand::Deadline(args) => deadline::run(context, &args),
        SimulateCommand::Elastic(args) => elastic::run(context, &args),
    }
}

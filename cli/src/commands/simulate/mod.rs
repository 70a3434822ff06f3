//! `ebbtide simulate`: whole regions in virtual worlds, where everything goes wrong. No region is needed.

mod bag;
mod evacuation;
mod shown;

use crate::Context;
use crate::errors::CliError;
use clap::Subcommand;

/// What is simulated.
#[derive(Debug, Clone, Subcommand)]
pub enum SimulateCommand {
    /// The way of victims from notice to gone, against crashes, lost answers, partitions, full disks and lies
    #[command(after_help = evacuation::HELP)]
    Evacuation(evacuation::EvacuationArgs),
    /// A bag of tasks with a deadline, while preemptible instances hibernate
    #[command(after_help = bag::HELP)]
    Bag(Box<bag::SimulateBagArgs>),
}

/// Simulates and shows.
///
/// # Errors
/// [`CliError::Disagrees`] if a promise was broken, [`CliError::Usage`] for options that contradict each other.
pub fn run(context: &mut Context, command: SimulateCommand) -> Result<(), CliError> {
    match command {
        SimulateCommand::Evacuation(args) => evacuation::run(context, &args),
        SimulateCommand::Bag(args) => bag::run(context, &args),
    }
}

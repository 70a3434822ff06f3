//! The commands of `ebbtide`: the list of all nouns, their groups in the help, the call of each.
//! The arguments of a noun are in its own file.

pub mod advice;
pub mod aggregate;
pub mod batch;
pub mod billing;
pub mod budget;
pub mod decision;
pub mod evacuation;
pub mod explain;
pub mod flavor;
pub mod host;
pub mod plugin;
pub mod price;
pub mod reclaim;
pub mod run;
pub mod server;
pub mod server_create;
pub mod server_group;
pub mod server_view;
pub mod status;
pub mod wait;
pub mod watch;
pub mod what_if;

use crate::args::Cli;
use clap::Subcommand;
use ebbtide_shell::Context;
use ebbtide_shell::completion::{self, CompletionArgs};
use ebbtide_shell::errors::CliError;
use ebbtide_shell::program::Groups;

/// The commands by what they are for, in the order of the help. A test holds it against the tree.
pub const GROUPS: Groups = &[
    (
        "Servers",
        &[
            "server",
            "flavor",
            "what-if",
            "explain",
            "decision",
            "evacuation",
            "watch",
        ],
    ),
    (
        "Operating a region",
        &["status", "host", "aggregate", "budget", "plugin"],
    ),
    ("Prices", &["price", "billing"]),
    ("Work on preemptible instances", &["run", "advice", "batch"]),
    ("This program", &["completion"]),
];

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Compute hosts: what they have, what is free, who may use them
    #[command(subcommand)]
    Host(host::HostCommand),
    /// Flavors: sizes of servers, normal and preemptible
    #[command(subcommand)]
    Flavor(flavor::FlavorCommand),
    /// Servers and server groups
    #[command(subcommand)]
    Server(server::ServerCommand),
    /// Host aggregates and their metadata
    #[command(subcommand)]
    Aggregate(aggregate::AggregateCommand),
    /// Disruption budgets: how many victims a project or server group may have in a time
    #[command(subcommand)]
    Budget(budget::BudgetCommand),
    /// Plugins of a region: list, add, use, compare in shadow; record the region for a trial
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// How long servers of a preemptible flavor will probably live, by what the region has seen
    Advice(advice::AdviceArgs),
    /// Decide as for `server create`, but change nothing
    WhatIf(what_if::WhatIfArgs),
    /// Say why a decision is as it is
    Explain(explain::ExplainArgs),
    /// Decisions of the scheduler
    #[command(subcommand)]
    Decision(decision::DecisionCommand),
    /// Prices of instance-hours: now, and before
    #[command(subcommand)]
    Price(price::PriceCommand),
    /// What each instance-hour was charged
    #[command(subcommand)]
    Billing(billing::BillingCommand),
    /// Evacuations: victims on their way out
    #[command(subcommand)]
    Evacuation(evacuation::EvacuationCommand),
    /// Show everything that happens, as it happens
    Watch(watch::WatchArgs),
    /// The region at a glance: hosts, servers, what is used and free
    Status(status::StatusArgs),
    /// Jobs, bags and workflows with deadlines and budgets; `ebbtide-batch` runs them on Slurm
    Batch(batch::BatchArgs),
    /// Run a command on preemptible instances: saved by schedule and on notice, gone on with
    /// elsewhere
    #[command(after_help = run::HELP)]
    Run(Box<run::RunArgs>),
    /// Print a completion script for a shell
    #[command(after_help = completion::examples("ebbtide"))]
    Completion(CompletionArgs),
}

impl Command {
    /// True if it talks to a region.
    #[must_use]
    pub fn uses_region(&self) -> bool {
        match self {
            // `run` goes to Nova itself, and needs no service `preemption`.
            Self::Batch(_) | Self::Run(_) | Self::Completion(_) => false,
            _ => true,
        }
    }
}

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
        Command::Batch(args) => Box::pin(batch::run(context, args)).await,
        Command::Run(args) => Box::pin(run::run(context, *args)).await,
        Command::Completion(args) => completion::run::<Cli>(context, &args),
    }
}

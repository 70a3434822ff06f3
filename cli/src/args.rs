//! What may be typed: the tree of commands. The options of a command stand in its own file.

use crate::commands::{
    advice, aggregate, bag, billing, budget, burst, decision, evacuation, explain, flavor, host,
    plugin, price, run, server, status, watch, what_if,
};
use clap::{Parser, Subcommand};
use ebbtide_shell::completion::{self, CompletionArgs};
use ebbtide_shell::globals::Globals;
use ebbtide_shell::program::{Groups, after_help, help_template};

const EXAMPLES: &str = "\
Examples:
  ebbtide status
  ebbtide flavor create spot.small --vcpus 1 --ram 2000 --disk 20 --preemptible
  ebbtide server create --flavor spot.small --wait worker-1
  ebbtide what-if --flavor m1.large --count 3
  ebbtide explain worker-1
  ebbtide server list -o json | jq -r '.[].host'

On the machines of the scheduler: `ebbtide-manage`. To measure, simulate and plan: `ebbtide-lab`.";

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
    (
        "Work on preemptible instances",
        &["run", "advice", "bag", "burst"],
    ),
    ("This program", &["completion"]),
];

fn template() -> String {
    help_template(
        &Command::augment_subcommands(clap::Command::new("ebbtide")),
        GROUPS,
    )
}

/// Places virtual machines, and gives idle capacity to preemptible ones until it is needed.
#[derive(Debug, Parser)]
#[command(
    name = "ebbtide",
    version,
    after_help = after_help(EXAMPLES),
    max_term_width = 100,
    help_template = template()
)]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

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
    /// Bags of tasks with a deadline, run by Slurm on preemptible nodes
    #[command(subcommand)]
    Bag(bag::BagCommand),
    /// Preemptible nodes of a Slurm cluster: what they were good for; `ebbtide-burst` looks after
    /// them
    #[command(subcommand)]
    Burst(burst::BurstCommand),
    /// Run a command on preemptible instances: saved by schedule and on notice, gone on with
    /// elsewhere
    #[command(after_help = run::HELP)]
    Run(Box<run::RunArgs>),
    /// Print a completion script for a shell
    #[command(after_help = completion::examples("ebbtide"))]
    Completion(CompletionArgs),
}

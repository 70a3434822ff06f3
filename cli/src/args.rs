//! What may be typed: the global options and the tree of commands. The options of a command stand
//! in its own file.

use crate::Context;
use crate::commands::{
    advice, aggregate, audit, bag, bench, billing, budget, burst, completion, config, conform,
    decision, evacuation, explain, flavor, host, init, model, plan, plugin, price, replay, run,
    server, simulate, status, token, watch, what_if,
};
use crate::output::{ColorChoice, Format};
use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

const AFTER_HELP: &str = "\
Exit codes:
  0  all went well
  1  refused or failed, \"no valid host\" included
  2  the command line or the configuration file is wrong
  3  the region cannot be reached
  4  what was asked for does not exist

Data goes to standard output, everything else to standard error.
Options come before environment variables, those before ~/.config/ebbtide/config.toml
(keys: endpoint, project, output, color, ca, certificate, key, token_file), that before the defaults.

Examples:
  ebbtide status
  ebbtide flavor create spot.small --vcpus 1 --ram 2000 --disk 20 --preemptible
  ebbtide server create --flavor spot.small --wait worker-1
  ebbtide what-if --flavor m1.large --count 3
  ebbtide explain worker-1
  ebbtide server list -o json | jq -r '.[].host'";

/// The commands by what they are for, in the order of the help. A test holds it against the tree.
pub const GROUPS: [(&str, &[&str]); 5] = [
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
        &[
            "init",
            "status",
            "host",
            "aggregate",
            "budget",
            "plugin",
            "config",
            "token",
            "audit",
        ],
    ),
    ("Prices", &["price", "billing"]),
    (
        "Work on preemptible instances",
        &["run", "advice", "model", "plan", "bag", "burst"],
    ),
    (
        "Trying and measuring",
        &["replay", "simulate", "bench", "conform", "completion"],
    ),
];

/// The help of the program itself: its commands by groups.
fn template() -> String {
    let mut text = String::from("{about-with-newline}\n{usage-heading} {usage}\n");
    let root = Command::augment_subcommands(clap::Command::new("ebbtide"));
    for (title, names) in GROUPS {
        text.push_str(&format!("\n{title}:\n"));
        for name in names {
            let about = root
                .find_subcommand(name)
                .and_then(clap::Command::get_about);
            let about = about.map(ToString::to_string).unwrap_or_default();
            let about = crate::layout::wrapped(&about, 64).join("\n              ");
            text.push_str(&format!("  {name:<11} {about}\n"));
        }
    }
    text.push_str("\nGlobal options:\n{options}{after-help}");
    text
}

/// Places virtual machines, and gives idle capacity to preemptible ones until it is needed.
#[derive(Debug, Parser)]
#[command(name = "ebbtide", version, after_help = AFTER_HELP, max_term_width = 100, help_template = template())]
pub struct Cli {
    /// Options of every command.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// Address of the region [default: http://127.0.0.1:7470]
    #[arg(long, env = "EBBTIDE_ENDPOINT", global = true, value_name = "URL")]
    pub endpoint: Option<String>,
    /// On whose behalf [default: default]
    #[arg(long, env = "EBBTIDE_PROJECT", global = true, value_name = "PROJECT")]
    pub project: Option<String>,
    /// Roots of the region's certificate (PEM), for https:// [default: the system's]
    #[arg(long, env = "EBBTIDE_CA", global = true, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Your certificate (PEM), where the region asks for one
    #[arg(long, env = "EBBTIDE_CERTIFICATE", global = true, value_name = "FILE")]
    pub certificate: Option<PathBuf>,
    /// Its private key (PEM)
    #[arg(long, env = "EBBTIDE_KEY", global = true, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// A file with your token; or put the token itself into EBBTIDE_TOKEN
    #[arg(long, env = "EBBTIDE_TOKEN_FILE", global = true, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Send the token in plain text to another machine
    #[arg(long, global = true)]
    pub insecure: bool,
    /// How to print answers [default: table]
    #[arg(
        short,
        short_alias = 'f',
        long,
        alias = "format",
        global = true,
        value_enum
    )]
    pub output: Option<Format>,
    /// Print only this column; may be repeated
    #[arg(short, long, global = true, value_name = "COLUMN")]
    pub column: Vec<String>,
    /// When to use colours [default: auto: on a terminal, unless NO_COLOR is set]
    #[arg(
        long,
        global = true,
        value_enum,
        hide_possible_values = true,
        value_name = "auto|always|never"
    )]
    pub color: Option<ColorChoice>,
    /// Print data and errors only
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Configuration file [default: ~/.config/ebbtide/config.toml]
    #[arg(long, env = "EBBTIDE_CONFIG", global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
}

/// Whose things to show.
#[derive(Debug, Clone, Args)]
pub struct ProjectScope {
    /// Those of all projects (for operators)
    #[arg(long)]
    pub all_projects: bool,
}

impl ProjectScope {
    /// The project to ask for; empty for all.
    #[must_use]
    pub fn project(&self, context: &Context) -> String {
        if self.all_projects {
            String::new()
        } else {
            context.project.clone()
        }
    }
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
    /// Weighers and cost modules beside those that are built in: write, check, measure, list
    #[command(subcommand)]
    Plugin(plugin::PluginCommand),
    /// Configuration of scheduler and agent, and nova.conf: every key explained, files judged
    #[command(subcommand)]
    Config(config::ConfigCommand),
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
    /// Make what a small region needs to be safe: certificates, a token, logins to the broker,
    /// configuration
    Init(Box<init::InitArgs>),
    /// Tokens: who may talk to a region; needs the token file only
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Hold Placement, Nova's databases and the ledger against each other
    Audit(audit::AuditArgs),
    /// Drive the region (or, offline, the engine alone) with a VM request trace
    Replay(Box<replay::ReplayArgs>),
    /// Prove that the engine decides as the papers say
    #[command(subcommand)]
    Conform(conform::ConformCommand),
    /// Measure how fast the engine is, and check what it answers; needs no region
    #[command(subcommand)]
    Bench(bench::BenchCommand),
    /// Whole regions in virtual worlds where everything goes wrong; jobs in recorded spot markets;
    /// needs no region
    #[command(subcommand)]
    Simulate(simulate::SimulateCommand),
    /// Models of how long preemptible instances live: fit, check; needs no region
    #[command(subcommand)]
    Model(model::ModelCommand),
    /// Plan work on preemptible instances: checkpoints, reuse, bids, bags of tasks; needs no region
    #[command(subcommand)]
    Plan(plan::PlanCommand),
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
    Completion(completion::CompletionArgs),
}

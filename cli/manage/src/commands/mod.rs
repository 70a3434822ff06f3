//! The commands, one file a noun: their tree, their groups in the help, their start. The options of
//! a command stand in its own file.

pub mod audit;
pub mod config;
pub mod init;
pub mod policy;
pub mod reconcile;
pub mod shadow;
pub mod token;
pub mod upgrade;

use crate::args::Cli;
use clap::Subcommand;
use ebbtide_shell::Context;
use ebbtide_shell::completion::{self, CompletionArgs};
use ebbtide_shell::errors::CliError;
use ebbtide_shell::program::Groups;

/// The commands by what they are for, in the order of the help. A test holds it against the tree.
pub const GROUPS: Groups = &[
    ("Setting up", &["init", "token", "policy", "config"]),
    (
        "Looking after it",
        &["audit", "reconcile", "upgrade", "shadow"],
    ),
    ("This program", &["completion"]),
];

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Configuration of scheduler and agent, and nova.conf: every key explained, files judged
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Make what a small region needs to be safe: certificates, a token, logins to the broker,
    /// configuration
    Init(Box<init::InitArgs>),
    /// Tokens: who may talk to a region; needs the token file only
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Which roles of Keystone may do what over the API of an OpenStack
    #[command(subcommand)]
    Policy(policy::PolicyCommand),
    /// Hold Placement, Nova's databases and the ledger against each other
    Audit(audit::AuditArgs),
    /// Reconcile a database that was restored from a backup with what runs
    Reconcile(reconcile::ReconcileArgs),
    /// What to look at before nova-scheduler is replaced, and before an upgrade
    #[command(subcommand)]
    Upgrade(upgrade::UpgradeCommand),
    /// What a scheduler beside nova-scheduler would have decided
    #[command(subcommand)]
    Shadow(shadow::ShadowCommand),
    /// Print a completion script for a shell
    #[command(after_help = completion::examples("ebbtide-manage"))]
    Completion(CompletionArgs),
}

impl Command {
    /// True if it talks to a region.
    #[must_use]
    pub fn uses_region(&self) -> bool {
        match self {
            Self::Audit(args) => args.config_file.is_empty(),
            Self::Reconcile(args) => args.config_file.is_empty(),
            _ => false,
        }
    }
}

/// Runs a command.
///
/// # Errors
/// Whatever the command meets.
pub async fn run(context: &mut Context, command: Command) -> Result<(), CliError> {
    match command {
        Command::Config(command) => config::run(context, &command),
        Command::Init(args) => init::run(context, &args),
        Command::Token(command) => token::run(context, command),
        Command::Policy(command) => policy::run(context, &command),
        Command::Audit(args) => Box::pin(audit::run(context, args)).await,
        Command::Reconcile(args) => Box::pin(reconcile::run(context, args)).await,
        Command::Upgrade(command) => Box::pin(upgrade::run(context, command)).await,
        Command::Shadow(command) => Box::pin(shadow::run(context, command)).await,
        Command::Completion(args) => completion::run::<Cli>(context, &args),
    }
}

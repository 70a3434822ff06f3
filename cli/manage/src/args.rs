//! What may be typed: the tree of commands. The options of a command stand in its own file.

use crate::commands::{audit, config, init, token, upgrade};
use clap::{Parser, Subcommand};
use ebbtide_shell::completion::{self, CompletionArgs};
use ebbtide_shell::globals::Globals;
use ebbtide_shell::program::{Groups, after_help, help_template};

const EXAMPLES: &str = "\
Examples:
  ebbtide-manage init /etc/ebbtide --host compute-1 --host compute-2
  ebbtide-manage token create --role operator --name ops --file /etc/ebbtide/tokens.toml
  ebbtide-manage config check /etc/nova/nova.conf --effective
  ebbtide-manage upgrade check --config-file /etc/nova/nova.conf
  ebbtide-manage audit --config-file /etc/nova/nova.conf";

/// The commands by what they are for, in the order of the help. A test holds it against the tree.
pub const GROUPS: Groups = &[
    ("Setting up", &["init", "token", "config"]),
    ("Looking after it", &["audit", "upgrade"]),
    ("This program", &["completion"]),
];

fn template() -> String {
    help_template(
        &Command::augment_subcommands(clap::Command::new("ebbtide-manage")),
        GROUPS,
    )
}

/// What operators do on the machines of the scheduler: set up, tokens, configuration, audits.
#[derive(Debug, Parser)]
#[command(
    name = "ebbtide-manage",
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
    /// Configuration of scheduler and agent, and nova.conf: every key explained, files judged
    #[command(subcommand)]
    Config(config::ConfigCommand),
    /// Make what a small region needs to be safe: certificates, a token, logins to the broker,
    /// configuration
    Init(Box<init::InitArgs>),
    /// Tokens: who may talk to a region; needs the token file only
    #[command(subcommand)]
    Token(token::TokenCommand),
    /// Hold Placement, Nova's databases and the ledger against each other
    Audit(audit::AuditArgs),
    /// What to look at before nova-scheduler is replaced, and before an upgrade
    #[command(subcommand)]
    Upgrade(upgrade::UpgradeCommand),
    /// Print a completion script for a shell
    #[command(after_help = completion::examples("ebbtide-manage"))]
    Completion(CompletionArgs),
}

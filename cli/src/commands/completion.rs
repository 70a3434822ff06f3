//! `ebbtide completion`: scripts for shells.

use crate::Context;
use crate::args::Cli;
use crate::errors::CliError;
use clap::{Args, CommandFactory, ValueEnum};

const EXAMPLES: &str = "\
Examples:
  source <(ebbtide completion bash)
  ebbtide completion zsh > ~/.zfunc/_ebbtide
  ebbtide completion fish > ~/.config/fish/completions/ebbtide.fish";

/// Options of `completion`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct CompletionArgs {
    /// Which shell
    pub shell: Shell,
}

/// The shells that there are scripts for.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum Shell {
    /// bash
    Bash,
    /// zsh
    Zsh,
    /// fish
    Fish,
}

/// Prints the script.
///
/// # Errors
/// [`CliError::Write`].
pub fn run(context: &mut Context, args: &CompletionArgs) -> Result<(), CliError> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "ebbtide", &mut script);
    context
        .output
        .raw(String::from_utf8_lossy(&script).trim_end())
}

//! Completion scripts of a program for shells.

use crate::Context;
use crate::errors::CliError;
use clap::{Args, CommandFactory, ValueEnum};

/// The examples of `completion` for a program.
#[must_use]
pub fn examples(program: &str) -> String {
    format!(
        "\
Examples:
  source <({program} completion bash)
  {program} completion zsh > ~/.zfunc/_{program}
  {program} completion fish > ~/.config/fish/completions/{program}.fish"
    )
}

/// Options of `completion`.
#[derive(Debug, Args)]
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

/// Prints the script of program `P`.
///
/// # Errors
/// [`CliError::Write`].
pub fn run<P: CommandFactory>(
    context: &mut Context,
    args: &CompletionArgs,
) -> Result<(), CliError> {
    let shell = match args.shell {
        Shell::Bash => clap_complete::Shell::Bash,
        Shell::Zsh => clap_complete::Shell::Zsh,
        Shell::Fish => clap_complete::Shell::Fish,
    };
    let mut script = Vec::new();
    let mut command = P::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut script);
    context
        .output
        .raw(String::from_utf8_lossy(&script).trim_end())
}

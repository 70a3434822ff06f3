//! Man pages and shell completions of all programs, from the definitions of their command lines.
//!
//! A program `NAME` has the files `man/NAME/NAME.SECTION`, one more page for each command, and
//! `completions/NAME/{NAME,_NAME,NAME.fish}` for bash, zsh and fish.

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use std::fs;
use std::io;
use std::path::Path;

/// A program that is shipped.
#[derive(Debug)]
pub struct Program {
    command: Command,
    /// 1: for all users. 8: for administrators.
    section: &'static str,
}

/// All programs.
#[must_use]
pub fn programs() -> Vec<Program> {
    let program = |command, section| Program { command, section };
    vec![
        program(ebbtide_cli::args::Cli::command(), "1"),
        program(ebbtide_lab::args::Cli::command(), "1"),
        program(ebbtide_manage::args::Cli::command(), "8"),
        program(ebbtide_scheduler::args::Args::command(), "8"),
        program(ebbtide_agent::cli::Cli::command(), "8"),
        program(ebbtide_batch_service::args::Cli::command(), "8"),
    ]
}

impl Program {
    /// The program's name.
    #[must_use]
    pub fn name(&self) -> &str {
        self.command.get_name()
    }

    /// Writes its pages and completions below a directory.
    ///
    /// # Errors
    /// A file cannot be written.
    pub fn write(mut self, to: &Path) -> io::Result<()> {
        let name = self.name().to_owned();
        // Completions build the command, `help` included.
        let mut command = without_help(self.command.clone());
        let completions = to.join("completions").join(&name);
        fs::create_dir_all(&completions)?;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut self.command, &name, &completions)?;
        }
        // bash-completion looks for the name of the command alone.
        fs::rename(
            completions.join(format!("{name}.bash")),
            completions.join(&name),
        )?;

        let pages = to.join("man").join(&name);
        fs::create_dir_all(&pages)?;
        command.build();
        write_pages(&command, self.section, &pages)
    }
}

/// The command and its own commands without `help`, which says the same as the pages.
fn without_help(command: Command) -> Command {
    let command = command.disable_help_subcommand(true);
    command.mut_subcommands(without_help)
}

/// The page of a command and those of its own commands.
fn write_pages(command: &Command, section: &str, to: &Path) -> io::Result<()> {
    for sub in command.get_subcommands() {
        if !sub.is_hide_set() {
            write_pages(sub, section, to)?;
        }
    }
    let title = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let man = clap_mangen::Man::new(command.clone())
        .section(section)
        .source(concat!("Ebbtide ", env!("CARGO_PKG_VERSION")))
        .manual("Ebbtide");
    let mut page = Vec::new();
    man.render(&mut page)?;
    fs::write(to.join(format!("{title}.{section}")), page)
}

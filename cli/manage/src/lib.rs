//! The `ebbtide-manage` command: what operators do on the machines of the scheduler, as
//! `nova-manage` is for Nova. It reads the files and databases of the scheduler.

pub mod args;
pub mod commands;
mod error;

use args::Cli;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::globals::Globals;
use ebbtide_shell::program::Program;

impl Program for Cli {
    const MOVED: &'static [(&'static [&'static str], &'static str)] = &[];

    fn globals(&mut self) -> Globals {
        std::mem::take(&mut self.globals)
    }

    fn uses_region(&self) -> bool {
        self.command.uses_region()
    }

    async fn run(self, context: &mut Context) -> Result<(), CliError> {
        commands::run(context, self.command).await
    }
}

//! The `ebbtide-lab` command: whole regions in virtual worlds, replays, benchmarks, proofs; models
//! of lifetimes and plans of work. It links the engine and the simulators.

pub mod args;
mod bag;
pub mod commands;
mod error;
mod figure_rows;
mod progress;

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

//! The `ebbtide` command for operators and tenants, after the habits of the `openstack` client:
//! what a region does for them. It links no database, no broker and no engine.
//!
//! - `http` sends requests to servers of the same machine: metadata, the batch service.
//! - `args` says what may be typed, `commands/*` does it, one file a noun.
//! - What the programs share is in `ebbtide-shell`, the connection in `ebbtide-client`.
//!
//! Invariants: commands start processes through `process`.

pub mod args;
pub mod commands;
mod counterfactual_view;
pub mod decision_view;
mod http;
pub mod process;

use args::Cli;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::globals::Globals;
use ebbtide_shell::program::Program;

impl Program for Cli {
    const MOVED: &'static [(&'static [&'static str], &'static str)] = &[
        (&["bench"], "ebbtide-lab"),
        (&["conform"], "ebbtide-lab"),
        (&["model"], "ebbtide-lab"),
        (&["plan"], "ebbtide-lab"),
        (&["replay"], "ebbtide-lab"),
        (&["simulate"], "ebbtide-lab"),
        (&["plugin", "bench"], "ebbtide-lab"),
        (&["plugin", "check"], "ebbtide-lab"),
        (&["plugin", "new"], "ebbtide-lab"),
        (&["plugin", "try"], "ebbtide-lab"),
        (&["audit"], "ebbtide-manage"),
        (&["config"], "ebbtide-manage"),
        (&["init"], "ebbtide-manage"),
        (&["token"], "ebbtide-manage"),
    ];

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

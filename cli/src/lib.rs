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
        (&["bench"], "ebbtide-lab bench"),
        (&["conform"], "ebbtide-lab conform"),
        (&["model"], "ebbtide-lab model"),
        (&["plan"], "ebbtide-lab plan"),
        (&["replay"], "ebbtide-lab replay"),
        (&["simulate"], "ebbtide-lab simulate"),
        (&["plugin", "bench"], "ebbtide-lab plugin bench"),
        (&["plugin", "check"], "ebbtide-lab plugin check"),
        (&["plugin", "new"], "ebbtide-lab plugin new"),
        (&["plugin", "try"], "ebbtide-lab plugin try"),
        (&["bag"], "ebbtide batch"),
        (&["burst"], "ebbtide batch elastic"),
        (&["audit"], "ebbtide-manage audit"),
        (&["config"], "ebbtide-manage config"),
        (&["init"], "ebbtide-manage init"),
        (&["token"], "ebbtide-manage token"),
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

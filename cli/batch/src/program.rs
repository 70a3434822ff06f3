//! The tasks that slurmctld calls, and the way to end.

use crate::pool::PoolOptions;
use crate::{power, setup};
use clap::Subcommand;
use ebbtide_shell::errors::CliError;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Tasks about the nodes.
#[derive(Debug, Subcommand)]
pub enum PoolTask {
    /// Create the servers of nodes; slurmctld's ResumeProgram
    Resume {
        /// Nodes, as Slurm lists them
        nodes: String,
    },
    /// Give the servers of nodes back; slurmctld's SuspendProgram
    Suspend {
        /// Nodes, as Slurm lists them
        nodes: String,
    },
    /// Delete the servers of nodes that never came up; slurmctld's ResumeFailProgram
    ResumeFailed {
        /// Nodes, as Slurm lists them
        nodes: String,
    },
    /// Write the programs that slurmctld calls, and print the lines for slurm.conf
    Setup {
        /// The folder for the programs
        #[arg(long, value_name = "DIR")]
        programs: PathBuf,
    },
}

impl PoolTask {
    /// Carries the task out.
    ///
    /// # Errors
    /// Those of [`power`] and [`setup`].
    pub async fn carry_out(self, pool: &PoolOptions<'_>, config: &Path) -> Result<(), CliError> {
        match self {
            Self::Resume { nodes } => power::resume(pool, &nodes).await,
            Self::Suspend { nodes } => power::suspend(pool, &nodes).await,
            Self::ResumeFailed { nodes } => power::failed(pool, &nodes).await,
            Self::Setup { programs } => setup::run(pool, config, &programs),
        }
    }
}

/// Runs a program to its end, and reports its error.
pub fn finish(program: impl Future<Output = Result<(), CliError>>) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let done = match runtime {
        Ok(runtime) => runtime.block_on(program),
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain!("{}: {error}", error.code());
            if let Some(next) = error.next_step("") {
                complain!("{next}");
            }
            ExitCode::from(error.exit_code())
        }
    }
}

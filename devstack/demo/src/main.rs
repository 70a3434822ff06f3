//! `ebbtide-demo`: tells the story on a running region (`story`), runs a whole region in this
//! process (`embedded`), or does work that can be checked (`chain`).

/// One line of output. A reader that has gone away (`| head`) ends nothing and is no error:
/// `println!` would panic.
macro_rules! say {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($words)*)));
    }};
}

/// The same to standard error.
macro_rules! complain {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($words)*)));
    }};
}

mod chain;
mod embedded;
mod silent_hosts;

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use ebbtide_demo::story::{self, StoryWriter};
use ebbtide_engine::papers;
use ebbtide_model::Seconds;
use ebbtide_runtime::clock;
use std::path::PathBuf;
use std::process::ExitCode;

/// The paper's scenario on a region.
#[derive(Debug, Parser)]
#[command(name = "ebbtide-demo", version)]
struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Load a table of the paper into a running region, send its request, tell what happens.
    Story {
        /// Where the region's API is.
        #[arg(
            long,
            env = "EBBTIDE_ENDPOINT",
            default_value = "http://127.0.0.1:7470"
        )]
        endpoint: String,
        /// Which table of the paper: 3, 4, 5 or 6.
        #[arg(long, default_value_t = 5)]
        table: u8,
        /// Grace period of the preemptible flavors, in seconds.
        #[arg(long, default_value_t = 3)]
        grace: u32,
    },
    /// Run scheduler and four agents in this process, without RabbitMQ, until SIGTERM or Ctrl-C.
    Embedded(embedded::Options),
    /// Keep a processor busy with work whose result can be checked: SHA-256 of SHA-256 of … (a job
    /// for `ebbtide run`).
    Chain {
        /// How many rounds.
        #[arg(long, required_unless_present = "rate", default_value_t = 0)]
        rounds: u64,
        /// Where the state is written when SIGUSR1 comes.
        #[arg(long)]
        save_to: Option<PathBuf>,
        /// A state to begin from.
        #[arg(long)]
        resume: Option<PathBuf>,
        /// Only print how many rounds this machine computes in a second.
        #[arg(long)]
        rate: bool,
    },
}

#[tokio::main]
async fn main() -> ExitCode {
    match run(Args::parse()).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            complain!("ebbtide-demo: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The reader of the story has gone away.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let mut causes = error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.any(|cause| cause.kind() == std::io::ErrorKind::BrokenPipe)
}

async fn run(args: Args) -> Result<()> {
    match args.what {
        What::Story {
            endpoint,
            table,
            grace,
        } => {
            let all = papers::tables();
            let wanted = format!("table{table}_");
            let table = all
                .iter()
                .find(|t| t.id.starts_with(&wanted))
                .with_context(|| format!("there is no table {table}; use 3, 4, 5 or 6"))?;
            let mut teller = StoryWriter::new(std::io::stdout(), clock::now);
            let ending = story::tell(&endpoint, table, Seconds(grace), &mut teller).await?;
            let expected = table.expected_victims.join("+");
            let took = ending.took_millis;
            teller.say(&format!(
                "Done in {}.{} s. The paper expects {expected} to go, and {} went.",
                took / 1000,
                took % 1000 / 100,
                ending.victims.join("+")
            ))?;
            say!("server {}", ending.server_id);
            Ok(())
        }
        What::Chain { rate: true, .. } => {
            say!("{}", chain::rate());
            Ok(())
        }
        What::Chain {
            rounds,
            save_to,
            resume,
            ..
        } => {
            let result = chain::run(rounds, save_to.as_deref(), resume.as_deref()).await?;
            say!("{result}");
            Ok(())
        }
        What::Embedded(options) => embedded::run(options).await,
    }
}

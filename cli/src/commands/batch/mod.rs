//! `ebbtide batch`: jobs, bags and workflows on preemptible servers, and the elastic partition of a
//! Slurm cluster. `ebbtide-batch` runs them.

mod client;
mod elastic;
mod view;

use crate::http::Address;
use clap::{Args, Subcommand};
use client::{BatchClient, BatchFault};
use ebbtide_batch::WorkReport;
use ebbtide_batch::view::{ServiceStatus, WorkDetails, WorkSummary};
use ebbtide_model::{Money, toml_text};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;

const SUBMIT: &str = "\
The file is TOML, or JSON with the same keys; docs/tenants/batch.md has all of them. A job:

  name = \"render\"
  dir = \"/shared/render\"        # all nodes see it: done/, output/ and results/ come there
  command = \"./render $EBBTIDE_MEMBER\"
  count = 200                   # a bag; or parameters = { ALPHA = [0.1, 0.2], SEED = [1, 2, 3] }
  cpus = 2
  length = \"20m\"                # of one member, as far as you know
  deadline = \"6h\"               # of all, from now
  budget = \"3.00\"
  checkpoint = { command = \"./save\", restore = \"./resume\" }

A bag by primary and backup maps, for servers that may hibernate; docs/tenants/bags.md#run-it:

  name = \"frames\"
  dir = \"/shared/frames\"
  command = \"./render $EBBTIDE_TASK\"
  rules = { deadline = \"6h\", boot = \"2m\", margin = \"2m\" }
  tasks = [{ name = \"frame\", count = 40, duration = \"20m\", memory_mb = 1000 }]

Examples:
  ebbtide batch submit render.toml
  ebbtide batch submit render.toml --wait
  ebbtide batch submit frames.toml --dry-run
  ebbtide batch submit flow.json -o value -c id

Exit codes with --wait: 0 all members are done, by the deadline if there is one; 1 the work failed
or was cancelled; 5 all members are done, after the deadline.";
const REPORT: &str = "\
The work is compared with on-demand servers by a replay: the same members, each as long as it worked in
the end, in the order of their stages, on the cheapest on-demand type that has room for them. Whole
servers are compared, with the time in which they boot or are idle; a server that several works used
is divided among them by use.

Examples:
  ebbtide batch report 3
  ebbtide batch report 3 -o json | jq .on_demand.cost_ratio";

/// Where the service is.
#[derive(Debug, Clone, Args)]
pub struct BatchService {
    /// The batch service: unix:PATH or http://HOST:PORT
    #[arg(
        long,
        env = "EBBTIDE_BATCH",
        default_value = "unix:/run/ebbtide-batch/socket",
        value_name = "ADDRESS",
        global = true
    )]
    service: String,
    /// A file with its token
    #[arg(
        long,
        env = "EBBTIDE_BATCH_TOKEN_FILE",
        value_name = "FILE",
        global = true
    )]
    service_token_file: Option<PathBuf>,
}

/// `batch` and what is done.
#[derive(Debug, Clone, Args)]
pub struct BatchArgs {
    #[command(flatten)]
    service: BatchService,
    #[command(subcommand)]
    task: BatchTask,
}

/// What is done.
#[derive(Debug, Clone, Subcommand)]
enum BatchTask {
    /// Hand in a job, an array, a bag or a workflow
    #[command(after_help = SUBMIT)]
    Submit {
        /// The work, TOML or JSON
        file: PathBuf,
        /// Wait until it is over; the exit code is 0 if all of it is done in time, 5 if it is late
        #[arg(long)]
        wait: bool,
        /// Show both maps of a bag with rules, and hand nothing in
        #[arg(long, conflicts_with = "wait")]
        dry_run: bool,
    },
    /// All work
    #[command(
        after_help = "Examples:\n  ebbtide batch list\n  ebbtide batch list -o json | jq '.[].state'"
    )]
    List,
    /// One work and its members
    #[command(after_help = "Examples:\n  ebbtide batch show 3\n  ebbtide batch show 3 --members")]
    Show {
        /// Its number
        id: u64,
        /// All members, not only those that run or failed
        #[arg(long)]
        members: bool,
    },
    /// End a work; what is done stays done
    #[command(after_help = "Examples:\n  ebbtide batch cancel 3")]
    Cancel {
        /// Its number
        id: u64,
    },
    /// Change what may be spent on a work
    #[command(
        after_help = "Examples:\n  ebbtide batch budget 3 5.00\n  ebbtide batch budget 3 none"
    )]
    Budget {
        /// Its number
        id: u64,
        /// An amount, or `none`
        amount: String,
    },
    /// What a work took and cost, beside the same members on on-demand servers
    #[command(after_help = REPORT)]
    Report {
        /// Its number
        id: u64,
    },
    /// What the elastic partition was good for: waiting times with and without it, and its cost
    #[command(after_help = elastic::HELP)]
    Elastic {
        /// The report of a run of the same jobs without it, in JSON
        #[arg(long, value_name = "FILE")]
        baseline: Option<PathBuf>,
    },
    /// The service at a glance: servers, what runs there, what is wrong
    #[command(after_help = "Examples:\n  ebbtide batch status")]
    Status,
}

/// Pause between two looks of `--wait`.
const WAIT: Duration = Duration::from_secs(1);

/// Does it.
///
/// # Errors
/// [`BatchFault`]: what the service says, or that it cannot be reached.
pub async fn run(context: &mut Context, args: BatchArgs) -> Result<(), CliError> {
    let address: Address = args.service.service.parse().map_err(CliError::Usage)?;
    let client = BatchClient::new(address, args.service.service_token_file.as_deref())?;
    match args.task {
        BatchTask::Submit {
            file,
            wait,
            dry_run,
        } => {
            let document = read(&file)?;
            if dry_run {
                let body = client.call("POST", "/v1/plans", Some(&document)).await?;
                return view::plan(context, &client::parse(&body)?, body);
            }
            let body = client.call("POST", "/v1/works", Some(&document)).await?;
            let made: WorkSummary = client::parse(&body)?;
            if !wait {
                return view::summary(context, &made, body);
            }
            context
                .output
                .say(&format!("work {} is handed in", made.id));
            wait_for(context, &client, made.id).await
        }
        BatchTask::List => {
            let body = client.call("GET", "/v1/works", None).await?;
            let all: Vec<WorkSummary> = client::parse(&body)?;
            view::list(context, &all, body)
        }
        BatchTask::Show { id, members } => {
            let body = client.call("GET", &format!("/v1/works/{id}"), None).await?;
            let one: WorkDetails = client::parse(&body)?;
            view::details(context, &one, body, members)
        }
        BatchTask::Cancel { id } => {
            let path = format!("/v1/works/{id}/cancel");
            let body = client.call("POST", &path, Some(&json!({}))).await?;
            view::summary(context, &client::parse(&body)?, body)
        }
        BatchTask::Budget { id, amount } => {
            let budget = match amount.as_str() {
                "none" => Value::Null,
                text => {
                    let wrong =
                        |_| CliError::Usage(format!("{text:?} is no amount: 5.00, or none"));
                    Value::String(text.parse::<Money>().map_err(wrong)?.to_string())
                }
            };
            let path = format!("/v1/works/{id}/budget");
            let body = client
                .call("PUT", &path, Some(&json!({"budget": budget})))
                .await?;
            view::summary(context, &client::parse(&body)?, body)
        }
        BatchTask::Report { id } => {
            let body = client
                .call("GET", &format!("/v1/works/{id}/report"), None)
                .await?;
            let made: WorkReport = client::parse(&body)?;
            view::report(context, &made, body)
        }
        BatchTask::Elastic { baseline } => {
            elastic::run(context, &client, baseline.as_deref()).await
        }
        BatchTask::Status => {
            let body = client.call("GET", "/v1/status", None).await?;
            let status: ServiceStatus = client::parse(&body)?;
            view::status(context, &status, body)
        }
    }
}

async fn wait_for(context: &mut Context, client: &BatchClient, id: u64) -> Result<(), CliError> {
    let path = format!("/v1/works/{id}");
    let mut last = (usize::MAX, usize::MAX);
    let mut broke = false;
    loop {
        let body = client.call("GET", &path, None).await?;
        let one: WorkDetails = client::parse(&body)?;
        let made = &one.summary;
        if (made.done, made.running) != last {
            last = (made.done, made.running);
            let words = format!(
                "{} of {} done, {} run",
                made.done, made.members, made.running
            );
            context.output.say_at_terminal(&words);
        }
        if !std::mem::replace(&mut broke, made.state == "over-budget") && broke {
            context.output.say(&format!(
                "the budget of work {id} is used up: `ebbtide batch budget {id} AMOUNT` lets it go on"
            ));
        }
        match made.state.as_str() {
            "done" => {
                let late = made.deadline_met == Some(false);
                view::summary(context, made, client::without_members(body))?;
                return match late {
                    true => Err(BatchFault::Late { id }.into()),
                    false => Ok(()),
                };
            }
            "failed" | "cancelled" => {
                return Err(BatchFault::NotDone {
                    id,
                    state: made.state.clone(),
                }
                .into());
            }
            _ => tokio::time::sleep(WAIT).await,
        }
    }
}

/// A work from its file.
fn read(path: &Path) -> Result<Value, CliError> {
    let config = |problem: String| BatchFault::File {
        path: path.display().to_string(),
        problem,
    };
    let text = std::fs::read_to_string(path).map_err(|error| config(error.to_string()))?;
    if path.extension().is_some_and(|end| end == "json") {
        let made = serde_json::from_str(&text);
        return Ok(made.map_err(|error| config(error.to_string()))?);
    }
    let table: toml::Table = toml::from_str(&text).map_err(|error: toml::de::Error| {
        config(toml_text::problem(&text, error.span(), error.message()))
    })?;
    Ok(serde_json::to_value(table).map_err(|error| config(error.to_string()))?)
}

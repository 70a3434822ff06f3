//! `ebbtide advice`: what a region knows of how long servers of a flavor live.

mod chart;
mod tables;

use clap::Args;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::charts;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use std::path::PathBuf;

const EXAMPLES: &str = "\
The region fits a model to the lives that it has written down and says what follows for a server of this
flavor: how long it will probably live, the chance of an interruption within 1, 6 and 24 hours beside what was
seen of servers of that age, and whether the same way of telling was right before (past lives are told their
chances by models of what was known before their launch). With --job, when to write checkpoints.
Tenants get it of their own servers' lives and, in batches, of those of others:
docs/tenants/lifetimes.md, docs/operate/security.md.
Where too little is known it says so: exit code 0, no model.

Examples:
  ebbtide advice spot.small
  ebbtide advice spot.small --age 3h --job 8h --checkpoint 1m --restart 2m
  ebbtide advice spot.small --svg spot.svg
  ebbtide advice spot.small -o json | jq -r .model
  ebbtide-lab plan reuse --job 5h --age 3h --model \"$(ebbtide advice spot.small -o value)\"";

/// Options of `advice`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct AdviceArgs {
    /// A preemptible flavor, by name or id
    pub flavor: String,
    /// How old the server is
    #[arg(long, default_value = "0", value_name = "TIME")]
    pub age: Hours,
    /// How much work there is, at most a week: says when to write checkpoints
    #[arg(long, value_name = "TIME")]
    pub job: Option<Hours>,
    /// How long a checkpoint takes
    #[arg(long, default_value = "1m", value_name = "TIME")]
    pub checkpoint: Hours,
    /// How long it takes to get a new server and load the checkpoint
    #[arg(long, default_value = "0", value_name = "TIME")]
    pub restart: Hours,
    /// Draw the life that is left, and what was told before against what happened, into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Asks and shows.
///
/// # Errors
/// What the region says; [`CliError::Usage`] for a job of no length.
pub async fn run(context: &mut Context, args: AdviceArgs) -> Result<(), CliError> {
    if args.job.is_some_and(|job| job.0 <= 0.0) {
        let problem = "--job has to be longer than nothing; leave it out for no job";
        return Err(CliError::Usage(problem.to_owned()));
    }
    let request = v1::GetAdviceRequest {
        flavor: args.flavor.clone(),
        age_hours: args.age.0,
        job_hours: args.job.map_or(0.0, |job| job.0),
        checkpoint_hours: Some(args.checkpoint.0),
        restart_hours: args.restart.0,
    };
    let answer = context.region().await?.market.get_advice(request).await?;
    let advice = answer.into_inner();
    tables::show(context, &args, &advice)?;
    match &args.svg {
        Some(_) if advice.model.is_empty() => {
            context.output.say("nothing is known, so nothing is drawn");
            Ok(())
        }
        Some(path) => charts::write(context, path, &chart::figure(&advice)),
        None => Ok(()),
    }
}

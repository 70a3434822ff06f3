//! `ebbtide-manage reconcile`: a database that was restored from a backup, and what is right: the
//! hosts of a region, or Placement and Nova's databases.

use super::audit::node_bar;
use crate::error::ManageError;
use clap::Args;
use ebbtide_model::ReconcileStep;
use ebbtide_nova_service::audit::Disagreement;
use ebbtide_nova_service::reconcile::{LedgerReport, reconcile};
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Listing, TableCell, text};
use ebbtide_shell::render::Tone;
use std::path::PathBuf;

const EXAMPLES: &str = "\
A restored database is of an earlier time than the hosts. After
`ebbtide-scheduler --config FILE --restored` a scheduler on it hears the agents and decides nothing.
This command compares every record with what the agents report. Without --apply it shows what it
would do; with --apply it does that in one transaction, and the region decides again. No server is
ended for the lack of a record.

With nova.conf it reconciles the ledger of preemptions of an OpenStack, after
`ebbtide-scheduler --config-file FILE --restored`: schedulers on it answer requests and preempt no
server. The command reads the ledger, Nova's databases and Placement, with the credentials there.
--apply writes the ledger in one transaction; what has to be done in Placement and at agents, the
schedulers do then. See docs/operate/backup.md.

Examples:
  ebbtide-manage reconcile
  ebbtide-manage reconcile -o json | jq -r '.steps[] | [.action, .subject, .why] | @tsv'
  ebbtide-manage reconcile --apply
  ebbtide-manage reconcile --apply --without-host compute-7
  ebbtide-manage reconcile --config-file /etc/nova/nova.conf
  ebbtide-manage reconcile --config-file /etc/nova/nova.conf --apply";

/// Options of `reconcile`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReconcileArgs {
    /// Do it
    #[arg(long)]
    pub apply: bool,
    /// A host that is lost for good: its agent need not be heard. May be repeated
    #[arg(long, value_name = "HOST", conflicts_with = "config_file")]
    pub without_host: Vec<String>,
    /// nova.conf of a cloud that Ebbtide schedules; several are read as Nova reads them
    #[arg(long, value_name = "FILE")]
    pub config_file: Vec<PathBuf>,
    /// A folder with more of it
    #[arg(long, value_name = "DIR", requires = "config_file")]
    pub config_dir: Vec<PathBuf>,
}

/// Asks and shows.
///
/// # Errors
/// What the region says, also that it cannot be reconciled now; [`ManageError::NovaService`].
pub async fn run(context: &mut Context, args: ReconcileArgs) -> Result<(), CliError> {
    if !args.config_file.is_empty() {
        return ledger(context, &args).await;
    }
    let request = v1::ReconcileRequest {
        apply: args.apply,
        without_hosts: args.without_host,
    };
    let asked = context.region().await?.admin.reconcile(request).await?;
    let answer = asked.into_inner();
    show(context, summary(&answer), &answer)
}

/// The ledger of an OpenStack.
async fn ledger(context: &mut Context, args: &ReconcileArgs) -> Result<(), CliError> {
    let conf = ebbtide_nova_service::read_conf(&args.config_file, &args.config_dir)
        .map_err(ManageError::NovaService)?;
    let bar = node_bar(context);
    let done = Box::pin(reconcile(&conf, args.apply, bar.progress())).await;
    bar.finish();
    let report = done.map_err(ManageError::NovaService)?;
    let answer = answer(report, args.apply);
    show(context, ledger_summary(&answer), &answer)
}

fn answer(report: LedgerReport, applied: bool) -> v1::ReconcileResponse {
    let hosts = u32::try_from(report.hosts).unwrap_or(u32::MAX);
    let backup_at = report.mark.and_then(|mark| mark.backup_at);
    let finding = |found: Disagreement| v1::Finding {
        code: found.code.to_owned(),
        subject: found.subject,
        what: found.what,
        next: found.next.to_owned(),
    };
    let step = |step: ReconcileStep| v1::ReconcileStep {
        action: step.action.as_str().to_owned(),
        subject: step.subject,
        host: step.host,
        why: step.why,
        next: step.next,
    };
    v1::ReconcileResponse {
        held: report.mark.is_some(),
        backup_at: backup_at.map(|at| at.to_string()).unwrap_or_default(),
        applied: applied && report.mark.is_some(),
        hosts,
        compared_hosts: hosts,
        steps: report.steps.into_iter().map(step).collect(),
        obstacles: report.obstacles.into_iter().map(finding).collect(),
    }
}

fn show(
    context: &mut Context,
    summary: Vec<String>,
    answer: &v1::ReconcileResponse,
) -> Result<(), CliError> {
    for line in summary {
        context.output.say(&line);
    }
    let rows = answer.steps.iter().map(|step| {
        let tone = match step.action.as_str() {
            "look" | "disable" => Tone::Bad,
            _ => Tone::Plain,
        };
        vec![
            TableCell::new(&step.action).tone(tone),
            TableCell::new(&step.subject),
            TableCell::new(&step.host),
            TableCell::new(&step.why),
            TableCell::new(&step.next),
        ]
    });
    let rows = rows.collect();
    context.output.listing(Listing {
        columns: vec![
            text("action", "ACTION"),
            text("subject", "SUBJECT"),
            text("host", "HOST"),
            text("why", "WHY"),
            text("next", "NEXT"),
        ],
        rows,
        json: json::message(answer),
        none: "Nothing to do.",
    })
}

fn summary(answer: &v1::ReconcileResponse) -> Vec<String> {
    if !answer.held {
        return vec![
            "The region's database is not marked as restored: there is nothing to reconcile."
                .to_owned(),
        ];
    }
    let of = match answer.backup_at.as_str() {
        "" => "The backup has heard no agent".to_owned(),
        at => format!("The backup is of about {at}"),
    };
    let mut lines = vec![format!(
        "{of}; {} of {} hosts were heard since the restore.",
        answer.compared_hosts, answer.hosts
    )];
    lines.extend(obstacles(answer));
    lines.push(match answer.applied {
        true => "Done. The region decides again.".to_owned(),
        false => "Nothing was changed; --apply does this:".to_owned(),
    });
    lines
}

fn ledger_summary(answer: &v1::ReconcileResponse) -> Vec<String> {
    if !answer.held {
        return vec![
            "The ledger is not marked as restored: there is nothing to reconcile.".to_owned(),
        ];
    }
    let of = match answer.backup_at.as_str() {
        "" => "The backup has no scheduler".to_owned(),
        at => format!("The backup is of about {at}"),
    };
    let mut lines = vec![format!(
        "{of}; {} compute nodes were compared.",
        answer.hosts
    )];
    lines.extend(obstacles(answer));
    lines.push(match answer.applied {
        true => "Done. The schedulers preempt again within seconds.".to_owned(),
        false => "Nothing was changed; --apply does this:".to_owned(),
    });
    lines
}

fn obstacles(answer: &v1::ReconcileResponse) -> impl Iterator<Item = String> {
    answer.obstacles.iter().map(|obstacle| {
        format!(
            "Not yet: {} ({}): {}. Next: {}.",
            obstacle.subject, obstacle.code, obstacle.what, obstacle.next
        )
    })
}

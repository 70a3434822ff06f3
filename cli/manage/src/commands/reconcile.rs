//! `ebbtide-manage reconcile`: a region whose database was restored from a backup, and its hosts.

use clap::Args;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Listing, TableCell, text};
use ebbtide_shell::render::Tone;

const EXAMPLES: &str = "\
A restored database is of an earlier time than the hosts. After
`ebbtide-scheduler --config FILE --restored` a scheduler on it hears the agents and decides nothing.
This command compares every record with what the agents report. Without --apply it shows what it
would do; with --apply it does that in one transaction, and the region decides again. No server is
ended for the lack of a record. See docs/operate/backup.md.

Examples:
  ebbtide-manage reconcile
  ebbtide-manage reconcile -o json | jq -r '.steps[] | [.action, .subject, .why] | @tsv'
  ebbtide-manage reconcile --apply
  ebbtide-manage reconcile --apply --without-host compute-7";

/// Options of `reconcile`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct ReconcileArgs {
    /// Do it
    #[arg(long)]
    pub apply: bool,
    /// A host that is lost for good: its agent need not be heard. May be repeated
    #[arg(long, value_name = "HOST")]
    pub without_host: Vec<String>,
}

/// Asks and shows.
///
/// # Errors
/// What the region says, also that it cannot be reconciled now.
pub async fn run(context: &mut Context, args: ReconcileArgs) -> Result<(), CliError> {
    let request = v1::ReconcileRequest {
        apply: args.apply,
        without_hosts: args.without_host,
    };
    let asked = context.region().await?.admin.reconcile(request).await?;
    show(context, &asked.into_inner())
}

fn show(context: &mut Context, answer: &v1::ReconcileResponse) -> Result<(), CliError> {
    for line in summary(answer) {
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
    for obstacle in &answer.obstacles {
        lines.push(format!(
            "Not yet: {} ({}): {}. Next: {}.",
            obstacle.subject, obstacle.code, obstacle.what, obstacle.next
        ));
    }
    lines.push(match answer.applied {
        true => "Done. The region decides again.".to_owned(),
        false => "Nothing was changed; --apply does this:".to_owned(),
    });
    lines
}

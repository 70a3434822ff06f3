//! `ebbtide status`: the region at a glance.

use crate::commands::host;
use clap::Args;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Details, TableCell};
use ebbtide_shell::render::{Tone, bar};

const EXAMPLES: &str = "\
Two bars for each resource class: one where only normal servers count, one where all do. What the
second shows beyond the first can be had back from preemptible servers.

Examples:
  ebbtide status
  ebbtide status -o json | jq '.resources[] | {resource_class, normal, preemptible}'";

/// Options of `status`: none but the global ones.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct StatusArgs {}

/// Asks and shows.
///
/// # Errors
/// What the region says.
pub async fn run(context: &mut Context, _: StatusArgs) -> Result<(), CliError> {
    let request = v1::RegionSummaryRequest {};
    let summary = context
        .region()
        .await?
        .scheduler
        .region_summary(request)
        .await?
        .into_inner();
    let details = details(context, &summary);
    context.output.details(details)?;
    if context.output.is_table() && !context.output.has_columns() {
        bars(context, &summary.resources)?;
        host::resources(context, &summary.resources)?;
    }
    Ok(())
}

fn details(context: &Context, summary: &v1::RegionSummaryResponse) -> Details {
    let mut servers: Vec<String> = summary
        .servers
        .iter()
        .filter(|(_, count)| **count > 0)
        .map(|(status, count)| format!("{count} {status}"))
        .collect();
    servers.sort();
    let servers = if servers.is_empty() {
        "none".to_owned()
    } else {
        servers.join(", ")
    };
    let count = |n: u32, tone| {
        if n == 0 {
            TableCell::new(n)
        } else {
            TableCell::new(n).tone(tone)
        }
    };
    let bus = if summary.bus_connected {
        TableCell::new(format!("{}, connected", summary.bus)).tone(Tone::Good)
    } else {
        TableCell::new(format!("{}, NOT connected", summary.bus)).tone(Tone::Bad)
    };
    Details {
        fields: vec![
            ("cloud", TableCell::new(&context.cloud)),
            ("endpoint", TableCell::new(&context.endpoint)),
            ("version", TableCell::new(&summary.version)),
            ("hosts_up", count(summary.hosts_up, Tone::Good)),
            ("hosts_down", count(summary.hosts_down, Tone::Bad)),
            ("hosts_disabled", count(summary.hosts_disabled, Tone::Warn)),
            ("servers", TableCell::new(servers)),
            ("policy", TableCell::new(&summary.policy)),
            ("cost_module", TableCell::new(&summary.cost_module)),
            ("bus", bus),
            ("database", TableCell::new(&summary.database)),
        ],
        json: json::message(summary),
    }
}

/// Two bars for each class.
fn bars(context: &mut Context, usages: &[v1::ResourceUsage]) -> Result<(), CliError> {
    // Room for the labels and the numbers beside the bar.
    let width = context
        .output
        .columns_wide()
        .saturating_sub(74)
        .clamp(10, 60);
    let label = usages
        .iter()
        .map(|u| u.resource_class.len())
        .max()
        .unwrap_or(0);
    for usage in usages {
        let percent = |used: u64| {
            let capacity = usage.capacity.max(1);
            u128::from(used) * 100 / u128::from(capacity)
        };
        let all = usage.normal + usage.preemptible + usage.leaving;
        let h_n = bar(&[(usage.normal, '█', Tone::Strong)], usage.capacity, width);
        let h_f = bar(
            &[
                (usage.normal, '█', Tone::Strong),
                (usage.preemptible, '▓', Tone::Good),
                (usage.leaving, '░', Tone::Warn),
            ],
            usage.capacity,
            width,
        );
        let h_n_text = format!(
            "{:>3} %  {} of {} normal",
            percent(usage.normal),
            usage.normal,
            usage.capacity
        );
        let h_f_text = format!(
            "{:>3} %  + {} preemptible, {} leaving",
            percent(all),
            usage.preemptible,
            usage.leaving
        );
        for (name, counted, parts, text) in [
            (usage.resource_class.as_str(), "normal only", h_n, h_n_text),
            ("", "all", h_f, h_f_text),
        ] {
            let drawn: String = parts
                .iter()
                .map(|(text, tone)| context.output.paint(text, *tone))
                .collect();
            context
                .output
                .line(&format!("{name:<label$}  {counted:<11} {drawn} {text}"))?;
        }
    }
    Ok(())
}

//! `ebbtide watch`: everything that happens, one line an event.

use crate::decision_view;
use clap::Args;
use ebbtide_proto::v1::{self, watch_event::Event};
use ebbtide_shell::Context;
use ebbtide_shell::backoff::PollBackoff;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::Format;
use ebbtide_shell::output::TableCell;
use ebbtide_shell::render::{Tone, number, optional, time_of_day, tone_of};
use std::collections::HashMap;
use tokio::signal::unix::{SignalKind, signal};
use tonic::Streaming;

const EXAMPLES: &str = "\
From now on, until Ctrl-C. With -o json each line is one JSON object. When the region goes away, as it
does when a scheduler restarts, the command connects again; what happens meanwhile is not shown.

Examples:
  ebbtide watch
  ebbtide watch --all-projects -o json | jq -c 'select(.evacuation)'";
/// Names of so many servers are remembered, to call victims by their names.
const MOST_NAMES: usize = 100_000;

/// Options of `watch`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WatchArgs {
    /// Only the events of the project; without it, all
    #[arg(long)]
    pub only_project: bool,
    /// All events (this is the default)
    #[arg(long, conflicts_with = "only_project")]
    pub all_projects: bool,
    /// End after so many events
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
}

/// Prints events until Ctrl-C or the limit. A region that was reached once and goes away is tried
/// again.
///
/// # Errors
/// [`CliError::Unreachable`] if the region cannot be reached at first, or what it refuses.
pub async fn run(context: &mut Context, args: WatchArgs) -> Result<(), CliError> {
    let project_id = if args.only_project {
        context.project.clone()
    } else {
        String::new()
    };
    let mut stream = open(context, &project_id).await?;
    // Heard from now on and kept until it is asked for: a listener made anew for every event would
    // miss what comes while one is printed.
    let mut stop = signal(SignalKind::interrupt())?;
    context.output.say("watching; Ctrl-C ends it");
    let mut names = HashMap::new();
    let mut patience = PollBackoff::default();
    let mut seen = 0;
    while args.limit.is_none_or(|limit| seen < limit) {
        let event = tokio::select! {
            event = stream.message() => event,
            _ = stop.recv() => return Ok(()),
        };
        let ended = match event {
            Ok(Some(event)) => Ok(event),
            Ok(None) => Err(CliError::StreamEnded(String::new())),
            Err(status) => Err(CliError::from(status)),
        };
        let event = match ended {
            Ok(event) => event,
            Err(error) => {
                let again = open_again(context, &project_id, &mut patience, error);
                stream = tokio::select! {
                    again = again => again?,
                    _ = stop.recv() => return Ok(()),
                };
                continue;
            }
        };
        seen += 1;
        remember(&mut names, &event);
        if context.output.format() == Format::Json {
            context.output.json_line(&json::message(&event))?;
        } else {
            let line = line(context, &event, &names);
            context.output.line(&line)?;
        }
    }
    Ok(())
}

async fn open(context: &Context, project_id: &str) -> Result<Streaming<v1::WatchEvent>, CliError> {
    let request = v1::WatchRequest {
        project_id: project_id.to_owned(),
    };
    let mut region = context.region().await?;
    Ok(region.scheduler.watch(request).await?.into_inner())
}

/// Tries until there is a stream again, or the region refuses one.
async fn open_again(
    context: &mut Context,
    project_id: &str,
    patience: &mut PollBackoff,
    mut error: CliError,
) -> Result<Streaming<v1::WatchEvent>, CliError> {
    loop {
        if !error.is_passing() {
            return Err(error);
        }
        patience.pause(context, &error).await;
        match open(context, project_id).await {
            Ok(stream) => {
                patience.answered(context, "; what happened meanwhile is not shown");
                return Ok(stream);
            }
            Err(again) => error = again,
        }
    }
}

fn remember(names: &mut HashMap<String, String>, event: &v1::WatchEvent) {
    if names.len() > MOST_NAMES {
        names.clear();
    }
    match &event.event {
        Some(Event::Server(server)) => {
            names.insert(server.id.clone(), server.name.clone());
        }
        Some(Event::Decision(decision)) => {
            let victims = decision
                .placements
                .iter()
                .flat_map(|placement| &placement.victims);
            let known = victims.filter(|victim| !victim.server_id.is_empty());
            names.extend(known.map(|victim| (victim.server_id.clone(), victim.name.clone())));
        }
        _ => {}
    }
}

/// The first block of a UUID: enough to recognise one, short enough for a line.
fn short(id: &str) -> &str {
    // The last block of a time-ordered id differs where the first does not.
    id.rsplit('-').next().unwrap_or(id)
}

fn line(context: &Context, event: &v1::WatchEvent, names: &HashMap<String, String>) -> String {
    let out = &context.output;
    let named = |id: &str| {
        names
            .get(id)
            .map_or_else(|| short(id).to_owned(), Clone::clone)
    };
    let colored = |word: &str| out.paint(word, tone_of(word));
    let (kind, text) = match &event.event {
        Some(Event::Decision(decision)) => {
            let tone = if decision.no_valid_host.is_some() {
                Tone::Bad
            } else {
                Tone::Strong
            };
            let what = if decision.preemptible {
                "preemptible"
            } else {
                "normal"
            };
            let outcome = out.paint(&decision_view::outcome(decision), tone);
            (
                "decision",
                format!("{what} {}: {outcome}", decision.flavor_name),
            )
        }
        Some(Event::Server(server)) => {
            let mut text = format!("{} {}", server.name, colored(&server.status));
            if !server.host.is_empty() {
                text.push_str(&format!(" on {}", server.host));
            }
            if !server.fault_message.is_empty() {
                text.push_str(&format!(": {}", server.fault_message));
            }
            ("server", text)
        }
        Some(Event::Evacuation(evacuation)) => {
            let mut text = format!(
                "{} on {} {}, for {}, {} after {} s, cost {}",
                named(&evacuation.victim_id),
                evacuation.host,
                colored(&evacuation.state),
                super::evacuation::purpose(evacuation)
                    .unwrap_or_else(|| named(&evacuation.preemptor_id)),
                evacuation.behaviour,
                evacuation.grace_seconds,
                number(evacuation.cost),
            );
            if !evacuation.reason.is_empty() {
                text.push_str(&format!(": {}", evacuation.reason));
            }
            ("evacuation", text)
        }
        Some(Event::Host(host)) => {
            let mut text = format!("{} {}", host.name, colored(&host.health));
            if !host.disabled_reason.is_empty() {
                text.push_str(&format!(": {}", host.disabled_reason));
            }
            ("host", text)
        }
        Some(Event::Lagged(missed)) => {
            let text = format!("{missed} events missed: this reader is too slow");
            ("lagged", out.paint(&text, Tone::Bad))
        }
        None => (
            "unknown",
            "an event that this version does not know".to_owned(),
        ),
    };
    let TableCell { text: at, .. } = optional(&time_of_day(&event.at));
    format!("{} {kind:<10} {text}", out.paint(&at, Tone::Dim))
}

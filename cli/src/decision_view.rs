//! How a decision looks: where everything goes, who has to leave, and why.

use crate::counterfactual_view;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Format, ListingColumn, TableCell, number, text};
use ebbtide_shell::render::{
    Tone, number as decimal, optional, pairs, plural, relative, span_f64, yes,
};

/// What was decided, in one line without names of servers.
#[must_use]
pub fn outcome(decision: &v1::Decision) -> String {
    if let Some(nowhere) = &decision.no_valid_host {
        return format!("no valid host: {}", nowhere.reason);
    }
    let hosts: Vec<&str> = decision
        .placements
        .iter()
        .map(|p| p.host.as_str())
        .collect();
    let victims: Vec<&v1::Victim> = decision
        .placements
        .iter()
        .flat_map(|p| &p.victims)
        .collect();
    let leaves = match victims.as_slice() {
        [] => String::new(),
        [one] => format!(", {} has to leave", one.name),
        several => format!(", {} servers have to leave", several.len()),
    };
    match hosts.as_slice() {
        [] => "nothing to place".to_owned(),
        [one] => format!("{one}{leaves}"),
        several if several.len() <= 3 => format!("{}{leaves}", several.join(", ")),
        several => format!("{} hosts{leaves}", several.len()),
    }
}

/// The line that `server create` says as soon as it is decided.
#[must_use]
pub fn headline(decision: &v1::Decision) -> String {
    let waiting = decision
        .placements
        .iter()
        .filter(|p| p.waits_for_room)
        .count();
    let wait = match waiting {
        0 => String::new(),
        n if n == decision.placements.len() => "; waiting for capacity".to_owned(),
        n => format!("; {n} of {} wait for capacity", decision.placements.len()),
    };
    format!("decided: {}{wait}", outcome(decision))
}

/// A decision in the format asked for, with everything that is known about it.
///
/// # Errors
/// [`CliError::Write`].
pub fn print(context: &mut Context, decision: &v1::Decision) -> Result<(), CliError> {
    match context.output.format() {
        Format::Json => return context.output.json(&json::message(decision)),
        Format::Value => {
            for placement in &decision.placements {
                let victims: Vec<&str> = placement
                    .victims
                    .iter()
                    .map(|v| v.server_id.as_str())
                    .collect();
                let line = format!(
                    "{} {} {}",
                    placement.server_id,
                    placement.host,
                    victims.join(",")
                );
                context.output.line(line.trim_end())?;
            }
            return Ok(());
        }
        Format::Table | Format::Markdown => {}
    }
    head(context, decision)?;
    if let Some(nowhere) = &decision.no_valid_host {
        nowhere_table(context, nowhere)?;
    } else {
        placements(context, &decision.placements)?;
    }
    if let Some(explanation) = &decision.explanation {
        explained(context, decision, explanation)?;
    }
    served(context, decision)
}

/// How an OpenStack's request was served: by which scheduler, how long each part took, which claims
/// Placement refused.
fn served(context: &mut Context, decision: &v1::Decision) -> Result<(), CliError> {
    if !decision.request_id.is_empty() {
        let mut line = format!("Request {}", decision.request_id);
        if !decision.user_id.is_empty() {
            line += &format!(", user {}", decision.user_id);
        }
        if !decision.scheduler.is_empty() {
            line += &format!(", scheduler {}", decision.scheduler);
        }
        context.output.line(&line)?;
    }
    if !decision.refused_claims.is_empty() {
        let columns = [
            text("server_id", "Server"),
            text("host", "Claim refused on"),
            text("reason", "Reason"),
        ];
        let row = |claim: &v1::RefusedClaim| {
            vec![
                TableCell::new(&claim.server_id),
                TableCell::new(&claim.host),
                TableCell::new(&claim.reason).tone(Tone::Warn),
            ]
        };
        let rows: Vec<_> = decision.refused_claims.iter().map(row).collect();
        context.output.table(&columns, &rows)?;
    }
    if decision.times.is_empty() {
        return Ok(());
    }
    let parts: Vec<String> = decision
        .times
        .iter()
        .map(|time| format!("{} {}", time.part, decimal(time.micros as f64 / 1000.0)))
        .collect();
    let line = format!("Time in ms: {}", parts.join(", "));
    context.output.line(&line)
}

fn head(context: &mut Context, decision: &v1::Decision) -> Result<(), CliError> {
    let when = relative(&decision.at, context.output.now());
    let kind = if decision.preemptible {
        "preemptible"
    } else {
        "normal"
    };
    let id = if decision.id.is_empty() {
        String::new()
    } else {
        format!(" {}", decision.id)
    };
    context.output.line(&format!(
        "Decision{id}, {when}: {} of flavor {} ({kind}), project {}",
        plural(
            decision
                .server_ids
                .len()
                .max(decision.placements.len())
                .max(1),
            "server"
        ),
        decision.flavor_name,
        decision.project_id,
    ))?;
    if let Some(why) = &decision.explanation {
        let state = match why.filtered_on.as_str() {
            "normal" => "what is free if only normal servers count",
            "full" => "what is free if all servers count",
            other => other,
        };
        context.output.line(&format!(
            "Policy {}, cost module {}, filtered on {state}, seed {}",
            why.policy, why.cost_module, why.seed
        ))?;
    }
    Ok(())
}

/// A victim set: `BP1 (11), BP2 (31)`.
fn victims(victims: &[v1::Victim]) -> String {
    let names: Vec<String> = victims
        .iter()
        .map(|v| format!("{} ({})", v.name, decimal(v.cost)))
        .collect();
    names.join(", ")
}

fn placements(context: &mut Context, placements: &[v1::Placement]) -> Result<(), CliError> {
    let columns = [
        text("server_id", "Server"),
        text("host", "Host"),
        text("victims", "Who has to leave (cost)"),
        text("waits_for_room", "Waits for capacity"),
        text("alternates", "Alternates"),
    ];
    let row = |p: &v1::Placement| {
        vec![
            TableCell::new(&p.server_id),
            TableCell::new(&p.host).tone(Tone::Strong),
            if p.victims.is_empty() {
                TableCell::new("no server").tone(Tone::Good)
            } else {
                TableCell::new(victims(&p.victims)).tone(Tone::Warn)
            },
            yes(p.waits_for_room),
            optional(&p.alternates.join(", ")),
        ]
    };
    let rows: Vec<_> = placements.iter().map(row).collect();
    context.output.table(&columns, &rows)?;
    let leaving: Vec<&v1::Victim> = placements.iter().flat_map(|p| &p.victims).collect();
    if leaving.is_empty() {
        return Ok(());
    }
    let columns = [
        text("name", "Victim"),
        text("project_id", "Project"),
        number("age_seconds", "Age"),
        number("cost", "Cost"),
        text("resources", "Frees"),
    ];
    let row = |victim: &&v1::Victim| {
        let hidden = victim.server_id.is_empty();
        vec![
            TableCell::new(&victim.name),
            optional(&victim.project_id),
            if hidden {
                optional("")
            } else {
                TableCell::new(span_f64(victim.age_seconds))
            },
            TableCell::new(decimal(victim.cost)),
            TableCell::new(pairs(&victim.resources)),
        ]
    };
    let rows: Vec<_> = leaving.iter().map(row).collect();
    context.output.table(&columns, &rows)
}

fn nowhere_table(context: &mut Context, nowhere: &v1::NoValidHost) -> Result<(), CliError> {
    let line = context
        .output
        .paint(&format!("No valid host: {}", nowhere.reason), Tone::Bad);
    context.output.line(&line)?;
    if nowhere.placed_before > 0 {
        context.output.line(&format!(
            "{} found room before it failed; all or nothing, so none was kept",
            plural(nowhere.placed_before as usize, "server")
        ))?;
    }
    let rows: Vec<_> = nowhere
        .dropped
        .iter()
        .map(|count| vec![TableCell::new(&count.filter), TableCell::new(count.dropped)])
        .collect();
    context.output.line(&format!(
        "{} considered:",
        plural(nowhere.hosts as usize, "host")
    ))?;
    context.output.table(
        &[text("filter", "Filter"), number("dropped", "Hosts dropped")],
        &rows,
    )
}

fn explained(
    context: &mut Context,
    decision: &v1::Decision,
    why: &v1::Explanation,
) -> Result<(), CliError> {
    for (position, instance) in why.instances.iter().enumerate() {
        let server = decision
            .placements
            .get(position)
            .map(|p| p.server_id.as_str());
        let which = match (why.instances.len(), server) {
            (1, _) => String::new(),
            (_, Some(server)) => format!(" for {server}"),
            (_, None) => format!(" for number {}", position + 1),
        };
        filters(context, &which, &instance.filters)?;
        ranking(context, &which, instance)?;
    }
    if !why.optimal && !why.instances.is_empty() {
        let text = format!(
            "The search for victims was cut by a limit: their cost is at most {} above the optimum",
            decimal(why.gap)
        );
        let text = context.output.paint(&text, Tone::Warn);
        context.output.line(&text)?;
    }
    if why.surcharge > 0.0 {
        let text = format!(
            "All victims together cost {} more than each alone",
            decimal(why.surcharge)
        );
        context.output.line(&text)?;
    }
    for line in counterfactual_view::lines(decision, why) {
        context.output.line(&line)?;
    }
    for warning in &why.warnings {
        let text = context
            .output
            .paint(&format!("Warning: {warning}"), Tone::Warn);
        context.output.line(&text)?;
    }
    Ok(())
}

fn filters(context: &mut Context, which: &str, steps: &[v1::FilterStep]) -> Result<(), CliError> {
    if steps.is_empty() {
        return Ok(());
    }
    let columns = [
        text("filter", "Filter"),
        number("before", "Hosts before"),
        number("after", "Hosts after"),
        number("dropped", "Dropped"),
        text("examples", "For example"),
    ];
    let row = |step: &v1::FilterStep| {
        let dropped = step.before.saturating_sub(step.after);
        let examples: Vec<String> = step
            .dropped
            .iter()
            .take(3)
            .map(|d| format!("{}: {}", d.host, d.reason))
            .collect();
        vec![
            TableCell::new(&step.filter),
            TableCell::new(step.before),
            TableCell::new(step.after),
            TableCell::new(dropped).tone(if dropped == 0 { Tone::Dim } else { Tone::Warn }),
            optional(&examples.join("; ")),
        ]
    };
    let rows: Vec<_> = steps.iter().map(row).collect();
    context.output.line(&format!("Filters{which}"))?;
    context.output.table(&columns, &rows)
}

fn ranking(
    context: &mut Context,
    which: &str,
    instance: &v1::InstanceExplanation,
) -> Result<(), CliError> {
    if instance.ranking.is_empty() {
        return Ok(());
    }
    let weighers = weighers(&instance.ranking);
    let mut columns: Vec<ListingColumn> = vec![
        text("chosen", ""),
        text("host", "Host"),
        number("eviction_cost", "Eviction cost"),
        text("victims", "Cheapest victims (cost)"),
        number("weight", "Weight"),
    ];
    let rows: Vec<_> = instance
        .ranking
        .iter()
        .map(|host| ranked(host, &weighers))
        .collect();
    context.output.line(&format!(
        "Ranking{which}: best {} of {}; weighers: raw → normalised × multiplier",
        instance.ranking.len(),
        plural(instance.ranked as usize, "host")
    ))?;
    columns.extend(weighers.iter().map(|_| number("weigher", "")));
    context
        .output
        .table_with_headings(&columns, &weighers, &rows)?;
    if let Some(line) = second(&instance.ranking) {
        context.output.line(&line)?;
    }
    Ok(())
}

/// All weighers that spoke about any host, in their order.
fn weighers(ranking: &[v1::RankedHost]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for weight in ranking.iter().flat_map(|host| &host.weights) {
        if !names.contains(&weight.weigher) {
            names.push(weight.weigher.clone());
        }
    }
    names
}

fn ranked(host: &v1::RankedHost, weighers: &[String]) -> Vec<TableCell> {
    let tone = if host.chosen {
        Tone::Strong
    } else {
        Tone::Plain
    };
    let mut cells = vec![
        TableCell::new(if host.chosen { "*" } else { "" }).tone(tone),
        TableCell::new(&host.host).tone(tone),
        host.eviction_cost.map_or_else(
            || TableCell::new("not needed").tone(Tone::Dim),
            |cost| TableCell::new(decimal(cost)),
        ),
        match (host.victims.is_empty(), host.eviction_cost) {
            (true, Some(_)) => TableCell::new("no server").tone(Tone::Good),
            (true, None) => optional(""),
            (false, _) => TableCell::new(victims(&host.victims)),
        },
        TableCell::new(decimal(host.weight)),
    ];
    cells.extend(weighers.iter().map(|name| {
        host.weights
            .iter()
            .find(|w| &w.weigher == name)
            .map_or_else(
                || optional(""),
                |w| {
                    TableCell::new(format!(
                        "{} → {} × {}",
                        decimal(w.raw),
                        decimal(w.normalised),
                        decimal(w.multiplier)
                    ))
                },
            )
    }));
    cells
}

/// Who would have been taken otherwise, and by how much it lost.
fn second(ranking: &[v1::RankedHost]) -> Option<String> {
    let chosen = ranking.iter().find(|host| host.chosen)?;
    let second = ranking.iter().find(|host| !host.chosen)?;
    let by = match (chosen.eviction_cost, second.eviction_cost) {
        (Some(ours), Some(theirs)) if theirs > ours => {
            format!("its victims cost {} more", decimal(theirs - ours))
        }
        _ if chosen.weight > second.weight => {
            format!(
                "its weight is {} lower",
                decimal(chosen.weight - second.weight)
            )
        }
        _ => "it is as good; the order of ties decided".to_owned(),
    };
    Some(format!("Second was {}: {by}", second.host))
}

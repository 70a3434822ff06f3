//! Advice as tables.

use super::AdviceArgs;
use ebbtide_model::Money;
use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::hours::interval_list;
use ebbtide_shell::json;
use ebbtide_shell::output::{Details, Format, TableCell, number, text};
use ebbtide_shell::render::Tone;

pub(super) fn show(
    context: &mut Context,
    args: &AdviceArgs,
    advice: &v1::GetAdviceResponse,
) -> Result<(), CliError> {
    match context.output.format() {
        Format::Json => return context.output.json(&json::message(advice)),
        // What another command takes.
        Format::Value => return context.output.line(&advice.model),
        Format::Table | Format::Markdown => {}
    }
    context.output.details(Details {
        fields: fields(advice),
        json: json::message(advice),
    })?;
    if context.output.has_columns() {
        return Ok(());
    }
    if advice.model.is_empty() {
        return context.output.line(&format!(
            "{}; there are {} in {} {} of {} together.",
            advice.too_little,
            advice.interruptions,
            advice.lives,
            if advice.lives == 1 { "life" } else { "lives" },
            Hours(advice.lived_hours),
        ));
    }
    chances(context, advice)?;
    calibration(context, advice.calibration.clone().unwrap_or_default())?;
    match &advice.schedule {
        Some(plan) => schedule(context, args, plan),
        None => Ok(()),
    }
}

fn fields(advice: &v1::GetAdviceResponse) -> Vec<(&'static str, TableCell)> {
    let whose = match advice.whose.as_str() {
        "own" => "your own only: those of others are too few, or of too few tenants".to_owned(),
        "own-and-others" => format!("{} of your own, and others'", advice.own_lives),
        _ => "everybody's".to_owned(),
    };
    let scope = match advice.scope.as_str() {
        "flavor" => TableCell::new("of this flavor"),
        _ => TableCell::new("of all preemptible flavors: this one's own are too few")
            .tone(Tone::Warn),
    };
    let limit = match advice.max_lifetime_hours {
        0.0 => "none".to_owned(),
        hours => Hours(hours).to_string(),
    };
    let mut fields = vec![
        ("flavor", TableCell::new(&advice.flavor)),
        ("age", TableCell::new(Hours(advice.age_hours))),
        ("max_lifetime", TableCell::new(limit)),
        (
            "lives",
            TableCell::new(format!(
                "{}, {} interrupted, {} together",
                advice.lives,
                advice.interruptions,
                Hours(advice.lived_hours)
            )),
        ),
        ("whose", TableCell::new(whose)),
        ("scope", scope),
    ];
    if let Some(price) = &advice.price {
        let lows = advice
            .price_history
            .iter()
            .filter_map(|p| p.price.parse::<Money>().ok());
        let (low, high) = (lows.clone().min(), lows.max());
        let words = match (low, high) {
            (Some(low), Some(high)) if price.floor != price.ceiling => {
                format!(
                    "{} an hour; {low} to {high} at the last changes",
                    price.price
                )
            }
            _ => format!("{} an hour", price.price),
        };
        fields.push(("price", TableCell::new(words).value(&price.price)));
    }
    if !advice.model.is_empty() {
        let tone = if advice.model_fits {
            Tone::Plain
        } else {
            Tone::Warn
        };
        fields.push(("model", TableCell::new(&advice.model)));
        fields.push((
            "model_words",
            TableCell::new(&advice.model_words).tone(tone),
        ));
        let left = TableCell::new(Hours(advice.expected_hours)).tone(Tone::Strong);
        fields.push(("expected_life_left", left));
    }
    fields
}

fn percent(share: f64) -> String {
    let percents = share * 100.0;
    // A decimal where it matters.
    if percents > 0.0 && percents < 9.95 {
        format!("{percents:.1} %")
    } else {
        format!("{percents:.0} %")
    }
}

/// `21 % (15 to 29)`.
fn seen(share: Option<&v1::SeenShare>) -> String {
    share.map_or_else(
        || "not watched for so long".to_owned(),
        |s| {
            format!(
                "{:.0} % ({:.0} to {:.0})",
                s.share * 100.0,
                s.low * 100.0,
                s.high * 100.0
            )
        },
    )
}

fn chances(context: &mut Context, advice: &v1::GetAdviceResponse) -> Result<(), CliError> {
    let columns = [
        text("within", "Interrupted within"),
        number("chance", "Chance"),
        text("seen", "Seen at this age (95 %)"),
    ];
    let rows = advice.chances.iter().map(|one| {
        vec![
            TableCell::new(Hours(one.within_hours)),
            TableCell::new(percent(one.chance)).tone(Tone::Strong),
            TableCell::new(seen(one.seen.as_ref())),
        ]
    });
    let rows: Vec<Vec<TableCell>> = rows.collect();
    context.output.table(&columns, &rows)
}

fn calibration(context: &mut Context, tested: v1::Calibration) -> Result<(), CliError> {
    let untold = match tested.untold {
        0 => String::new(),
        n => format!(" {n} were told nothing, since too little was known before."),
    };
    if tested.rows.is_empty() {
        return context.output.line(&format!(
            "Calibration: not known, too few lives began after a model was possible.{untold}"
        ));
    }
    let columns = [
        text("within", "Within, from the launch"),
        number("told", "Told before"),
        number("lives", "Lives"),
        text("were", "Were (95 %)"),
        text("verdict", ""),
    ];
    let row = |row: &v1::ToldBefore, all: bool| {
        let told = percent(row.told);
        vec![
            TableCell::new(Hours(row.within_hours)),
            TableCell::new(if all { format!("{told}, all") } else { told }),
            TableCell::new(row.lives),
            TableCell::new(seen(row.were.as_ref())),
            if row.off {
                TableCell::new("off").tone(Tone::Bad)
            } else {
                TableCell::new("as told").tone(Tone::Good)
            },
        ]
    };
    let mut rows = Vec::new();
    for all in &tested.overall {
        let within = all.within_hours;
        let own = tested.rows.iter().filter(|row| row.within_hours == within);
        let own: Vec<&v1::ToldBefore> = own.collect();
        rows.extend(own.iter().map(|one| row(one, false)));
        // One row alone is all.
        if own.len() != 1 {
            rows.push(row(all, true));
        }
    }
    context.output.table(&columns, &rows)?;
    let verdict = match tested.verdict.as_str() {
        "agrees" => "what was told before agrees with what happened",
        _ => {
            "earlier predictions differ from what happened by more than sampling noise: the region has changed, or no model fits it. Use the figures with care"
        }
    };
    context
        .output
        .line(&format!("Calibration: {verdict}.{untold}"))
}

fn schedule(
    context: &mut Context,
    args: &AdviceArgs,
    plan: &v1::CheckpointSchedule,
) -> Result<(), CliError> {
    context.output.line(&format!(
        "A job of {} from age {}; a checkpoint takes {}, a restart {}; planned by steps of {}:",
        Hours(plan.job_hours),
        args.age,
        args.checkpoint,
        args.restart,
        Hours(plan.step_hours)
    ))?;
    let columns = [
        text("plan", "Checkpoints"),
        text("intervals", "Minutes of work before each, and to the end"),
        text("expected", "Expected time"),
        number("overhead", "Overhead"),
    ];
    let line = |name: &str, words: String, hours: Option<f64>, tone| {
        let overhead = hours.map_or_else(
            || "-".to_owned(),
            |hours| format!("{:.1} %", (hours / plan.job_hours - 1.0) * 100.0),
        );
        vec![
            TableCell::new(name).tone(tone),
            TableCell::new(words),
            TableCell::new(Hours(hours.unwrap_or(f64::INFINITY))),
            TableCell::new(overhead),
        ]
    };
    let rows = vec![
        line(
            "recommended",
            intervals(plan),
            Some(plan.expected_hours),
            Tone::Strong,
        ),
        line(
            "every hour",
            "60".to_owned(),
            plan.hourly_hours,
            Tone::Plain,
        ),
        line("none", "-".to_owned(), plan.without_hours, Tone::Plain),
    ];
    context.output.table(&columns, &rows)
}

/// The intervals, server by server; one alone has no checkpoint.
fn intervals(plan: &v1::CheckpointSchedule) -> String {
    if plan.interval_hours.len() == 1 {
        return "-".to_owned();
    }
    let mut servers = Vec::new();
    let mut from = 0;
    let news = plan.new_server_before.iter().map(|at| *at as usize);
    for until in news.chain([plan.interval_hours.len()]) {
        servers.push(interval_list(
            plan.interval_hours.get(from..until).unwrap_or_default(),
        ));
        from = until;
    }
    servers.join(" new server: ").trim_start().to_owned()
}

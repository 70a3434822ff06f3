//! `ebbtide plugin shadow-report`: how often and where decisions would have been others, and at
//! what cost.

use ebbtide_proto::v1;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json;
use ebbtide_shell::output::{Format, Listing, TableCell, number, text};
use ebbtide_shell::render::{Tone, number as decimal};

/// Rows that a person looks at.
const ROWS: usize = 10;

pub(super) async fn run(context: &mut Context) -> Result<(), CliError> {
    let mut region = context.region().await?;
    let asked = region.plugins.shadow_report(v1::ShadowReportRequest {});
    let report = asked.await?.into_inner();
    if report.since_ms == 0 {
        context.output.say(
            "Nothing is in shadow. Try `ebbtide plugin add NAME --file FILE --shadow`, or a section [shadow] in the scheduler's configuration.",
        );
    } else {
        tell(context, &report);
    }
    let totals = |of: &Option<v1::ShadowTotals>| of.unwrap_or_default();
    let (decided, shadow) = (totals(&report.decided), totals(&report.in_shadow));
    let units = (&report.cost_unit, &report.shadow_cost_unit);
    let mut rows = vec![count(
        "requests without a valid host",
        decided.no_valid_host,
        shadow.no_valid_host,
    )];
    // An OpenStack compares hosts only.
    if !units.0.is_empty() {
        rows.push(count("victims", decided.victims, shadow.victims));
        let words = format!("their cost, {}", units.0);
        rows.push(cost(&words, decided.cost, shadow.cost));
    }
    if units.0 != units.1 {
        let words = format!("their cost in shadow's measure, {}", units.1);
        rows.push(cost(&words, decided.shadow_cost, shadow.shadow_cost));
    }
    context.output.listing(Listing {
        columns: vec![
            text("what", "What"),
            number("decided", "Decided"),
            number("in_shadow", "In shadow"),
        ],
        rows,
        json: json::message(&report),
        none: "nothing was compared",
    })?;
    if context.output.format() == Format::Table && !report.moves.is_empty() {
        moves(context, &report)?;
    }
    Ok(())
}

fn tell(context: &mut Context, report: &v1::ShadowReportResponse) {
    let share = match report.decisions {
        0 => 0.0,
        all => 100.0 * report.different as f64 / all as f64,
    };
    context.output.say(&format!(
        "In shadow: {}. {} decisions since then, {} would have been others ({share:.1} %), {} could not be made.",
        report.what, report.decisions, report.different, report.failed
    ));
    if !report.last_problem.is_empty() {
        context
            .output
            .say(&format!("The last problem: {}", report.last_problem));
    }
}

fn count(what: &str, decided: u64, shadow: u64) -> Vec<TableCell> {
    let tone = match shadow.cmp(&decided) {
        std::cmp::Ordering::Less => Tone::Good,
        std::cmp::Ordering::Equal => Tone::Plain,
        std::cmp::Ordering::Greater => Tone::Bad,
    };
    vec![
        TableCell::new(what),
        TableCell::new(decided),
        TableCell::new(shadow).tone(tone),
    ]
}

fn cost(what: &str, decided: f64, shadow: f64) -> Vec<TableCell> {
    let tone = match shadow.total_cmp(&decided) {
        std::cmp::Ordering::Less => Tone::Good,
        std::cmp::Ordering::Equal => Tone::Plain,
        std::cmp::Ordering::Greater => Tone::Bad,
    };
    vec![
        TableCell::new(what),
        TableCell::new(decimal(decided)),
        TableCell::new(decimal(shadow)).tone(tone),
    ]
}

fn moves(context: &mut Context, report: &v1::ShadowReportResponse) -> Result<(), CliError> {
    let shown = report.moves.iter().take(ROWS);
    let rows = shown.map(|one| {
        vec![
            TableCell::new(&one.decided),
            TableCell::new(&one.in_shadow),
            TableCell::new(one.times),
        ]
    });
    context.output.say("Where servers would have gone instead:");
    context.output.listing(Listing {
        columns: vec![
            text("decided", "Decided"),
            text("in_shadow", "In shadow"),
            number("times", "Times"),
        ],
        rows: rows.collect(),
        json: json::list(&report.moves),
        none: "nowhere",
    })
}

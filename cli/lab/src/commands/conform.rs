//! `ebbtide-lab conform`: anyone can see that the engine decides as the papers say, and as Nova
//! does. No region is needed.

mod nova;

use crate::error::LabError;
use clap::Subcommand;
use ebbtide_engine::papers::{self, PaperHostResult, PaperInstance, PaperResult, PaperTable};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_shell::render::{Tone, number as decimal, optional};
use ebbtide_simulator::SimError;

const PAPERS: &str = "\
Runs the four tables of the preemptible-scheduler paper (Lopez Garcia et al., FGCS 2019, tables 3 to
6) through the engine: four full hosts and a normal request. Shows every set of victims that would be
enough, what it costs (minutes used of the started hour), what the engine chose and what the paper
marks. Exit code 1 unless all agree. Needs no region.

Examples:
  ebbtide-lab conform papers
  ebbtide-lab conform papers -o json | jq '.tables[] | {title, host, victims, agrees}'";

/// What can be proven.
#[derive(Debug, Clone, Subcommand)]
pub enum ConformCommand {
    /// The four tables of the preemptible-scheduler paper
    #[command(after_help = PAPERS)]
    Papers,
    /// Nova's own answers to recorded cases
    #[command(after_help = nova::HELP)]
    Nova(nova::NovaArgs),
}

/// Runs and shows.
///
/// # Errors
/// [`CliError::Disagrees`] if a table or a case does not agree, [`LabError::Sim`] if the engine
/// refuses, [`LabError::Corpus`] for a file that is none.
pub fn run(context: &mut Context, command: ConformCommand) -> Result<(), CliError> {
    match command {
        ConformCommand::Papers => papers(context),
        ConformCommand::Nova(args) => nova::run(context, &args),
    }
}

fn papers(context: &mut Context) -> Result<(), CliError> {
    let mut results = Vec::new();
    for table in papers::tables() {
        let result = papers::run(&table)
            .map_err(SimError::from)
            .map_err(LabError::Sim)?;
        results.push((table, result));
    }
    let agreeing = results.iter().filter(|(_, result)| result.agrees).count();
    let verdict = format!("{agreeing} of {} tables agree", results.len());
    match context.output.format() {
        Format::Json => {
            let json = Json::object([(
                "tables",
                Json::List(
                    results
                        .iter()
                        .map(|(table, result)| json(table, result))
                        .collect(),
                ),
            )])
            .with("agree", agreeing as u64)
            .with("total", results.len() as u64);
            context.output.json(&json)?;
        }
        Format::Value => {
            for (table, result) in &results {
                context.output.line(&format!(
                    "{} {} {} {}",
                    table.id,
                    result.host,
                    result.victims.join(","),
                    result.agrees
                ))?;
            }
        }
        Format::Table | Format::Markdown => {
            for (table, result) in &results {
                show(context, table, result)?;
            }
            let all = agreeing == results.len();
            let line = context
                .output
                .paint(&verdict, if all { Tone::Good } else { Tone::Bad });
            context.output.line(&line)?;
        }
    }
    // No tables at all would not be a proof.
    if agreeing == results.len() && !results.is_empty() {
        Ok(())
    } else {
        Err(CliError::Disagrees(verdict))
    }
}

fn instances(instances: &[PaperInstance]) -> TableCell {
    let lines: Vec<String> = instances
        .iter()
        .map(|i| format!("{} {} {} min", i.id, i.size, i.minutes))
        .collect();
    optional(&lines.join("\n"))
}

fn show(context: &mut Context, table: &PaperTable, result: &PaperResult) -> Result<(), CliError> {
    context.output.line(&format!(
        "{}; a normal request of size {}",
        table.title, table.request
    ))?;
    let columns = [
        text("chosen", ""),
        text("host", "Host"),
        text("normal", "Normal"),
        text("preemptible", "Preemptible"),
        number("free_full", "VCPU free (all)"),
        number("free_normal", "VCPU free (normal only)"),
        text("candidate_sets", "Victim sets that are enough (cost, min)"),
    ];
    let rows: Vec<Vec<TableCell>> = result.hosts.iter().map(|host| row(host, result)).collect();
    context.output.table(&columns, &rows)?;
    let (word, tone) = if result.agrees {
        ("agrees", Tone::Good)
    } else {
        ("DISAGREES", Tone::Bad)
    };
    let word = context.output.paint(word, tone);
    context.output.line(&format!(
        "chosen: {} on {}, cost {} min; the paper: {} on {}: {word}\n",
        result.victims.join(", "),
        result.host,
        decimal(result.cost_minutes),
        table.expected_victims.join(", "),
        table.expected_host,
    ))
}

fn row(host: &PaperHostResult, result: &PaperResult) -> Vec<TableCell> {
    let chosen = host.host.name == result.host;
    let tone = if chosen { Tone::Strong } else { Tone::Plain };
    let sets: Vec<String> = host
        .candidate_sets
        .iter()
        .map(|set| {
            let taken = chosen && sorted(&set.victims) == sorted(&result.victims);
            let mark = if taken { "* " } else { "  " };
            format!(
                "{mark}{} ({})",
                set.victims.join(" + "),
                decimal(set.cost_minutes)
            )
        })
        .collect();
    let sets = match &host.dropped {
        Some(reason) => TableCell::new(format!("dropped: {reason}")).tone(Tone::Warn),
        None => optional(&sets.join("\n")),
    };
    vec![
        TableCell::new(if chosen { "*" } else { "" }).tone(tone),
        TableCell::new(&host.host.name).tone(tone),
        instances(&host.host.normal),
        instances(&host.host.preemptible),
        TableCell::new(host.free_full),
        TableCell::new(host.free_normal),
        sets,
    ]
}

fn sorted(names: &[String]) -> Vec<&String> {
    let mut names: Vec<&String> = names.iter().collect();
    names.sort();
    names
}

fn json(table: &PaperTable, result: &PaperResult) -> Json {
    let names =
        |names: &[String]| Json::List(names.iter().map(|n| Json::from(n.as_str())).collect());
    let members = |instances: &[PaperInstance]| {
        let one = |i: &PaperInstance| {
            Json::object([("id", Json::from(i.id.as_str()))])
                .with("minutes", i.minutes)
                .with("size", i.size.as_str())
        };
        Json::List(instances.iter().map(one).collect())
    };
    let host = |host: &PaperHostResult| {
        let sets = host.candidate_sets.iter().map(|set| {
            Json::object([("victims", names(&set.victims))]).with("cost_minutes", set.cost_minutes)
        });
        Json::object([("name", Json::from(host.host.name.as_str()))])
            .with("normal", members(&host.host.normal))
            .with("preemptible", members(&host.host.preemptible))
            .with("free_full", Json::Number(host.free_full.into()))
            .with("free_normal", Json::Number(host.free_normal.into()))
            .with(
                "dropped",
                host.dropped.clone().map_or(Json::Null, Json::from),
            )
            .with("candidate_sets", Json::List(sets.collect()))
            .with(
                "engine_cost_minutes",
                host.engine_cost_minutes.map_or(Json::Null, Json::from),
            )
    };
    Json::object([("id", Json::from(table.id.as_str()))])
        .with("title", result.title.as_str())
        .with("request", table.request.as_str())
        .with("hosts", Json::List(result.hosts.iter().map(host).collect()))
        .with("host", result.host.as_str())
        .with("victims", names(&result.victims))
        .with("cost_minutes", result.cost_minutes)
        .with("expected_host", table.expected_host.as_str())
        .with("expected_victims", names(&table.expected_victims))
        .with("agrees", result.agrees)
}

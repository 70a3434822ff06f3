//! `ebbtide-manage config check`.

use super::{CheckArgs, keys};
use crate::error::ManageError;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_shell::render::Tone;
use keys::{CheckReport, EffectiveOrder, Finding, Level, WeigherShare};

pub(super) fn run(context: &mut Context, args: &CheckArgs) -> Result<(), CliError> {
    let unreadable = |error: std::io::Error| CliError::Refused {
        problem: format!("{}: {error}", args.file.display()),
        next: "name a file that you can read".to_owned(),
    };
    let metadata = std::fs::metadata(&args.file).map_err(unreadable)?;
    let text = std::fs::read_to_string(&args.file).map_err(unreadable)?;
    let machine = keys::ThisMachine::with(Some(&metadata));
    let report = keys::check(&args.file, &text, args.kind.map(Into::into), &machine);
    match context.output.format() {
        Format::Json => context.output.json(&json(args, &report))?,
        Format::Value => values(context, args, &report)?,
        Format::Table | Format::Markdown => {
            // Only a guess has to be told.
            if args.kind.is_none() {
                context.output.say(&format!(
                    "read as {}: {}",
                    report.kind.title().replacen("The ", "the ", 1),
                    report.because
                ));
            }
            words(context, &report)?;
            if args.effective {
                effective(context, &report)?;
            }
        }
    }
    verdict(args, &report)
}

fn verdict(args: &CheckArgs, report: &CheckReport) -> Result<(), CliError> {
    let (errors, warnings) = (report.count(Level::Error), report.count(Level::Warning));
    let bad = errors + if args.strict { warnings } else { 0 };
    if bad == 0 {
        return Ok(());
    }
    let strict = if args.strict && warnings > 0 {
        "; with --strict warnings count as errors"
    } else {
        ""
    };
    Err(ManageError::Configuration {
        path: args.file.clone(),
        problem: format!("{}{strict}", counted(report)),
    }
    .into())
}

fn counted(report: &CheckReport) -> String {
    let count = |level: Level| {
        let count = report.count(level);
        format!("{count} {level}{}", if count == 1 { "" } else { "s" })
    };
    format!(
        "{}, {}, {}",
        count(Level::Error),
        count(Level::Warning),
        count(Level::Note)
    )
}

fn tone(level: Level) -> Tone {
    match level {
        Level::Error => Tone::Bad,
        Level::Warning => Tone::Warn,
        Level::Note => Tone::default(),
    }
}

fn place(finding: &Finding) -> String {
    match finding.at {
        None => String::new(),
        Some(at) if at.column == 0 => format!("line {}", at.line),
        Some(at) => format!("line {}, column {}", at.line, at.column),
    }
}

fn words(context: &mut Context, report: &CheckReport) -> Result<(), CliError> {
    let markdown = context.output.format() == Format::Markdown;
    for finding in &report.findings {
        let level = context
            .output
            .paint(finding.level.as_str(), tone(finding.level));
        let parts = [place(finding), finding.key.clone()];
        let parts: Vec<&str> = parts
            .iter()
            .map(String::as_str)
            .filter(|part| !part.is_empty())
            .collect();
        let bullet = if markdown { "- " } else { "" };
        let indent = if markdown { "  " } else { "" };
        let head = [finding.code]
            .into_iter()
            .chain(parts)
            .collect::<Vec<_>>()
            .join(", ");
        context
            .output
            .line(&format!("{bullet}{level}: {}", finding.what))?;
        context.output.line(&format!("{indent}  at:   {head}"))?;
        context
            .output
            .line(&format!("{indent}  why:  {}", finding.why))?;
        context
            .output
            .line(&format!("{indent}  next: {}", finding.next))?;
    }
    let all = if report.findings.is_empty() {
        "nothing to object to".to_owned()
    } else {
        counted(report)
    };
    context.output.line(&all)
}

fn share_row(place: usize, share: &WeigherShare) -> Vec<TableCell> {
    let multiplier = if share.multiplier.is_nan() {
        "?".to_owned()
    } else {
        share.multiplier.to_string()
    };
    vec![
        TableCell::new(place + 1),
        TableCell::new(&share.name),
        TableCell::new(multiplier),
        TableCell::new(share.from),
        TableCell::new(share.layer),
        TableCell::new(format!("{:.0} %", share.share * 100.0)),
        TableCell::new(&share.says),
    ]
}

fn effective(context: &mut Context, report: &CheckReport) -> Result<(), CliError> {
    let Some(effective) = &report.effective else {
        let why = if report.kind == keys::ConfigKind::Agent {
            "an agent orders no hosts"
        } else {
            "there is no order of hosts to show before the errors are corrected"
        };
        return context.output.line(why);
    };
    context.output.line("")?;
    context.output.line("Which host is taken:")?;
    for line in &effective.order {
        context.output.line(&format!("  {line}"))?;
    }
    if effective.weighers.is_empty() {
        return Ok(());
    }
    let columns = [
        number("place", ""),
        text("weigher", "Weigher"),
        number("multiplier", "Multiplier"),
        text("from", "From"),
        text("layer", "Layer"),
        number("share", "Share of it"),
        text("says", "What it comes to"),
    ];
    let rows: Vec<Vec<TableCell>> = effective
        .weighers
        .iter()
        .enumerate()
        .map(|(place, share)| share_row(place, share))
        .collect();
    context.output.table(&columns, &rows)
}

fn values(context: &mut Context, args: &CheckArgs, report: &CheckReport) -> Result<(), CliError> {
    for finding in &report.findings {
        let line = finding.at.map_or(0, |at| at.line);
        let key = if finding.key.is_empty() {
            "-"
        } else {
            &finding.key
        };
        context
            .output
            .line(&format!("{} {} {line} {key}", finding.level, finding.code))?;
    }
    let shares = report
        .effective
        .iter()
        .flat_map(|effective| &effective.weighers);
    for share in shares.filter(|_| args.effective) {
        context
            .output
            .line(&format!("weigher {} {}", share.name, share.multiplier))?;
    }
    Ok(())
}

fn finding_json(finding: &Finding) -> Json {
    let number = |number: Option<usize>| {
        number
            .filter(|number| *number > 0)
            .map_or(Json::Null, |number| Json::from(number as u64))
    };
    let key = if finding.key.is_empty() {
        Json::Null
    } else {
        Json::from(finding.key.clone())
    };
    Json::object([("level", Json::from(finding.level.as_str()))])
        .with("code", finding.code)
        .with("key", key)
        .with("line", number(finding.at.map(|at| at.line)))
        .with("column", number(finding.at.map(|at| at.column)))
        .with("what", finding.what.clone())
        .with("why", finding.why.clone())
        .with("next", finding.next.clone())
}

fn effective_json(effective: &EffectiveOrder) -> Json {
    let share = |share: &WeigherShare| {
        Json::object([("weigher", Json::from(share.name.clone()))])
            .with("multiplier", share.multiplier)
            .with("from", share.from)
            .with("layer", share.layer)
            .with("share", share.share)
            .with("says", share.says.clone())
    };
    Json::object([(
        "order",
        Json::List(
            effective
                .order
                .iter()
                .map(|line| Json::from(line.clone()))
                .collect(),
        ),
    )])
    .with(
        "weighers",
        Json::List(effective.weighers.iter().map(share).collect()),
    )
}

fn json(args: &CheckArgs, report: &CheckReport) -> Json {
    let count = |level| Json::from(report.count(level) as u64);
    let json = Json::object([("file", Json::from(args.file.display().to_string()))])
        .with("kind", report.kind.as_str())
        .with("guessed", args.kind.is_none())
        .with("errors", count(Level::Error))
        .with("warnings", count(Level::Warning))
        .with("notes", count(Level::Note))
        .with(
            "findings",
            Json::List(report.findings.iter().map(finding_json).collect()),
        );
    if args.effective {
        json.with(
            "effective",
            report.effective.as_ref().map_or(Json::Null, effective_json),
        )
    } else {
        json
    }
}

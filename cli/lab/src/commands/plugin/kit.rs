//! `ebbtide-lab plugin new`, `check` and `bench`.

use super::{BenchArgs, FileArgs, Grant, Lang, NewArgs, TemplateKind};
use ebbtide_plugin_kit::{
    Check, CheckOutcome, KitError, Language, NewProject, PluginLocation, ProjectKind, Subject,
};
use ebbtide_runtime::clock;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Details, Listing, TableCell, text};
use ebbtide_shell::render::{Tone, optional};
use std::path::PathBuf;
use std::time::Duration;

fn refused(error: &KitError) -> CliError {
    let next = match error {
        KitError::Io { .. } => "name a file that can be read, or a place that can be written to",
        KitError::Exists(_) => "choose another name, or another place with --into",
        KitError::Name(_) => "for example: ebbtide-lab plugin new spread_racks",
        KitError::Service(_) => "start the service, or look at --address and --plugin",
        KitError::Plugin(_) | KitError::Failed(_) => {
            "`ebbtide-lab plugin check FILE` says what is wrong with it"
        }
    };
    CliError::Refused {
        problem: error.to_string(),
        next: next.to_owned(),
    }
}

fn subject(args: &FileArgs) -> Result<Subject, CliError> {
    let mut subject = match (&args.file, &args.address) {
        (Some(file), _) => Subject::new(file),
        (None, address) => {
            let address = address.as_deref().unwrap_or_default();
            Subject::at(address, args.plugin.as_deref().unwrap_or_default())
        }
    };
    if let (PluginLocation::Service { limits, .. }, Some(deadline)) =
        (&mut subject.place, args.deadline_ms)
    {
        limits.deadline = Duration::from_millis(deadline.into());
    }
    subject.settings = super::settings(&args.set)?;
    let limits = &mut subject.limits;
    if let Some(mib) = args.memory_mb {
        limits.memory_bytes = usize::try_from(mib).unwrap_or(usize::MAX) << 20;
    }
    if let Some(million) = args.work_million {
        limits.work = u64::from(million) * 1_000_000;
    }
    if let Some(units) = args.work_per_row {
        limits.work_per_row = u64::from(units);
    }
    for grant in &args.grant {
        match grant {
            Grant::Clock => subject.grant_clock(),
            Grant::Randomness => subject.grant_randomness(),
        }
    }
    Ok(subject)
}

pub(super) fn new(context: &mut Context, args: NewArgs) -> Result<(), CliError> {
    let into = args.into.unwrap_or_else(|| PathBuf::from(&args.name));
    let project = NewProject {
        name: args.name,
        kind: match args.kind {
            TemplateKind::Weigher => ProjectKind::Weigher,
            TemplateKind::Cost => ProjectKind::CostModule,
            TemplateKind::Filter => ProjectKind::Filter,
        },
        language: match args.lang {
            Lang::Rust => Language::Rust,
            Lang::Go => Language::Go,
            Lang::Python => Language::Python,
            Lang::C => Language::C,
        },
    };
    let written = ebbtide_plugin_kit::write(&project, &into).map_err(|error| refused(&error))?;
    let row = |path: &PathBuf| vec![TableCell::new(path.display())];
    let listing = Listing {
        columns: vec![text("file", "File")],
        rows: written.iter().map(row).collect(),
        json: Json::List(
            written
                .iter()
                .map(|path| Json::from(path.display().to_string()))
                .collect(),
        ),
        none: "nothing",
    };
    context.output.listing(listing)?;
    context
        .output
        .say(&format!("go on with {}", into.join("README.md").display()));
    Ok(())
}

pub(super) fn check(context: &mut Context, args: &FileArgs) -> Result<(), CliError> {
    let checks = ebbtide_plugin_kit::check(&subject(args)?).map_err(|error| refused(&error))?;
    let row = |check: &Check| {
        let (word, tone) = word(check.outcome);
        vec![
            TableCell::new(word).tone(tone),
            TableCell::new(check.name),
            TableCell::new(&check.says),
        ]
    };
    let json = |check: &Check| {
        Json::object([("outcome", Json::from(word(check.outcome).0))])
            .with("check", check.name)
            .with("says", check.says.clone())
    };
    let listing = Listing {
        columns: vec![
            text("outcome", ""),
            text("check", "Check"),
            text("says", "What was seen"),
        ],
        rows: checks.iter().map(row).collect(),
        json: Json::List(checks.iter().map(json).collect()),
        none: "nothing was checked",
    };
    context.output.listing(listing)?;
    let failed = checks
        .iter()
        .filter(|check| check.outcome == CheckOutcome::Failed)
        .count();
    match failed {
        0 => Ok(()),
        n => Err(CliError::Disagrees(format!(
            "{n} of {} checks failed: it must not be used",
            checks.len()
        ))),
    }
}

fn word(outcome: CheckOutcome) -> (&'static str, Tone) {
    match outcome {
        CheckOutcome::Passed => ("ok", Tone::Good),
        CheckOutcome::Warned => ("look", Tone::Warn),
        CheckOutcome::Failed => ("WRONG", Tone::Bad),
    }
}

pub(super) fn bench(context: &mut Context, args: &BenchArgs) -> Result<(), CliError> {
    crate::commands::bench::warn_if_debug(context);
    let stopwatch = |work: &mut dyn FnMut()| {
        let began = clock::instant();
        work();
        began.elapsed()
    };
    let rows = usize::try_from(args.hosts).unwrap_or(usize::MAX);
    let calls = usize::try_from(args.calls).unwrap_or(usize::MAX);
    let subject = subject(&args.file)?;
    let measured = ebbtide_plugin_kit::bench(&subject, rows, calls, &stopwatch)
        .map_err(|error| refused(&error))?;
    let micros = |time: Duration| format!("{:.1} µs", time.as_secs_f64() * 1e6);
    let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
    let seconds = |time: Duration| time.as_secs_f64();
    let (many, each) = match measured.row {
        "candidate" => ("candidates", "ns_per_candidate"),
        _ => ("hosts", "ns_per_host"),
    };
    let ns_per_row = (measured.ns_per_row * 100.0).round() / 100.0;
    let json = Json::object([(many, Json::from(measured.rows as u64))])
        .with("calls", measured.calls as u64)
        .with(each, ns_per_row)
        .with("median_seconds", seconds(measured.median))
        .with("p99_seconds", seconds(measured.p99))
        .with("load_seconds", seconds(measured.load))
        .with("work", measured.work.map_or(Json::Null, Json::from));
    context.output.details(Details {
        fields: vec![
            (many, TableCell::new(measured.rows)),
            ("calls", TableCell::new(measured.calls)),
            (each, TableCell::new(ns_per_row)),
            (
                "median",
                TableCell::new(micros(measured.median)).value(seconds(measured.median)),
            ),
            (
                "p99",
                TableCell::new(micros(measured.p99)).value(seconds(measured.p99)),
            ),
            (
                "load",
                TableCell::new(millis(measured.load)).value(seconds(measured.load)),
            ),
            (
                "work",
                optional(
                    &measured
                        .work
                        .map(|work| work.to_string())
                        .unwrap_or_default(),
                ),
            ),
        ],
        json,
    })
}

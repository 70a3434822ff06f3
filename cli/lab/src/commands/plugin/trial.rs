//! `ebbtide-lab plugin try`: the ranking that a plugin gives on a recorded region, beside today's.

use super::TryArgs;
use ebbtide_engine::{Engine, EngineConfig};
use ebbtide_model::decision::{InstanceExplanation, RankedHost};
use ebbtide_model::{Decision, DecisionOutcome, Flavor, PlacementRequest, ServerId};
use ebbtide_plugins::{
    EnginePurpose, Multipliers, PluginConfig, PluginKind, PluginSet, Services, Sources,
};
use ebbtide_region::{CountingIds, RECORD_FORMAT, RegionRecord};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Listing, TableCell, number, text};
use ebbtide_shell::render::{Tone, number as decimal};
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

/// The name of what is tried, unless the file has one that can be used.
const NAME: &str = "tried";
/// Most hosts that a record's ranking shows.
const SHOWN: u32 = 1000;

fn refused(problem: impl ToString, next: &str) -> CliError {
    CliError::Refused {
        problem: problem.to_string(),
        next: next.to_owned(),
    }
}

fn read(path: &Path) -> Result<RegionRecord, CliError> {
    let next = "make a record with: ebbtide plugin record region.json";
    let wrong = |problem: String| refused(format!("{}: {problem}", path.display()), next);
    let bytes = std::fs::read(path).map_err(|error| wrong(error.to_string()))?;
    let record: RegionRecord =
        serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
    match record.format == RECORD_FORMAT {
        true => Ok(record),
        false => Err(wrong(format!(
            "it is {:?}; this program reads {RECORD_FORMAT:?}",
            record.format
        ))),
    }
}

/// The recorded configuration, without weighers and cost modules that are not built in.
fn today(context: &mut Context, record: &RegionRecord) -> Result<EngineConfig, CliError> {
    let mut config = record.engine.clone();
    config.explain_hosts = SHOWN;
    config.weighers.retain(|weigher| {
        let alone = EngineConfig {
            weighers: vec![weigher.clone()],
            ..EngineConfig::default()
        };
        let is_known = Engine::new(alone).is_ok();
        if !is_known {
            context.output.say(&format!(
                "The weigher {:?} of the record is a plugin and is left out.",
                weigher.name
            ));
        }
        is_known
    });
    if Engine::new(config.clone()).is_err() {
        context.output.say(&format!(
            "The cost module {:?} of the record is a plugin; the default takes its place.",
            config.cost_module
        ));
        config.cost_module = EngineConfig::default().cost_module;
    }
    Engine::new(config.clone())
        .map(|_| config)
        .map_err(|error| refused(error, "look at \"engine\" in the record"))
}

fn flavor(record: &RegionRecord, wanted: Option<&str>) -> Result<Flavor, CliError> {
    let flavors = &record.state.flavors;
    let names = || {
        let mut names: Vec<&str> = flavors.iter().map(|flavor| flavor.name.as_str()).collect();
        names.sort_unstable();
        names.join(", ")
    };
    let found = match wanted {
        Some(wanted) => flavors.iter().find(|flavor| flavor.name == wanted),
        None if flavors.len() == 1 => flavors.first(),
        None => None,
    };
    found.cloned().ok_or_else(|| {
        let problem = match wanted {
            Some(wanted) => format!("the record has no flavor {wanted:?}"),
            None => format!("the record has {} flavors", flavors.len()),
        };
        let next = match flavors.is_empty() {
            true => {
                "make a flavor in the region (`ebbtide flavor create`), then record it".to_owned()
            }
            false => format!("say --flavor NAME, one of: {}", names()),
        };
        refused(problem, &next)
    })
}

/// One host in both rankings.
struct Row<'a> {
    host: &'a str,
    today: Option<(usize, &'a RankedHost)>,
    tried: (usize, &'a RankedHost),
}

fn ranking(decision: &Decision) -> &[RankedHost] {
    let first: Option<&InstanceExplanation> = decision.explanation.instances.first();
    first.map_or(&[], |instance| instance.ranking.as_slice())
}

fn rows<'a>(today: &'a Decision, tried: &'a Decision) -> Vec<Row<'a>> {
    let today = ranking(today);
    let place = |host: &str| {
        let mut ranked = today.iter().enumerate();
        ranked.find(|(_, ranked)| ranked.host == host)
    };
    let tried = ranking(tried).iter().enumerate();
    tried
        .map(|(at, ranked)| Row {
            host: &ranked.host,
            today: place(&ranked.host),
            tried: (at, ranked),
        })
        .collect()
}

pub(super) fn run(context: &mut Context, args: &TryArgs) -> Result<(), CliError> {
    let record = read(&args.snapshot)?;
    let set = load(args)?;
    let plugin = set.plugins().first();
    let kind = plugin.map_or(PluginKind::Unknown, |plugin| plugin.kind);
    let name = plugin.map_or(NAME, |plugin| plugin.config.name.as_str());
    let config = today(context, &record)?;
    let mut with = config.clone();
    if kind == PluginKind::CostModule {
        name.clone_into(&mut with.cost_module);
    }
    let next = "`ebbtide-lab plugin check` says what is wrong with a plugin";
    let engine = |set: &PluginSet, config: &EngineConfig| {
        let made = set.engine(config, &Multipliers::new(), EnginePurpose::Deciding);
        made.map(Arc::new).map_err(|error| refused(error, next))
    };
    let engines = [
        engine(&PluginSet::default(), &config)?,
        engine(&set, &with)?,
    ];
    let request = PlacementRequest {
        server_ids: (0..args.count.max(1))
            .map(|n| ServerId(Uuid::from_u128(u128::MAX - u128::from(n))))
            .collect(),
        project_id: args
            .project
            .clone()
            .unwrap_or_else(|| context.project.clone()),
        flavor: flavor(&record, args.flavor.as_deref())?,
        availability_zone: args.availability_zone.clone(),
        group_id: None,
        ignore_hosts: Vec::new(),
        force_hosts: Vec::new(),
        alternates: 0,
    };
    let mut decisions = Vec::with_capacity(2);
    for engine in engines {
        let region = record
            .region(engine)
            .map_err(|error| refused(error, next))?;
        // The same identifiers, so that both rankings have the same chance.
        let decided = region.what_if(record.at, &mut CountingIds::after(0), &request);
        decisions.push(decided.map_err(|error| refused(error, next))?);
    }
    let [today, tried] = decisions.as_slice() else {
        return Ok(());
    };
    for warning in &tried.explanation.warnings {
        context.output.say(&format!("It failed: {warning}"));
    }
    show(context, name, kind, today, tried)
}

fn load(args: &TryArgs) -> Result<PluginSet, CliError> {
    let mut config = match (&args.file, &args.address) {
        (Some(file), None) => {
            let stem = file.file_stem().and_then(|stem| stem.to_str());
            let name = stem.filter(|stem| PluginConfig::new(stem, file.clone()).check().is_ok());
            PluginConfig::new(name.unwrap_or(NAME), file.clone())
        }
        (None, Some(address)) => PluginConfig::at(args.plugin.as_deref().unwrap_or(NAME), address),
        _ => {
            let problem = "name either a FILE or --address URL";
            return Err(CliError::Usage(problem.to_owned()));
        }
    };
    if config.check().is_err() {
        config.plugin = Some(std::mem::replace(&mut config.name, NAME.to_owned()));
    }
    config.multiplier = args.multiplier;
    config.settings = super::settings(&args.set)?;
    let loaded = PluginSet::load(
        &[config.into()],
        &PluginSet::default(),
        &Sources::default(),
        Services::MustAnswer,
    );
    loaded.map_err(|error| {
        refused(
            error,
            "`ebbtide-lab plugin check` says what is wrong with it",
        )
    })
}

fn show(
    context: &mut Context,
    name: &str,
    kind: PluginKind,
    today: &Decision,
    tried: &Decision,
) -> Result<(), CliError> {
    let is_weigher = kind == PluginKind::Weigher;
    let rows = rows(today, tried);
    let json = Json::List(rows.iter().map(|row| row.json(name)).collect());
    let mut columns = vec![
        text("host", "Host"),
        number("today", "Today"),
        number("tried", "With it"),
    ];
    columns.extend(match is_weigher {
        true => [number("raw", "Its number"), number("normalised", "0 to 1")],
        false => [
            number("cost_today", "Cost today"),
            number("cost", "Cost with it"),
        ],
    });
    columns.extend([
        number("victims_today", "Victims today"),
        number("victims", "Victims with it"),
        number("weight_today", "Weight today"),
        number("weight", "Weight with it"),
    ]);
    context.output.listing(Listing {
        columns,
        rows: rows.iter().map(|row| row.cells(name, is_weigher)).collect(),
        json,
        none: "no host passes the filters",
    })?;
    if kind == PluginKind::Filter {
        refusals(context, name, tried);
    }
    let verdict = match chosen(today) == chosen(tried) {
        true => format!("Chosen both times: {}.", chosen(today)),
        false => format!(
            "Chosen today: {}. With {name}: {}.",
            chosen(today),
            chosen(tried)
        ),
    };
    context.output.say(&verdict);
    Ok(())
}

/// What a filter refused for the first server.
fn refusals(context: &mut Context, name: &str, tried: &Decision) {
    let steps = tried.explanation.instances.first();
    let mut steps = steps.iter().flat_map(|instance| &instance.filters);
    let Some(step) = steps.find(|step| step.filter == name) else {
        context
            .output
            .say(&format!("{name} was not asked: no host was left for it."));
        return;
    };
    let refused = step.before - step.after;
    context.output.say(&format!(
        "{name} refused {refused} of {} hosts.",
        step.before
    ));
    for host in &step.dropped {
        context
            .output
            .say(&format!("  {}: {}", host.host, host.reason));
    }
}

fn chosen(decision: &Decision) -> String {
    match &decision.outcome {
        DecisionOutcome::Placed(placements) => {
            let hosts: Vec<&str> = placements.iter().map(|place| place.host.as_str()).collect();
            hosts.join(", ")
        }
        DecisionOutcome::NoValidHost(none) => format!("no valid host ({})", none.reason),
    }
}

impl Row<'_> {
    fn given(&self, name: &str) -> Option<(f64, f64)> {
        let mut weights = self.tried.1.weights.iter();
        let own = weights.find(|weight| weight.weigher == name)?;
        Some((own.raw, own.normalised))
    }

    fn cells(&self, name: &str, is_weigher: bool) -> Vec<TableCell> {
        let (at, tried) = self.tried;
        let dash = || "-".to_owned();
        let or_dash = |number: Option<f64>| TableCell::new(number.map_or_else(dash, decimal));
        let today = self.today.map(|(_, ranked)| ranked);
        let place = self.today.map(|(place, _)| place);
        let tone = match place {
            Some(place) if place > at => Tone::Good,
            Some(place) if place < at => Tone::Warn,
            _ => Tone::Plain,
        };
        let mut cells = vec![
            TableCell::new(self.host),
            TableCell::new(place.map_or_else(dash, |place| (place + 1).to_string())),
            TableCell::new(at + 1).tone(tone),
        ];
        cells.extend(match is_weigher {
            true => {
                let given = self.given(name);
                [or_dash(given.map(|g| g.0)), or_dash(given.map(|g| g.1))]
            }
            false => [
                or_dash(today.and_then(|ranked| ranked.eviction_cost)),
                or_dash(tried.eviction_cost),
            ],
        });
        cells.extend([
            TableCell::new(today.map_or_else(dash, |ranked| ranked.victims.len().to_string())),
            TableCell::new(tried.victims.len()),
            or_dash(today.map(|ranked| ranked.weight)),
            or_dash(Some(tried.weight)),
        ]);
        cells
    }

    fn json(&self, name: &str) -> Json {
        let (at, tried) = self.tried;
        let some = |number: Option<f64>| number.map_or(Json::Null, Json::from);
        let place = |place: Option<usize>| place.map_or(Json::Null, |at| Json::from(at as u64 + 1));
        let today = self.today.map(|(_, ranked)| ranked);
        let given = self.given(name);
        Json::object([("host", Json::from(self.host))])
            .with("today", place(self.today.map(|(place, _)| place)))
            .with("tried", place(Some(at)))
            .with("raw", some(given.map(|g| g.0)))
            .with("normalised", some(given.map(|g| g.1)))
            .with("cost_today", some(today.and_then(|r| r.eviction_cost)))
            .with("cost", some(tried.eviction_cost))
            .with("victims_today", today.map_or(0, |r| r.victims.len()) as u64)
            .with("victims", tried.victims.len() as u64)
            .with("weight_today", some(today.map(|r| r.weight)))
            .with("weight", some(Some(tried.weight)))
    }
}

//! `ebbtide-lab simulate bag`: a bag's plan in the paper's scenarios.

use crate::bag::chart;
use crate::bag::view::{counts, hours, money, name, percent, run_json};
use clap::{Args, ValueEnum};
use ebbtide_bag::read::{duration, price};
use ebbtide_bag::simulate::{Outage, OutageEnd, PlanRun, Prices, Scenario, simulate};
use ebbtide_bag::{Bag, ExecutionPolicy, Market, OnHibernation, Plan, VmId};
use ebbtide_model::Money;
use ebbtide_shell::Context;
use ebbtide_shell::bag::files;
use ebbtide_shell::bag::options::{BagOptions, BagPlan};
use ebbtide_shell::charts;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_shell::render::Tone;
use std::path::PathBuf;

pub(super) const HELP: &str = "\
Carries the plan of a bag out in a simulated world, in the scenarios of the paper:

  none         nothing hibernates
  hibernation  one instance hibernates at --at for --lasting
  migration    it does not come back: its tasks are moved at their latest start
  immediate    the same, but its tasks are moved at once
  on-demand    the same map bought on demand
  trace        all types have the prices of --prices, and hibernate above --max-price
  trace-immediate  the same, moved at once

Backups of instances that hibernate start at their latest start, as in the paper; that can miss the
deadline. With --backup-policy promise backups also start at their latest start when their instance
runs (the first that is done stops the other), so the deadline is met in all scenarios. Exit code 1 if
a deadline was missed.

Examples:
  ebbtide-lab simulate bag docs/tenants/bags/J207.toml
  ebbtide-lab simulate bag docs/tenants/bags/J402.toml --method greedy --backup-policy promise --svg J402.svg
  ebbtide-lab simulate bag docs/tenants/bags/J819.toml --scenario migration --vm 2 --at 1h -o json
  ebbtide-lab simulate bag docs/tenants/bags/J402.toml --prices docs/tenants/bags/prices.csv --max-price 0.4";

/// One of the paper's scenarios.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BagScenario {
    /// Nothing hibernates
    None,
    /// One instance hibernates and comes back
    Hibernation,
    /// It does not come back; tasks are moved at their latest start
    Migration,
    /// It does not come back; tasks are moved at once
    Immediate,
    /// The same map bought on demand
    OnDemand,
    /// Prices over time; tasks are moved at their latest start
    Trace,
    /// Prices over time; tasks are moved at once
    TraceImmediate,
}

impl BagScenario {
    const ALL: [Self; 7] = [
        Self::None,
        Self::Hibernation,
        Self::Migration,
        Self::Immediate,
        Self::OnDemand,
        Self::Trace,
        Self::TraceImmediate,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Hibernation => "hibernation",
            Self::Migration => "migration",
            Self::Immediate => "immediate",
            Self::OnDemand => "on-demand",
            Self::Trace => "trace",
            Self::TraceImmediate => "trace-immediate",
        }
    }

    fn needs_prices(self) -> bool {
        matches!(self, Self::Trace | Self::TraceImmediate)
    }
}

/// When backups start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum BackupPolicy {
    /// For instances that hibernate only
    Paper,
    /// At their latest start, whether the instance hibernates or runs: the deadline is met
    Promise,
}

/// Options of `simulate bag`.
#[derive(Debug, Clone, Args)]
pub struct SimulateBagArgs {
    /// Which bag, and how it is planned
    #[command(flatten)]
    pub bag: BagOptions,
    /// Only these scenarios [default: all, those of prices only with --prices]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "SCENARIO")]
    pub scenario: Vec<BagScenario>,
    /// Which instance hibernates, by its number [default: the one with most work to lose]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub vm: Option<u32>,
    /// When it hibernates
    #[arg(long, value_name = "TIME", default_value = "2h", value_parser = duration)]
    pub at: u64,
    /// For how long, in the scenario hibernation
    #[arg(long, value_name = "TIME", default_value = "3h", value_parser = duration)]
    pub lasting: u64,
    /// When backups start
    #[arg(long, alias = "conduct", value_enum, default_value_t = BackupPolicy::Paper)]
    pub backup_policy: BackupPolicy,
    /// Preemptible prices over time: CSV with the columns seconds,type,price
    #[arg(long, value_name = "FILE")]
    pub prices: Option<PathBuf>,
    /// Above this price for an hour, instances hibernate
    #[arg(long, value_name = "PRICE", requires = "prices", value_parser = price)]
    pub max_price: Option<Money>,
    /// Draw every scenario as a Gantt chart into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Simulates and shows.
pub(super) fn run(context: &mut Context, args: &SimulateBagArgs) -> Result<(), CliError> {
    let planned = args.bag.planned()?;
    if let Some(note) = planned.note() {
        context.output.say(&note);
    }
    let BagPlan { bag, plan, .. } = planned;
    let prices = match &args.prices {
        Some(path) => Some(files::prices(path, &bag)?),
        None => None,
    };
    let scenarios: Vec<BagScenario> = if args.scenario.is_empty() {
        let usable = |s: &BagScenario| prices.is_some() || !s.needs_prices();
        BagScenario::ALL.into_iter().filter(usable).collect()
    } else {
        args.scenario.clone()
    };
    let vm = hibernating(args, &bag, &plan)?;
    let mut runs = Vec::with_capacity(scenarios.len());
    for scenario in scenarios {
        let run = one(args, &bag, &plan, vm, prices.as_ref(), scenario)?;
        runs.push((scenario, run));
    }
    if let Some(path) = &args.svg {
        let panels = runs.iter().map(|(scenario, run)| {
            let title = format!(
                "{}: {} paid, done after {}",
                scenario.as_str(),
                money(run.price),
                hours(run.makespan)
            );
            chart::panel(&bag, &title, run)
        });
        let title = format!("{} tasks on {}", bag.tasks().len(), counts(&bag, &plan));
        charts::write(context, path, &chart::figure(&title, panels.collect()))?;
    }
    shown(context, &bag, &plan, vm, &runs)?;
    let missed: Vec<&str> = runs
        .iter()
        .filter(|(_, run)| !run.met)
        .map(|(scenario, _)| scenario.as_str())
        .collect();
    if missed.is_empty() {
        return Ok(());
    }
    Err(CliError::Disagrees(format!(
        "the deadline was missed: {}",
        missed.join(", ")
    )))
}

/// The instance that hibernates: the one asked for, or the preemptible one whose tasks that are not
/// done at that time take longest together.
fn hibernating(args: &SimulateBagArgs, bag: &Bag, plan: &Plan) -> Result<Option<usize>, CliError> {
    if let Some(number) = args.vm {
        let vm = number as usize - 1;
        let Some(planned) = plan.vms.get(vm) else {
            return Err(CliError::Usage(format!(
                "--vm {number}: the plan has {} instances",
                plan.vms.len()
            )));
        };
        if planned.vm.market == Market::OnDemand {
            return Err(CliError::Usage(format!(
                "--vm {number}: it is on demand and never hibernates"
            )));
        }
        return Ok(Some(vm));
    }
    let lost = |planned: &ebbtide_bag::PlannedVm| -> u64 {
        let finishes = planned.vm.finishes(bag);
        let open = finishes.iter().filter(|finish| finish.end > args.at);
        open.filter_map(|finish| bag.runtime(finish.task, planned.vm.ty))
            .sum()
    };
    let preemptible = plan
        .vms
        .iter()
        .enumerate()
        .filter(|(_, planned)| planned.vm.market == Market::Preemptible);
    Ok(preemptible
        .max_by_key(|(at, planned)| (lost(planned), std::cmp::Reverse(*at)))
        .map(|(at, _)| at))
}

fn one(
    args: &SimulateBagArgs,
    bag: &Bag,
    plan: &Plan,
    vm: Option<usize>,
    prices: Option<&Prices>,
    scenario: BagScenario,
) -> Result<PlanRun, CliError> {
    let outage = |end: OutageEnd| -> Vec<Outage> {
        let outage = vm.map(|vm| Outage {
            vm,
            from: args.at,
            end,
        });
        outage.into_iter().collect()
    };
    let traced = || -> Result<Vec<Outage>, CliError> {
        let prices = prices.ok_or_else(|| {
            CliError::Usage(format!("--scenario {} needs --prices", scenario.as_str()))
        })?;
        Ok(args
            .max_price
            .map_or_else(Vec::new, |most| prices.outages(plan, most)))
    };
    let outages = match scenario {
        BagScenario::None | BagScenario::OnDemand => Vec::new(),
        BagScenario::Hibernation => outage(OutageEnd::Resumes(args.at + args.lasting)),
        BagScenario::Migration | BagScenario::Immediate => outage(OutageEnd::Never),
        BagScenario::Trace | BagScenario::TraceImmediate => traced()?,
    };
    let on_hibernation = match scenario {
        BagScenario::Immediate | BagScenario::TraceImmediate => OnHibernation::Migrate,
        _ => OnHibernation::Wait,
    };
    let prices = prices.filter(|_| scenario.needs_prices());
    let scenario_of = Scenario {
        outages,
        prices: prices.cloned().unwrap_or_default(),
        policy: ExecutionPolicy {
            on_hibernation,
            copies: args.backup_policy == BackupPolicy::Promise,
        },
    };
    if scenario == BagScenario::OnDemand {
        return Ok(simulate(bag, &plan.bought_on_demand(bag), &scenario_of)?);
    }
    Ok(simulate(bag, plan, &scenario_of)?)
}

fn shown(
    context: &mut Context,
    bag: &Bag,
    plan: &Plan,
    vm: Option<usize>,
    runs: &[(BagScenario, PlanRun)],
) -> Result<(), CliError> {
    if context.output.format() == Format::Json {
        let hibernates = vm.map_or(Json::Null, |vm| Json::from(name(VmId::Primary(vm))));
        let each = runs.iter().map(|(s, run)| run_json(bag, s.as_str(), run));
        let json = Json::object([("tasks", Json::from(bag.tasks().len() as u64))])
            .with("plan", counts(bag, plan))
            .with("deadline_seconds", bag.rules().deadline)
            .with("hibernates", hibernates)
            .with("against", against_json(runs))
            .with("scenarios", Json::List(each.collect()));
        return context.output.json(&json);
    }
    let base = runs
        .iter()
        .find(|(scenario, _)| *scenario == BagScenario::None)
        .map(|(_, run)| run.price);
    let columns = [
        text("scenario", "Scenario"),
        number("price", "Price"),
        number("above_none", "Above none"),
        number("makespan", "Done after"),
        text("deadline_met", "Deadline"),
        number("backups", "Backups"),
        number("moved", "Tasks moved"),
    ];
    let rows: Vec<Vec<TableCell>> = runs
        .iter()
        .map(|(scenario, run)| {
            let above = base.filter(|&base| base > 0).map_or_else(
                || "-".to_owned(),
                |base| percent(run.price as f64 / base as f64 - 1.0),
            );
            vec![
                TableCell::new(scenario.as_str()),
                TableCell::new(money(run.price)),
                TableCell::new(above),
                TableCell::new(hours(run.makespan)).value(run.makespan),
                if run.met {
                    TableCell::new("met").tone(Tone::Good)
                } else {
                    TableCell::new("missed").tone(Tone::Bad)
                },
                TableCell::new(run.backups),
                TableCell::new(run.moved),
            ]
        })
        .collect();
    if context.output.format() == Format::Value {
        return rows.iter().try_for_each(|row| {
            let bare: Vec<&str> = row
                .iter()
                .map(|cell| cell.value.as_deref().unwrap_or(&cell.text))
                .collect();
            context.output.line(&bare.join(" "))
        });
    }
    context.output.table(&columns, &rows)?;
    context.output.line(&format!(
        "{} tasks on {}; deadline {}; {}",
        bag.tasks().len(),
        counts(bag, plan),
        hours(bag.rules().deadline),
        vm.map_or_else(
            || "nothing can hibernate".to_owned(),
            |vm| format!("{} hibernates", name(VmId::Primary(vm)))
        )
    ))?;
    for base in BASES {
        let quotients = against(runs, base);
        for (what, of) in [("price", 0), ("time", 1)] {
            let words: Vec<String> = quotients
                .iter()
                .map(|(scenario, shares)| {
                    format!("{} {:+.1} %", scenario.as_str(), shares[of] * 100.0)
                })
                .collect();
            if !words.is_empty() {
                let (base, words) = (base.as_str(), words.join(", "));
                context
                    .output
                    .line(&format!("{what} against {base}: {words}"))?;
            }
        }
    }
    Ok(())
}

/// The scenarios that the paper compares the others with: figures 5 to 8, and 10 and 11.
const BASES: [BagScenario; 2] = [BagScenario::Hibernation, BagScenario::Trace];

/// By which share the scenarios that the paper compares with `base` are above it: in price, in
/// time.
fn against(runs: &[(BagScenario, PlanRun)], base: BagScenario) -> Vec<(BagScenario, [f64; 2])> {
    let others: &[BagScenario] = match base {
        BagScenario::Trace => &[BagScenario::TraceImmediate, BagScenario::OnDemand],
        _ => &[
            BagScenario::Migration,
            BagScenario::Immediate,
            BagScenario::OnDemand,
        ],
    };
    let Some((_, base)) = runs.iter().find(|(scenario, _)| *scenario == base) else {
        return Vec::new();
    };
    if base.price == 0 || base.makespan == 0 {
        return Vec::new();
    }
    let compared = runs
        .iter()
        .filter(|(scenario, _)| others.contains(scenario));
    let shares = compared.map(|(scenario, run)| {
        let price = run.price as f64 / base.price as f64 - 1.0;
        let time = run.makespan as f64 / base.makespan as f64 - 1.0;
        (*scenario, [price, time])
    });
    shares.collect()
}

fn against_json(runs: &[(BagScenario, PlanRun)]) -> Json {
    let each = BASES.into_iter().flat_map(|base| {
        let shares = against(runs, base).into_iter();
        shares.map(move |(scenario, [price, time])| {
            Json::object([("scenario", Json::from(scenario.as_str()))])
                .with("base", base.as_str())
                .with("price", price)
                .with("time", time)
        })
    });
    Json::List(each.collect())
}

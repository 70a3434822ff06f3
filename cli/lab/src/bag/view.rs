//! Plans and runs as JSON and in words.

use ebbtide_bag::simulate::{BarEnd, InstanceRun, PlanRun};
use ebbtide_bag::{Backup, Bag, Plan, PlannedVm, VmId, critical, smallest_without_copies};
use ebbtide_model::Money;
use ebbtide_shell::json::Json;

/// An amount of millionths, as people read it.
pub(crate) fn money(micros: u64) -> String {
    Money::from_micros(micros).to_string()
}

/// Seconds as hours with two decimal places.
pub(crate) fn hours(seconds: u64) -> String {
    format!("{:.2} h", seconds as f64 / 3600.0)
}

/// A share as per cent with one decimal place.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// The name of an instance: of the primary map by its number, a backup with a letter before it.
pub(crate) fn name(vm: VmId) -> String {
    match vm {
        VmId::Primary(at) => format!("vm-{}", at + 1),
        VmId::Backup(at) => format!("backup-{}", at + 1),
    }
}

/// How many instances of what: `2 × c3.8xlarge, 1 × c4.4xlarge on demand`.
pub(crate) fn counts(bag: &Bag, plan: &Plan) -> String {
    let each = plan.counts().into_iter().map(|(ty, market, count)| {
        let suffix = match market {
            ebbtide_bag::Market::Preemptible => "",
            ebbtide_bag::Market::OnDemand => " on demand",
        };
        format!("{count} × {}{suffix}", bag.types()[ty].name)
    });
    each.collect::<Vec<_>>().join(", ")
}

/// A plan with everything in it.
pub(crate) fn plan_json(bag: &Bag, plan: &Plan, tried: &[(f64, u64, u64)]) -> Json {
    let rules = bag.rules();
    let mut backup = 0;
    let vms = plan.vms.iter().enumerate().map(|(at, planned)| {
        let json = planned_json(bag, at, planned, backup);
        backup += planned.backups.len();
        json
    });
    let vms: Vec<Json> = vms.collect();
    let smallest = critical(bag).map_or(Json::Null, |c| {
        Json::object([("seconds", Json::from(c.seconds))])
            .with("task", bag.tasks()[c.task].name.as_str())
            .with("type", bag.types()[c.ty].name.as_str())
    });
    let tried = tried.iter().map(|&(share, quiet, weighed)| {
        Json::object([("share", Json::from(share))])
            .with("price", money(quiet))
            .with("weighed", money(weighed))
    });
    Json::object([("tasks", Json::from(bag.tasks().len() as u64))])
        .with("method", plan.method.as_str())
        .with("deadline_seconds", rules.deadline)
        .with("share", rules.share)
        .with("price", money(plan.price.quiet()))
        .with("price_of_copies", money(plan.price.copies))
        .with("price_of_all_backups", money(plan.price.backups))
        .with(
            "price_on_demand",
            money(plan.bought_on_demand(bag).price.quiet()),
        )
        .with("bound", money(plan.bound))
        .with("gap", plan.gap())
        .with("bound_of_backups", money(plan.backup_bound))
        .with("gap_of_backups", plan.backup_gap())
        .with("makespan_seconds", plan.makespan(bag))
        .with("latest_start_seconds", optional(plan.latest_start(bag)))
        .with("deadline_met", true)
        .with("smallest_deadline", smallest)
        .with(
            "smallest_deadline_without_copies_seconds",
            optional(smallest_without_copies(bag)),
        )
        .with("shares_tried", Json::List(tried.collect()))
        .with("instances", Json::List(vms))
}

fn optional(value: Option<u64>) -> Json {
    value.map_or(Json::Null, Json::from)
}

fn planned_json(bag: &Bag, at: usize, planned: &PlannedVm, first: usize) -> Json {
    let vm = &planned.vm;
    let mut cores = Vec::with_capacity(vm.cores.len());
    for core in &vm.cores {
        let mut end = bag.rules().boot;
        let tasks = core.iter().map(|&task| {
            let from = end;
            end += bag.runtime(task, vm.ty).unwrap_or(0);
            Json::object([("task", Json::from(bag.tasks()[task].name.as_str()))])
                .with("from_seconds", from)
                .with("to_seconds", end)
        });
        cores.push(Json::List(tasks.collect()));
    }
    let backups = planned.backups.iter().enumerate();
    let backups = backups.map(|(i, backup)| backup_json(bag, first + i, backup));
    Json::object([("name", Json::from(name(VmId::Primary(at))))])
        .with("type", bag.types()[vm.ty].name.as_str())
        .with("market", vm.market.as_str())
        .with("end_seconds", vm.end(bag))
        .with("price", money(planned.price.primary))
        .with("cores", Json::List(cores))
        .with("backups", Json::List(backups.collect()))
}

fn backup_json(bag: &Bag, at: usize, backup: &Backup) -> Json {
    let cores = backup.cores.iter().map(|core| {
        let names = core.iter().map(|&task| bag.tasks()[task].name.as_str());
        Json::List(names.map(Json::from).collect())
    });
    Json::object([("name", Json::from(name(VmId::Backup(at))))])
        .with("type", bag.types()[backup.ty].name.as_str())
        .with("latest_start_seconds", backup.latest_start(bag))
        .with("starts_in_any_case", backup.copies)
        .with("price", money(backup.price(bag)))
        .with("cores", Json::List(cores.collect()))
}

/// A run with all bars of its instances.
pub(crate) fn run_json(bag: &Bag, scenario: &str, run: &PlanRun) -> Json {
    let instances = run.instances.iter().map(|i| instance_json(bag, i));
    Json::object([("scenario", Json::from(scenario))])
        .with("price", money(run.price))
        .with("makespan_seconds", run.makespan)
        .with("deadline_met", run.met)
        .with("backups_launched", run.backups as u64)
        .with("tasks_done_on_backups", run.moved as u64)
        .with("instances", Json::List(instances.collect()))
}

fn instance_json(bag: &Bag, run: &InstanceRun) -> Json {
    let frozen = run.frozen.iter().map(|&(from, to)| {
        Json::object([("from_seconds", Json::from(from))]).with("to_seconds", to)
    });
    let bars = run.bars.iter().map(|bar| {
        let end = match bar.end {
            BarEnd::Finished => "finished",
            BarEnd::Cancelled => "done-elsewhere",
            BarEnd::Lost => "lost",
        };
        Json::object([("task", Json::from(bag.tasks()[bar.task].name.as_str()))])
            .with("core", bar.core as u64)
            .with("from_seconds", bar.from)
            .with("to_seconds", bar.to)
            .with("end", end)
    });
    Json::object([("name", Json::from(name(run.vm)))])
        .with("type", bag.types()[run.ty].name.as_str())
        .with("market", run.market.as_str())
        .with("from_seconds", run.from)
        .with("to_seconds", run.to)
        .with("paid_slots", run.slots)
        .with("price", money(run.price))
        .with("hibernated", Json::List(frozen.collect()))
        .with("runs", Json::List(bars.collect()))
}

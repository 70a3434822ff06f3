//! `ebbtide-lab plan bag`: both maps of a bag, what they cost, and the smallest deadline.

use crate::bag::chart;
use crate::bag::view::{counts, hours, money, name, percent, plan_json};
use clap::Args;
use ebbtide_bag::simulate::{Scenario, simulate};
use ebbtide_bag::{Bag, Plan, VmId, critical, smallest_without_copies};
use ebbtide_shell::Context;
use ebbtide_shell::bag::options::{BagOptions, BagPlan};
use ebbtide_shell::charts;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::output::{Format, TableCell, number, text};
use std::path::PathBuf;

pub(super) const HELP: &str = "\
Makes the primary map (which task runs where on preemptible instances) and the backup map (which
on-demand instance takes it over, and from when on at the latest). The deadline is met whatever
hibernates, comes back or is interrupted, if the plan is carried out as `simulate bag` does: backups
start at their latest start, also beside instances that still run. A deadline that cannot be met is
refused with the task that proves it and the smallest deadline that can.

The bound is what no plan can be below; the gap says how far this one is above it at most.
docs/tenants/bags.md explains the file, the algorithms and their readings; docs/tenants/bags has
bags to try.

Examples:
  ebbtide-lab plan bag docs/tenants/bags/example.toml
  ebbtide-lab plan bag docs/tenants/bags/J402.toml --share best --svg J402.svg
  ebbtide-lab plan bag docs/tenants/bags/J207.toml --deadline smallest -o json | jq .instances
  ebbtide-lab plan bag docs/tenants/bags/J207.toml --fleet c3.4xlarge=1,c3.8xlarge=1,c4.8xlarge=1 --tasks";

/// Options of `plan bag`.
#[derive(Debug, Clone, Args)]
pub struct PlanBagArgs {
    /// Which bag, and how
    #[command(flatten)]
    pub bag: BagOptions,
    /// Show every task with its instance and its backup instead of the instances
    #[arg(long)]
    pub tasks: bool,
    /// Draw the primary map as a Gantt chart into this file
    #[arg(long, value_name = "FILE")]
    pub svg: Option<PathBuf>,
}

/// Plans and shows.
pub(super) fn run(context: &mut Context, args: &PlanBagArgs) -> Result<(), CliError> {
    let planned = args.bag.planned()?;
    if let Some(note) = planned.note() {
        context.output.say(&note);
    }
    let BagPlan {
        bag, plan, tried, ..
    } = planned;
    if let Some(path) = &args.svg {
        let run = simulate(&bag, &plan, &Scenario::default())?;
        let title = format!(
            "Plan of {} tasks, {}",
            bag.tasks().len(),
            counts(&bag, &plan)
        );
        let panel = chart::panel(&bag, "if nothing hibernates", &run);
        charts::write(context, path, &chart::figure(&title, vec![panel]))?;
    }
    match context.output.format() {
        Format::Json => context.output.json(&plan_json(&bag, &plan, &tried)),
        Format::Value => rows(context, &bag, &plan, args.tasks),
        Format::Table | Format::Markdown => {
            rows(context, &bag, &plan, args.tasks)?;
            summary(context, &bag, &plan, &tried)
        }
    }
}

fn rows(context: &mut Context, bag: &Bag, plan: &Plan, tasks: bool) -> Result<(), CliError> {
    let (columns, rows) = if tasks {
        (
            vec![
                text("task", "Task"),
                text("instance", "Instance"),
                number("core", "Core"),
                number("from", "From"),
                number("to", "To"),
                text("backup", "Backup"),
                number("latest_start", "Latest start"),
            ],
            task_rows(bag, plan),
        )
    } else {
        (
            vec![
                text("instance", "Instance"),
                text("type", "Type"),
                text("market", "Market"),
                number("tasks", "Tasks"),
                number("cores", "Cores"),
                number("end", "Ends"),
                number("price", "Price"),
                text("backups", "Backups"),
                number("latest_start", "Latest start"),
            ],
            instance_rows(bag, plan),
        )
    };
    if context.output.format() == Format::Value {
        return rows.iter().try_for_each(|row: &Vec<TableCell>| {
            let bare: Vec<&str> = row
                .iter()
                .map(|cell| cell.value.as_deref().unwrap_or(&cell.text))
                .collect();
            context.output.line(&bare.join(" "))
        });
    }
    context.output.table(&columns, &rows)
}

fn seconds(at: u64) -> TableCell {
    TableCell::new(hours(at)).value(at)
}

fn instance_rows(bag: &Bag, plan: &Plan) -> Vec<Vec<TableCell>> {
    let each = plan.vms.iter().enumerate().map(|(at, planned)| {
        let backups: Vec<String> = planned
            .backups
            .iter()
            .map(|b| {
                let copies = if b.copies { " (in any case)" } else { "" };
                format!("{}{copies}", bag.types()[b.ty].name)
            })
            .collect();
        let none = TableCell::new("-");
        vec![
            TableCell::new(name(VmId::Primary(at))),
            TableCell::new(&bag.types()[planned.vm.ty].name),
            TableCell::new(planned.vm.market.as_str()),
            TableCell::new(planned.vm.tasks().count()),
            TableCell::new(planned.vm.cores.len()),
            seconds(planned.vm.end(bag)),
            TableCell::new(money(planned.price.primary)),
            if backups.is_empty() {
                none.clone()
            } else {
                TableCell::new(backups.join(", ")).value(backups.len())
            },
            planned.latest_start(bag).map_or(none, seconds),
        ]
    });
    each.collect()
}

fn task_rows(bag: &Bag, plan: &Plan) -> Vec<Vec<TableCell>> {
    let mut rows: Vec<(usize, Vec<TableCell>)> = Vec::with_capacity(bag.tasks().len());
    let mut first = 0;
    for (at, planned) in plan.vms.iter().enumerate() {
        for finish in planned.vm.finishes(bag) {
            let runtime = bag.runtime(finish.task, planned.vm.ty).unwrap_or(0);
            let backup = planned
                .backups
                .iter()
                .position(|b| b.tasks().any(|task| task == finish.task));
            let (of, latest) = backup.map_or_else(
                || (TableCell::new("-"), TableCell::new("-")),
                |i| {
                    let backup = &planned.backups[i];
                    let of = format!(
                        "{} {}",
                        name(VmId::Backup(first + i)),
                        bag.types()[backup.ty].name
                    );
                    (
                        TableCell::new(of).value(name(VmId::Backup(first + i))),
                        seconds(backup.latest_start(bag)),
                    )
                },
            );
            let row = vec![
                TableCell::new(&bag.tasks()[finish.task].name),
                TableCell::new(name(VmId::Primary(at))),
                TableCell::new(finish.core + 1),
                seconds(finish.end - runtime),
                seconds(finish.end),
                of,
                latest,
            ];
            rows.push((finish.task, row));
        }
        first += planned.backups.len();
    }
    rows.sort_by_key(|(task, _)| *task);
    rows.into_iter().map(|(_, row)| row).collect()
}

fn summary(
    context: &mut Context,
    bag: &Bag,
    plan: &Plan,
    tried: &[(f64, u64, u64)],
) -> Result<(), CliError> {
    let price = plan.price;
    let on_demand = plan.bought_on_demand(bag).price.quiet();
    let share = if tried.is_empty() {
        percent(bag.rules().share)
    } else {
        format!(
            "{}, the best of {} tried",
            percent(bag.rules().share),
            tried.len()
        )
    };
    let rows = [
        (
            "plan",
            format!("{} ({})", counts(bag, plan), plan.method.as_str()),
        ),
        ("price", money(price.quiet())),
        (
            "  of which copies that start in any case",
            money(price.copies),
        ),
        (
            "  at most, if nothing comes back",
            money(price.quiet().saturating_add(price.backups)),
        ),
        (
            "  the same instances on demand",
            format!(
                "{} ({:.3} times)",
                money(on_demand),
                on_demand as f64 / price.quiet().max(1) as f64
            ),
        ),
        (
            "no plan is below",
            format!("{}, gap {}", money(plan.bound), percent(plan.gap())),
        ),
        (
            "no backups of it are below",
            format!(
                "{}, gap {}",
                money(plan.backup_bound),
                percent(plan.backup_gap())
            ),
        ),
        ("done, if nothing hibernates", hours(plan.makespan(bag))),
        (
            "deadline",
            format!("{}, met whatever hibernates", hours(bag.rules().deadline)),
        ),
        (
            "first latest start of a backup",
            plan.latest_start(bag).map_or_else(|| "-".to_owned(), hours),
        ),
        (
            "smallest deadline",
            critical(bag).map_or_else(String::new, |c| {
                format!(
                    "{} (task {} on {})",
                    hours(c.seconds),
                    bag.tasks()[c.task].name,
                    bag.types()[c.ty].name
                )
            }),
        ),
        (
            "smallest without such copies",
            smallest_without_copies(bag).map_or_else(|| "-".to_owned(), hours),
        ),
        ("share of the deadline", share),
    ];
    let width = rows.iter().map(|(key, _)| key.len()).max().unwrap_or(0);
    for (key, value) in rows {
        context.output.line(&format!("{key:<width$}  {value}"))?;
    }
    Ok(())
}

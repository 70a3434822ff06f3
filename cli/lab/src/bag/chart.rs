//! Gantt charts of plans and runs.

use super::view::name;
use ebbtide_bag::simulate::{BarEnd, PlanRun};
use ebbtide_bag::{Bag, Market, VmId};
use ebbtide_chart::{Axis, Colour, Figure, Gantt, Panel, Span};

/// As many rows as a chart can have and still be read; what is beyond is left out, and said.
const MOST_ROWS: usize = 400;

/// With more rows than this they are drawn thin, pixels.
const MANY_ROWS: usize = 24;
const THIN_ROW: u32 = 9;

fn hours(seconds: u64) -> f64 {
    seconds as f64 / 3600.0
}

/// A run: a row for each core of each instance, hibernations as frames, and the deadline.
pub(crate) fn panel(bag: &Bag, title: &str, run: &PlanRun) -> Panel {
    let mut rows = Vec::new();
    let mut cores = Vec::new();
    for (at, instance) in run.instances.iter().enumerate() {
        let used = instance.bars.iter().map(|bar| bar.core + 1).max();
        for core in 0..used.unwrap_or(1) {
            let of = &bag.types()[instance.ty].name;
            rows.push(if core == 0 {
                format!("{} {of}", name(instance.vm))
            } else {
                String::new()
            });
            cores.push((at, core));
        }
    }
    let left_out = rows.len().saturating_sub(MOST_ROWS);
    rows.truncate(MOST_ROWS);
    cores.truncate(MOST_ROWS);
    let last = run.instances.iter().map(|i| i.to).max().unwrap_or(0);
    let end = hours(last.max(bag.rules().deadline)) * 1.02;
    let mut chart = Gantt::new(Axis::new("time [h]").range(0.0, end), rows);
    let preemptible = chart.kind("task, preemptible", Some(Colour::SKY));
    let on_demand = chart.kind("task, on demand", Some(Colour::ORANGE));
    let dropped = chart.kind("done elsewhere or lost", Some(Colour::GREY));
    let frozen = chart.kind("hibernated", Some(Colour::VERMILION));
    for (row, &(at, core)) in cores.iter().enumerate() {
        let Some(instance) = run.instances.get(at) else {
            continue;
        };
        for bar in instance.bars.iter().filter(|bar| bar.core == core) {
            let kind = match (bar.end, instance.market) {
                (BarEnd::Finished, Market::Preemptible) => preemptible,
                (BarEnd::Finished, Market::OnDemand) => on_demand,
                (BarEnd::Cancelled | BarEnd::Lost, _) => dropped,
            };
            let task = bag.tasks()[bar.task].name.as_str();
            for (at, &(from, to)) in awake(bar.from, bar.to, &instance.frozen).iter().enumerate() {
                let span = Span::new(hours(from), hours(to));
                chart.add(row, kind, if at == 0 { span.label(task) } else { span });
            }
        }
        for &(from, to) in &instance.frozen {
            let to = to.min(last);
            if from < to {
                chart.add(row, frozen, Span::new(hours(from), hours(to)).hollow());
            }
        }
    }
    chart.mark(hours(bag.rules().deadline), "deadline");
    let backups = run
        .instances
        .iter()
        .filter(|i| matches!(i.vm, VmId::Backup(_)));
    if let Some(first) = backups.map(|i| i.from).min() {
        chart.mark(hours(first), "first backup");
    }
    let title = if left_out > 0 {
        format!("{title} ({left_out} more cores are not shown)")
    } else {
        title.to_owned()
    };
    let panel = chart.panel().title(title);
    match cores.len() {
        0..=MANY_ROWS => panel,
        rows => panel.height(110 + THIN_ROW * u32::try_from(rows).unwrap_or(MOST_ROWS as u32)),
    }
}

/// The parts of a bar in which its instance was not frozen.
fn awake(from: u64, to: u64, frozen: &[(u64, u64)]) -> Vec<(u64, u64)> {
    let mut parts = Vec::with_capacity(1);
    let mut begin = from;
    for &(sleeps, wakes) in frozen.iter().filter(|(s, w)| *s < to && *w > from) {
        if begin < sleeps {
            parts.push((begin, sleeps));
        }
        begin = wakes.max(begin);
    }
    if begin < to {
        parts.push((begin, to));
    }
    parts
}

/// Panels below one another.
pub(crate) fn figure(title: &str, panels: Vec<Panel>) -> Figure {
    panels.into_iter().fold(Figure::new(title), Figure::panel)
}

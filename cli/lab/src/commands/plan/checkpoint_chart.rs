//! Schedules of checkpoints as charts.

use super::checkpoint::CheckpointPlan;
use ebbtide_chart::{Axis, BarLayer, Colour, Figure, LineLayer, Panel, ReferenceLine};
use ebbtide_lifetime::Lifetime;

const POINTS: usize = 480;

/// When the checkpoints are, over the hazard that they answer to; how long the intervals are; what
/// each plan costs.
pub(super) fn figure(
    model: &dyn Lifetime,
    age: f64,
    cost: f64,
    plans: &[CheckpointPlan],
) -> Figure {
    let work: f64 = plans.first().map_or(0.0, |p| p.intervals.iter().sum());
    let mut figure = Figure::new("When to write checkpoints")
        .description("The hazard of the instance with the checkpoints of the plan, the intervals of each plan, and the expected overhead of each")
        .columns(3)
        .width(420);
    if let Some(plan) = plans.first() {
        figure = figure.panel(over_hazard(model, age, cost, plan));
    }
    let mut intervals = Panel::new(
        Axis::new("work done [h]").range(0.0, work),
        Axis::new("work before the next checkpoint [min]").from(0.0),
    )
    .title("intervals");
    for plan in plans.iter().filter(|plan| plan.intervals.len() > 1) {
        let mut done = 0.0;
        let mut points = Vec::with_capacity(plan.intervals.len() + 1);
        for interval in &plan.intervals {
            points.push((done, interval * 60.0));
            done += interval;
            points.push((done, interval * 60.0));
        }
        intervals = intervals.with(LineLayer::new(plan.name.as_str(), points));
    }
    // Who never ends has no bar.
    let ending = plans.iter().filter(|plan| plan.makespan.is_finite());
    let ending: Vec<&CheckpointPlan> = ending.collect();
    let bars = ending.iter().enumerate();
    let bars = bars.map(|(at, plan)| (at as f64, (plan.makespan / work - 1.0) * 100.0));
    let overheads = Panel::new(
        Axis::categories("", ending.iter().map(|plan| plan.name.as_str())),
        Axis::new("expected overhead [%]").from(0.0),
    )
    .title("what it costs")
    .with(BarLayer::new("", bars.collect()).colour(Colour::BLUE));
    figure.panel(intervals).panel(overheads)
}

/// The hazard from the age on, with a line at each checkpoint of the plan.
fn over_hazard(model: &dyn Lifetime, age: f64, cost: f64, plan: &CheckpointPlan) -> Panel {
    let mut at = age;
    let mut rules = Vec::with_capacity(plan.intervals.len());
    // The next instance has an age of its own.
    let until = plan.new_instances.first().copied();
    let until = until.unwrap_or(plan.intervals.len()).max(1);
    for interval in plan.intervals.iter().take(until) {
        at += interval;
        rules.push(at);
        at += cost;
    }
    let hazard = (0..=POINTS)
        .map(|point| age + (at - age) * point as f64 / POINTS as f64)
        .map(|t| (t, model.hazard(t)))
        .filter(|(_, rate)| rate.is_finite());
    let mut panel = Panel::new(
        Axis::new("age [h]").range(age, at),
        Axis::new("hazard [1/h]").from(0.0),
    )
    .title(format!("checkpoints, {}", plan.name));
    for rule in rules {
        panel = panel.with(ReferenceLine::vertical(rule).colour(Colour::GREEN));
    }
    panel.with(
        LineLayer::new("hazard", hazard.collect())
            .colour(Colour::VERMILION)
            .width(2),
    )
}

//! Both states over time as a chart.
//!
//! One panel for each resource class that anybody has: below, what normal instances use (h_n); on
//! top of it, what preemptible ones use, and what is on its way out. The upper edge is h_f; the
//! line at 100 % is the capacity.

use ebbtide_chart::{Axis, Band, Colour, Figure, LineLayer, Panel};
use ebbtide_simulator::{ClassSample, Sample};
use std::collections::BTreeMap;

const WIDTH: u32 = 1000;
const PANEL_HEIGHT: u32 = 300;

/// Shares of the capacity at one time, in percent, one on top of the other.
struct Point {
    hours: f64,
    normal: f64,
    with_preemptible: f64,
    full: f64,
}

/// The samples of a replay.
pub(super) fn figure(title: &str, samples: &[Sample]) -> Figure {
    let classes = classes(samples);
    let figure = Figure::new(title)
        .description("How much of the capacity normal and preemptible instances use over time.")
        .width(WIDTH);
    if classes.is_empty() {
        return figure.panel(axes(0.0, 100.0).title("nothing was used in any sample"));
    }
    let panels = classes
        .iter()
        .map(|(class, points)| panel(points).title(class.as_str()));
    panels.fold(figure, Figure::panel)
}

/// The points of each class, in the order of the classes' names.
fn classes(samples: &[Sample]) -> BTreeMap<String, Vec<Point>> {
    let mut classes: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    let start = samples.first().map_or(0.0, |sample| sample.at_seconds);
    for sample in samples {
        for class in sample.classes.iter().filter(|class| class.capacity > 0) {
            classes
                .entry(class.resource_class.clone())
                .or_default()
                .push(point(class, (sample.at_seconds - start) / 3600.0));
        }
    }
    // Omit classes without any usage (disk, in traces without disk).
    classes.retain(|_, points| points.iter().any(|point| point.full > 0.0));
    classes
}

#[allow(clippy::cast_precision_loss)] // It is drawn with a few hundred pixels.
fn point(class: &ClassSample, hours: f64) -> Point {
    let percent = |used: u64| used as f64 * 100.0 / class.capacity as f64;
    Point {
        hours,
        normal: percent(class.normal),
        with_preemptible: percent(class.normal + class.preemptible),
        full: percent(class.full()),
    }
}

fn axes(hours: f64, most: f64) -> Panel {
    Panel::new(
        Axis::new("hours of trace time").range(0.0, hours.max(1e-3)),
        Axis::new("% of capacity").range(0.0, most * 1.05),
    )
    .height(PANEL_HEIGHT)
}

fn panel(points: &[Point]) -> Panel {
    let hours = points.last().map_or(0.0, |point| point.hours);
    let most = points.iter().map(|point| point.full).fold(100.0, f64::max);
    let band = |name: &str, colour, edges: fn(&Point) -> (f64, f64)| {
        Band::new(name, steps(points, edges)).colour(colour).solid()
    };
    let capacity = vec![(0.0, 100.0), (hours, 100.0)];
    axes(hours, most)
        .with(band("normal (h_n)", Colour::BLUE, |p| (0.0, p.normal)))
        .with(band("preemptible", Colour::GREEN, |p| {
            (p.normal, p.with_preemptible)
        }))
        .with(band(
            "leaving (h_f is the upper edge)",
            Colour::ORANGE,
            |p| (p.with_preemptible, p.full),
        ))
        .with(
            LineLayer::new("capacity", capacity)
                .colour(Colour::BLACK)
                .width(1),
        )
}

/// Between two samples the earlier one holds: steps, not slopes.
fn steps(points: &[Point], edges: fn(&Point) -> (f64, f64)) -> Vec<(f64, f64, f64)> {
    let mut line = Vec::with_capacity(points.len() * 2);
    let mut before = None;
    for point in points {
        let (low, high) = edges(point);
        if let Some((low, high)) = before.replace((low, high)) {
            line.push((point.hours, low, high));
        }
        line.push((point.hours, low, high));
    }
    line
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test: what is missing shall fail loudly"
)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        let class = |name: &str, capacity, normal, preemptible, leaving| ClassSample {
            resource_class: name.into(),
            capacity,
            normal,
            preemptible,
            leaving,
        };
        (0..20_u64)
            .map(|i| Sample {
                at_seconds: i as f64 * 1800.0,
                classes: vec![
                    class("VCPU", 100, i * 4, 20 - i, i % 5),
                    class("DISK_GB", 10, 0, 0, 0),
                ],
            })
            .collect()
    }

    #[test]
    fn the_chart_shows_the_classes_that_are_used() {
        let svg = figure("a <title> & more", &samples()).svg().unwrap();
        assert!(svg.contains("VCPU") && !svg.contains("DISK_GB"));
        assert!(svg.contains("a &lt;title&gt; &amp; more"));
    }

    #[test]
    fn a_chart_of_nothing_says_so() {
        let svg = figure("none", &[]).svg().unwrap();
        assert!(svg.contains("nothing was used"));
    }

    #[test]
    fn between_two_samples_the_earlier_one_holds() {
        let points: Vec<Point> = [(0.0, 1.0), (1.0, 5.0)]
            .map(|(hours, full)| Point {
                hours,
                normal: 0.0,
                with_preemptible: 0.0,
                full,
            })
            .into();
        assert_eq!(
            steps(&points, |p| (p.normal, p.full)),
            [(0.0, 0.0, 1.0), (1.0, 0.0, 1.0), (1.0, 0.0, 5.0)]
        );
    }
}

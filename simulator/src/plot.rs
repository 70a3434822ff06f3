//! The plot of both states over time, as SVG without fonts, scripts or links.
//!
//! One panel for each resource class that anybody has: below, what normal instances use (h_n); on
//! top of it, what preemptible ones use, and what is on its way out. The upper edge is h_f; the
//! line at 100 % is the capacity.

use crate::{ClassSample, Sample, SimError};
use plotters::prelude::*;
use std::collections::BTreeMap;

const WIDTH: u32 = 1000;
const TITLE_HEIGHT: u32 = 40;
const PANEL_HEIGHT: u32 = 300;

/// Blue for normal, green for preemptible, orange for leaving: told apart with any kind of colour
/// vision, and in grey.
const NORMAL: RGBColor = RGBColor(0, 90, 160);
const PREEMPTIBLE: RGBColor = RGBColor(110, 190, 120);
const LEAVING: RGBColor = RGBColor(230, 130, 20);

/// Shares of the capacity at one time, in percent, one on top of the other.
struct Point {
    hours: f64,
    normal: f64,
    with_preemptible: f64,
    full: f64,
}

/// Draws the samples.
///
/// # Errors
/// [`SimError::Plot`].
pub fn utilisation_svg(title: &str, samples: &[Sample]) -> Result<String, SimError> {
    let panels = panels(samples);
    let height = TITLE_HEIGHT + PANEL_HEIGHT * u32::try_from(panels.len().max(1)).unwrap_or(1);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        draw(&root, title, &panels).map_err(|problem| SimError::Plot(problem.to_string()))?;
    }
    Ok(ebbtide_model::names::shown_lines(&svg).into_owned())
}

/// The points of each class, in the order of the classes' names.
fn panels(samples: &[Sample]) -> BTreeMap<String, Vec<Point>> {
    let mut panels: BTreeMap<String, Vec<Point>> = BTreeMap::new();
    let start = samples.first().map_or(0.0, |sample| sample.at_seconds);
    for sample in samples {
        for class in sample.classes.iter().filter(|class| class.capacity > 0) {
            panels
                .entry(class.resource_class.clone())
                .or_default()
                .push(point(class, (sample.at_seconds - start) / 3600.0));
        }
    }
    // Omit classes without any usage (disk, in traces without disk).
    panels.retain(|_, points| points.iter().any(|point| point.full > 0.0));
    panels
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

/// Which of a point's values.
type Value = fn(&Point) -> f64;
/// Drawing fails with the backend's own errors.
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(
    root: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    title: &str,
    panels: &BTreeMap<String, Vec<Point>>,
) -> Drawn {
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(TITLE_HEIGHT);
    head.draw(&Text::new(
        title.to_owned(),
        (20, 12),
        ("sans-serif", 18).into_font(),
    ))?;
    if panels.is_empty() {
        let font = ("sans-serif", 16).into_font();
        body.draw(&Text::new("nothing was used in any sample", (20, 40), font))?;
    }
    let areas = body.split_evenly((panels.len().max(1), 1));
    for ((class, points), area) in panels.iter().zip(&areas) {
        panel(area, class, points)?;
    }
    root.present()?;
    Ok(())
}

fn panel(
    area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>,
    class: &str,
    points: &[Point],
) -> Drawn {
    let hours = points.last().map_or(0.0, |point| point.hours).max(1e-3);
    let most = points.iter().map(|point| point.full).fold(100.0, f64::max);
    let mut chart = ChartBuilder::on(area)
        .caption(class, ("sans-serif", 16))
        .margin(10)
        .x_label_area_size(36)
        .y_label_area_size(56)
        .build_cartesian_2d(0.0..hours, 0.0..most * 1.05)?;
    chart
        .configure_mesh()
        .x_desc("hours of trace time")
        .y_desc("% of capacity")
        .max_light_lines(0)
        .draw()?;
    // From the back to the front: each area hides the lower part of the one before.
    let layers: [(&str, RGBColor, Value); 3] = [
        ("leaving (h_f is the upper edge)", LEAVING, |point| {
            point.full
        }),
        ("preemptible", PREEMPTIBLE, |point| point.with_preemptible),
        ("normal (h_n)", NORMAL, |point| point.normal),
    ];
    for (label, color, value) in layers {
        chart
            .draw_series(AreaSeries::new(steps(points, value), 0.0, color.filled()))?
            .label(label)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
    }
    chart.draw_series(LineSeries::new(
        [(0.0, 100.0), (hours, 100.0)],
        BLACK.stroke_width(1),
    ))?;
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

/// Between two samples the earlier one holds: steps, not slopes.
fn steps(points: &[Point], value: Value) -> Vec<(f64, f64)> {
    let mut line = Vec::with_capacity(points.len() * 2);
    for (position, point) in points.iter().enumerate() {
        if let Some(before) = position
            .checked_sub(1)
            .and_then(|before| points.get(before))
        {
            line.push((point.hours, value(before)));
        }
        line.push((point.hours, value(point)));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<Sample> {
        (0..20_u64)
            .map(|i| Sample {
                at_seconds: i as f64 * 1800.0,
                classes: vec![
                    ClassSample {
                        resource_class: "VCPU".into(),
                        capacity: 100,
                        normal: i * 4,
                        preemptible: 20 - i,
                        leaving: i % 5,
                    },
                    ClassSample {
                        resource_class: "DISK_GB".into(),
                        capacity: 10,
                        normal: 0,
                        preemptible: 0,
                        leaving: 0,
                    },
                ],
            })
            .collect()
    }

    /// Every tag that is opened is closed, in order; text has no bare `<` or `&`.
    fn assert_well_formed(svg: &str) {
        let mut open: Vec<&str> = Vec::new();
        let mut rest = svg;
        while let Some(start) = rest.find('<') {
            let text = &rest[..start];
            for (at, _) in text.match_indices('&') {
                assert!(text[at..].contains(';'), "bare & in {text:?}");
            }
            let end = rest[start..].find('>').expect("a tag is not closed") + start;
            let tag = &rest[start + 1..end];
            rest = &rest[end + 1..];
            if let Some(name) = tag.strip_prefix('/') {
                assert_eq!(open.pop(), Some(name.trim()), "closed in the wrong order");
            } else if !tag.ends_with('/') && !tag.starts_with(['?', '!']) {
                open.push(tag.split_whitespace().next().unwrap());
            }
        }
        assert!(open.is_empty(), "never closed: {open:?}");
    }

    #[test]
    fn the_plot_is_well_formed_and_shows_the_classes_that_are_used() {
        let svg = utilisation_svg("a <title> & more", &samples()).unwrap();
        assert_well_formed(&svg);
        assert!(svg.starts_with("<svg") && svg.contains("VCPU") && !svg.contains("DISK_GB"));
        assert!(svg.contains("a &lt;title&gt; &amp; more"));
    }

    #[test]
    fn a_plot_of_nothing_says_so() {
        let svg = utilisation_svg("none", &[]).unwrap();
        assert_well_formed(&svg);
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
            steps(&points, |p| p.full),
            [(0.0, 1.0), (1.0, 1.0), (1.0, 5.0)]
        );
    }
}

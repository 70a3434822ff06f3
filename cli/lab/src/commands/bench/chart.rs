//! Measurements as charts.

use ebbtide_chart::{Axis, BarLayer, Figure, LineLayer, Panel, PointShape};

/// Pixels that a panel is wide: several stand beside one another.
const WIDTH: u32 = 560;

/// Lines that show how something grows, on logarithmic axes: the caption, what the x axis shows,
/// and
/// the lines with their names.
pub(super) fn growth(
    caption: &str,
    x: &str,
    lines: impl IntoIterator<Item = (String, Vec<(f64, f64)>)>,
) -> Panel {
    let lines = lines
        .into_iter()
        .map(|(name, points)| LineLayer::new(name, points).marks(PointShape::Circle));
    Panel::new(
        Axis::new(x).logarithmic(),
        Axis::new("µs a decision").logarithmic(),
    )
    .title(caption)
    .with_all(lines)
}

/// BarLayer side by side in groups: the caption, the names of the groups, and the bars of each
/// series
/// with its name.
pub(super) fn bars<'a>(
    caption: &str,
    groups: impl IntoIterator<Item = &'a str>,
    series: &[(&str, Vec<f64>)],
) -> Panel {
    let values = series.iter().flat_map(|(_, values)| values);
    let highest = values.copied().fold(0.0, f64::max);
    // A tenth for the text above the highest bar.
    let top = if highest > 0.0 { highest * 1.1 } else { 1.0 };
    let bars = series.iter().map(|(name, values)| {
        let at = values.iter().enumerate();
        BarLayer::new(*name, at.map(|(group, us)| (group as f64, *us)).collect())
            .labels(values.iter().copied().map(short).collect())
    });
    Panel::new(
        Axis::categories("", groups),
        Axis::new("µs a request").range(0.0, top),
    )
    .title(caption)
    .with_all(bars)
}

/// The panels beside one another.
pub(super) fn figure(title: &str, panels: Vec<Panel>) -> Figure {
    let figure = Figure::new(title).width(WIDTH).columns(panels.len());
    panels.into_iter().fold(figure, Figure::panel)
}

/// A number with three digits that matter.
fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 1e6 => format!("{} M", trimmed(value / 1e6)),
        v if v >= 1e4 => format!("{} k", trimmed(value / 1e3)),
        v if v >= 100.0 => format!("{value:.0}"),
        _ => trimmed(value),
    }
}

fn trimmed(value: f64) -> String {
    let text = format!("{value:.2}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    reason = "a test: what is missing shall fail loudly"
)]
mod tests {
    use super::*;

    #[test]
    fn lines_show_every_series_and_escape_what_they_are_called() {
        let line = |name: &str, factor: f64| {
            let points = [1e3, 1e4, 1e5].map(|x| (x, x * factor));
            (name.to_owned(), points.to_vec())
        };
        let lines = [line("p50 & p99", 0.1), line("8 <each>", 0.3)];
        let panel = growth("growth", "hosts", lines);
        let svg = figure("one", vec![panel.clone(), panel]).svg().unwrap();
        assert!(svg.contains("p50 &amp; p99") && svg.contains("8 &lt;each&gt;"));
        // Three points and the legend's mark, for two lines of two panels.
        assert_eq!(svg.matches("<circle").count(), 16);
    }

    #[test]
    fn bars_carry_their_groups_names_and_values() {
        let series = [("plain", vec![1.0, 2.0]), ("retry", vec![3.0, 12_345.0])];
        let panel = bars("24 hosts", ["empty", "saturated"], &series);
        let svg = figure("two", vec![panel]).svg().unwrap();
        for text in [
            "plain",
            "retry",
            "empty",
            "saturated",
            "24 hosts",
            "12.35 k",
        ] {
            assert!(svg.contains(text), "{text} is missing");
        }
    }

    #[test]
    fn nothing_can_be_drawn_too() {
        let panels = vec![growth("", "hosts", []), bars("", [], &[])];
        assert!(figure("none", panels).svg().unwrap().contains("<svg"));
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.5, 12.345, 456.7, 12_345.0, 2_000_000.0].map(short);
        assert_eq!(texts, ["0.5", "12.35", "457", "12.35 k", "2 M"]);
    }
}

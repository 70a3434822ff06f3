//! Plots of what was measured, as SVG without fonts, scripts or links.

use crate::BenchError;
use plotters::coord::Shift;
use plotters::prelude::*;

const PANEL_WIDTH: u32 = 560;
const HEIGHT: u32 = 420;
const TITLE_HEIGHT: u32 = 40;
/// Told apart with any kind of colour vision, and in grey.
const COLORS: [RGBColor; 6] = [
    RGBColor(0, 90, 160),
    RGBColor(230, 130, 20),
    RGBColor(60, 150, 80),
    RGBColor(150, 70, 150),
    RGBColor(90, 90, 90),
    RGBColor(190, 50, 50),
];

/// A line: what it is called, and its points.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What the legend says.
    pub label: String,
    /// In ascending order of x; all above zero.
    pub points: Vec<(f64, f64)>,
}

/// A chart of lines, both axes logarithmic.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    /// What stands above it.
    pub caption: String,
    /// The horizontal axis.
    pub x: String,
    /// The vertical axis.
    pub y: String,
    /// The lines.
    pub series: Vec<Series>,
}

/// Bars side by side: what a group is called, and its bars by series.
#[derive(Debug, Clone, PartialEq)]
pub struct Bars {
    /// What stands above the chart.
    pub caption: String,
    /// The vertical axis.
    pub y: String,
    /// What each bar of a group is.
    pub labels: Vec<String>,
    /// The groups: a name and as many values as there are labels.
    pub groups: Vec<(String, Vec<f64>)>,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
/// Drawing fails with the backend's own errors.
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn color(at: usize) -> RGBColor {
    COLORS.get(at % COLORS.len()).copied().unwrap_or(BLACK)
}

fn sheet(
    title: &str,
    panels: usize,
    draw: impl Fn(&[Area<'_>]) -> Drawn,
) -> Result<String, BenchError> {
    let columns = panels.max(1);
    let width = PANEL_WIDTH * u32::try_from(columns).unwrap_or(1);
    let mut svg = String::new();
    draw_sheet(&mut svg, width, title, columns, draw)
        .map_err(|problem| BenchError::Plot(problem.to_string()))?;
    Ok(svg)
}

fn draw_sheet(
    svg: &mut String,
    width: u32,
    title: &str,
    columns: usize,
    draw: impl Fn(&[Area<'_>]) -> Drawn,
) -> Drawn {
    let size = (width, TITLE_HEIGHT + HEIGHT);
    let root = SVGBackend::with_string(svg, size).into_drawing_area();
    root.fill(&WHITE)?;
    let (head, body) = root.split_vertically(TITLE_HEIGHT);
    let font = ("sans-serif", 18).into_font();
    head.draw(&Text::new(title.to_owned(), (20, 12), font))?;
    draw(&body.split_evenly((1, columns)))?;
    root.present()?;
    Ok(())
}

/// Lines that show how something grows.
///
/// # Errors
/// [`BenchError::Plot`].
pub fn growth_svg(title: &str, panels: &[Panel]) -> Result<String, BenchError> {
    sheet(title, panels.len(), |areas| {
        areas
            .iter()
            .zip(panels)
            .try_for_each(|(area, panel)| lines(area, panel))
    })
}

/// Bars that compare.
///
/// # Errors
/// [`BenchError::Plot`].
pub fn bars_svg(title: &str, charts: &[Bars]) -> Result<String, BenchError> {
    sheet(title, charts.len(), |areas| {
        areas
            .iter()
            .zip(charts)
            .try_for_each(|(area, chart)| bars(area, chart))
    })
}

/// The span of values, with some air on both sides; something drawable even where there are none.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values
        .filter(|v| v.is_finite() && *v > 0.0)
        .fold((f64::INFINITY, 0.0_f64), |(low, high), v| {
            (low.min(v), high.max(v))
        });
    if low <= high {
        (low / 1.5, high * 1.5)
    } else {
        (0.1, 10.0)
    }
}

/// Pixels that an entry of the legend is high, and its frame with a gap below it.
const LEGEND_ENTRY: f64 = 15.5;
const LEGEND_FRAME: f64 = 26.0;

/// Pixels of a panel that are not plot: margins, caption, the x axis with its labels.
const AROUND: f64 = 95.0;

/// The share of a plot's height that stays free of data, because the legend stands there.
fn legend_share(entries: usize) -> f64 {
    let legend = LEGEND_FRAME + LEGEND_ENTRY * entries as f64;
    (legend / (f64::from(HEIGHT) - AROUND)).min(0.6)
}

fn lines(area: &Area<'_>, panel: &Panel) -> Drawn {
    let points = || panel.series.iter().flat_map(|s| &s.points);
    let (left, right) = span(points().map(|p| p.0));
    let (low, high) = span(points().map(|p| p.1));
    // On a logarithmic axis a share of the height is a power.
    let share = legend_share(panel.series.len());
    let high = high * (high / low).powf(share / (1.0 - share));
    let mut chart = ChartBuilder::on(area)
        .caption(&panel.caption, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d((left..right).log_scale(), (low..high).log_scale())?;
    chart
        .configure_mesh()
        .x_desc(&panel.x)
        .y_desc(&panel.y)
        .x_label_formatter(&|x| short(*x))
        .y_label_formatter(&|y| short(*y))
        .max_light_lines(0)
        .draw()?;
    for (at, series) in panel.series.iter().enumerate() {
        let color = color(at);
        chart
            .draw_series(LineSeries::new(
                series.points.iter().copied(),
                color.stroke_width(2),
            ))?
            .label(&series.label)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
        let dots = series
            .points
            .iter()
            .map(|&p| Circle::new(p, 3, color.filled()));
        chart.draw_series(dots)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
}

fn bars(area: &Area<'_>, bars: &Bars) -> Drawn {
    let highest = bars
        .groups
        .iter()
        .flat_map(|(_, values)| values)
        .copied()
        .fold(0.0, f64::max);
    // Above the highest bar stand its number, and the legend.
    let share = legend_share(bars.labels.len()) + 0.08;
    let high = if highest > 0.0 {
        highest / (1.0 - share)
    } else {
        1.0
    };
    let groups = bars.groups.len().max(1);
    let names = |x: &f64| {
        let at = x.floor().max(0.0) as usize;
        let is_middle = (x - x.floor() - 0.5).abs() < 0.01;
        bars.groups
            .get(at)
            .filter(|_| is_middle)
            .map_or_else(String::new, |(name, _)| name.clone())
    };
    let mut chart = ChartBuilder::on(area)
        .caption(&bars.caption, ("sans-serif", 16))
        .margin(12)
        .x_label_area_size(30)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..groups as f64, 0.0..high)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(groups * 2 + 1)
        .x_label_formatter(&names)
        .y_desc(&bars.y)
        .y_label_formatter(&|y| short(*y))
        .max_light_lines(0)
        .draw()?;
    let width = 0.8 / bars.labels.len().max(1) as f64;
    for (at, label) in bars.labels.iter().enumerate() {
        let color = color(at);
        let boxes = bars
            .groups
            .iter()
            .enumerate()
            .filter_map(|(group, (_, values))| {
                let value = *values.get(at)?;
                let left = group as f64 + 0.1 + width * at as f64;
                Some(Rectangle::new(
                    [(left, 0.0), (left + width * 0.92, value)],
                    color.filled(),
                ))
            });
        chart
            .draw_series(boxes)?
            .label(label)
            .legend(move |(x, y)| Rectangle::new([(x, y - 5), (x + 12, y + 5)], color.filled()));
        let numbers = bars
            .groups
            .iter()
            .enumerate()
            .filter_map(|(group, (_, values))| {
                let value = *values.get(at)?;
                let left = group as f64 + 0.1 + width * at as f64;
                Some(Text::new(
                    short(value),
                    (left, value + high * 0.03),
                    ("sans-serif", 11),
                ))
            });
        chart.draw_series(numbers)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperLeft)
        .background_style(WHITE.mix(0.85))
        .border_style(BLACK.mix(0.3))
        .draw()?;
    Ok(())
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
mod tests {
    use super::*;

    #[test]
    fn lines_show_every_series_and_escape_what_they_are_called() {
        let series = |label: &str, factor: f64| Series {
            label: label.to_owned(),
            points: [1e3, 1e4, 1e5].map(|x| (x, x * factor)).to_vec(),
        };
        let panel = Panel {
            caption: "growth".to_owned(),
            x: "hosts".to_owned(),
            y: "µs".to_owned(),
            series: vec![series("p50 & p99", 0.1), series("8 <each>", 0.3)],
        };
        let svg = growth_svg("one", &[panel.clone(), panel]).unwrap();
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        assert!(svg.contains("p50 &amp; p99") && svg.contains("8 &lt;each&gt;"));
        assert_eq!(svg.matches("<circle").count(), 12);
    }

    #[test]
    fn the_legend_covers_no_curve() {
        let falling = |n: u32| Series {
            label: format!("{n}000 hosts, p99"),
            points: [(8.0, 9e3), (16.0, 7e3), (40.0, 5e1)]
                .map(|(x, y)| (x, y / f64::from(n)))
                .to_vec(),
        };
        let panel = Panel {
            caption: "over instances".to_owned(),
            x: "instances".to_owned(),
            y: "µs".to_owned(),
            series: (1..=6).map(falling).collect(),
        };
        let svg = growth_svg("one", &[panel]).unwrap();
        let number = |element: &str, name: &str| -> f64 {
            let from = element.split(&format!("{name}=\"")).nth(1).unwrap();
            from.split('"').next().unwrap().parse().unwrap()
        };
        let frame = svg
            .split("<rect ")
            .find(|rect| rect.contains("opacity=\"0.85\""));
        let frame = frame.unwrap();
        let bottom = number(frame, " y") + number(frame, "height");
        let circles: Vec<f64> = svg
            .split("<circle ")
            .skip(1)
            .map(|c| number(c, "cy"))
            .collect();
        assert_eq!(circles.len(), 18);
        assert!(
            circles.iter().all(|y| y - 3.0 > bottom),
            "{circles:?} {bottom}"
        );
    }

    #[test]
    fn bars_carry_their_groups_names() {
        let bars = Bars {
            caption: "24 hosts".to_owned(),
            y: "µs".to_owned(),
            labels: ["plain", "retry"].map(str::to_owned).to_vec(),
            groups: vec![
                ("empty".to_owned(), vec![1.0, 2.0]),
                ("saturated".to_owned(), vec![3.0, 4.0]),
            ],
        };
        let svg = bars_svg("two", &[bars]).unwrap();
        for text in ["plain", "retry", "empty", "saturated", "24 hosts"] {
            assert!(svg.contains(text), "{text} is missing");
        }
    }

    #[test]
    fn nothing_can_be_drawn_too() {
        let panel = Panel {
            caption: String::new(),
            x: String::new(),
            y: String::new(),
            series: Vec::new(),
        };
        assert!(growth_svg("none", &[panel]).unwrap().contains("<svg"));
        assert!(growth_svg("none", &[]).unwrap().contains("<svg"));
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.5, 12.345, 456.7, 12_345.0, 2_000_000.0].map(short);
        assert_eq!(texts, ["0.5", "12.35", "457", "12.35 k", "2 M"]);
    }
}

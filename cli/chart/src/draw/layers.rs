//! The layers of a panel, each cut to what its axes show.

use super::clip::{is_visible, pieces, within};
use super::legend::{BAND, mark, rgb, strokes};
use super::ranged::TickedAxis;
use super::{FONT, SIZE_TEXT, gave_up, text_width};
use crate::axis::FixedAxis;
use crate::colour::Colour;
use crate::error::ChartError;
use crate::gantt::BarSeries;
use crate::layer::{Band, BarLayer, Dash, Layer, LineLayer, PointShape, ReferenceLine};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<TickedAxis, TickedAxis>>;
type Axes<'a> = (&'a FixedAxis, &'a FixedAxis);

/// The size of the texts above bars, which are narrow.
const SIZE_BAR: u32 = 11;

/// How much of its row a rectangle of a Gantt chart fills.
const ROW: f64 = 0.72;

/// Draws all layers, the first lowest.
///
/// # Errors
/// [`ChartError::Drawing`].
pub(super) fn draw(
    chart: &mut Chart<'_, '_>,
    layers: &[(&Layer, Colour)],
    axes: Axes<'_>,
) -> Result<(), ChartError> {
    let groups = layers
        .iter()
        .filter(|(layer, _)| matches!(layer, Layer::Bars(_)))
        .count();
    let mut group = 0;
    for (layer, colour) in layers {
        match layer {
            Layer::Line(layer) => line(chart, layer, *colour, axes)?,
            Layer::Points(layer) => {
                marks(chart, &layer.points, layer.shape, layer.size, *colour, axes)?;
            }
            Layer::Bars(layer) => {
                bars(chart, layer, (group, groups), *colour, axes)?;
                group += 1;
            }
            Layer::Band(layer) => band(chart, layer, *colour, axes)?,
            Layer::Rule(layer) => rule(chart, layer, *colour, axes)?,
            Layer::Rows(layer) => rows(chart, layer, axes)?,
        }
    }
    Ok(())
}

/// The drawing area in pixels, where dashes, marks and words are placed: they have one size
/// whatever the axes.
fn pixels<'b>(chart: &Chart<'_, 'b>) -> DrawingArea<SVGBackend<'b>, Shift> {
    chart.plotting_area().strip_coord_spec()
}

/// A point of the plane in pixels of [`pixels`].
fn pixel(chart: &Chart<'_, '_>, point: (f64, f64)) -> (i32, i32) {
    let (x, y) = chart.plotting_area().map_coordinate(&point);
    let (left, top) = chart.plotting_area().get_base_pixel();
    (x - left, y - top)
}

fn line(
    chart: &mut Chart<'_, '_>,
    line: &LineLayer,
    colour: Colour,
    axes: Axes<'_>,
) -> Result<(), ChartError> {
    let points = if line.steps {
        stairs(&line.points)
    } else {
        line.points.clone()
    };
    let style = rgb(colour).stroke_width(line.width);
    let area = pixels(chart);
    for piece in pieces(&points, axes.0, axes.1) {
        let path: Vec<(i32, i32)> = piece.iter().map(|p| pixel(chart, *p)).collect();
        for part in dashed(&thinned(path), line.dash) {
            area.draw(&PathElement::new(part, style)).map_err(gave_up)?;
        }
    }
    match line.marks {
        Some(shape) => marks(chart, &line.points, shape, 3, colour, axes),
        None => Ok(()),
    }
}

/// The corners of a step line: a value holds until the next point.
fn stairs(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut stairs = Vec::with_capacity(points.len() * 2);
    let mut before = None;
    for (x, y) in points {
        if let Some(y) = before {
            stairs.push((*x, y));
        }
        stairs.push((*x, *y));
        before = Some(*y);
    }
    stairs
}

/// The path with at most four points for each run within one column of pixels: the first, the
/// lowest, the highest and the last. The picture stays the same, and the chart of a year of prices
/// is a tenth of the size.
fn thinned(path: Vec<(i32, i32)>) -> Vec<(i32, i32)> {
    let mut thin: Vec<(i32, i32)> = Vec::new();
    for column in path.chunk_by(|a, b| a.0 == b.0) {
        let mut kept: Vec<(i32, i32)> = match column {
            [first, .., last] => {
                let low = column.iter().min_by_key(|p| p.1).unwrap_or(first);
                let high = column.iter().max_by_key(|p| p.1).unwrap_or(last);
                vec![*first, *low, *high, *last]
            }
            few => few.to_vec(),
        };
        kept.dedup();
        thin.extend(kept);
    }
    thin
}

/// A path in pixels cut into the strokes of its dash; the pattern goes on around corners.
fn dashed(path: &[(i32, i32)], dash: Dash) -> Vec<Vec<(i32, i32)>> {
    if dash == Dash::Solid {
        return vec![path.to_vec()];
    }
    let lengths: Vec<f64> = path
        .windows(2)
        .map(|pair| match pair {
            [a, b] => f64::from(b.0 - a.0).hypot(f64::from(b.1 - a.1)),
            _ => 0.0,
        })
        .collect();
    let whole = lengths.iter().sum::<f64>().round() as i32;
    let strokes = strokes(dash, whole);
    strokes
        .into_iter()
        .map(|(from, to)| stretch(path, &lengths, f64::from(from), f64::from(to)))
        .collect()
}

/// The part of a path between two distances from its beginning.
fn stretch(path: &[(i32, i32)], lengths: &[f64], from: f64, to: f64) -> Vec<(i32, i32)> {
    let mut part = Vec::new();
    let mut gone = 0.0;
    for (pair, length) in path.windows(2).zip(lengths) {
        let [a, b] = pair else { continue };
        let end = gone + length;
        if end >= from && gone <= to && *length > 0.0 {
            let at = |distance: f64| {
                let t = ((distance - gone) / length).clamp(0.0, 1.0);
                (
                    (f64::from(a.0) + t * f64::from(b.0 - a.0)).round() as i32,
                    (f64::from(a.1) + t * f64::from(b.1 - a.1)).round() as i32,
                )
            };
            if part.is_empty() {
                part.push(at(from));
            }
            part.push(at(to));
        }
        gone = end;
    }
    part
}

fn marks(
    chart: &Chart<'_, '_>,
    points: &[(f64, f64)],
    shape: PointShape,
    size: u32,
    colour: Colour,
    axes: Axes<'_>,
) -> Result<(), ChartError> {
    let area = pixels(chart);
    let size = i32::try_from(size).unwrap_or(3);
    for point in points.iter().filter(|p| is_visible(**p, axes.0, axes.1)) {
        mark(&area, pixel(chart, *point), shape, size, rgb(colour))?;
    }
    Ok(())
}

/// Bars of group `group.0` of `group.1`, side by side with the others.
fn bars(
    chart: &mut Chart<'_, '_>,
    bars: &BarLayer,
    group: (usize, usize),
    colour: Colour,
    (x, y): Axes<'_>,
) -> Result<(), ChartError> {
    let each = bars.width / group.1.max(1) as f64;
    let shift = group.0 as f64 * each - bars.width / 2.0;
    let drawn = bars
        .bars
        .iter()
        .filter(|(at, height)| height.is_finite() && (x.low..=x.high).contains(at))
        .map(|(at, height)| {
            let left = within(at + shift, x);
            let right = within(at + shift + each, x);
            let corners = [(left, within(0.0, y)), (right, within(*height, y))];
            Rectangle::new(corners, rgb(colour).filled())
        });
    let drawn: Vec<_> = drawn.collect();
    chart.draw_series(drawn).map_err(gave_up)?;
    let area = pixels(chart);
    let style = (FONT, SIZE_BAR).into_font().color(&BLACK);
    let style = style.pos(Pos::new(HPos::Center, VPos::Bottom));
    for (bar, label) in bars.bars.iter().zip(&bars.labels) {
        let top = (bar.0 + shift + each / 2.0, bar.1.max(0.0));
        if is_visible(top, x, y) {
            let (middle, edge) = pixel(chart, top);
            let text = Text::new(label.clone(), (middle, edge - 3), style.clone());
            area.draw(&text).map_err(gave_up)?;
        }
    }
    Ok(())
}

fn band(
    chart: &mut Chart<'_, '_>,
    band: &Band,
    colour: Colour,
    (x, y): Axes<'_>,
) -> Result<(), ChartError> {
    let edges: Vec<(f64, f64, f64)> = band
        .edges
        .iter()
        .filter(|(at, low, high)| {
            low.is_finite() && high.is_finite() && (x.low..=x.high).contains(at)
        })
        .map(|(at, low, high)| (*at, within(*low, y), within(*high, y)))
        .collect();
    if edges.len() < 2 {
        return Ok(());
    }
    let along = edges.iter().map(|(at, low, _)| (*at, *low));
    let back = edges.iter().rev().map(|(at, _, high)| (*at, *high));
    let corners: Vec<(f64, f64)> = along.chain(back).collect();
    let share = if band.solid { 1.0 } else { BAND };
    let area = Polygon::new(corners, rgb(colour).mix(share).filled());
    chart.draw_series(std::iter::once(area)).map_err(gave_up)?;
    Ok(())
}

fn rule(
    chart: &mut Chart<'_, '_>,
    rule: &ReferenceLine,
    colour: Colour,
    (x, y): Axes<'_>,
) -> Result<(), ChartError> {
    let ends = if rule.vertical {
        [(rule.at, y.low), (rule.at, y.high)]
    } else {
        [(x.low, rule.at), (x.high, rule.at)]
    };
    if !is_visible(ends[0], x, y) {
        return Ok(());
    }
    let area = pixels(chart);
    let ends = ends.map(|end| pixel(chart, end));
    let style = rgb(colour).stroke_width(1);
    for part in dashed(&ends, Dash::Dashed) {
        area.draw(&PathElement::new(part, style)).map_err(gave_up)?;
    }
    if rule.label.is_empty() {
        return Ok(());
    }
    let (width, _) = area.dim_in_pixel();
    let words = text_width(&rule.label, SIZE_TEXT) as i32;
    let highest = ends[0].1.min(ends[1].1);
    let at = if rule.vertical {
        // To the left of the line where there is no room to its right.
        let right = ends[0].0 + 5;
        let fits = right + words <= i32::try_from(width).unwrap_or(i32::MAX);
        (
            if fits { right } else { ends[0].0 - words - 5 },
            highest + 4,
        )
    } else {
        let above = ends[0].1 - 16;
        let right = i32::try_from(width).unwrap_or(i32::MAX) - words - 4;
        (right, if above < 0 { ends[0].1 + 3 } else { above })
    };
    // What lies below shines through a little, so that the words can be read on bars, too.
    let back = [(at.0 - 2, at.1 - 1), (at.0 + words + 2, at.1 + 14)];
    area.draw(&Rectangle::new(back, WHITE.mix(0.7).filled()))
        .map_err(gave_up)?;
    let style = (FONT, SIZE_TEXT).into_font().color(&rgb(colour));
    area.draw(&Text::new(rule.label.clone(), at, style))
        .map_err(gave_up)
}

fn rows(chart: &mut Chart<'_, '_>, row: &BarSeries, (x, y): Axes<'_>) -> Result<(), ChartError> {
    let area = pixels(chart);
    let fill = rgb(row.colour);
    for (number, span) in &row.spans {
        let (from, to) = (span.from.min(span.to), span.from.max(span.to));
        if !from.is_finite() || !to.is_finite() || to < x.low || from > x.high {
            continue;
        }
        let middle = *number as f64;
        let corner = |time: f64, off: f64| pixel(chart, (within(time, x), within(middle + off, y)));
        let (upper, lower) = (corner(from, -ROW / 2.0), corner(to, ROW / 2.0));
        // A rectangle narrower than a pixel would vanish.
        let lower = (lower.0.max(upper.0 + 1), lower.1);
        let style = if span.hollow {
            fill.stroke_width(2)
        } else {
            fill.filled()
        };
        area.draw(&Rectangle::new([upper, lower], style))
            .map_err(gave_up)?;
        let room = lower.0 - upper.0;
        if !span.hollow && room > 3 {
            // A thin rim separates rectangles that touch. Very narrow rectangles have none: the
            // rim would cover them.
            let rim = WHITE.mix(0.8).stroke_width(1);
            area.draw(&Rectangle::new([upper, lower], rim))
                .map_err(gave_up)?;
        }
        let words = text_width(&span.label, SIZE_TEXT) as i32;
        if !span.label.is_empty() && words + 4 <= room {
            let ink = if span.hollow || row.colour.is_light() {
                BLACK
            } else {
                WHITE
            };
            // The text is placed by its middle, because the viewer's font decides its real size.
            let style = (FONT, SIZE_TEXT).into_font().color(&ink);
            let style = style.pos(Pos::new(HPos::Center, VPos::Center));
            let at = (upper.0 + room / 2, (upper.1 + lower.1) / 2);
            area.draw(&Text::new(span.label.clone(), at, style))
                .map_err(gave_up)?;
        }
    }
    Ok(())
}

//! The legend: samples and names in lines above the plot, where they hide nothing.

use super::{FONT, SIZE_TEXT, gave_up, text_width};
use crate::colour::Colour;
use crate::error::ChartError;
use crate::layer::{Dash, Layer, PointShape};
use plotters::coord::Shift;
use plotters::prelude::*;

/// The height of one line of the legend, pixels.
const LINE: i32 = 19;
/// The width of a sample, pixels.
const SAMPLE: i32 = 24;

/// One entry with its place.
struct Entry<'a> {
    at: (i32, i32),
    name: String,
    layer: &'a Layer,
    colour: Colour,
}

/// The legend of a panel, laid out over `width` pixels.
pub(super) struct Legend<'a> {
    entries: Vec<Entry<'a>>,
    lines: i32,
}

impl<'a> Legend<'a> {
    /// Breaks the entries into lines.
    pub(super) fn new(layers: &[(&'a Layer, Colour)], width: u32) -> Self {
        let right = i32::try_from(width).unwrap_or(i32::MAX) - 12;
        let (left, mut x, mut line) = (14, 14, 0);
        let mut entries: Vec<Entry<'a>> = Vec::new();
        for (layer, colour) in layers {
            let known = entries
                .iter()
                .any(|e| e.layer.name() == layer.name() && e.colour == *colour);
            if layer.name().is_empty() || known {
                continue;
            }
            let name = shortened(layer.name(), right - left - SAMPLE - 6);
            let wide = SAMPLE + 6 + text_width(&name, SIZE_TEXT) as i32 + 18;
            if x + wide > right && x > left {
                (x, line) = (left, line + 1);
            }
            entries.push(Entry {
                at: (x, line * LINE),
                name,
                layer,
                colour: *colour,
            });
            x += wide;
        }
        let lines = if entries.is_empty() { 0 } else { line + 1 };
        Self { entries, lines }
    }

    /// Its height in pixels.
    pub(super) fn height(&self) -> u32 {
        u32::try_from(self.lines * LINE).unwrap_or(0)
    }

    /// Draws it with its upper edge at `top`.
    ///
    /// # Errors
    /// [`ChartError::Drawing`].
    pub(super) fn draw(
        &self,
        area: &DrawingArea<SVGBackend<'_>, Shift>,
        top: i32,
    ) -> Result<(), ChartError> {
        for entry in &self.entries {
            let (x, y) = (entry.at.0, entry.at.1 + top);
            sample(area, entry, (x, y + LINE / 2))?;
            let style = (FONT, SIZE_TEXT).into_font().color(&BLACK);
            let words = Text::new(entry.name.clone(), (x + SAMPLE + 6, y + 3), style);
            area.draw(&words).map_err(gave_up)?;
        }
        Ok(())
    }
}

/// The name, or its beginning if it is wider than `width` pixels.
fn shortened(name: &str, width: i32) -> String {
    let width = u32::try_from(width).unwrap_or(0);
    if text_width(name, SIZE_TEXT) <= width {
        return name.to_owned();
    }
    let mut short = String::from("…");
    for letter in name.chars() {
        let end = short.len() - '…'.len_utf8();
        short.insert(end, letter);
        if text_width(&short, SIZE_TEXT) > width {
            short.remove(end);
            break;
        }
    }
    short
}

/// What the layer looks like, in small, around the middle `y`.
fn sample(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    entry: &Entry<'_>,
    (x, y): (i32, i32),
) -> Result<(), ChartError> {
    let colour = rgb(entry.colour);
    let block =
        |fill: ShapeStyle| area.draw(&Rectangle::new([(x, y - 5), (x + SAMPLE, y + 5)], fill));
    match entry.layer {
        Layer::Line(line) => {
            let style = colour.stroke_width(line.width);
            for (from, to) in strokes(line.dash, SAMPLE) {
                area.draw(&PathElement::new([(x + from, y), (x + to, y)], style))
                    .map_err(gave_up)?;
            }
            if let Some(shape) = line.marks {
                mark(area, (x + SAMPLE / 2, y), shape, 4, colour)?;
            }
            Ok(())
        }
        Layer::Points(points) => mark(area, (x + SAMPLE / 2, y), points.shape, 4, colour),
        Layer::Band(band) if !band.solid => block(colour.mix(BAND).filled()).map_err(gave_up),
        Layer::Rows(row) if row.spans.iter().all(|(_, span)| span.hollow) => {
            block(colour.stroke_width(2)).map_err(gave_up)
        }
        Layer::Band(_) | Layer::Bars(_) | Layer::Rows(_) => block(colour.filled()).map_err(gave_up),
        Layer::Rule(_) => Ok(()),
    }
}

/// How much of a band's colour is seen.
pub(super) const BAND: f64 = 0.22;

/// The colour for plotters.
pub(super) fn rgb(Colour(red, green, blue): Colour) -> RGBColor {
    RGBColor(red, green, blue)
}

/// The strokes of a line `length` pixels long.
pub(super) fn strokes(dash: Dash, length: i32) -> Vec<(i32, i32)> {
    let (on, off) = match dash {
        Dash::Solid => return vec![(0, length)],
        Dash::Dashed => (7, 4),
        Dash::Dotted => (2, 3),
    };
    (0..length)
        .step_by((on + off) as usize)
        .map(|from| (from, (from + on).min(length)))
        .collect()
}

/// One mark in pixels.
pub(super) fn mark(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    (x, y): (i32, i32),
    shape: PointShape,
    size: i32,
    colour: RGBColor,
) -> Result<(), ChartError> {
    let drawn = match shape {
        PointShape::Circle => area.draw(&Circle::new((x, y), size, colour.filled())),
        PointShape::Square => area.draw(&Rectangle::new(
            [(x - size, y - size), (x + size, y + size)],
            colour.filled(),
        )),
        PointShape::Triangle => area.draw(&Polygon::new(
            [(x, y - size), (x + size, y + size), (x - size, y + size)],
            colour.filled(),
        )),
        PointShape::Cross => {
            let style = colour.stroke_width(2);
            let down = PathElement::new([(x - size, y - size), (x + size, y + size)], style);
            let up = PathElement::new([(x - size, y + size), (x + size, y - size)], style);
            area.draw(&down).and_then(|()| area.draw(&up))
        }
    };
    drawn.map_err(gave_up)
}

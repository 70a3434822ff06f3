//! One panel: title, legend, axes, layers.

use super::legend::Legend;
use super::ranged::TickedAxis;
use super::{FONT, SIZE_PANEL, SIZE_TEXT, gave_up, layers, text_width};
use crate::axis::{FixedAxis, Scale};
use crate::error::ChartError;
use crate::panel::Panel;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::FontTransform;
use plotters::style::text_anchor::{HPos, Pos, VPos};

/// Pixels a tick of the x axis should have, and of the y axis.
const WIDE: u32 = 75;
const HIGH: u32 = 34;

/// Pixels from the left border of the area to the y axis that the labels need.
///
/// # Errors
/// As [`crate::Figure::svg`].
pub(super) fn left(panel: &Panel, size: (u32, u32)) -> Result<u32, ChartError> {
    let (_, y) = panel.settled()?;
    let coloured = panel.coloured();
    let ticks = y_ticks(panel, &Legend::new(&coloured, size.0), size);
    Ok(34 + widest(&y, ticks).min(size.0 / 3))
}

/// Least height of the plot with its x axis, pixels: a panel grows beyond its given height where a
/// legend of many lines would leave less.
const LEAST_BODY: u32 = 82;

/// The height of the panel, `width` pixels wide.
pub(super) fn height(panel: &Panel, width: u32) -> u32 {
    let legend = Legend::new(&panel.coloured(), width);
    panel.height.max(head(panel) + legend.height() + LEAST_BODY)
}

/// Pixels above the legend.
fn head(panel: &Panel) -> u32 {
    if panel.title.is_empty() { 6 } else { 28 }
}

/// How many ticks the y axis has room for.
fn y_ticks(panel: &Panel, legend: &Legend<'_>, size: (u32, u32)) -> usize {
    let top = head(panel) + legend.height();
    (size.1.saturating_sub(top + 60) / HIGH).clamp(2, 12) as usize
}

/// Draws the panel over the area of `size` pixels, with the y axis `left` pixels from its border.
///
/// # Errors
/// As [`crate::Figure::svg`].
pub(super) fn draw(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    panel: &Panel,
    size: (u32, u32),
    left: u32,
) -> Result<(), ChartError> {
    let (x, y) = panel.settled()?;
    let coloured = panel.coloured();
    let legend = Legend::new(&coloured, size.0);
    let head = head(panel);
    if !panel.title.is_empty() {
        let style = (FONT, SIZE_PANEL).into_font().color(&BLACK);
        area.draw(&Text::new(panel.title.clone(), (14, 6), style))
            .map_err(gave_up)?;
    }
    legend.draw(area, i32::try_from(head).unwrap_or(0))?;
    let top = head + legend.height();

    let y_ticks = y_ticks(panel, &legend, size);
    let plot_width = size.0.saturating_sub(left + 24).max(50);
    let x_ticks = (plot_width / wide_tick(&x)).clamp(2, 14) as usize;
    let turned = crowded(&x, plot_width);
    let bottom = 44
        + if turned {
            widest(&x, x_ticks).min(size.1 / 3)
        } else {
            0
        };

    let (_, body) = area.split_vertically(top);
    let ticked = |axis: &FixedAxis, ticks, upside_down| TickedAxis {
        axis: axis.clone(),
        ticks,
        upside_down,
    };
    let mut chart = ChartBuilder::on(&body)
        .margin_top(8)
        .margin_right(20)
        .margin_bottom(6)
        .margin_left(4)
        .x_label_area_size(bottom)
        .y_label_area_size(left)
        .build_cartesian_2d(
            ticked(&x, x_ticks, false),
            ticked(&y, y_ticks, panel.upside_down),
        )
        .map_err(gave_up)?;
    let text = (FONT, SIZE_TEXT).into_font().color(&BLACK);
    // Rows of a Gantt chart and bars have no use for lines between names.
    let mut mesh = chart.configure_mesh();
    if matches!(x.scale, Scale::Categories(_)) {
        mesh.disable_x_mesh();
    }
    mesh.light_line_style(TRANSPARENT)
        .bold_line_style(RGBColor(225, 225, 225))
        .axis_style(RGBColor(90, 90, 90))
        .x_labels(1000)
        .y_labels(1000)
        .max_light_lines(1)
        .x_label_style(text.clone())
        .y_label_style(text.clone())
        .axis_desc_style(text)
        .x_desc(panel.x.label.clone())
        .y_desc(panel.y.label.clone())
        // Turned names are drawn below: plotters would put their middle where their beginning
        // should be.
        .x_label_formatter(&|value| {
            if turned {
                String::new()
            } else {
                x.words(*value, x_ticks)
            }
        })
        .draw()
        .map_err(gave_up)?;
    if turned {
        names(&body, &chart, &x)?;
    }
    layers::draw(&mut chart, &coloured, (&x, &y))
}

/// The names below the x axis, read from top to bottom.
fn names(
    area: &DrawingArea<SVGBackend<'_>, Shift>,
    chart: &ChartContext<'_, SVGBackend<'_>, Cartesian2d<TickedAxis, TickedAxis>>,
    axis: &FixedAxis,
) -> Result<(), ChartError> {
    let (left, top) = area.get_base_pixel();
    let (_, rows) = chart.plotting_area().get_pixel_range();
    let style = (FONT, SIZE_TEXT).into_font();
    let style = style.transform(FontTransform::Rotate90).color(&BLACK);
    let style = style.pos(Pos::new(HPos::Left, VPos::Center));
    for value in axis.ticks(0) {
        let (x, _) = chart.plotting_area().map_coordinate(&(value, 0.0));
        let at = (x - left, rows.end - top + 10);
        let name = Text::new(axis.words(value, 0), at, style.clone());
        area.draw(&name).map_err(gave_up)?;
    }
    Ok(())
}

/// The widest label of an axis, pixels.
fn widest(axis: &FixedAxis, ticks: usize) -> u32 {
    let widths = axis
        .ticks(ticks)
        .into_iter()
        .map(|value| text_width(&axis.words(value, ticks), SIZE_TEXT));
    widths.max().unwrap_or(0)
}

/// Pixels for a tick of the x axis: dates are long.
fn wide_tick(axis: &FixedAxis) -> u32 {
    if axis.scale == Scale::Date {
        WIDE + 25
    } else {
        WIDE
    }
}

/// True if names side by side would run into one another: they are turned then.
fn crowded(axis: &FixedAxis, width: u32) -> bool {
    let Scale::Categories(names) = &axis.scale else {
        return false;
    };
    let each = width / u32::try_from(names.len().max(1)).unwrap_or(u32::MAX);
    names
        .iter()
        .any(|name| text_width(name, SIZE_TEXT) + 6 > each)
}

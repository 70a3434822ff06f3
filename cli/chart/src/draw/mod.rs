//! From plain data to SVG, by plotters.

mod clip;
mod layers;
mod legend;
mod panel;
mod ranged;

use crate::error::ChartError;
use crate::figure::Figure;
use plotters::prelude::*;

/// The font of all texts. It is a generic name, so every viewer has such a font.
const FONT: &str = "sans-serif";
/// The height of the figure's title, and of each line of it after the first, pixels.
const TITLE: u32 = 34;
const TITLE_LINE: u32 = 24;
/// Size of a figure's title, of a panel's title, of everything else.
const SIZE_TITLE: u32 = 20;
const SIZE_PANEL: u32 = 16;
const SIZE_TEXT: u32 = 13;

/// Estimated width of a text, in pixels, without access to a font: letters of sans-serif fonts are
/// on average slightly wider than half their height.
fn text_width(text: &str, size: u32) -> u32 {
    let letters = u32::try_from(text.chars().count()).unwrap_or(u32::MAX / 100);
    letters * size * 56 / 100
}

/// What plotters says when it gives up.
fn gave_up<E: std::fmt::Display>(error: E) -> ChartError {
    ChartError::Drawing(error.to_string())
}

/// The whole figure.
///
/// # Errors
/// As [`Figure::svg`].
pub(crate) fn figure(figure: &Figure) -> Result<String, ChartError> {
    if figure.panels.is_empty() {
        return Err(ChartError::Empty {
            title: figure.title.clone(),
        });
    }
    let columns = figure.columns.min(figure.panels.len());
    let rows: Vec<&[crate::Panel]> = figure.panels.chunks(columns).collect();
    let heights: Vec<u32> = rows
        .iter()
        .map(|row| {
            let heights = row.iter().map(|panel| panel::height(panel, figure.width));
            heights.max().unwrap_or(0)
        })
        .collect();
    let width = figure.width * u32::try_from(columns).unwrap_or(1);
    let title = title_lines(&figure.title, width);
    let head = match u32::try_from(title.len()).unwrap_or(0) {
        0 => 0,
        lines => TITLE + (lines - 1) * TITLE_LINE,
    };
    let height = head + heights.iter().sum::<u32>();
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
        root.fill(&WHITE).map_err(gave_up)?;
        let style = (FONT, SIZE_TITLE).into_font().color(&BLACK);
        for (line, top) in title.iter().zip((9..).step_by(TITLE_LINE as usize)) {
            root.draw(&Text::new(line.clone(), (12, top), style.clone()))
                .map_err(gave_up)?;
        }
        // Panels below one another begin at the same place, so that a moment stands below itself.
        let mut lefts = vec![0; columns];
        for (row, height) in rows.iter().zip(&heights) {
            for (left, panel) in lefts.iter_mut().zip(*row) {
                *left = panel::left(panel, (figure.width, *height))?.max(*left);
            }
        }
        let (_, mut rest) = root.split_vertically(head);
        for (row, height) in rows.iter().zip(heights) {
            let (line, below) = rest.split_vertically(height);
            let mut right = line;
            for (panel, left) in row.iter().zip(&lefts) {
                let (area, further) = right.split_horizontally(figure.width);
                panel::draw(&area, panel, (figure.width, height), *left)?;
                right = further;
            }
            rest = below;
        }
        root.present().map_err(gave_up)?;
    }
    let svg = with_words(&svg, figure);
    Ok(ebbtide_model::names::shown_lines(&svg).into_owned())
}

/// The title in lines that a figure of `width` pixels has room for, broken between words.
fn title_lines(title: &str, width: u32) -> Vec<String> {
    let room = width.saturating_sub(24);
    let mut lines: Vec<String> = Vec::new();
    for word in title.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), SIZE_TITLE) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The SVG with its title and description for screen readers, which plotters does not write.
fn with_words(svg: &str, figure: &Figure) -> String {
    let Some((head, body)) = svg.split_once('>') else {
        return svg.to_owned();
    };
    let head = head.replacen("<svg", "<svg role=\"img\"", 1);
    let title = escaped(&figure.title);
    let description = if figure.description.is_empty() {
        String::new()
    } else {
        format!("<desc>{}</desc>\n", escaped(&figure.description))
    };
    format!(
        "{head}>\n<title>{title}</title>\n{description}{}",
        body.trim_start()
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

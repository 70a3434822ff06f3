//! Tables as text: drawn into the columns of a terminal, as records where they do not fit, or as
//! Markdown.

use crate::layout::{Layout, layout, record, wrapped};
use crate::listing::{ListingColumn, TableCell};
use crate::render::{Tone, paint};
use comfy_table::{
    Attribute, CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Table, TableStyle,
};

/// Like the `openstack` client's tables.
const STYLE: TableStyle = TableStyle::new()
    .top_border(LineStyle::new('+', '-', '+', '+'))
    .header_lines(ContentLineStyle::new('|', '|', '|'))
    .header_separator(LineStyle::new('+', '-', '+', '+'))
    .content_lines(ContentLineStyle::new('|', '|', '|'))
    .bottom_border(LineStyle::new('+', '-', '+', '+'));

/// The same as Markdown has them.
const MARKDOWN: TableStyle = TableStyle::new()
    .header_lines(ContentLineStyle::new('|', '|', '|'))
    .header_separator(LineStyle::new('|', '-', '|', '|'))
    .content_lines(ContentLineStyle::new('|', '|', '|'));

/// How tables look, beside their widths.
#[derive(Debug, Clone, Copy, Default)]
pub struct TableFormat {
    /// For documents.
    pub markdown: bool,
    /// With escapes for colours.
    pub color: bool,
}

/// A table as text.
#[derive(Debug)]
pub struct RenderedTable {
    /// Its lines.
    pub text: String,
    /// Keys of the columns that did not fit.
    pub left_out: Vec<&'static str>,
}

/// Draws a table into so many columns of a terminal; `keep` if no column may be left out.
#[must_use]
pub fn drawn(
    look: TableFormat,
    columns: &[ListingColumn],
    titles: &[&str],
    rows: &[Vec<TableCell>],
    limit: Option<usize>,
    keep: bool,
) -> RenderedTable {
    let Some(limit) = limit else {
        let all: Vec<usize> = (0..columns.len()).collect();
        return RenderedTable {
            text: table(look, columns, titles, rows, &all, &[]),
            left_out: Vec::new(),
        };
    };
    match layout(columns, titles, rows, limit, keep) {
        Layout::Columns(given) => {
            let (shown, widths): (Vec<usize>, Vec<usize>) = given.into_iter().unzip();
            let left_out = columns.iter().enumerate();
            let left_out = left_out.filter(|(at, _)| !shown.contains(at));
            RenderedTable {
                left_out: left_out.map(|(_, column)| column.key).collect(),
                text: table(look, columns, titles, rows, &shown, &widths),
            }
        }
        Layout::Records => RenderedTable {
            text: records(look, titles, rows, limit),
            left_out: Vec::new(),
        },
    }
}

/// Rows as one record each.
pub fn records(
    look: TableFormat,
    titles: &[&str],
    rows: &[Vec<TableCell>],
    limit: usize,
) -> String {
    let one = |row: &Vec<TableCell>| {
        let drawn = record(titles, row, limit).into_iter().map(|line| {
            let tone = row.get(line.at).map_or(Tone::Plain, |cell| cell.tone);
            let value = match look.color {
                true => paint(&line.value, tone),
                false => line.value,
            };
            format!("{}{value}", line.head).trim_end().to_owned()
        });
        drawn.collect::<Vec<_>>().join("\n")
    };
    rows.iter().map(one).collect::<Vec<_>>().join("\n\n")
}

/// The columns that are shown; with widths their texts are wrapped.
fn table(
    look: TableFormat,
    columns: &[ListingColumn],
    titles: &[&str],
    rows: &[Vec<TableCell>],
    shown: &[usize],
    widths: &[usize],
) -> String {
    let mut table = Table::new();
    table.load_style(if look.markdown { MARKDOWN } else { STYLE });
    table.set_content_arrangement(ContentArrangement::Disabled);
    if look.color {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    let fitted = |text: &str, place: usize| match widths.get(place) {
        Some(&width) => wrapped(text, width).join("\n"),
        None => text.to_owned(),
    };
    table.set_header(shown.iter().enumerate().map(|(place, &at)| {
        let title = fitted(titles.get(at).copied().unwrap_or_default(), place);
        comfy_table::Cell::new(title).add_attribute(Attribute::Bold)
    }));
    for row in rows {
        table.add_row(shown.iter().enumerate().filter_map(|(place, &at)| {
            let (cell, column) = (row.get(at)?, columns.get(at)?);
            let mut drawn = if look.markdown {
                comfy_table::Cell::new(cell.text.replace('|', "\\|").replace('\n', "<br>"))
            } else {
                comfy_table::Cell::new(fitted(&cell.text, place))
            };
            if column.right {
                drawn = drawn.set_alignment(CellAlignment::Right);
            }
            Some(match cell.tone.color().filter(|_| !look.markdown) {
                Some(color) => drawn.fg(color),
                None => drawn,
            })
        }));
    }
    let lines: Vec<String> = table
        .lines()
        .map(|line| line.trim_end().to_owned())
        .collect();
    lines.join("\n")
}

//! How a table fits into the terminal. The only place that decides about widths.
//!
//! Words, numbers and identifiers never break. A table that is too wide has its headings and its
//! prose wrapped at blanks, then loses the columns that are details, the least important first, and
//! at last becomes one record a row.

use crate::listing::{ListingColumn, TableCell};

/// Prose keeps at least this width: below, a sentence becomes a word a line.
const PROSE: usize = 20;
/// What a column takes besides its text: a bar and two blanks.
const FRAME: usize = 3;

/// How the rows are drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layout {
    /// These columns, by their place among those given, with their widths.
    Columns(Vec<(usize, usize)>),
    /// One field a line, a blank line between rows.
    Records,
}

/// What a column needs.
#[derive(Debug, Clone, Copy)]
struct Need {
    at: usize,
    /// Narrower, something would break.
    least: usize,
    /// With everything on one line.
    whole: usize,
    /// Columns with a higher number go first; 0 stays.
    detail: u8,
}

/// Decides for so many characters; `keep` if the columns were asked for, so that none is left out.
#[must_use]
pub fn layout(
    columns: &[ListingColumn],
    titles: &[&str],
    rows: &[Vec<TableCell>],
    limit: usize,
    keep: bool,
) -> Layout {
    let mut needs: Vec<Need> = columns
        .iter()
        .zip(titles)
        .enumerate()
        .map(|(at, (column, title))| {
            let cells = rows.iter().filter_map(|row| row.get(at));
            let (mut widest, mut word) = (1, 1);
            for cell in cells {
                widest = cell.text.lines().map(width).max().unwrap_or(0).max(widest);
                word = longest_word(&cell.text).max(word);
            }
            Need {
                at,
                least: word.max(widest.min(PROSE)).max(longest_word(title)),
                whole: widest.max(width(title)),
                detail: if keep { 0 } else { column.detail },
            }
        })
        .collect();
    loop {
        let frame = needs.len() * FRAME + 1;
        let least: usize = needs.iter().map(|need| need.least).sum();
        if frame + least <= limit {
            return Layout::Columns(widths(&needs, limit - frame - least));
        }
        let first_to_go = needs
            .iter()
            .enumerate()
            .filter(|(_, need)| need.detail > 0)
            .max_by_key(|(place, need)| (need.detail, *place));
        match first_to_go {
            Some((place, _)) => {
                needs.remove(place);
            }
            None => return Layout::Records,
        }
    }
}

/// What is left over goes to the columns that want least more: so most of them are whole, and the
/// longest prose wraps.
fn widths(needs: &[Need], mut spare: usize) -> Vec<(usize, usize)> {
    let mut given: Vec<(usize, usize)> = needs.iter().map(|n| (n.at, n.least)).collect();
    let mut wanting: Vec<usize> = (0..needs.len()).collect();
    let wants = |place: usize| {
        needs
            .get(place)
            .map_or(0, |need| need.whole.saturating_sub(need.least))
    };
    wanting.sort_by_key(|&place| wants(place));
    for place in wanting {
        let more = wants(place).min(spare);
        if let Some((_, width)) = given.get_mut(place) {
            *width += more;
        }
        spare -= more;
    }
    given
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordLine {
    /// The heading, or the blanks before the value.
    pub head: String,
    /// The value, or a part of it.
    pub value: String,
    /// Whose value: the place of its column.
    pub at: usize,
}

/// A row as a record: a heading and its value on a line, or the value below its heading where both
/// do not fit.
#[must_use]
pub fn record(titles: &[&str], row: &[TableCell], limit: usize) -> Vec<RecordLine> {
    let label = titles.iter().map(|title| width(title)).max().unwrap_or(0) + 2;
    let mut lines = Vec::new();
    for (at, (title, cell)) in titles.iter().zip(row).enumerate() {
        if cell.text.is_empty() && title.is_empty() {
            continue;
        }
        let beside = limit.saturating_sub(label);
        let whole = cell.text.lines().map(width).max().unwrap_or(0);
        let fits = beside >= longest_word(&cell.text).max(whole.min(PROSE));
        let (indent, room) = if fits {
            (label, beside)
        } else {
            (2, limit.saturating_sub(2))
        };
        if !fits {
            lines.push(RecordLine {
                head: (*title).to_owned(),
                value: String::new(),
                at,
            });
        }
        for (n, value) in wrapped(&cell.text, room).into_iter().enumerate() {
            let title = if fits && n == 0 { *title } else { "" };
            let head = format!("{title}{}", " ".repeat(indent.saturating_sub(width(title))));
            lines.push(RecordLine { head, value, at });
        }
    }
    lines
}

/// The text in lines of at most `limit` characters, broken at blanks only: a longer word has a line
/// of its own.
#[must_use]
pub fn wrapped(text: &str, limit: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        if width(paragraph) <= limit {
            lines.push(paragraph.to_owned());
            continue;
        }
        let (mut line, mut used) = (String::new(), 0);
        for word in paragraph.split(' ') {
            let more = width(word);
            if used > 0 && used + 1 + more > limit {
                lines.push(std::mem::take(&mut line));
                used = 0;
            }
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += more;
        }
        lines.push(line);
    }
    lines
}

/// A line of prose for a terminal: what is too long goes on below, indented a little more than it
/// begins.
#[must_use]
pub fn prose(line: &str, limit: usize) -> String {
    if width(line) <= limit {
        return line.to_owned();
    }
    let text = line.trim_start_matches(' ');
    let indent = line.len() - text.len();
    let mut lines = wrapped(text, limit.saturating_sub(indent + 2)).into_iter();
    let mut all = " ".repeat(indent) + &lines.next().unwrap_or_default();
    for more in lines {
        all.push('\n');
        all.push_str(&" ".repeat(indent + 2));
        all.push_str(&more);
    }
    all
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(width).max().unwrap_or(0)
}

/// Columns of the terminal that a text takes; escapes for colours take none.
#[must_use]
pub fn width(text: &str) -> usize {
    if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) {
        return text.len();
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, escape)) = rest.split_once('\u{1b}') {
        plain.push_str(before);
        rest = escape.split_once('m').map_or("", |(_, after)| after);
    }
    plain.push_str(rest);
    if plain.is_empty() {
        return 0;
    }
    // The measure by which the table is drawn.
    let mut table = comfy_table::Table::new();
    table.add_row([plain]);
    let widths = table.column_max_content_widths();
    widths.first().copied().map_or(0, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::{number, text};

    fn cells(texts: &[&str]) -> Vec<TableCell> {
        texts.iter().map(TableCell::new).collect()
    }

    fn titles(columns: &[ListingColumn]) -> Vec<&str> {
        columns.iter().map(|column| column.title).collect()
    }

    const ID: &str = "01900000-0000-7000-8000-000000000001";

    #[test]
    fn a_table_that_fits_is_left_alone() {
        let columns = [text("name", "Name"), number("n", "Number")];
        let rows = [cells(&["host-A", "640"])];
        let fits = layout(&columns, &titles(&columns), &rows, 80, false);
        assert_eq!(fits, Layout::Columns(vec![(0, 6), (1, 6)]));
    }

    #[test]
    fn prose_wraps_before_a_column_goes_and_details_go_before_there_are_records() {
        let columns = [
            text("id", "ID").detail(1),
            text("name", "Name"),
            text("reason", "Reason"),
        ];
        let reason = "a normal request needs its capacity (terminate, 30 s grace)";
        let rows = [cells(&[ID, "worker-1", reason])];
        let at = |limit| layout(&columns, &titles(&columns), &rows, limit, false);
        let Layout::Columns(wide) = at(80) else {
            panic!("records")
        };
        assert_eq!(wide, [(0, 36), (1, 8), (2, 26)]);
        let Layout::Columns(narrow) = at(50) else {
            panic!("records")
        };
        assert_eq!(narrow, [(1, 8), (2, 35)]);
        assert_eq!(at(30), Layout::Records);
        // Who asks for a column gets it.
        assert_eq!(
            layout(&columns, &titles(&columns), &rows, 50, true),
            Layout::Records
        );
    }

    #[test]
    fn no_word_breaks_and_no_line_is_too_long_whatever_the_table() {
        let words = [
            "7",
            "1234567",
            "host-A",
            ID,
            "m1.medium",
            "of",
            "free",
            "é",
            "表",
        ];
        let mut seed = 1_u64;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) as usize % below
        };
        for _ in 0..2000 {
            let columns: Vec<ListingColumn> = (0..1 + next(9))
                .map(|n| {
                    text("key", ["Name", "Free (normal only)", ""][n % 3]).detail(next(4) as u8)
                })
                .collect();
            let row: Vec<TableCell> = columns
                .iter()
                .map(|_| {
                    let said: Vec<&str> = (0..next(12)).map(|_| words[next(words.len())]).collect();
                    TableCell::new(said.join(" "))
                })
                .collect();
            let limit = 40 + next(160);
            let rows = [row];
            match layout(&columns, &titles(&columns), &rows, limit, false) {
                Layout::Columns(given) => {
                    let drawn: usize = given.iter().map(|(_, width)| width + FRAME).sum();
                    assert!(drawn < limit, "{given:?} in {limit}");
                    for (at, room) in given {
                        let lines = wrapped(&rows[0][at].text, room);
                        assert!(lines.iter().all(|line| width(line) <= room), "{lines:?}");
                        assert_eq!(lines.join(" "), rows[0][at].text);
                    }
                }
                Layout::Records => {
                    for line in record(&titles(&columns), &rows[0], limit) {
                        let line = line.head + &line.value;
                        assert!(width(&line) <= limit, "{line:?} in {limit}");
                    }
                }
            }
        }
    }

    #[test]
    fn prose_goes_on_below_where_it_began() {
        assert_eq!(
            prose("  at: EB-X-001, line 3, and what else there is to say", 30),
            "  at: EB-X-001, line 3, and\n    what else there is to say"
        );
        assert_eq!(width("\u{1b}[32mup\u{1b}[0m"), 2);
    }
}

//! Where the answers go: data to standard output, talk to standard error.
//!
//! Three formats, as the `openstack` client has them: `table` for people, `json` for programs (keys
//! of the contract), `value` for shells (bare values, one row a line, one blank between); and
//! `markdown`, the same tables for documents and tickets. Colour only in tables, only on a
//! terminal, never with `NO_COLOR`.

use crate::errors::CliError;
pub use crate::io::{ColorChoice, Format, Io, TableObserver};
use crate::json::Json;
use crate::layout::{Layout, layout, prose};
pub use crate::listing::{Details, Listing, ListingColumn, TableCell, number, text};
use crate::render::{Tone, paint};
use crate::table::{TableFormat, drawn, records};
use ebbtide_client::ClientError;
use ebbtide_model::names::{shown_json, shown_lines};
use std::io::Write;
use time::OffsetDateTime;

/// The command's way to speak.
#[derive(Debug)]
pub struct Output {
    io: Io,
    format: Format,
    color: bool,
    color_err: bool,
    quiet: bool,
    columns: Vec<String>,
}

impl Output {
    /// Speaks as the options say.
    #[must_use]
    pub fn new(
        io: Io,
        format: Format,
        color: ColorChoice,
        quiet: bool,
        columns: Vec<String>,
    ) -> Self {
        let decide = |terminal: bool| match color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => terminal && !io.no_color,
        };
        let (color, color_err) = (decide(io.out_is_terminal), decide(io.err_is_terminal));
        Self {
            io,
            format,
            color,
            color_err,
            quiet,
            columns,
        }
    }

    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// True if people read it.
    #[must_use]
    pub fn is_table(&self) -> bool {
        matches!(self.format, Format::Table | Format::Markdown)
    }

    /// The time of day.
    #[must_use]
    pub fn now(&self) -> OffsetDateTime {
        (self.io.now)()
    }

    /// True if a progress bar may be drawn.
    #[must_use]
    pub fn may_draw(&self) -> bool {
        self.io.err_is_terminal && !self.quiet
    }

    /// True if `--column` chooses what is shown: then nothing is shown beside it.
    #[must_use]
    pub fn has_columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// True if talk is unwanted.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Columns of the terminal, or 100 where there is none.
    #[must_use]
    pub fn columns_wide(&self) -> usize {
        usize::from(self.io.width.unwrap_or(100))
    }

    /// Colours a piece of data, if colours are wanted.
    #[must_use]
    pub fn paint(&self, text: &str, tone: Tone) -> String {
        let text = shown_lines(text);
        if self.color {
            paint(&text, tone)
        } else {
            text.into_owned()
        }
    }

    /// One line of data. On a terminal a table's words go on below where they are too long.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn line(&mut self, text: &str) -> Result<(), CliError> {
        match self.limit() {
            Some(limit) => {
                let lines: Vec<String> = text.split('\n').map(|line| prose(line, limit)).collect();
                self.raw(&lines.join("\n"))
            }
            None => self.raw(text),
        }
    }

    /// Data that is written as it is, however long its lines: scripts, commands, files.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn raw(&mut self, text: &str) -> Result<(), CliError> {
        writeln!(self.io.out, "{}", painted(text, self.color))?;
        self.io.out.flush()?;
        Ok(())
    }

    /// One line of talk, unless `--quiet`. Losing talk is not an error.
    pub fn say(&mut self, text: &str) {
        if !self.quiet {
            let _ = writeln!(self.io.err, "{}", painted(text, self.color_err));
            let _ = self.io.err.flush();
        }
    }

    /// One line of talk that only people at a terminal need.
    pub fn say_at_terminal(&mut self, text: &str) {
        if self.io.err_is_terminal {
            self.say(text);
        }
    }

    /// The reason why the command failed. Always said.
    pub fn fail(&mut self, error: &CliError, endpoint: &str) {
        let next = error.next_step(endpoint).map(|next| match error {
            CliError::Client(ClientError::Unreachable { .. }) if self.io.in_checkout => {
                format!("{next}; `./devstack/up` starts one from this checkout")
            }
            _ => next,
        });
        let text = if self.format == Format::Json {
            let json = Json::object([(
                "error",
                Json::object([("code", Json::from(error.code()))])
                    .with("message", error.to_string())
                    .with("next", next.map_or(Json::Null, Json::from))
                    .with("exit_code", u32::from(error.exit_code())),
            )]);
            let text = serde_json::to_string(&json).unwrap_or_default();
            shown_json(&text).into_owned()
        } else if self.color_err {
            let plain = error.text_with(next);
            let plain = shown_lines(&plain);
            let (code, rest) = plain.split_once(':').unwrap_or(("", &plain));
            format!("{}:{rest}", paint(code, Tone::Bad))
        } else {
            shown_lines(&error.text_with(next)).into_owned()
        };
        let _ = writeln!(self.io.err, "{text}");
        let _ = self.io.err.flush();
    }

    /// JSON over several lines.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn json(&mut self, json: &Json) -> Result<(), CliError> {
        let text = serde_json::to_string_pretty(json).map_err(std::io::Error::from)?;
        self.line(&shown_json(&text))
    }

    /// JSON on one line, for streams.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn json_line(&mut self, json: &Json) -> Result<(), CliError> {
        let text = serde_json::to_string(json).map_err(std::io::Error::from)?;
        self.line(&shown_json(&text))
    }

    /// Many things, in the format asked for.
    ///
    /// # Errors
    /// [`CliError::Write`]; [`CliError::Usage`] for an unknown `--column`.
    pub fn listing(&mut self, listing: Listing) -> Result<(), CliError> {
        if self.format == Format::Json {
            let json = self.json_columns(listing.json);
            return self.json(&json);
        }
        let keys: Vec<(&str, &str)> = listing.columns.iter().map(|c| (c.key, c.title)).collect();
        let mut chosen = self.chosen(&keys)?;
        if self.columns.is_empty() {
            chosen.retain(|&i| listing.columns.get(i).is_some_and(|c| !c.on_request));
        }
        if self.format == Format::Value {
            for row in &listing.rows {
                let bare: Vec<&str> = chosen
                    .iter()
                    .filter_map(|&i| row.get(i))
                    .map(TableCell::bare)
                    .collect();
                self.line(&bare.join(" "))?;
            }
            return Ok(());
        }
        if listing.rows.is_empty() {
            self.say(listing.none);
            return Ok(());
        }
        let columns: Vec<ListingColumn> = chosen
            .iter()
            .filter_map(|&i| listing.columns.get(i))
            .copied()
            .collect();
        let rows: Vec<Vec<TableCell>> = listing
            .rows
            .into_iter()
            .map(|row| chosen.iter().filter_map(|&i| row.get(i)).cloned().collect())
            .collect();
        self.fitted(&columns, &[], &rows, true)
    }

    /// One thing, in the format asked for.
    ///
    /// # Errors
    /// [`CliError::Write`]; [`CliError::Usage`] for an unknown `--column`.
    pub fn details(&mut self, details: Details) -> Result<(), CliError> {
        if self.format == Format::Json {
            let json = self.json_columns(details.json);
            return self.json(&json);
        }
        let keys: Vec<(&str, &str)> = details.fields.iter().map(|(key, _)| (*key, *key)).collect();
        let chosen = self.chosen(&keys)?;
        let fields = chosen.iter().filter_map(|&i| details.fields.get(i));
        if self.format == Format::Value {
            let lines: Vec<String> = fields.map(|(_, cell)| cell.bare().to_owned()).collect();
            return lines.iter().try_for_each(|line| self.line(line));
        }
        let fields: Vec<&(&str, TableCell)> = fields.collect();
        let rows: Vec<Vec<TableCell>> = fields
            .iter()
            .map(|(key, cell)| vec![TableCell::new(key), cell.clone()])
            .collect();
        let columns = [text("field", "Field"), text("value", "Value")];
        let titles = columns.map(|column| column.title);
        if let Some(limit) = self.limit()
            && layout(&columns, &titles, &rows, limit, true) == Layout::Records
        {
            let titles: Vec<&str> = fields.iter().map(|(key, _)| *key).collect();
            let row: Vec<TableCell> = fields.iter().map(|(_, cell)| cell.clone()).collect();
            return self.raw(&records(self.look(), &titles, &[row], limit));
        }
        self.table(&columns, &rows)
    }

    /// A table, whatever the format: for the inner tables of longer answers.
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn table(
        &mut self,
        columns: &[ListingColumn],
        rows: &[Vec<TableCell>],
    ) -> Result<(), CliError> {
        self.table_with_headings(columns, &[], rows)
    }

    /// The same, where the last columns have headings that are known only now (names of weighers).
    ///
    /// # Errors
    /// [`CliError::Write`].
    pub fn table_with_headings(
        &mut self,
        columns: &[ListingColumn],
        headings: &[String],
        rows: &[Vec<TableCell>],
    ) -> Result<(), CliError> {
        self.fitted(columns, headings, rows, false)
    }

    /// A table that fits into the terminal. `listed` if `--column` chooses among its columns.
    fn fitted(
        &mut self,
        columns: &[ListingColumn],
        headings: &[String],
        rows: &[Vec<TableCell>],
        listed: bool,
    ) -> Result<(), CliError> {
        let fixed = columns.len().saturating_sub(headings.len());
        let titles = columns.iter().take(fixed).map(|c| c.title);
        let titles: Vec<&str> = titles.chain(headings.iter().map(String::as_str)).collect();
        if let Some(see) = self.io.see_table {
            see(columns, &titles, rows);
        }
        let keep = self.has_columns();
        let drawn = drawn(self.look(), columns, &titles, rows, self.limit(), keep);
        self.raw(&drawn.text)?;
        if !drawn.left_out.is_empty() {
            let how = if listed {
                "-c COLUMN shows one, -o json all"
            } else {
                "-o json shows all"
            };
            let names = drawn.left_out.join(", ");
            self.say(&format!("not shown for lack of width: {names}; {how}"));
        }
        Ok(())
    }

    fn look(&self) -> TableFormat {
        let markdown = self.format == Format::Markdown;
        TableFormat {
            markdown,
            color: self.color && !markdown,
        }
    }

    /// How wide a table may be; `None` into a file or pipe, where nothing is wrapped: one row is
    /// one line there.
    fn limit(&self) -> Option<usize> {
        let on_terminal = self.io.out_is_terminal && self.format == Format::Table;
        self.io.width.filter(|_| on_terminal).map(usize::from)
    }

    fn json_columns(&self, json: Json) -> Json {
        if self.columns.is_empty() {
            return json;
        }
        let keys: Vec<String> = self
            .columns
            .iter()
            .map(|c| c.to_lowercase().replace(' ', "_"))
            .collect();
        json.only(&keys.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Which columns to show: all, or those of `--column`, by key or heading.
    fn chosen(&self, columns: &[(&str, &str)]) -> Result<Vec<usize>, CliError> {
        if self.columns.is_empty() {
            return Ok((0..columns.len()).collect());
        }
        let find = |wanted: &String| {
            columns
                .iter()
                .position(|(key, title)| {
                    key.eq_ignore_ascii_case(wanted) || title.eq_ignore_ascii_case(wanted)
                })
                .ok_or_else(|| {
                    let keys: Vec<&str> = columns.iter().map(|(key, _)| *key).collect();
                    CliError::Usage(format!(
                        "there is no column {wanted:?}; there are {}",
                        keys.join(", ")
                    ))
                })
        };
        self.columns.iter().map(find).collect()
    }
}

/// A text with escapes for what does not show itself. Where colours are wanted those that
/// [`paint`] wrote stay.
fn painted(text: &str, color: bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[").filter(|_| color) {
        out.push_str(&shown_lines(before));
        let end = after.find(|c: char| !c.is_ascii_digit() && c != ';');
        rest = match end.filter(|&end| after[end..].starts_with('m')) {
            Some(end) => {
                out.push_str("\u{1b}[");
                out.push_str(&after[..=end]);
                &after[end + 1..]
            }
            None => {
                out.push_str(&shown_lines("\u{1b}"));
                out.push('[');
                after
            }
        };
    }
    out.push_str(&shown_lines(rest));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_colours_that_are_wanted_stay() {
        let text = "\u{1b}[31mred\u{1b}[0m \u{1b}[2J\u{202e}x\ny";
        let shown = "\u{1b}[31mred\u{1b}[0m \\u{1b}[2J\\u{202e}x\ny";
        assert_eq!(painted(text, true), shown);
        assert_eq!(painted(text, false), shown.replace('\u{1b}', "\\u{1b}"));
        assert_eq!(TableCell::new("a\u{2028}b").text, "a\\u{2028}b");
        assert_eq!(TableCell::new("").value("\u{1b}[1m").bare(), "\\u{1b}[1m");
    }
}

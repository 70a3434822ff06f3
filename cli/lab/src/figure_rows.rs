//! A figure of a paper as rows of numbers: a table for people, JSON and plain values for programs.

use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number};

/// How a column is written in a table. JSON and values have every digit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FigureUnit {
    /// With two decimals.
    Hours,
    /// A whole number.
    Count,
    /// A share, written as a percentage with two decimals.
    Share,
}

impl FigureUnit {
    fn words(self, value: f64) -> String {
        match self {
            _ if !value.is_finite() => "never ends".to_owned(),
            Self::Hours => format!("{value:.2}"),
            Self::Count => format!("{value:.0}"),
            // The sum with zero turns a rounded -0 into 0.
            Self::Share => format!("{:.2} %", (value * 1e4).round() / 100.0 + 0.0),
        }
    }
}

/// A column: its key in JSON, its title, how it is written.
pub(crate) type FigureColumn = (&'static str, &'static str, FigureUnit);

pub(crate) struct FigureRows {
    /// Its number in the paper.
    pub(crate) figure: &'static str,
    pub(crate) columns: Vec<FigureColumn>,
    /// A value for each column; `None` where there is none.
    pub(crate) rows: Vec<Vec<Option<f64>>>,
}

impl FigureRows {
    /// Shows the figure. `words` stands above the table; `facts` are keys beside the rows in JSON.
    pub(crate) fn show(
        &self,
        context: &mut Context,
        words: &str,
        facts: Vec<(&'static str, Json)>,
    ) -> Result<(), CliError> {
        match context.output.format() {
            Format::Json => {
                let mut json = Json::object([("figure", Json::from(self.figure))]);
                for (key, value) in facts {
                    json = json.with(key, value);
                }
                context.output.json(&json.with("rows", self.json()))
            }
            Format::Value => {
                for row in &self.rows {
                    let values = row.iter().map(|value| match value {
                        Some(value) => value.to_string(),
                        None => "-".to_owned(),
                    });
                    let line = values.collect::<Vec<_>>().join(" ");
                    context.output.line(&line)?;
                }
                Ok(())
            }
            Format::Table | Format::Markdown => {
                context.output.line(words)?;
                let columns: Vec<_> = self
                    .columns
                    .iter()
                    .map(|(key, title, _)| number(key, title))
                    .collect();
                let rows: Vec<Vec<TableCell>> =
                    self.rows.iter().map(|row| self.cells(row)).collect();
                context.output.table(&columns, &rows)
            }
        }
    }

    fn cells(&self, row: &[Option<f64>]) -> Vec<TableCell> {
        let cells = self.columns.iter().zip(row).map(|((_, _, unit), value)| {
            TableCell::new(value.map_or_else(|| "-".to_owned(), |value| unit.words(value)))
        });
        cells.collect()
    }

    /// The rows as objects.
    pub(crate) fn json(&self) -> Json {
        let rows = self.rows.iter().map(|row| {
            let mut object = Json::object::<String>([]);
            for ((key, _, _), value) in self.columns.iter().zip(row) {
                object = object.with(key, value.map_or(Json::Null, Json::from));
            }
            object
        });
        Json::List(rows.collect())
    }
}

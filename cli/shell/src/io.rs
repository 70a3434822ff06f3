//! What a program has of the world outside, and how it writes there.

use crate::listing::{ListingColumn, TableCell};
use ebbtide_os_cloud::Environment;
use std::io::Write;
use std::path::PathBuf;
use time::OffsetDateTime;

/// How answers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// Tables for people.
    Table,
    /// JSON with the keys of the API's contract.
    Json,
    /// Bare values, one row a line.
    Value,
    /// Tables for documents and tickets.
    Markdown,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColorChoice {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The world outside: streams, clock, a few facts about the terminal. Tests give their own.
pub struct Io {
    /// Standard output.
    pub out: Box<dyn Write + Send>,
    /// Standard error.
    pub err: Box<dyn Write + Send>,
    /// True if standard output is a terminal.
    pub out_is_terminal: bool,
    /// True if standard error is a terminal.
    pub err_is_terminal: bool,
    /// Columns of the terminal; `None` for no limit.
    pub width: Option<u16>,
    /// True if the environment asks for no colours (`NO_COLOR`, `TERM=dumb`).
    pub no_color: bool,
    /// The time of day.
    pub now: fn() -> OffsetDateTime,
    /// Where the user's configuration lives (`~/.config`).
    pub config_home: Option<PathBuf>,
    /// `OS_*` variables, and where files of clouds are.
    pub environment: Environment,
    /// True in a checkout of Ebbtide's sources, where `./devstack/up` starts a region.
    pub in_checkout: bool,
    /// Sees every table before it is drawn: tests draw it at other widths.
    pub see_table: Option<TableObserver>,
    /// `EBBTIDE_TOKEN`; not an option, because everybody on the machine can see the options of a
    /// process.
    pub token: Option<String>,
}

/// Takes the columns of a table, their headings, and its rows.
pub type TableObserver = fn(&[ListingColumn], &[&str], &[Vec<TableCell>]);

impl std::fmt::Debug for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io")
            .field("out_is_terminal", &self.out_is_terminal)
            .field("width", &self.width)
            .finish_non_exhaustive()
    }
}

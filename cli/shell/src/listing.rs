//! What is shown of one thing or of many: columns, cells with their tone, and the same as JSON.

use crate::json::Json;
use comfy_table::Color;
use ebbtide_model::names::shown_lines;

/// What a piece of text means, for its colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing special.
    #[default]
    Plain,
    /// As it should be.
    Good,
    /// Under way, or worth a look.
    Warn,
    /// Wrong.
    Bad,
    /// Of little interest.
    Dim,
    /// The one that counts.
    Strong,
}

impl Tone {
    /// Its colour in a table.
    #[must_use]
    pub fn color(self) -> Option<Color> {
        match self {
            Self::Plain => None,
            Self::Good => Some(Color::Green),
            Self::Warn => Some(Color::Yellow),
            Self::Bad => Some(Color::Red),
            Self::Dim => Some(Color::DarkGrey),
            Self::Strong => Some(Color::Cyan),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct ListingColumn {
    /// Its name for `--column`, as in the JSON where there is such a key.
    pub key: &'static str,
    /// Its heading.
    pub title: &'static str,
    /// True for numbers.
    pub right: bool,
    /// Shown only where `--column` asks for it.
    pub on_request: bool,
    /// Left out of a table that is too wide, columns with higher numbers first; 0 stays.
    pub detail: u8,
}

impl ListingColumn {
    /// The same, left out where the terminal is too narrow, after those with higher numbers.
    #[must_use]
    pub const fn detail(mut self, rank: u8) -> Self {
        self.detail = rank;
        self
    }

    /// The same, shown only where `--column` asks for it.
    #[must_use]
    pub const fn on_request(mut self) -> Self {
        self.on_request = true;
        self
    }
}

#[must_use]
pub const fn text(key: &'static str, title: &'static str) -> ListingColumn {
    ListingColumn {
        key,
        title,
        right: false,
        on_request: false,
        detail: 0,
    }
}

#[must_use]
pub const fn number(key: &'static str, title: &'static str) -> ListingColumn {
    ListingColumn {
        key,
        title,
        right: true,
        on_request: false,
        detail: 0,
    }
}

#[derive(Debug, Clone, Default)]
pub struct TableCell {
    /// For people.
    pub text: String,
    /// For `--output value`, where it differs.
    pub value: Option<String>,
    /// How it looks.
    pub tone: Tone,
}

impl TableCell {
    /// A plain cell.
    pub fn new(text: impl ToString) -> Self {
        Self {
            text: shown_lines(&text.to_string()).into_owned(),
            ..Self::default()
        }
    }

    /// The same with a tone.
    #[must_use]
    pub fn tone(mut self, tone: Tone) -> Self {
        self.tone = tone;
        self
    }

    /// The same with another text for `--output value`.
    #[must_use]
    pub fn value(mut self, value: impl ToString) -> Self {
        self.value = Some(shown_lines(&value.to_string()).into_owned());
        self
    }

    /// The text for `--output value`.
    pub(crate) fn bare(&self) -> &str {
        self.value.as_deref().unwrap_or(&self.text)
    }
}

/// Many things of one kind.
#[derive(Debug)]
pub struct Listing {
    pub columns: Vec<ListingColumn>,
    /// The rows, as many cells each as there are columns.
    pub rows: Vec<Vec<TableCell>>,
    /// The same as JSON.
    pub json: Json,
    /// What to say if there are none.
    pub none: &'static str,
}

/// One thing: pairs of field and value.
#[derive(Debug)]
pub struct Details {
    /// Key (as in the JSON) and value.
    pub fields: Vec<(&'static str, TableCell)>,
    /// The same as JSON.
    pub json: Json,
}

//! Cell mappings (`nova/objects/cell_mapping.py`).

use std::fmt;

/// The cell in which servers are buried that never found a host. It has no hosts.
pub const CELL0_UUID: &str = "00000000-0000-0000-0000-000000000000";

/// A text that is never shown: a URL with its password.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// Hides a text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text. Never to be logged.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

/// A row of `cell_mappings`, with its URLs' templates filled in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellMapping {
    /// Database id; other tables refer to it.
    pub id: i64,
    pub uuid: String,
    /// Name, if it has one.
    pub name: Option<String>,
    /// Message bus of the cell.
    pub transport_url: Secret,
    /// Database of the cell.
    pub database_connection: Secret,
    /// Taken out of scheduling by an operator.
    pub disabled: bool,
    /// When the row was made and changed, microseconds since 1970, as Nova's object carries them.
    pub created_at: Option<i64>,
    /// See [`Self::created_at`].
    pub updated_at: Option<i64>,
}

impl CellMapping {
    /// Whether it is the cell without hosts.
    #[must_use]
    pub fn is_cell0(&self) -> bool {
        self.uuid == CELL0_UUID
    }

    /// For people: the name, or the UUID where there is none.
    #[must_use]
    pub fn label(&self) -> String {
        match self.name.as_deref() {
            Some(name) if !name.is_empty() => format!("cell {name}"),
            _ => format!("cell {}", self.uuid),
        }
    }
}

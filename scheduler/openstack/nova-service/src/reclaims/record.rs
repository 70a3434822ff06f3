//! The row of a reclaimed host in the ledger.

use ebbtide_model::Reclaim;
use ebbtide_store::ledger::ReclaimRow;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The reclaim of a host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ReclaimRecord {
    pub(crate) reclaim: Reclaim,
    /// The owner has returned the host; Nova may not know yet.
    #[serde(default)]
    pub(crate) returned: Option<ReturnedHost>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ReturnedHost {
    /// The host stays disabled.
    pub(crate) keep_disabled: bool,
}

impl ReclaimRecord {
    pub(crate) fn new(reclaim: Reclaim) -> Self {
        Self {
            reclaim,
            returned: None,
        }
    }

    /// The record of a row; `None`, with a log entry, if it is unreadable.
    pub(crate) fn read(row: &ReclaimRow) -> Option<Self> {
        match serde_json::from_value(row.document.clone()) {
            Ok(record) => Some(record),
            Err(error) => {
                tracing::error!(
                    code = "EB-DOOR-070",
                    host = row.host,
                    "the ledger's row of a reclaimed host cannot be read: {error}; a newer version of the scheduler has written it, or a person"
                );
                None
            }
        }
    }

    /// True if the host is returned and only Nova has to be told.
    pub(crate) fn is_ending(&self) -> bool {
        self.returned.is_some()
    }

    /// Why the host is disabled at Nova; `None`: it is to be enabled.
    pub(crate) fn disabled_reason(&self) -> Option<String> {
        let reclaim = &self.reclaim;
        match self.returned {
            None => Some(reclaim.disabled_reason()),
            Some(ReturnedHost { keep_disabled }) => {
                let kept = || keep_disabled.then(|| reclaim.returned_reason());
                reclaim.disabled_before.clone().or_else(kept)
            }
        }
    }

    pub(crate) fn document(&self) -> Value {
        serde_json::to_value(self).unwrap_or_else(|error| {
            // Plain data with string keys and finite numbers always has a JSON form.
            tracing::error!(
                code = "EB-DOOR-020",
                "a record could not be written as JSON: {error}"
            );
            Value::Null
        })
    }
}

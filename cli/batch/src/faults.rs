//! What goes wrong, reported and written down once for as long as it lasts.

use crate::journal::RecordFile;
use ebbtide_burst::{BurstError, BurstEvent, RecordEntry};
use ebbtide_runtime::clock::{unix_millis, utc};
use ebbtide_shell::errors::CliError;
use std::collections::BTreeMap;

/// One line with its time.
pub fn log(words: &str) {
    let at = utc();
    say!(
        "{:02}:{:02}:{:02}.{:03} {words}",
        at.hour(),
        at.minute(),
        at.second(),
        at.millisecond()
    );
}

/// What is wrong now.
#[derive(Debug, Default)]
pub struct Faults {
    /// By place, with its code.
    lasting: BTreeMap<String, String>,
}

impl Faults {
    /// Reports a fault and writes it down.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub fn note(&self, record: &mut RecordFile, error: &CliError) -> Result<(), BurstError> {
        log(&format!("{}: {error}", error.code()));
        let event = BurstEvent::Trouble {
            code: error.code().to_owned(),
            words: error.to_string(),
        };
        let at = unix_millis();
        record.note(&RecordEntry { at, event })
    }

    /// The same for a fault that lasts: once, until it is over everywhere.
    ///
    /// # Errors
    /// [`BurstError::Storage`].
    pub fn lasting(
        &mut self,
        record: &mut RecordFile,
        place: &str,
        error: &CliError,
    ) -> Result<(), BurstError> {
        let code = error.code().to_owned();
        if self.lasting.get(place) == Some(&code) {
            return Ok(());
        }
        let known = self.lasting.values().any(|other| *other == code);
        self.lasting.insert(place.to_owned(), code);
        if known {
            log(&error.to_string());
            return Ok(());
        }
        self.note(record, error)
    }

    /// Nothing is wrong in this place any more.
    pub fn over(&mut self, place: &str) {
        if let Some(code) = self.lasting.remove(place)
            && !self.lasting.values().any(|other| *other == code)
        {
            log(&format!("{code} is over"));
        }
    }

    /// What is wrong now: codes by place.
    #[must_use]
    pub fn now(&self) -> &BTreeMap<String, String> {
        &self.lasting
    }
}

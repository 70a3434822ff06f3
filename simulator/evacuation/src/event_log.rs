//! The events of a world in plain words with times. The lines are kept only for a reader.

use std::collections::BTreeMap;
use uuid::Uuid;

/// The story of one world.
#[derive(Debug, Default)]
pub(crate) struct EventLog {
    lines: Option<Vec<String>>,
    names: BTreeMap<Uuid, String>,
    counts: BTreeMap<&'static str, u32>,
    /// Folds everything that would be told, so that two runs can be held against each other.
    digest: u64,
}

impl EventLog {
    /// A story that is kept, or one of which only the digest is.
    pub(crate) fn new(kept: bool) -> Self {
        Self {
            lines: kept.then(Vec::new),
            ..Self::default()
        }
    }

    /// Tells a line.
    pub(crate) fn log(&mut self, at_millis: i64, words: impl FnOnce(&Self) -> String) {
        if self.lines.is_none() {
            return;
        }
        let line = format!(
            "{:>6}.{:03} s  {}",
            at_millis / 1000,
            at_millis.rem_euclid(1000),
            words(self)
        );
        if let Some(lines) = &mut self.lines {
            lines.push(line);
        }
    }

    /// Folds something into the digest.
    pub(crate) fn fold(&mut self, value: u64) {
        // FNV-1a over 64-bit words: order matters, and it costs nothing.
        self.digest = (self.digest ^ value).wrapping_mul(0x0000_0100_0000_01B3);
    }

    pub(crate) fn fold_id(&mut self, id: Uuid) {
        let (high, low) = id.as_u64_pair();
        self.fold(high);
        self.fold(low);
    }

    /// What everything that has happened comes to.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// Gives something a name that people can follow.
    pub(crate) fn name(&mut self, id: Uuid, kind: &'static str) {
        if self.lines.is_some() && !self.names.contains_key(&id) {
            let count = self.counts.entry(kind).or_default();
            *count += 1;
            self.names.insert(id, format!("{kind}-{count}"));
        }
    }

    /// The name of something, or the end of its identifier.
    pub(crate) fn of(&self, id: Uuid) -> String {
        self.names.get(&id).cloned().unwrap_or_else(|| {
            let text = id.to_string();
            format!("…{}", text.get(text.len() - 6..).unwrap_or_default())
        })
    }

    pub(crate) fn into_lines(self) -> Vec<String> {
        self.lines.unwrap_or_default()
    }
}

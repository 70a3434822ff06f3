//! Rows that this process drives or is about to drive. A row of this process that is not among them
//! is an orphan.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// The rows that tasks of this process have begun, with the number of tasks for each: a request can
/// arrive twice.
#[derive(Debug, Clone, Default)]
pub(super) struct ActiveRows(Arc<Mutex<HashMap<Uuid, usize>>>);

/// A guard: as long as it lives, its row counts as begun by this process.
#[derive(Debug)]
pub(super) struct ActiveRowGuard {
    begun: ActiveRows,
    row: Uuid,
}

impl ActiveRows {
    /// Marks a row as begun. The caller does this before the first write, whose answer may never
    /// arrive.
    pub(super) fn with(&self, row: Uuid) -> ActiveRowGuard {
        *self.lock().entry(row).or_default() += 1;
        ActiveRowGuard {
            begun: self.clone(),
            row,
        }
    }

    pub(super) fn contains(&self, row: Uuid) -> bool {
        self.lock().contains_key(&row)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Uuid, usize>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveRowGuard {
    fn drop(&mut self) {
        let mut all = self.begun.lock();
        if let Some(count) = all.get_mut(&self.row) {
            *count -= 1;
            if *count == 0 {
                all.remove(&self.row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_forgotten_once_the_last_who_had_begun_with_it_has_ended() {
        let begun = ActiveRows::default();
        let row = Uuid::from_u128(7);
        assert!(!begun.contains(row), "the row has not begun");
        let first = begun.with(row);
        let second = begun.with(row);
        drop(first);
        assert!(begun.contains(row), "the request came twice");
        assert!(!begun.contains(Uuid::from_u128(8)));
        drop(second);
        assert!(!begun.contains(row));
        assert!(begun.lock().is_empty(), "nothing grows");
    }
}

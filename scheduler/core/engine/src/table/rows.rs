//! The instance rows of the host table, in chunks of fixed size. A `Vec` would copy all rows when
//! it grows, and hold both copies meanwhile.

use super::{InstanceRow, Slot, index_of};
use std::ops::{Index, IndexMut};

/// Rows in a chunk, which takes 400 kB.
const CHUNK: usize = 4096;

/// The instances, by slot.
#[derive(Debug, Clone, Default)]
pub(super) struct Rows {
    chunks: Vec<Vec<InstanceRow>>,
}

impl Rows {
    /// Number of rows, free ones included.
    pub(super) fn len(&self) -> usize {
        self.chunks
            .last()
            .map_or(0, |last| (self.chunks.len() - 1) * CHUNK + last.len())
    }

    /// Appends a row and returns its slot.
    pub(super) fn push(&mut self, row: InstanceRow) -> Slot {
        let slot = Slot(index_of(self.len()));
        match self.chunks.last_mut() {
            Some(chunk) if chunk.len() < CHUNK => chunk.push(row),
            _ => {
                let mut chunk = Vec::with_capacity(CHUNK);
                chunk.push(row);
                self.chunks.push(chunk);
            }
        }
        slot
    }
}

impl Index<Slot> for Rows {
    type Output = InstanceRow;

    fn index(&self, slot: Slot) -> &InstanceRow {
        &self.chunks[slot.at() / CHUNK][slot.at() % CHUNK]
    }
}

impl IndexMut<Slot> for Rows {
    fn index_mut(&mut self, slot: Slot) -> &mut InstanceRow {
        &mut self.chunks[slot.at() / CHUNK][slot.at() % CHUNK]
    }
}

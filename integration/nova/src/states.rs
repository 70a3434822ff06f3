//! Lists of host states: a plain one, and one that is cheap to clone.

use crate::model::HostState;
use std::sync::Arc;

/// Host states by place.
pub trait HostStateList {
    /// How many places there are.
    fn len(&self) -> usize;

    /// True without places.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The state at a place. Panics if there is none, as a slice does.
    fn get(&self, at: usize) -> &HostState;

    /// The same, to be changed.
    fn edit(&mut self, at: usize) -> &mut HostState;
}

impl HostStateList for [HostState] {
    fn len(&self) -> usize {
        self.len()
    }

    fn get(&self, at: usize) -> &HostState {
        &self[at]
    }

    fn edit(&mut self, at: usize) -> &mut HostState {
        &mut self[at]
    }
}

impl HostStateList for Vec<HostState> {
    fn len(&self) -> usize {
        self.as_slice().len()
    }

    fn get(&self, at: usize) -> &HostState {
        &self[at]
    }

    fn edit(&mut self, at: usize) -> &mut HostState {
        &mut self[at]
    }
}

/// States in a chunk, so the number of pointers that a change of one state in a clone copies.
const CHUNK: usize = 64;

type Chunk = Vec<Arc<HostState>>;

/// Host states whose clone costs one pointer. A change of a clone copies the changed state and the
/// pointers of its chunk (copy on write).
#[derive(Debug, Clone, Default)]
pub struct HostStates {
    chunks: Arc<Vec<Arc<Chunk>>>,
    len: usize,
}

impl HostStates {
    /// One more, at the next place.
    pub fn push(&mut self, state: HostState) -> usize {
        let chunks = Arc::make_mut(&mut self.chunks);
        match chunks.last_mut() {
            Some(last) if last.len() < CHUNK => Arc::make_mut(last).push(Arc::new(state)),
            _ => chunks.push(Arc::new(vec![Arc::new(state)])),
        }
        self.len += 1;
        self.len - 1
    }

    /// Replaces the state at a place. A holder of a copy keeps the old one.
    pub fn set(&mut self, at: usize, state: HostState) {
        *self.slot(at) = Arc::new(state);
    }

    /// The state at a place, shared.
    #[must_use]
    pub fn shared(&self, at: usize) -> Arc<HostState> {
        Arc::clone(&self.chunks[at / CHUNK][at % CHUNK])
    }

    /// All states in order.
    pub fn iter(&self) -> impl Iterator<Item = &HostState> {
        self.chunks
            .iter()
            .flat_map(|chunk| chunk.iter().map(Arc::as_ref))
    }

    fn slot(&mut self, at: usize) -> &mut Arc<HostState> {
        let chunk = &mut Arc::make_mut(&mut self.chunks)[at / CHUNK];
        &mut Arc::make_mut(chunk)[at % CHUNK]
    }
}

impl HostStateList for HostStates {
    fn len(&self) -> usize {
        self.len
    }

    fn get(&self, at: usize) -> &HostState {
        &self.chunks[at / CHUNK][at % CHUNK]
    }

    fn edit(&mut self, at: usize) -> &mut HostState {
        Arc::make_mut(self.slot(at))
    }
}

impl FromIterator<HostState> for HostStates {
    fn from_iter<I: IntoIterator<Item = HostState>>(states: I) -> Self {
        let states: Vec<Arc<HostState>> = states.into_iter().map(Arc::new).collect();
        Self {
            len: states.len(),
            chunks: Arc::new(states.chunks(CHUNK).map(|c| Arc::new(c.to_vec())).collect()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hosts::new_state;

    #[test]
    fn a_copy_keeps_what_it_had_when_the_original_changes() {
        let named = |n: usize| new_state(&format!("host{n}"), "node", "cell");
        let mut states: HostStates = (0..130).map(named).collect();
        assert_eq!(states.push(named(130)), 130);
        let mut copy = states.clone();
        states.set(70, named(999));
        copy.edit(129).num_instances = 7;
        assert_eq!(states.get(70).host, "host999");
        assert_eq!(copy.get(70).host, "host70");
        assert_eq!(
            (copy.get(129).num_instances, states.get(129).num_instances),
            (7, 0)
        );
        assert_eq!((states.len(), states.iter().count()), (131, 131));
        assert!(
            Arc::ptr_eq(&copy.shared(1), &states.shared(1)),
            "what is not changed is shared"
        );
    }
}

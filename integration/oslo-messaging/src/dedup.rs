//! Which requests are being worked on or are done, by `_unique_id`.
//!
//! A request that is delivered again while it is worked on must not be begun twice: the new
//! delivery is kept beside the work and acknowledged with it. One that is done is only
//! acknowledged. One whose work was given up is new again. Python remembers 16 identifiers and
//! remembers them before the work (`_MsgIdCache`).

use std::collections::{HashMap, VecDeque};

/// What is to be done with a delivery.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Arrival<R> {
    /// The request is new: begin with it. The server keeps its receipt.
    New,
    /// It is being worked on: nothing to do, its receipt is kept.
    Working,
    /// It is done: settle this receipt.
    Done(R),
}

/// The memory of a server, with the receipts (`R`) of what is being worked on.
#[derive(Debug)]
pub(crate) struct MessageMemory<R> {
    entries: HashMap<String, Entry<R>>,
    /// The done ones, oldest first.
    done: VecDeque<String>,
    capacity: usize,
}

#[derive(Debug)]
enum Entry<R> {
    Working(Vec<R>),
    Done,
}

impl<R> MessageMemory<R> {
    /// Remembers what is worked on, and the last `capacity` requests that are done.
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            entries: HashMap::new(),
            done: VecDeque::new(),
            capacity,
        }
    }

    /// A delivery has come.
    pub(crate) fn arrive(&mut self, id: &str, receipt: R) -> Arrival<R> {
        match self.entries.get_mut(id) {
            None => {
                self.entries
                    .insert(id.to_owned(), Entry::Working(vec![receipt]));
                Arrival::New
            }
            Some(Entry::Working(receipts)) => {
                receipts.push(receipt);
                Arrival::Working
            }
            Some(Entry::Done) => Arrival::Done(receipt),
        }
    }

    /// The work is done. Returns the receipts to be acknowledged.
    pub(crate) fn finish(&mut self, id: &str) -> Vec<R> {
        if !matches!(self.entries.get(id), Some(Entry::Working(_))) {
            return Vec::new();
        }
        let receipts = self.give_up(id);
        if self.capacity > 0 {
            if self.done.len() == self.capacity
                && let Some(oldest) = self.done.pop_front()
            {
                self.entries.remove(&oldest);
            }
            self.done.push_back(id.to_owned());
            self.entries.insert(id.to_owned(), Entry::Done);
        }
        receipts
    }

    /// The receipts of what is being worked on, to be settled before the work is done.
    pub(crate) fn take_receipts(&mut self, id: &str) -> Vec<R> {
        match self.entries.get_mut(id) {
            Some(Entry::Working(receipts)) => std::mem::take(receipts),
            _ => Vec::new(),
        }
    }

    /// The work was given up. Returns the receipts to be given back to the broker.
    pub(crate) fn give_up(&mut self, id: &str) -> Vec<R> {
        match self.entries.remove(id) {
            Some(Entry::Working(receipts)) => receipts,
            Some(Entry::Done) => {
                self.entries.insert(id.to_owned(), Entry::Done);
                Vec::new()
            }
            None => Vec::new(),
        }
    }

    /// How many requests are remembered, worked on or done.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_second_delivery_waits_for_the_first_and_is_acknowledged_with_it() {
        let mut seen = MessageMemory::new(4);
        assert_eq!(seen.arrive("a", 1), Arrival::New);
        assert_eq!(seen.arrive("a", 2), Arrival::Working);
        assert_eq!(seen.arrive("b", 3), Arrival::New);
        assert_eq!(seen.finish("a"), [1, 2]);
        assert_eq!(seen.arrive("a", 4), Arrival::Done(4));
        assert_eq!(seen.finish("b"), [3]);
    }

    #[test]
    fn what_was_given_up_may_be_begun_again() {
        let mut seen = MessageMemory::new(4);
        assert_eq!(seen.arrive("a", 1), Arrival::New);
        assert_eq!(seen.give_up("a"), [1]);
        assert_eq!(seen.arrive("a", 2), Arrival::New);
        assert_eq!(seen.finish("a"), [2]);
        // Too late: it is done.
        assert_eq!(seen.give_up("a"), [] as [i32; 0]);
        assert_eq!(seen.arrive("a", 3), Arrival::Done(3));
    }

    #[test]
    fn only_the_last_ones_are_remembered() {
        let mut seen = MessageMemory::new(2);
        for id in ["a", "b", "c"] {
            assert_eq!(seen.arrive(id, ()), Arrival::New);
            seen.finish(id);
        }
        assert_eq!(seen.len(), 2);
        assert_eq!(seen.arrive("c", ()), Arrival::Done(()));
        assert_eq!(seen.arrive("a", ()), Arrival::New);
    }

    proptest! {
        #[test]
        fn no_receipt_is_lost_or_settled_twice_and_no_work_is_done_twice_at_once(
            steps in prop::collection::vec((0..3u8, 0..6u8), 0..200),
            capacity in 0..5usize,
        ) {
            let mut seen = MessageMemory::new(capacity);
            let mut working: HashSet<String> = HashSet::new();
            let mut open: HashSet<usize> = HashSet::new();
            for (receipt, (step, id)) in steps.into_iter().enumerate() {
                let id = id.to_string();
                let settled = match step {
                    0 => {
                        open.insert(receipt);
                        match seen.arrive(&id, receipt) {
                            Arrival::New => {
                                prop_assert!(working.insert(id), "begun twice");
                                vec![]
                            }
                            Arrival::Working => {
                                prop_assert!(working.contains(&id));
                                vec![]
                            }
                            Arrival::Done(receipt) => {
                                prop_assert!(!working.contains(&id));
                                vec![receipt]
                            }
                        }
                    }
                    1 => { working.remove(&id); seen.finish(&id) }
                    _ => { working.remove(&id); seen.give_up(&id) }
                };
                for receipt in settled {
                    prop_assert!(open.remove(&receipt), "settled twice");
                }
                prop_assert!(seen.len() <= working.len() + capacity);
            }
            for id in working {
                for receipt in seen.finish(&id) {
                    prop_assert!(open.remove(&receipt));
                }
            }
            prop_assert!(open.is_empty(), "lost");
        }
    }
}

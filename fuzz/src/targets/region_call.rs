//! Calls of the API to a scheduler that runs, with an agent, in this process: the first byte says
//! which call, the message follows as it goes over the wire. Whatever is asked is answered in time,
//! and never with an error that is ours; afterwards the scheduler still answers.

mod world;

use std::cell::RefCell;
use world::CallTarget;

/// After so many calls there is a new region: what is made in the old one would fill memory.
const CALLS: usize = 3_000;

thread_local! {
    // Never dropped at the end of its thread: a runtime cannot end while that does.
    static WORLD: RefCell<Option<Box<CallTarget>>> = const { RefCell::new(None) };
}

pub(super) fn run(bytes: &[u8]) {
    let Some((call, message)) = bytes.split_first() else {
        return;
    };
    WORLD.with_borrow_mut(|held| {
        let mut world = held.take().filter(|world| world.calls < CALLS);
        let world = world.get_or_insert_with(|| Box::new(CallTarget::new()));
        world.ask(*call, message);
    });
}

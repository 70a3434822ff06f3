//! How much room there is on a host, in the two senses that a region needs beside h_f and h_n.

use ebbtide_engine::{ClassUsage, HostUsage};
use ebbtide_model::{ResourceClass, Resources};

fn of<'a>(usage: &'a HostUsage, class: &ResourceClass) -> Option<&'a ClassUsage> {
    usage.classes.iter().find(|c| c.class == *class)
}

/// Free in h_f: what is neither used nor promised.
pub(crate) fn full(usage: &HostUsage, class: &ResourceClass) -> i64 {
    of(usage, class).map_or(0, |c| c.free_full)
}

/// Free at this moment: nobody runs there, whatever is promised.
pub(crate) fn physical(usage: &HostUsage, class: &ResourceClass) -> i64 {
    of(usage, class).map_or(0, |c| c.free_full + c.claimed)
}

/// Free once everybody has left who is leaving, after every promise is kept.
fn future(usage: &ClassUsage) -> i64 {
    usage.free_full + usage.leaving
}

/// True if those who are leaving free more than is promised, of everything that they free.
pub(crate) fn is_left_over(usage: &HostUsage) -> bool {
    let mut freed = usage.classes.iter().filter(|c| c.leaving > 0).peekable();
    freed.peek().is_some() && freed.all(|c| future(c) > 0)
}

/// A class of which more is promised than there will be, even once everybody has left who is leaving.
pub(crate) fn overpromised(usage: &HostUsage) -> Option<&ResourceClass> {
    let broken = |c: &&ClassUsage| c.claimed > 0 && future(c) < 0;
    usage.classes.iter().find(broken).map(|c| &c.class)
}

/// True if every promise on the host can still be kept when somebody who is leaving, and frees this much, stays. Only what is
/// promised counts: a class of which nothing is promised may be short for any reason.
pub(crate) fn may_stay(usage: &HostUsage, frees: &Resources) -> bool {
    frees.iter().all(|(class, amount)| {
        of(usage, class).is_none_or(|c| c.claimed <= 0 || future(c) >= units(amount))
    })
}

/// An amount as the engine's columns count.
pub(crate) fn units(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

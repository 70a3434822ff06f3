//! Capacity of a host, in two further senses besides h_f and h_n.

use ebbtide_engine::{ClassUsage, HostUsage};
use ebbtide_model::{ResourceClass, Resources};

fn of<'a>(usage: &'a HostUsage, class: &ResourceClass) -> Option<&'a ClassUsage> {
    usage.classes.iter().find(|c| c.class == *class)
}

/// Free in h_f: neither used nor promised.
pub(crate) fn full(usage: &HostUsage, class: &ResourceClass) -> i64 {
    of(usage, class).map_or(0, |c| c.free_full)
}

/// Free physically at this moment, even if it is promised.
pub(crate) fn physical(usage: &HostUsage, class: &ResourceClass) -> i64 {
    of(usage, class).map_or(0, |c| c.free_full + c.claimed)
}

/// Free once all leaving servers have left and all promises are kept.
fn future(usage: &ClassUsage) -> i64 {
    usage.free_full + usage.leaving
}

/// True if, in every class that leaving servers free, they free more than is promised.
pub(crate) fn has_surplus(usage: &HostUsage) -> bool {
    let mut freed = usage.classes.iter().filter(|c| c.leaving > 0).peekable();
    freed.peek().is_some() && freed.all(|c| future(c) > 0)
}

/// A class of which more is promised than will be free once all leaving servers have left.
pub(crate) fn overpromised(usage: &HostUsage) -> Option<&ResourceClass> {
    let broken = |c: &&ClassUsage| c.claimed > 0 && future(c) < 0;
    usage.classes.iter().find(broken).map(|c| &c.class)
}

/// True if every promise on the host can still be kept when a leaving server that frees this much
/// stays. Only promised classes count: a class without promises may be short for other reasons.
pub(crate) fn may_stay(usage: &HostUsage, frees: &Resources) -> bool {
    frees.iter().all(|(class, amount)| {
        of(usage, class).is_none_or(|c| c.claimed <= 0 || future(c) >= units(amount))
    })
}

/// An amount in the unit of the engine's columns.
pub(crate) fn units(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

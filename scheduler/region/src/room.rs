//! How much room there is on a host, in the three senses that a region needs.

use ebbtide_engine::{ClassUsage, HostUsage};
use ebbtide_model::ResourceClass;

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

/// Free once everybody has left who is leaving.
pub(crate) fn future(usage: &HostUsage, class: &ResourceClass) -> i64 {
    of(usage, class).map_or(0, |c| c.free_full + c.leaving)
}

/// True if more is promised than there will be, even once everybody has left who is leaving.
pub(crate) fn is_overpromised(usage: &HostUsage) -> bool {
    usage.classes.iter().any(|c| c.claimed > 0 && c.free_full + c.leaving < 0)
}

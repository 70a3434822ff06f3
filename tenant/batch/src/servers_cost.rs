//! What whole servers cost, divided among the works that they were there for.
//!
//! A pool pays for a server from its launch to its end: while it boots, while it is idle, and for
//! all its processors. The cost of a server is divided by use, which is time that attempts ran
//! there times the part of the server that they had. A server that no attempt used is divided
//! among the works that were open while it lived, by what they used elsewhere. What is left was
//! there for no work.

use crate::book::{Attempt, WorkBook, WorkId};
use ebbtide_burst::InstanceHistory;
use std::collections::BTreeMap;

/// What the servers of a work cost.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServersCost {
    /// Millionths.
    pub micros: f64,
    /// Servers on which an attempt of the work ran.
    pub servers: usize,
}

/// Divides what all servers cost until `now` among the works. Each server's cost goes to works
/// completely or, if none was open while it lived, not at all.
#[must_use]
pub fn servers_cost<'a>(
    works: &BTreeMap<WorkId, WorkBook>,
    servers: impl IntoIterator<Item = &'a InstanceHistory>,
    now: i64,
) -> BTreeMap<WorkId, ServersCost> {
    let mut by_node: BTreeMap<&str, Vec<(WorkId, &Attempt)>> = BTreeMap::new();
    let mut used_by: BTreeMap<WorkId, f64> = BTreeMap::new();
    for (id, attempt) in works.iter().flat_map(|(id, book)| attempts(*id, book)) {
        by_node
            .entry(&attempt.node)
            .or_default()
            .push((id, attempt));
        *used_by.entry(id).or_default() += attempt.ran(now) as f64 * attempt.share;
    }
    let mut costs: BTreeMap<WorkId, ServersCost> = BTreeMap::new();
    for server in servers {
        let cost = server.paid(i64::MIN, now) as f64;
        let until = server.end.map_or(now, |(end, _)| end);
        let here = by_node.get(server.node.as_str()).into_iter().flatten();
        let mut uses = sums(here.map(|(id, one)| {
            let ran = within(one, server.launch, until, now);
            (*id, ran as f64 * one.share)
        }));
        for id in uses.keys() {
            costs.entry(*id).or_default().servers += 1;
        }
        if uses.is_empty() {
            let open = works.iter().filter(|(_, book)| {
                let over = book.state(now).is_over();
                let end = if over {
                    book.last_end.unwrap_or(now)
                } else {
                    now
                };
                book.submitted < until && server.launch < end
            });
            let open: Vec<WorkId> = open.map(|(id, _)| *id).collect();
            uses = sums(
                open.iter()
                    .map(|id| (*id, used_by.get(id).copied().unwrap_or(0.0))),
            );
            if uses.is_empty() {
                // None of them has used anything yet: all alike.
                uses = open.into_iter().map(|id| (id, 1.0)).collect();
            }
        }
        let whole: f64 = uses.values().sum();
        for (id, used) in uses {
            costs.entry(id).or_default().micros += cost * used / whole;
        }
    }
    costs
}

fn attempts(id: WorkId, book: &WorkBook) -> impl Iterator<Item = (WorkId, &Attempt)> {
    let members = book.members.iter().flatten();
    members.flat_map(move |member| member.attempts.iter().map(move |one| (id, one)))
}

/// How long an attempt ran between two times, milliseconds. A node's name is used again and again,
/// so the server is the one that lived at the time.
fn within(attempt: &Attempt, from: i64, until: i64, now: i64) -> i64 {
    let Some(since) = attempt.running else {
        return 0;
    };
    let end = attempt.end.map_or(now, |(end, _)| end);
    (end.min(until) - since.max(from)).max(0)
}

/// Sums by work, without works that used nothing.
fn sums(uses: impl Iterator<Item = (WorkId, f64)>) -> BTreeMap<WorkId, f64> {
    let mut by_work = BTreeMap::new();
    for (id, used) in uses.filter(|(_, used)| *used > 0.0) {
        *by_work.entry(id).or_default() += used;
    }
    by_work
}

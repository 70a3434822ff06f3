//! What a work took and cost, beside the same members on on-demand servers.

use crate::book::{AttemptEnd, WorkBook, WorkState};
use crate::maps::{BagBook, BagSummary};
use crate::replay::{Replay, ReplayRules, replay};
use crate::servers_cost::ServersCost;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkReport {
    /// What the work is doing.
    pub state: String,
    pub members: usize,
    /// Members that are done.
    pub done: usize,
    /// From the submission to the end of the last member, or until now, milliseconds.
    pub makespan_ms: i64,
    /// Until when it was to be done, milliseconds after the submission.
    pub deadline_ms: Option<i64>,
    /// Whether all of it was done by then; `None` without a deadline, and while it is open.
    pub deadline_met: Option<bool>,
    /// Attempts by how they ended.
    pub attempts: BTreeMap<String, usize>,
    /// Time that attempts ran, milliseconds.
    pub ran_ms: i64,
    /// Work of the members that are done, milliseconds.
    pub useful_ms: i64,
    /// By which part the time that attempts ran exceeds the work.
    pub overhead: f64,
    /// What the parts of servers that attempts had cost, millionths.
    pub cost_micros: u64,
    /// Of that on preemptible servers.
    pub preemptible_micros: u64,
    /// Servers on which attempts ran.
    pub servers: usize,
    /// What whole servers cost for this work, boots and idle times included, millionths.
    pub servers_micros: u64,
    /// Hibernations and backups of a bag by maps; `None` of other works.
    #[serde(default)]
    pub bag: Option<BagSummary>,
    /// The same members on on-demand servers alone.
    pub on_demand: Option<OnDemand>,
}

/// The same members on on-demand servers alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct OnDemand {
    /// From the submission to the end of the last member, milliseconds.
    pub makespan_ms: i64,
    /// What the parts of servers that members had cost, millionths.
    pub cost_micros: u64,
    /// What the whole servers cost, millionths.
    pub servers_micros: u64,
    /// Servers that were started.
    pub servers: usize,
    /// How many times as much as the work's servers cost: whole servers on both sides. `None`
    /// while the work is open, for then what it will cost is not known.
    pub cost_ratio: Option<f64>,
}

/// Reports on a work whose servers cost `servers`. With rules the report compares with on-demand
/// servers.
#[must_use]
pub fn report(
    book: &WorkBook,
    now: i64,
    servers: ServersCost,
    rules: Option<&ReplayRules>,
    unknown: i64,
) -> WorkReport {
    let state = book.state(now);
    let over = state == WorkState::Done;
    let until = if over {
        book.last_end.unwrap_or(now)
    } else {
        now
    };
    let all: Vec<_> = book.members.iter().flatten().collect();
    let mut attempts = BTreeMap::new();
    let (mut ran, mut cost, mut preemptible) = (0, 0.0, 0.0);
    for one in all.iter().flat_map(|member| &member.attempts) {
        *attempts
            .entry(name_of(one.end.map(|(_, how)| how)).to_owned())
            .or_default() += 1;
        ran += one.ran(now);
        cost += one.cost(now);
        if one.preemptible {
            preemptible += one.cost(now);
        }
    }
    let useful: i64 = all.iter().filter_map(|member| member.length()).sum();
    let deadline = book.deadline();
    let on_demand = rules.map(|rules| {
        let replayed = replay(book, rules, unknown);
        let paid = over.then_some(servers.micros);
        on_demand(book, rules, replayed, paid, unknown)
    });
    WorkReport {
        state: state.as_str().to_owned(),
        members: all.len(),
        done: all.iter().filter(|member| member.done).count(),
        makespan_ms: until - book.submitted,
        deadline_ms: deadline.map(|end| end - book.submitted),
        deadline_met: book.deadline_met(now),
        attempts,
        ran_ms: ran,
        useful_ms: useful,
        overhead: if useful > 0 {
            ran as f64 / useful as f64 - 1.0
        } else {
            0.0
        },
        cost_micros: cost.round() as u64,
        preemptible_micros: preemptible.round() as u64,
        servers: servers.servers,
        servers_micros: servers.micros.round() as u64,
        bag: book.bag.as_ref().map(BagBook::summary),
        on_demand,
    }
}

fn on_demand(
    book: &WorkBook,
    rules: &ReplayRules,
    replayed: Replay,
    paid: Option<f64>,
    unknown: i64,
) -> OnDemand {
    let parts = book.work.members().map(|id| {
        let stage = book.work.stage(id);
        let cpus = f64::from(stage.cpus) / f64::from(rules.vcpus);
        let memory = stage.memory_mb as f64 / rules.memory_mb as f64;
        let length = book.member(id).length().unwrap_or(unknown);
        length as f64 / crate::book::HOUR_MS * rules.hourly as f64 * cpus.max(memory).min(1.0)
    });
    let parts: f64 = parts.sum();
    OnDemand {
        makespan_ms: replayed.makespan,
        cost_micros: parts.round() as u64,
        servers_micros: replayed.cost,
        servers: replayed.servers,
        cost_ratio: paid
            .filter(|paid| *paid > 0.0)
            .map(|paid| replayed.cost as f64 / paid),
    }
}

fn name_of(end: Option<AttemptEnd>) -> &'static str {
    match end {
        None => "open",
        Some(AttemptEnd::Done) => "done",
        Some(AttemptEnd::Failed { .. }) => "failed",
        Some(AttemptEnd::PutBack) => "put_back",
        Some(AttemptEnd::Lost) => "lost",
        Some(AttemptEnd::Stopped) => "stopped",
        Some(AttemptEnd::NeverStarted) => "never_started",
    }
}

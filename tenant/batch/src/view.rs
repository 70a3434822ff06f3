//! What the service shows of works: the bodies of its REST answers.

use crate::book::{Attempt, AttemptEnd, WorkBook, WorkId, WorkState};
use crate::maps::{BagBook, BagRun, MapServer};
use ebbtide_model::Money;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A work in a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkSummary {
    /// Its number.
    pub id: WorkId,
    pub name: String,
    /// `active`, `over-budget`, `done`, `failed` or `cancelled`.
    pub state: String,
    pub members: usize,
    /// Members that are done.
    pub done: usize,
    /// Members that run.
    pub running: usize,
    /// When it was handed in, milliseconds since 1970.
    pub submitted_ms: i64,
    /// Until when it is to be done, milliseconds since 1970.
    pub deadline_ms: Option<i64>,
    /// Whether all of it was done by then; `None` without a deadline, and while it is open and its
    /// deadline lies ahead.
    #[serde(default)]
    pub deadline_met: Option<bool>,
    /// What was spent on it so far.
    pub spent: Money,
    /// What may be spent on it.
    pub budget: Option<Money>,
}

/// A work with its members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkDetails {
    /// What a list shows.
    #[serde(flatten)]
    pub summary: WorkSummary,
    /// The directory of the work.
    pub dir: String,
    pub list: Vec<MemberView>,
    /// The servers of a bag by maps; none of other works.
    #[serde(default)]
    pub maps: Vec<MapServer>,
}

/// The plan of a bag by maps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PlanView {
    pub name: String,
    pub tasks: usize,
    /// When all are done if nothing hibernates, seconds after the begin.
    pub makespan_s: u64,
    /// The deadline, seconds after the begin.
    pub deadline_s: u64,
    /// What is paid if nothing hibernates.
    pub price: Money,
    /// What is paid if everything hibernates and nothing comes back.
    pub at_most: Money,
    /// Both maps.
    pub maps: Vec<MapServer>,
}

impl PlanView {
    /// The plan of a bag.
    #[must_use]
    pub fn of(bag: &BagBook) -> Self {
        let (plan, work) = (&bag.work.plan, &bag.work);
        let most = plan.price.quiet().saturating_add(plan.price.backups);
        Self {
            name: work.work.name.clone(),
            tasks: work.bag.tasks().len(),
            makespan_s: plan.makespan(&work.bag),
            deadline_s: work.bag.rules().deadline,
            price: Money::from_micros(plan.price.quiet()),
            at_most: Money::from_micros(most),
            maps: work.maps(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberView {
    /// Its name: stage and place there.
    pub name: String,
    /// `waits`, `runs`, `done` or `failed`.
    pub state: String,
    pub parameters: BTreeMap<String, String>,
    /// Work that is saved, milliseconds.
    pub saved_ms: i64,
    pub attempts: Vec<AttemptView>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptView {
    pub number: u32,
    pub node: String,
    /// The type of the node's server.
    pub server_type: String,
    /// When Slurm started it, milliseconds since 1970.
    pub since_ms: Option<i64>,
    /// When it ended, milliseconds since 1970.
    pub end_ms: Option<i64>,
    /// How: `done`, `failed (7)`, `put back`, `out of bid`, `lost`, `stopped`, `never started`;
    /// empty if it runs.
    pub end: String,
}

/// A node of the pool and its server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerView {
    pub node: String,
    /// The type; `elastic` for the elastic partition.
    pub server_type: String,
    /// The server's id.
    pub server: String,
    /// `coming`, `up`, `leaving`, `hibernated` or `going`.
    pub state: String,
    /// Since when it runs, milliseconds since 1970.
    pub launched_ms: Option<i64>,
    /// Until when it runs, once it has notice.
    pub until_ms: Option<i64>,
    /// Members that run there.
    pub members: Vec<String>,
}

/// The state of the service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServiceStatus {
    /// What is wrong now: codes by place.
    pub faults: BTreeMap<String, String>,
    /// When the service last saw Slurm and the cloud, milliseconds since 1970.
    pub looked_ms: Option<i64>,
    pub servers: Vec<ServerView>,
    /// The elastic partition, if there is one and it was seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elastic: Option<ElasticView>,
    /// What was spent on servers in the budget's window.
    pub spent: Money,
}

/// The elastic partition.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ElasticView {
    /// The part of on-demand nodes that have long jobs, or are about to; `None` without any.
    pub long_load_ratio: Option<f64>,
    /// Servers that it wants to have.
    pub wanted: u32,
    /// Servers that are there or come.
    pub there: usize,
    /// K: how many it may have.
    pub most: u32,
}

impl std::fmt::Display for ElasticView {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "elastic partition: long-load ratio {:.2}, {} of at most {} servers wanted, {} there",
            self.long_load_ratio.unwrap_or(0.0),
            self.wanted,
            self.most,
            self.there
        )
    }
}

impl WorkSummary {
    #[must_use]
    pub fn of(id: WorkId, book: &WorkBook, state: WorkState, now: i64) -> Self {
        let (done, running, rest) = book.counts();
        Self {
            id,
            name: book.work.name.clone(),
            state: state.as_str().to_owned(),
            members: done + running + rest,
            done,
            running,
            submitted_ms: book.submitted,
            deadline_ms: book.deadline(),
            deadline_met: book.deadline_met(now),
            spent: Money::from_micros(book.spent(now)),
            budget: book.budget.map(Money::from_micros),
        }
    }
}

impl WorkDetails {
    /// A work with its members; with the run of a bag by maps that is open.
    #[must_use]
    pub fn of(
        id: WorkId,
        book: &WorkBook,
        state: WorkState,
        now: i64,
        run: Option<&BagRun>,
    ) -> Self {
        let members = book.work.members().map(|member| {
            let one = book.member(member);
            let doing = if one.done {
                "done"
            } else if one.open().next().is_some() {
                "runs"
            } else if book.given_up(member) {
                "failed"
            } else {
                "waits"
            };
            MemberView {
                name: book.work.member_name(member),
                state: doing.to_owned(),
                parameters: book.work.stage(member).members[member.index].clone(),
                saved_ms: one.saved,
                attempts: one.attempts.iter().map(AttemptView::of).collect(),
            }
        });
        Self {
            summary: WorkSummary::of(id, book, state, now),
            dir: book.work.dir.display().to_string(),
            list: members.collect(),
            maps: book.bag.as_ref().map_or_else(Vec::new, |bag| bag.maps(run)),
        }
    }
}

impl AttemptView {
    fn of(attempt: &Attempt) -> Self {
        let end = match attempt.end.map(|(_, how)| how) {
            None => String::new(),
            Some(AttemptEnd::Done) => "done".to_owned(),
            Some(AttemptEnd::PutBack | AttemptEnd::Stopped) if attempt.let_go().is_some() => {
                "out of bid".to_owned()
            }
            Some(AttemptEnd::Failed { exit }) => format!("failed ({exit})"),
            Some(AttemptEnd::PutBack) => "put back".to_owned(),
            Some(AttemptEnd::Lost) => "lost".to_owned(),
            Some(AttemptEnd::Stopped) => "stopped".to_owned(),
            Some(AttemptEnd::NeverStarted) => "never started".to_owned(),
        };
        Self {
            number: attempt.number,
            node: attempt.node.clone(),
            server_type: attempt.server_type.clone(),
            since_ms: attempt.running,
            end_ms: attempt.end.map(|(end, _)| end),
            end,
        }
    }
}

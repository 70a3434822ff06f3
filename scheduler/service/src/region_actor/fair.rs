//! Whose turn it is: requests for servers of several projects, one project after the other.
//!
//! Deficit round robin (Shreedhar, Varghese, SIGCOMM 1995), counted in instances: in each round
//! every project that waits may have as many instances decided as any other. A large request is
//! decided in a batch of its own, so that small ones of other projects wait for one large request
//! at most. All other work (reports, confirmations, deletions, looks) never waits for requests for
//! servers that were there before it, but for a large one that has begun: it is dealt with in a
//! batch before the next large one, and the one after that is the large one's.

use super::Work;
use ebbtide_region::{Command, Input};
use std::collections::{HashMap, VecDeque};
use tokio::sync::mpsc;

/// Instances of all projects in a round: as many as inputs in a batch, so that a project that is
/// alone waits for nothing but its own requests.
const ROUND: usize = 256;
/// A request for more instances than this is decided in a batch of its own.
const LARGE: usize = 32;
/// Work that is taken out of the queue before it is dealt with. Beyond that, callers wait.
const MOST: usize = 4096;

/// What waits.
#[derive(Default)]
pub(super) struct Fair {
    /// What is not a request for servers, in the order of its arrival.
    other: VecDeque<Work>,
    /// Projects with requests; the first has the next turn.
    order: VecDeque<String>,
    projects: HashMap<String, Project>,
    requests: usize,
    /// A large request has let a batch of other work go first.
    has_let_pass: bool,
}

#[derive(Default)]
struct Project {
    waiting: VecDeque<(usize, Work)>,
    /// Instances that it may still have decided.
    credit: usize,
}

/// The project of a request for servers, and its instances.
fn request(work: &Work) -> Option<(&str, usize)> {
    let request = match work {
        Work::Input(Input::Command(Command::CreateServers(create)), _) => &create.request,
        Work::Input(Input::Command(Command::WhatIf(request)), _) => request.as_ref(),
        _ => return None,
    };
    Some((&request.project_id, request.server_ids.len().max(1)))
}

impl Fair {
    pub(super) fn is_empty(&self) -> bool {
        self.other.is_empty() && self.order.is_empty()
    }

    pub(super) fn push(&mut self, work: Work) {
        let Some((project, instances)) = request(&work) else {
            self.other.push_back(work);
            return;
        };
        self.requests += 1;
        if let Some(known) = self.projects.get_mut(project) {
            known.waiting.push_back((instances, work));
            return;
        }
        let name = project.to_owned();
        self.order.push_back(name.clone());
        let mut project = Project::default();
        project.waiting.push_back((instances, work));
        self.projects.insert(name, project);
    }

    /// Takes in what has arrived.
    pub(super) fn fill(&mut self, queue: &mut mpsc::Receiver<Work>) {
        while self.requests + self.other.len() < MOST
            && let Ok(work) = queue.try_recv()
        {
            self.push(work);
        }
    }

    /// The next batch, of at most so many inputs.
    pub(super) fn batch(&mut self, most: usize) -> Vec<Work> {
        let mut batch = self.take_other(most);
        if !batch.is_empty() && !self.has_let_pass && self.next_is_large() {
            self.has_let_pass = true;
            return batch;
        }
        self.has_let_pass = false;
        while batch.len() < most && !self.order.is_empty() {
            let requests = self.round(most - batch.len());
            let some = !requests.is_empty();
            batch.extend(requests);
            if some {
                break;
            }
        }
        batch
    }

    /// What may join a batch that has begun: everything but requests for servers that wait for a
    /// turn behind others.
    pub(super) fn join(&mut self, most: usize) -> Vec<Work> {
        let mut joining = self.take_other(most);
        let one = self.order.len() == 1;
        let small = self.projects.values().all(|project| {
            let front = project.waiting.front();
            front.is_none_or(|(instances, _)| *instances <= LARGE)
        });
        if one && small && joining.len() < most {
            joining.extend(self.round(most - joining.len()));
        }
        joining
    }

    /// A quarter of a batch stays for requests, if there are any.
    fn take_other(&mut self, most: usize) -> Vec<Work> {
        let most = match self.order.is_empty() {
            true => most,
            false => most - most / 4,
        };
        let count = most.min(self.other.len());
        self.other.drain(..count).collect()
    }

    /// How much a project may have decided in each round.
    fn turn(&self) -> usize {
        (ROUND / self.order.len().max(1)).max(1)
    }

    /// Whether the request that the next rounds take first is a large one.
    fn next_is_large(&self) -> bool {
        let fronts = self.order.iter().filter_map(|name| {
            let project = self.projects.get(name)?;
            let (instances, _) = project.waiting.front()?;
            let missing = instances.saturating_sub(project.credit);
            // The first round suffices for whoever misses nothing, too.
            Some((missing.div_ceil(self.turn()).max(1), *instances))
        });
        // Of equal ones the first in the order.
        let first = fronts.min_by_key(|(rounds, _)| *rounds);
        first.is_some_and(|(_, instances)| instances > LARGE)
    }

    /// One round over all projects. A large request is the only one of its round.
    fn round(&mut self, most: usize) -> Vec<Work> {
        let turn = self.turn();
        let mut taken = Vec::new();
        let mut large = false;
        let mut next = None;
        for _ in 0..self.order.len() {
            if large || taken.len() >= most {
                break;
            }
            let Some(name) = self.order.pop_front() else {
                break;
            };
            let Some(project) = self.projects.get_mut(&name) else {
                continue;
            };
            let front = project.waiting.front().map_or(0, |(count, _)| *count);
            project.credit = (project.credit + turn).min(ROUND.max(front));
            let mut deferred = false;
            while taken.len() < most
                && !large
                && let Some((instances, _)) = project.waiting.front()
                && *instances <= project.credit
            {
                let is_large = *instances > LARGE;
                if is_large && !taken.is_empty() {
                    deferred = true;
                    break;
                }
                let Some((instances, work)) = project.waiting.pop_front() else {
                    break;
                };
                project.credit -= instances;
                self.requests -= 1;
                taken.push(work);
                large = is_large;
            }
            if project.waiting.is_empty() {
                self.projects.remove(&name);
            } else if deferred && next.is_none() {
                next = Some(name);
            } else {
                self.order.push_back(name);
            }
        }
        // It was its turn, and small ones went before it: the next batch is its own.
        if let Some(name) = next {
            self.order.push_front(name);
        }
        taken
    }
}

#[cfg(test)]
mod tests;

//! Fair order of requests for servers between projects.
//!
//! Deficit round robin (Shreedhar, Varghese, SIGCOMM 1995), counted in instances: in each round
//! every waiting project may have the same number of instances decided. A large request is decided
//! in a batch of its own, so that small requests of other projects wait for at most one large
//! request. All other work (reports, confirmations, deletions, looks) never waits for requests for
//! servers that arrived earlier, except for a large one that has begun. It is handled in a batch
//! before the next large request, which gets the batch after that.

use super::Work;
use ebbtide_region::InputKind;
use std::collections::{HashMap, VecDeque};
use tokio::sync::mpsc;

/// Instances of all projects in a round: the number of inputs in a batch, so that a single project
/// waits for its own requests only.
const ROUND: usize = 256;
/// A request for more instances than this is decided in a batch of its own.
const LARGE: usize = 32;
/// Work items that are taken out of the channel in advance. Beyond that, callers wait.
const MOST: usize = 4096;

/// The waiting work.
#[derive(Default)]
pub(super) struct FairQueue {
    /// Work other than requests for servers, in the order of arrival.
    other: VecDeque<Work>,
    /// Projects with requests; the first has the next turn.
    order: VecDeque<String>,
    projects: HashMap<String, Project>,
    requests: usize,
    /// True if a batch of other work has gone before the next large request.
    has_let_pass: bool,
}

#[derive(Default)]
struct Project {
    waiting: VecDeque<(usize, Work)>,
    /// Instances that the project may still have decided.
    credit: usize,
}

/// The project of a request for servers or of a question about one, and its instances.
fn request(work: &Work) -> Option<(&str, usize)> {
    match work {
        Work::Input(input) => match input.kind() {
            InputKind::Placement(create) => {
                let request = &create.request;
                Some((&request.project_id, request.server_ids.len().max(1)))
            }
            _ => None,
        },
        Work::Question(project, instances, _) => Some((project, *instances)),
        Work::Look(_) => None,
    }
}

impl FairQueue {
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

    /// Takes the work that has arrived.
    pub(super) fn fill(&mut self, queue: &mut mpsc::Receiver<Work>) {
        while self.requests + self.other.len() < MOST
            && let Ok(work) = queue.try_recv()
        {
            self.push(work);
        }
    }

    /// The next batch, of at most `most` inputs.
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

    /// Work that may join a batch that has begun: everything except requests that have to wait for
    /// those of other projects.
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

    /// Takes other work. A quarter of a batch is reserved for requests, if there are any.
    fn take_other(&mut self, most: usize) -> Vec<Work> {
        let most = match self.order.is_empty() {
            true => most,
            false => most - most / 4,
        };
        let count = most.min(self.other.len());
        self.other.drain(..count).collect()
    }

    /// Instances of each project in a round.
    fn turn(&self) -> usize {
        (ROUND / self.order.len().max(1)).max(1)
    }

    /// True if the request that the next rounds take first is a large one.
    fn next_is_large(&self) -> bool {
        let fronts = self.order.iter().filter_map(|name| {
            let project = self.projects.get(name)?;
            let (instances, _) = project.waiting.front()?;
            let missing = instances.saturating_sub(project.credit);
            // A project whose credit suffices already also needs one round.
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
        // It had its turn, but small requests of others went before it: it is first in the next
        // round.
        if let Some(name) = next {
            self.order.push_front(name);
        }
        taken
    }
}

#[cfg(test)]
mod tests;

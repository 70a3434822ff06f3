//! Servers that wait to be resumed, and those that were resumed.

use super::{ComebackConfig, ReservedCapacity, reserved_for};
use ebbtide_model::index::{Index, same};
use ebbtide_model::{Resources, ServerId, Timestamp};
use std::collections::{BTreeMap, HashMap};

/// What the queue knows of a server that was evacuated and kept at least once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ResumeEntry {
    /// Where it comes back: the name of its host, or what servers of any host have in common.
    pub place: String,
    pub project: String,
    /// Whether it waits.
    pub state: ResumeState,
    /// When it began to wait.
    pub since: Timestamp,
    /// It is not resumed before this time.
    pub not_before: Timestamp,
    /// When it was last resumed.
    pub resumed_at: Option<Timestamp>,
}

/// Whether a server waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResumeState {
    Waiting,
    /// It is being resumed.
    Returning,
    /// Any other state.
    Other,
}

/// Indexes over the entries.
#[derive(Debug, Default)]
pub struct ResumeQueue {
    entries: HashMap<ServerId, ResumeEntry>,
    /// Servers that wait, by place.
    waiting: Index<String, ServerId>,
    /// Servers being resumed, by place.
    returning: Index<String, ServerId>,
    /// When servers of a project were resumed.
    resumed: Index<String, (Timestamp, ServerId)>,
    /// Until when no other host is looked for, because none was suitable. Only in memory: after a
    /// restart the scheduler looks once more than necessary.
    resting: BTreeMap<ServerId, Timestamp>,
}

impl ResumeQueue {
    /// Updates the entry of a server; `None`: it has none.
    pub fn put(&mut self, id: ServerId, entry: Option<ResumeEntry>) {
        self.remove(id);
        let Some(entry) = entry else {
            return;
        };
        match entry.state {
            ResumeState::Waiting => self.waiting.insert(entry.place.as_str(), id),
            ResumeState::Returning => self.returning.insert(entry.place.as_str(), id),
            ResumeState::Other => {}
        }
        if let Some(at) = entry.resumed_at {
            self.resumed.insert(entry.project.as_str(), (at, id));
        }
        self.entries.insert(id, entry);
    }

    fn remove(&mut self, id: ServerId) {
        self.resting.remove(&id);
        let Some(entry) = self.entries.remove(&id) else {
            return;
        };
        match entry.state {
            ResumeState::Waiting => self.waiting.remove(&entry.place, &id),
            ResumeState::Returning => self.returning.remove(&entry.place, &id),
            ResumeState::Other => {}
        }
        if let Some(at) = entry.resumed_at {
            self.resumed.remove(&entry.project, &(at, id));
        }
    }

    /// Notes that no other host is suitable for a server until this time.
    pub fn rest_elsewhere(&mut self, id: ServerId, until: Timestamp) {
        self.resting.insert(id, until);
    }

    /// True while no other host is looked for.
    #[must_use]
    pub fn rests_elsewhere(&self, id: ServerId, now: Timestamp) -> bool {
        self.resting.get(&id).is_some_and(|until| *until > now)
    }

    /// Places where servers wait.
    #[must_use]
    pub fn places(&self) -> Vec<String> {
        self.waiting.keys().cloned().collect()
    }

    /// Servers that wait at a place.
    pub fn waiting_at(&self, place: &str) -> impl Iterator<Item = ServerId> {
        self.waiting.get(place).copied()
    }

    /// Number of servers that are being resumed at a place.
    #[must_use]
    pub fn returning_at(&self, place: &str) -> usize {
        self.returning.get(place).count()
    }

    /// Number of a project's servers that were resumed after this time.
    #[must_use]
    pub fn resumed_since(&self, project: &str, since: Timestamp) -> usize {
        let newest_first = self.resumed.get(project).rev();
        newest_first.take_while(|(at, _)| *at > since).count()
    }

    /// Servers that are due at a place, in fair order. `may`: whether a server may be resumed for
    /// other reasons than time and capacity.
    pub fn in_turn(
        &self,
        place: &str,
        now: Timestamp,
        config: &ComebackConfig,
        may: impl Fn(ServerId) -> bool,
    ) -> Vec<ServerId> {
        let recent = now.minus(config.window_seconds);
        let mut of_project: BTreeMap<&str, usize> = BTreeMap::new();
        let mut due: Vec<(usize, Timestamp, ServerId)> = Vec::new();
        for id in self.waiting_at(place) {
            let entry = self.entries.get(&id).filter(|e| e.not_before <= now);
            let Some(entry) = entry.filter(|_| may(id)) else {
                continue;
            };
            let project = entry.project.as_str();
            let had = *of_project
                .entry(project)
                .or_insert_with(|| self.resumed_since(project, recent));
            due.push((had, entry.since, id));
        }
        due.sort_unstable();
        due.into_iter().map(|(_, _, id)| id).collect()
    }

    /// The first of these servers that fits beside what the first one that does not fit reserves.
    /// `in_turn`: servers in fair order with what they need.
    pub fn first_that_fits(
        &self,
        in_turn: impl Iterator<Item = (ServerId, Resources)>,
        now: Timestamp,
        config: &ComebackConfig,
        fits: impl Fn(ServerId, &Resources, &ReservedCapacity) -> bool,
    ) -> Option<ServerId> {
        let mut reserved: Option<ReservedCapacity> = None;
        for (id, needs) in in_turn {
            if fits(id, &needs, reserved.as_ref().unwrap_or(&BTreeMap::new())) {
                return Some(id);
            }
            reserved.get_or_insert_with(|| self.reserved_by(id, &needs, now, config));
        }
        None
    }

    /// Capacity that a server, the first of its place, reserves for itself now.
    #[must_use]
    pub fn reserved_by(
        &self,
        id: ServerId,
        needs: &Resources,
        now: Timestamp,
        config: &ComebackConfig,
    ) -> ReservedCapacity {
        let entry = self.entries.get(&id);
        match entry.is_some_and(|entry| config.holds(entry.since, now)) {
            true => reserved_for(needs),
            false => ReservedCapacity::new(),
        }
    }

    /// Checks that the indexes follow from the entries of the servers.
    ///
    /// # Errors
    /// What differs, in words.
    pub fn audit(
        &self,
        entries: impl Iterator<Item = (ServerId, ResumeEntry)>,
    ) -> Result<(), String> {
        let entries: HashMap<ServerId, ResumeEntry> = entries.collect();
        same("comebacks", &self.entries, &entries)?;
        let with = |state: ResumeState| {
            let these = entries
                .iter()
                .filter(move |(_, entry)| entry.state == state);
            these
                .map(|(id, entry)| (entry.place.clone(), *id))
                .collect()
        };
        same(
            "servers to be resumed",
            &self.waiting,
            &with(ResumeState::Waiting),
        )?;
        same(
            "servers being resumed",
            &self.returning,
            &with(ResumeState::Returning),
        )?;
        let resumed = entries.iter();
        let resumed = resumed
            .filter_map(|(id, entry)| Some((entry.project.clone(), (entry.resumed_at?, *id))));
        same("resumed servers", &self.resumed, &resumed.collect())
    }
}

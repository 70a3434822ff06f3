//! The evacuations under way, those that a budget still counts, and those that ended recently.

use crate::budgets;
use ebbtide_model::index::{Index, same};
use ebbtide_model::{BudgetScope, Evacuation, EvacuationId, MessageId, ServerId, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// Evacuations, and the notices that the broker has not confirmed yet.
#[derive(Debug, Default)]
pub(crate) struct EvacuationBook {
    records: HashMap<EvacuationId, Evacuation>,
    by_victim: Index<ServerId, EvacuationId>,
    /// By the budget scopes that an evacuation could count against, whether or not such a budget
    /// exists.
    by_scope: Index<BudgetScope, EvacuationId>,
    /// Evacuations under way.
    active: BTreeSet<EvacuationId>,
    /// Evacuations under way, by the time at which the region gives up.
    by_deadline: BTreeSet<(Timestamp, EvacuationId)>,
    /// Evacuations under way, by host.
    by_host: Index<String, EvacuationId>,
    /// Notices that the broker has not confirmed yet. Only of evacuations under way.
    unsent: HashMap<EvacuationId, MessageId>,
    /// The same by message.
    by_notice: HashMap<MessageId, EvacuationId>,
}

impl EvacuationBook {
    /// Puts an evacuation into the book, in place of its former state.
    pub(crate) fn put(&mut self, evacuation: Evacuation) {
        let id = evacuation.id;
        let old = self.records.get(&id);
        let same_victim = old.is_some_and(|old| {
            old.victim_id == evacuation.victim_id
                && old.victim_project_id == evacuation.victim_project_id
                && old.victim_group_id == evacuation.victim_group_id
        });
        if let Some(old) = old {
            if !old.state.is_final() {
                self.active.remove(&id);
                self.by_deadline.remove(&(old.give_up_at, id));
                self.by_host.remove(&old.host, &id);
            }
            if !same_victim {
                self.by_victim.remove(&old.victim_id, &id);
                for scope in budgets::scopes(old) {
                    self.by_scope.remove(&scope, &id);
                }
            }
        }
        if evacuation.state.is_final() {
            self.take_unsent(&id);
        } else {
            self.active.insert(id);
            self.by_deadline.insert((evacuation.give_up_at, id));
            self.by_host.insert(evacuation.host.as_str(), id);
        }
        // The victim of an evacuation does not change, so this happens once for each.
        if !same_victim {
            self.by_victim.insert(&evacuation.victim_id, id);
            for scope in budgets::scopes(&evacuation) {
                self.by_scope.insert(&scope, id);
            }
        }
        self.records.insert(id, evacuation);
    }

    /// Removes an evacuation.
    pub(crate) fn forget(&mut self, id: EvacuationId) {
        self.take_unsent(&id);
        let Some(old) = self.records.remove(&id) else {
            return;
        };
        self.active.remove(&id);
        self.by_deadline.remove(&(old.give_up_at, id));
        self.by_host.remove(&old.host, &id);
        self.by_victim.remove(&old.victim_id, &id);
        for scope in budgets::scopes(&old) {
            self.by_scope.remove(&scope, &id);
        }
    }

    pub(crate) fn get(&self, id: &EvacuationId) -> Option<&Evacuation> {
        self.records.get(id)
    }

    /// True if the evacuation is known.
    pub(crate) fn contains_key(&self, id: &EvacuationId) -> bool {
        self.records.contains_key(id)
    }

    /// All evacuations, in no order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Evacuation> {
        self.records.values()
    }

    /// The number of evacuations in the book.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.records.len()
    }

    /// Evacuations under way, by id.
    pub(crate) fn active(&self) -> impl Iterator<Item = EvacuationId> {
        self.active.iter().copied()
    }

    /// The number of evacuations under way.
    pub(crate) fn active_count(&self) -> usize {
        self.active.len()
    }

    /// True if the evacuation is under way.
    pub(crate) fn is_active(&self, id: &EvacuationId) -> bool {
        self.active.contains(id)
    }

    /// Evacuations under way whose time is over, by id.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<EvacuationId> {
        let due = self.by_deadline.iter().take_while(|(at, _)| *at <= now);
        let mut due: Vec<EvacuationId> = due.map(|(_, id)| *id).collect();
        due.sort_unstable();
        due
    }

    /// Evacuations under way on a host, by id.
    pub(crate) fn leaving(&self, host: &str) -> impl Iterator<Item = &Evacuation> {
        let ids = self.by_host.get(host);
        ids.filter_map(|id| self.records.get(id))
    }

    /// True if an evacuation is under way on a host.
    pub(crate) fn is_leaving(&self, host: &str) -> bool {
        self.by_host.contains(host)
    }

    /// All evacuations of a victim, by id.
    pub(crate) fn of_victim(&self, victim: ServerId) -> impl Iterator<Item = &Evacuation> {
        let ids = self.by_victim.get(&victim);
        ids.filter_map(|id| self.records.get(id))
    }

    /// All evacuations that could count against a budget, by id.
    pub(crate) fn of_scope(&self, scope: &BudgetScope) -> impl Iterator<Item = &Evacuation> {
        let ids = self.by_scope.get(scope);
        ids.filter_map(|id| self.records.get(id))
    }

    /// Notes that the broker has not confirmed a notice yet.
    pub(crate) fn note_unsent(&mut self, id: EvacuationId, notice: MessageId) {
        if let Some(former) = self.unsent.insert(id, notice) {
            self.by_notice.remove(&former);
        }
        self.by_notice.insert(notice, id);
    }

    /// The notice of an evacuation that the broker has not confirmed yet.
    pub(crate) fn unsent(&self, id: &EvacuationId) -> Option<MessageId> {
        self.unsent.get(id).copied()
    }

    /// Removes the unconfirmed notice of an evacuation.
    pub(crate) fn take_unsent(&mut self, id: &EvacuationId) -> Option<MessageId> {
        let notice = self.unsent.remove(id)?;
        self.by_notice.remove(&notice);
        Some(notice)
    }

    /// Notes that the broker has confirmed a message, or that it was withdrawn, if it is one of the
    /// unconfirmed notices.
    pub(crate) fn forget_notice(&mut self, notice: MessageId) {
        if let Some(id) = self.by_notice.remove(&notice) {
            self.unsent.remove(&id);
        }
    }

    /// Checks that the indexes follow from the records.
    ///
    /// # Errors
    /// The first contradiction, as text.
    pub(crate) fn audit(&self) -> Result<(), String> {
        let all = || self.records.values();
        let under_way = || all().filter(|e| !e.state.is_final());
        same(
            "victims",
            &self.by_victim,
            &all().map(|e| (e.victim_id, e.id)).collect(),
        )?;
        let scoped = all().flat_map(|e| budgets::scopes(e).map(|scope| (scope, e.id)));
        same("budget scopes", &self.by_scope, &scoped.collect())?;
        let active = under_way().map(|e| e.id).collect();
        same("evacuations under way", &self.active, &active)?;
        let deadlines = under_way().map(|e| (e.give_up_at, e.id)).collect();
        same("deadlines", &self.by_deadline, &deadlines)?;
        let hosts = under_way().map(|e| (e.host.clone(), e.id)).collect();
        same("hosts that servers leave", &self.by_host, &hosts)?;
        let notices = self.unsent.iter().map(|(id, notice)| (*notice, *id));
        same("notices", &self.by_notice, &notices.collect())?;
        match self.unsent.keys().find(|id| !self.is_active(id)) {
            None => Ok(()),
            Some(id) => Err(format!("the notice of {id}, which is over, is remembered")),
        }
    }
}

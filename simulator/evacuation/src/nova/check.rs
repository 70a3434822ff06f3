//! The promises of OpenStack mode, held against every write and in the end.

use super::world::NovaWorld;
use crate::violation::Invariant;
use ebbtide_model::ServerId;
use ebbtide_preemption::{Preemption, PreemptionState, VictimState, WithdrawalReason};

/// Longer than all limits of a record one after the other.
const SECONDS: u32 = 400;

impl NovaWorld {
    /// What a write of a row must not do.
    pub(super) fn check_row(&mut self, before: &Preemption, after: &Preemption) {
        self.event_log.fold(after.state as u64);
        let back = before.state.is_final() && before.state != after.state;
        if back || (before.answered && !after.answered) {
            self.fail(
                Invariant::ExactlyOnce,
                format!(
                    "a preemption that was {} is {}",
                    before.state.as_str(),
                    after.state.as_str()
                ),
            );
        }
        if after.state.is_final() && after.victims.iter().any(|v| v.state.is_open()) {
            let what = "a preemption is over, and an agent owes an answer".to_owned();
            self.fail(Invariant::EverythingEnds, what);
        }
        // Without a newcomer nothing was promised.
        let yes = before.answered
            && before.state == PreemptionState::Evacuating
            && !before.newcomers.is_empty();
        let deleted = after.withdrawal == Some(WithdrawalReason::NewcomersGone);
        if yes && !deleted && after.state == PreemptionState::Withdrawing {
            let what =
                "a preemption is called off after its room was promised to the caller".to_owned();
            self.fail(Invariant::NoRoomTwice, what);
        }
        let over = matches!(
            after.state,
            PreemptionState::Withdrawing | PreemptionState::Withdrawn | PreemptionState::Refused
        );
        if over && after.reason.as_ref().is_none_or(String::is_empty) {
            let what = format!("a preemption is {} without a reason", after.state.as_str());
            self.fail(Invariant::Explained, what);
        }
        for (was, is) in before.victims.iter().zip(&after.victims) {
            let (from, to) = (was.state.progress(), is.state.progress());
            if was.evacuation == is.evacuation && !from.may_become(to) {
                let what = format!("a victim goes from {from:?} to {to:?}");
                self.fail(Invariant::ExactlyOnce, what);
            }
            let gone = |state: &VictimState| matches!(state, VictimState::Evacuated { .. });
            if gone(&was.state) && !gone(&is.state) {
                self.fail(
                    Invariant::ExactlyOnce,
                    "a victim that was gone is there again".to_owned(),
                );
            }
            if gone(&is.state)
                && self
                    .base
                    .agents
                    .iter()
                    .any(|a| a.hypervisor.runs(is.server))
            {
                self.fail(
                    Invariant::NoRoomTwice,
                    "a victim is written down as gone, and runs".to_owned(),
                );
            }
        }
    }

    /// No more faults, then time until everything is over.
    pub(crate) fn finish(&mut self) {
        self.mend();
        self.flow();
        for second in 0..SECONDS {
            self.run(1);
            if self.broken.is_some() {
                return;
            }
            if second % 5 == 4 && self.find_unfinished_work().is_none() {
                return;
            }
        }
        if let Some(what) = self.find_unfinished_work() {
            self.fail(Invariant::EverythingEnds, what);
        }
    }

    fn find_unfinished_work(&self) -> Option<String> {
        if let Some(row) = self.ledger.rows.values().next() {
            let newcomer = row
                .record
                .newcomers
                .first()
                .map(|n| self.event_log.of(n.instance));
            return Some(format!(
                "the preemption for {} stays {} for ever",
                newcomer.unwrap_or_default(),
                row.record.state.as_str()
            ));
        }
        if let Some(overdue) = self.overdue_lifetime() {
            return Some(overdue);
        }
        if let Some(staying) = self.staying_on_reclaimed_host() {
            return Some(staying);
        }
        if let Some(request) = self.requests.iter().find(|r| r.waits) {
            return Some(format!(
                "no answer comes for {}",
                self.event_log.of(request.instance)
            ));
        }
        if let Some(agent) = self.agents.iter().find(|a| !a.is_quiet()) {
            return Some(format!("the agent of {} does not come to rest", agent.name));
        }
        for (id, instance) in &self.instances {
            let held = self.placement.consumers.get(id);
            if held.map(|h| (h.host, h.vcpus)) != Some((instance.host, instance.vcpus)) {
                return Some(format!(
                    "{} runs, and Placement has {held:?}",
                    self.event_log.of(*id)
                ));
            }
            if !self.agents[instance.host].hypervisor.runs(ServerId(*id)) {
                return Some(format!("{} does not run", self.event_log.of(*id)));
            }
        }
        for id in self.placement.consumers.keys() {
            let lives = self.instances.contains_key(id);
            // A caller that went away between claim and answer leaves what Nova itself would heal.
            let asked = self.of.get(id).is_some_and(|n| !self.requests[*n].started);
            if !lives && !asked {
                return Some(format!("{} holds room and is gone", self.event_log.of(*id)));
            }
        }
        let placed = self
            .requests
            .iter()
            .find(|r| r.answer.is_some_and(|place| place.is_some()) && !r.started && !r.deleted);
        placed.map(|r| {
            format!(
                "{} has a place and never starts",
                self.event_log.of(r.instance)
            )
        })
    }
}

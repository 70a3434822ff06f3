//! What the scheduler's service does around the region: leads by a lease, commits, sends what is
//! durable, reads reports.

use super::database::Commit;
use super::world::RegionWorld;
use crate::violation::Invariant;
use crate::{Mutation, fault::FaultKind};
use ebbtide_model::message::{Body, Evacuated, EvacuationEnd, Message};
use ebbtide_model::record::{Change, OutboxMessage, Snapshot};
use ebbtide_model::{EvacuationCause, Seconds};
use ebbtide_region::{
    Effects, InputKind, OutboxConfirmation, Region, RegionError, RegionInput, Report,
};

/// How long a lease lasts that is not renewed.
const LEASE: Seconds = Seconds(15);
/// Every so many commits everything is compared with everything.
const THOROUGH: u64 = 64;
/// So is what was restored, as often.
const THOROUGH_RESTORED: u64 = 8;

/// The changes were not written, or the result is unknown. The scheduler answers nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NotWritten;

/// The replies to a batch of inputs of one type.
pub(super) type Replies<I> = Vec<Result<<I as RegionInput>::Reply, RegionError>>;

/// True if a batch is one request for servers.
pub(super) fn is_single_request<I: RegionInput>(inputs: &[I]) -> bool {
    matches!(inputs, [input] if matches!(input.kind(), InputKind::Placement(_)))
}

impl RegionWorld {
    /// Who leads, as far as anybody who asks can tell.
    pub(super) fn leader(&self) -> Option<usize> {
        (0..self.schedulers.len()).find(|n| self.schedulers[*n].leads())
    }

    /// Schedulers renew their lease, or try to get it.
    pub(super) fn lead(&mut self) {
        for who in 0..self.schedulers.len() {
            let scheduler = &self.schedulers[who];
            if !scheduler.up || scheduler.paused {
                continue;
            }
            let clock = scheduler.clock(self.now);
            match scheduler.epoch {
                Some(epoch) => {
                    if !self.database.renew_lease(who, epoch, clock, LEASE)
                        && !self.breaks(Mutation::StaleLeaseAccepted)
                    {
                        if self.shared {
                            self.step_down(who);
                            continue;
                        }
                        self.schedulers[who].forget();
                        let name = self.schedulers[who].name.clone();
                        self.log(|_| {
                            format!("{name} finds that its lease was taken over, and stands by")
                        });
                    }
                }
                None => {
                    if let Some(epoch) = self.database.take_lease(who, clock, LEASE) {
                        self.schedulers[who].epoch = Some(epoch);
                        let name = self.schedulers[who].name.clone();
                        self.log(|_| format!("{name} leads (epoch {epoch})"));
                        let ready = self.schedulers[who].region.is_some();
                        if !(ready && self.breaks(Mutation::DutyWithoutReading)) {
                            self.restore(who);
                        }
                    }
                }
            }
        }
    }

    /// The region as the database has it.
    pub(super) fn restore(&mut self, who: usize) {
        let snapshot = self.database.snapshot();
        self.restore_from(who, snapshot);
    }

    fn restore_from(&mut self, who: usize, snapshot: Snapshot) {
        let clock = self.schedulers[who].clock(self.now);
        let rows = snapshot.outbox.clone();
        let mut snapshot = snapshot;
        if self.breaks(Mutation::PricesForgotten) {
            snapshot.prices.clear();
        }
        let mut config = self.config.clone();
        if self.breaks(Mutation::NoStayAway) {
            config.comeback.first_seconds = Seconds(1);
            config.comeback.max_seconds = Seconds(1);
        }
        match Region::restore(config, self.engine.clone(), snapshot, clock) {
            Ok(region) => {
                let scheduler = &mut self.schedulers[who];
                let on_duty = scheduler.epoch.is_some();
                scheduler.replace_outbox(if on_duty { &rows } else { &[] });
                scheduler.seen = self.database.log.len();
                scheduler.confirmed.clear();
                scheduler.region = Some(region);
                self.restored += 1;
                if self.restored.is_multiple_of(THOROUGH_RESTORED) {
                    self.check_region(who);
                }
            }
            Err(error) => self.fail(
                Invariant::MemoryIsDurable,
                format!("what was written cannot be read: {error}"),
            ),
        }
    }

    /// A batch of inputs: dealt with, written in one transaction, followed. Every promise is
    /// checked.
    pub(super) fn input<I: RegionInput>(
        &mut self,
        who: usize,
        inputs: Vec<I>,
    ) -> Result<Replies<I>, NotWritten> {
        if self.shared {
            return self.turn(who, inputs, false);
        }
        let Some(epoch) = self.schedulers[who].epoch else {
            return Err(NotWritten);
        };
        if self.schedulers[who].region.is_none() {
            self.restore(who);
        }
        let clock = self.schedulers[who].clock(self.now);
        let Some(region) = self.schedulers[who].region.as_mut() else {
            return Err(NotWritten);
        };
        self.single_request = is_single_request(&inputs);
        let settles = inputs
            .iter()
            .any(|input| matches!(input.kind(), InputKind::Report(_)));
        let mut changes = Vec::new();
        let mut replies = Vec::with_capacity(inputs.len());
        for input in inputs {
            match region.handle(clock, &mut self.ids, input) {
                Ok((reply, Effects { changes: more, .. })) => {
                    changes.extend(more);
                    replies.push(Ok(reply));
                }
                Err(error) => replies.push(Err(error)),
            }
        }
        if changes.is_empty() && settles && !self.database.is_led_by(who, epoch) {
            self.schedulers[who].forget();
            return Err(NotWritten);
        }
        if changes.is_empty() {
            return Ok(replies);
        }
        self.break_rules(&mut changes);
        self.commit(who, Some(epoch), &changes)?;
        Ok(replies)
    }

    /// Writes a transaction. `epoch`: only if that is the present lease of this scheduler.
    pub(super) fn commit(
        &mut self,
        who: usize,
        epoch: Option<u64>,
        changes: &[Change],
    ) -> Result<(), NotWritten> {
        self.written_at = self.schedulers[who].clock(self.now);
        if self.breaks(Mutation::NoticeBeforeCommit) {
            for change in changes {
                if let Change::Enqueue(message) = change {
                    self.publish(message);
                }
            }
        }
        let before = self
            .breaks(Mutation::LostCommitTakenAsRefusal)
            .then(|| self.database.snapshot());
        let verdict = self.database.judge(epoch.map(|epoch| (who, epoch)));
        let on_duty = self.schedulers[who].epoch.is_some();
        let name = self.schedulers[who].name.clone();
        match verdict {
            Commit::Written => {
                self.check_before(changes);
                self.database.apply(changes);
                if on_duty {
                    self.schedulers[who].follow(changes);
                }
                self.schedulers[who].seen = self.database.log.len();
                self.commits += 1;
                self.log_changes(changes);
                self.check_after(changes);
                if self.commits.is_multiple_of(THOROUGH) {
                    self.check_region(who);
                }
                Ok(())
            }
            Commit::Failed => {
                self.faults.add(FaultKind::CommitFails);
                self.log(|_| format!("FAULT: a commit of {name} fails"));
                if self.breaks(Mutation::MemoryAheadOfDatabase) {
                    return Ok(());
                }
                self.schedulers[who].region = None;
                self.schedulers[who].rests = true;
                Err(NotWritten)
            }
            Commit::Unknown => {
                self.fault(FaultKind::CommitUnknown, || {
                    format!("a commit of {name} is written, and the answer is lost")
                });
                self.check_before(changes);
                self.database.apply(changes);
                self.log_changes(changes);
                self.check_after(changes);
                self.schedulers[who].region = None;
                self.schedulers[who].rests = true;
                if let Some(before) = before {
                    self.restore_from(who, before);
                }
                Err(NotWritten)
            }
            Commit::Fenced => {
                self.log(|_| format!("{name} may not write any more: its lease was taken over"));
                self.schedulers[who].forget();
                Err(NotWritten)
            }
        }
    }

    /// What the broken rules do to a transaction.
    pub(super) fn break_rules(&self, changes: &mut Vec<Change>) {
        let unwanted = |message: &OutboxMessage| {
            let body = Message::from_bytes(&message.body).map(|m| m.body);
            match body {
                Ok(Body::Spare(_)) => self.breaks(Mutation::SpareForgotten),
                Ok(Body::Delete(delete)) => {
                    self.breaks(Mutation::OrphanedStartForgotten)
                        && self.is_given_up(delete.server_id)
                }
                _ => false,
            }
        };
        if self.breaks(Mutation::SpareForgotten) || self.breaks(Mutation::OrphanedStartForgotten) {
            changes.retain(|change| !matches!(change, Change::Enqueue(m) if unwanted(m)));
        }
        if self.breaks(Mutation::OutbidWithoutNotice) {
            self.take_time_from_outbid(changes);
        }
    }

    /// Broken on purpose: a victim that is out of bid gets a grace period of 0 seconds.
    fn take_time_from_outbid(&self, changes: &mut [Change]) {
        let outbid: Vec<_> = changes
            .iter()
            .filter_map(|change| match change {
                Change::PutEvacuation(e) if e.cause == EvacuationCause::OutOfBid => Some(e.id),
                _ => None,
            })
            .collect();
        for change in changes {
            let Change::Enqueue(row) = change else {
                continue;
            };
            let Ok(mut message) = Message::from_bytes(&row.body) else {
                continue;
            };
            if let Body::Notice(notice) = &mut message.body
                && outbid.contains(&notice.evacuation_id)
            {
                notice.grace_seconds = Seconds(0);
                if let Ok(body) = message.to_bytes() {
                    row.body = body;
                }
            }
        }
    }

    fn is_given_up(&self, id: ebbtide_model::ServerId) -> bool {
        self.database
            .servers
            .get(&id)
            .is_some_and(|s| s.status != ebbtide_model::ServerStatus::Deleting)
    }

    // ---- the outbox ----

    /// The broker gets a message.
    fn publish(&mut self, message: &OutboxMessage) {
        let host = self.agents.iter().position(|a| a.name == message.host);
        let parsed = Message::from_bytes(&message.body);
        let (Some(host), Ok(parsed)) = (host, parsed) else {
            self.fail(
                Invariant::EverythingEnds,
                "a message of the outbox cannot be read".to_owned(),
            );
            return;
        };
        if let Body::Notice(notice) = &parsed.body
            && self.database.evacuation(notice.evacuation_id).is_none()
        {
            self.fail(
                Invariant::NoEndForNothing,
                "a notice is sent, and its evacuation is not durable".to_owned(),
            );
        }
        let name = self.agents[host].name.clone();
        self.log(|s| format!("to {name}: {}", super::event_text::body(s, &parsed.body)));
        self.broker.agents[host].push_back(parsed);
    }

    /// Sends the next message for a host. `lost`: the broker has it, and its confirmation does not
    /// arrive.
    pub(super) fn send_one(&mut self, who: usize, host: usize, lost: bool) -> bool {
        if !self.schedulers[who].works() || !self.broker.up {
            return false;
        }
        let scheduler = &mut self.schedulers[who];
        let Some(queue) = scheduler.outbox.get_mut(&self.base.agents[host].name) else {
            return false;
        };
        let message = if lost {
            queue.front().cloned()
        } else {
            queue.pop_front()
        };
        let Some(message) = message else {
            return false;
        };
        if !lost {
            scheduler
                .confirmed
                .push_back((message.id, message.evacuation_id));
        }
        self.publish(&message);
        true
    }

    /// The region hears what the broker has confirmed. What cannot be written is sent once more.
    pub(super) fn pass_confirmations(&mut self, who: usize) -> bool {
        let scheduler = &mut self.schedulers[who];
        if !scheduler.leads() || scheduler.confirmed.is_empty() {
            return false;
        }
        let confirmed = std::mem::take(&mut scheduler.confirmed);
        let inputs = confirmed
            .into_iter()
            .map(|(id, evacuation_id)| OutboxConfirmation { id, evacuation_id });
        let _ = self.input(who, inputs.collect());
        true
    }

    // ---- reports ----

    /// Reads up to so many reports, one commit for all. If it could not be written they come again.
    pub(super) fn read(&mut self, who: usize, at_most: usize) -> bool {
        if !self.broker.up || !self.schedulers[who].leads() {
            return false;
        }
        let n = at_most.min(self.broker.reports.len());
        if n == 0 {
            return false;
        }
        let reports: Vec<Message> = self.broker.reports.drain(..n).collect();
        for report in &reports {
            self.event_log.fold_id(report.id.0);
            self.log_report(report);
        }
        let early = self.breaks(Mutation::RoomBeforeGone);
        let inputs = reports.iter().cloned().map(|mut message| {
            if early && let Body::Draining(m) = &message.body {
                message.body = Body::Evacuated(Evacuated {
                    evacuation_id: m.evacuation_id,
                    host: m.host.clone(),
                    server_id: m.server_id,
                    how: EvacuationEnd::Terminated,
                    at: m.notified_at,
                    unbilled_seconds: None,
                    storage: None,
                });
            }
            Report(message)
        });
        let inputs = inputs.collect();
        if self.input::<Report>(who, inputs).is_err() {
            for report in reports.into_iter().rev() {
                self.broker.reports.push_front(report);
            }
        }
        true
    }
}

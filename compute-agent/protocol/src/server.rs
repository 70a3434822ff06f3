//! Starts servers, and deletes them for their owners.
//!
//! The order of commands is the order in which the scheduler sent them (the messages' `time`), not
//! that of their arrival. The agent does not follow a start that arrives after a later deletion or
//! evacuation. It does not follow a repeated start that failed before, either: the scheduler may
//! have given the capacity to another server. It always follows a deletion.

use super::clock;
use super::core::Transition;
use super::dispatch::{JobKind, is_final, wrong_answer};
use super::evacuation::Evacuation;
use super::{
    AgentCore, AgentEffect, CommandRef, DeliveryTag, DriverCall, DriverResult, EvacuationPhase,
    JournalRecord, ServerRecord,
};
use crate::{DriverError, Occupancy};
use ebbtide_model::message::{Body, Delete, Deleted, HostedState, Start, StartFailed, Started};
use ebbtide_model::{ServerId, Timestamp};

/// The running start and deletion of one server.
#[derive(Debug, Clone, Default)]
pub(super) struct ServerWork {
    start: Option<StartWork>,
    delete: Option<DeleteWork>,
}

#[derive(Debug, Clone)]
struct StartWork {
    start: Start,
    command: CommandRef,
    tokens: Vec<DeliveryTag>,
    step: StartStep,
    tries: u32,
    not_before: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum StartStep {
    Start,
    /// Look whether it runs: the agent followed the start before, or it failed for this reason.
    Look(Option<String>),
}

#[derive(Debug, Clone)]
struct DeleteWork {
    command: CommandRef,
    storage: Option<String>,
    tokens: Vec<DeliveryTag>,
    tries: u32,
    not_before: Timestamp,
}

/// Result of a start, or of a look whether the server runs.
pub(super) enum StartResult {
    Runs(Timestamp),
    RunsAlready(Timestamp),
    DoesNotRun,
    StartError(DriverError),
    LookError(DriverError),
}

impl StartResult {
    pub(super) fn of_start(answer: Result<DriverResult, DriverError>) -> Self {
        match answer {
            Ok(DriverResult::Started(at)) => Self::Runs(at),
            Ok(other) => Self::StartError(wrong_answer(&other)),
            Err(error) => Self::StartError(error),
        }
    }

    pub(super) fn of_look(answer: Result<DriverResult, DriverError>) -> Self {
        match answer {
            Ok(DriverResult::Seen {
                occupancy:
                    Occupancy::Present {
                        since,
                        state: HostedState::Running,
                        ..
                    },
                ..
            }) => Self::RunsAlready(since),
            Ok(DriverResult::Seen { .. }) => Self::DoesNotRun,
            Ok(other) => Self::LookError(wrong_answer(&other)),
            Err(error) => Self::LookError(error),
        }
    }
}

impl ServerWork {
    /// Moves waiting times after the clock was set by this many milliseconds.
    pub(super) fn clock_set(&mut self, by_ms: i64) {
        if let Some(start) = &mut self.start {
            clock::set(&mut start.not_before, by_ms);
        }
        if let Some(delete) = &mut self.delete {
            clock::set(&mut delete.not_before, by_ms);
        }
    }

    /// When the next driver call is due.
    pub(super) fn due_at(&self, start_must_wait: bool) -> Option<Timestamp> {
        match (&self.delete, &self.start) {
            (Some(delete), _) => Some(delete.not_before),
            (None, Some(start)) if !start_must_wait => Some(start.not_before),
            _ => None,
        }
    }
}

impl AgentCore {
    pub(super) fn start(
        &mut self,
        transition: &mut Transition,
        token: DeliveryTag,
        command: CommandRef,
        start: Start,
    ) {
        if start.resume {
            self.close_older(transition, start.server_id, command.time);
        }
        let work = self.work.entry(start.server_id).or_default();
        match &mut work.start {
            Some(pending) => {
                pending.tokens.push(token);
                if command.time > pending.command.time {
                    pending.start = start;
                    pending.command = command;
                    pending.step = StartStep::Start;
                    pending.tries = 0;
                }
            }
            None => {
                work.start = Some(StartWork {
                    start,
                    command,
                    tokens: vec![token],
                    step: StartStep::Start,
                    tries: 0,
                    not_before: Timestamp::default(),
                });
            }
        }
    }

    pub(super) fn delete(
        &mut self,
        transition: &mut Transition,
        token: DeliveryTag,
        command: CommandRef,
        delete: Delete,
    ) {
        let Delete { server_id, storage } = delete;
        let followed = self.notes.get(&server_id).and_then(|note| note.ended);
        if followed.is_some_and(|c| c.id == command.id) {
            // If the server was started again since, this deletion is about the earlier run. The
            // agent repeats the report, which may have been lost in a crash.
            self.publish_deleted(transition, server_id, command, vec![token]);
            return;
        }
        let work = self.work.entry(server_id).or_default();
        match &mut work.delete {
            Some(pending) => {
                pending.tokens.push(token);
                pending.storage = storage.or_else(|| pending.storage.take());
                if command.time > pending.command.time {
                    pending.command = command;
                }
            }
            None => {
                work.delete = Some(DeleteWork {
                    command,
                    storage,
                    tokens: vec![token],
                    tries: 0,
                    not_before: Timestamp::default(),
                });
            }
        }
    }

    pub(super) fn deletion_is_due(&self, server_id: ServerId, now: Timestamp) -> bool {
        let delete = self.work.get(&server_id).and_then(|w| w.delete.as_ref());
        delete.is_some_and(|d| d.not_before <= now)
    }

    /// The storage from which the running deletion has to remove the server, too.
    pub(super) fn saved_storage(&self, server_id: ServerId) -> Option<String> {
        let delete = self.work.get(&server_id).and_then(|w| w.delete.as_ref());
        delete.and_then(|d| d.storage.clone())
    }

    /// A start during the interruption of an evacuation would run the victim again before the agent
    /// has verified the free capacity. A start between the notice and the end of a victim that does
    /// not run, which gets no grace period, would boot a guest that is ended at once.
    pub(super) fn start_must_wait(&self, server_id: ServerId) -> bool {
        let its = |e: &&Evacuation| e.record.server_id == server_id;
        let mut its = self.evacuations.values().filter(its);
        its.any(|e| match e.record.phase {
            EvacuationPhase::Acting { .. } => true,
            EvacuationPhase::Draining(drain) => drain.deadline_at <= drain.notified_at,
            _ => false,
        })
    }

    /// The time of the newest known start, followed or not, by the scheduler's clock.
    pub(super) fn last_start(&self, server_id: ServerId) -> Option<Timestamp> {
        let followed = self.notes.get(&server_id).and_then(|n| n.started);
        let pending = self.work.get(&server_id).and_then(|w| w.start.as_ref());
        let times = followed.map(|c| c.time).into_iter();
        times.chain(pending.map(|s| s.command.time)).max()
    }

    pub(super) fn choose_start(
        &mut self,
        server_id: ServerId,
        now: Timestamp,
    ) -> Option<(JobKind, DriverCall)> {
        if self.start_must_wait(server_id) {
            return None;
        }
        let stale_since = self.notes.get(&server_id).and_then(|note| {
            let times = [note.started, note.ended, note.failed]
                .into_iter()
                .flatten();
            times.map(|command| command.time).max()
        });
        let work = self.work.get_mut(&server_id)?;
        if work.delete.is_some() {
            return None;
        }
        let start = work.start.as_mut().filter(|s| s.not_before <= now)?;
        if start.step == StartStep::Start && stale_since.is_some_and(|t| start.command.time <= t) {
            start.step = StartStep::Look(None);
        }
        Some(match &start.step {
            StartStep::Start => (JobKind::Start, DriverCall::Start(start.start.clone())),
            StartStep::Look(_) => (JobKind::LookForStart, DriverCall::Look),
        })
    }

    pub(super) fn start_done(
        &mut self,
        transition: &mut Transition,
        server_id: ServerId,
        answer: StartResult,
    ) {
        let Some(mut start) = self.work.get_mut(&server_id).and_then(|w| w.start.take()) else {
            return;
        };
        let policy = &self.policy;
        match answer {
            StartResult::Runs(at) => {
                self.note_started(transition, server_id, start.command);
                transition.effects.push(AgentEffect::ServersChanged);
                self.publish_started(transition, start, at);
                return self.tidy(server_id);
            }
            StartResult::RunsAlready(at) => {
                if matches!(start.step, StartStep::Look(Some(_))) {
                    // The start took effect although the driver reported a failure.
                    self.note_started(transition, server_id, start.command);
                    transition.effects.push(AgentEffect::ServersChanged);
                }
                self.publish_started(transition, start, at);
                return self.tidy(server_id);
            }
            StartResult::DoesNotRun => match start.step.clone() {
                // A newer command arrived during the look.
                StartStep::Start => {}
                StartStep::Look(failure) => {
                    self.start_failed(transition, start, failure, false);
                    return self.tidy(server_id);
                }
            },
            StartResult::StartError(error) => {
                start.tries += 1;
                let lost = start.start.resume && matches!(error, DriverError::NotFound { .. });
                let given_up = start.tries >= policy.start_tries || is_final(&error) || lost;
                if !given_up {
                    start.wait(transition, policy.backoff_ms(start.tries));
                } else if lost {
                    let reason = format!("what was kept of it is not there any more: {error}");
                    self.start_failed(transition, start, Some(reason), false);
                    return self.tidy(server_id);
                } else {
                    // An earlier try, perhaps of an earlier process of the agent, may have taken
                    // effect too late for its answer.
                    let reason = match is_final(&error) {
                        true => error.to_string(),
                        false => format!("after {} tries: {error}", start.tries),
                    };
                    start.step = StartStep::Look(Some(reason));
                    start.tries = 0;
                }
            }
            StartResult::LookError(error) => {
                start.tries += 1;
                if start.tries < policy.verify_tries {
                    start.wait(transition, policy.backoff_ms(start.tries));
                } else {
                    let seen = match start.step.clone() {
                        StartStep::Look(Some(failure)) => failure,
                        _ => format!("whether it runs is unknown: {error}"),
                    };
                    self.start_failed(transition, start, Some(seen), true);
                    return self.tidy(server_id);
                }
            }
        }
        self.work.entry(server_id).or_default().start = Some(start);
    }

    pub(super) fn delete_done(
        &mut self,
        transition: &mut Transition,
        server_id: ServerId,
        answer: Result<DriverResult, DriverError>,
    ) {
        let Some(mut delete) = self.work.get_mut(&server_id).and_then(|w| w.delete.take()) else {
            return;
        };
        match answer {
            Ok(_) | Err(DriverError::NotFound { .. }) => {
                self.note_ended(transition, server_id, delete.command);
                transition.effects.push(AgentEffect::ServersChanged);
                self.publish_deleted(transition, server_id, delete.command, delete.tokens);
                self.victim_vanished(server_id);
                self.tidy(server_id);
            }
            Err(_) => {
                // There is no report for a failed deletion, and the owner's wish stands: retry
                // forever.
                delete.tries = delete.tries.saturating_add(1);
                let wait = self.policy.backoff_ms(delete.tries);
                delete.not_before =
                    Timestamp::from_millis(transition.now.as_millis().saturating_add(wait));
                self.work.entry(server_id).or_default().delete = Some(delete);
            }
        }
    }

    fn publish_started(&mut self, transition: &mut Transition, start: StartWork, at: Timestamp) {
        let body = Body::Started(Started {
            server_id: start.start.server_id,
            host: self.host.clone(),
            at,
            attempt: start.start.attempt,
        });
        self.publish(transition, start.command, body, start.tokens);
    }

    fn start_failed(
        &mut self,
        transition: &mut Transition,
        start: StartWork,
        failure: Option<String>,
        may_run: bool,
    ) {
        let server_id = start.start.server_id;
        let is_this = |known: Option<CommandRef>| known.is_some_and(|c| c.id == start.command.id);
        let note = self.notes.get(&server_id);
        let followed = note.is_some_and(|n| is_this(n.started));
        let failed = note.is_some_and(|n| is_this(n.failed));
        if (failure.is_some() || start.start.resume) && !may_run {
            // Recorded before the report: after the report the scheduler gives the capacity away or
            // tries another host, and the start message may be repeated.
            self.note_failed(transition, server_id, start.command);
        }
        let reason = failure.unwrap_or_else(|| {
            // Repeated even if it was reported before: that report may have been lost in a crash.
            let why = if followed {
                "it was started and has ended since"
            } else if failed {
                "it could not be started before, and that is not tried again without being asked anew"
            } else {
                "the scheduler has said something newer about this server, and it does not run"
            };
            why.to_owned()
        });
        let body = Body::StartFailed(StartFailed {
            server_id,
            host: self.host.clone(),
            reason,
            attempt: start.start.attempt,
            may_run,
        });
        self.publish(transition, start.command, body, start.tokens);
    }

    fn publish_deleted(
        &mut self,
        transition: &mut Transition,
        server_id: ServerId,
        command: CommandRef,
        tokens: Vec<DeliveryTag>,
    ) {
        let host = self.host.clone();
        self.publish(
            transition,
            command,
            Body::Deleted(Deleted { server_id, host }),
            tokens,
        );
    }

    fn tidy(&mut self, server_id: ServerId) {
        let done = |work: &ServerWork| work.start.is_none() && work.delete.is_none();
        if self.work.get(&server_id).is_some_and(done) {
            self.work.remove(&server_id);
        }
    }

    fn note(
        &mut self,
        transition: &mut Transition,
        server_id: ServerId,
        change: impl FnOnce(&mut ServerRecord),
    ) {
        let order = self.take_order();
        let note = self.notes.entry(server_id).or_insert(ServerRecord {
            server_id,
            order,
            started: None,
            ended: None,
            failed: None,
        });
        note.order = order;
        change(note);
        transition.journal(JournalRecord::Server(note.clone()));
    }

    fn note_started(
        &mut self,
        transition: &mut Transition,
        server_id: ServerId,
        command: CommandRef,
    ) {
        self.note(transition, server_id, |note| note.started = Some(command));
    }

    /// Never goes back: an older command says nothing about a newer one.
    fn note_failed(
        &mut self,
        transition: &mut Transition,
        server_id: ServerId,
        command: CommandRef,
    ) {
        let known = self.notes.get(&server_id).and_then(|note| note.failed);
        if known.is_none_or(|known| known.time < command.time) {
            self.note(transition, server_id, |note| note.failed = Some(command));
        }
    }

    /// A deletion counts as sent after the last start even if the clocks of two schedulers
    /// disagree, because the agent followed it.
    pub(super) fn note_ended(
        &mut self,
        transition: &mut Transition,
        server_id: ServerId,
        command: CommandRef,
    ) {
        self.note(transition, server_id, |note| {
            let started = note.started.map(|c| c.time);
            note.ended = Some(CommandRef {
                time: started.map_or(command.time, |t| t.max(command.time)),
                ..command
            });
        });
    }
}

impl StartWork {
    fn wait(&mut self, transition: &Transition, millis: i64) {
        self.not_before = Timestamp::from_millis(transition.now.as_millis().saturating_add(millis));
    }
}

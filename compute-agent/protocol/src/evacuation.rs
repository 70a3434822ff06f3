//! Evacuations: the effects of notices, spares, releases and looks at the servers.
//!
//! `dispatch.rs` handles the driver's answers. Every function takes the evacuation out of the map,
//! works on it and puts it back, so that it can write reports and notes meanwhile.

use super::core::Transition;
use super::objection::Announced;
use super::{
    AgentCore, CommandRef, Drain, Effect, EvacuationRecord, Phase, Policy, Record, ReportId, Terms,
    Token, Verdict,
};
use crate::ServerView;
use ebbtide_model::message::{EvacuatedHow, HostedState, Notice, Release, Spare};
use ebbtide_model::{EvacuationId, ServerId, Timestamp};
use std::collections::BTreeMap;

/// One evacuation: its durable record, and its state in memory.
#[derive(Debug, Clone)]
pub(super) struct Evacuation {
    pub(super) record: EvacuationRecord,
    /// The newest delivery of its notice; unsettled until the end is reported.
    pub(super) token: Option<Token>,
    /// Older deliveries of its notice; settled with the next report of any kind.
    pub(super) superseded: Vec<Token>,
    /// Deliveries of spares; settled with the final report.
    pub(super) finals: Vec<Token>,
    pub(super) step: Step,
    /// Failed tries of the present step.
    pub(super) tries: u32,
    /// When the present step may be tried (again).
    pub(super) not_before: Timestamp,
    /// The guest may have its notice.
    pub(super) told: bool,
    /// The driver may have been asked to end it.
    pub(super) acted: bool,
    /// The driver's failure before the fence was called, if it was.
    pub(super) fenced: Option<String>,
    /// The final report, while it is under way.
    pub(super) final_report: Option<ReportId>,
    /// The report that the grace period runs, while it is under way.
    pub(super) draining_report: Option<ReportId>,
    /// Whether the broker has confirmed the newest such report of this process.
    pub(super) announced: Announced,
}

/// The next step in the present phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// The regular action of the phase.
    Forward,
    /// Look whether the capacity is free.
    Look {
        /// How the victim ended, if the capacity is free.
        how: EvacuatedHow,
        /// Why the interruption failed, if it did; reported if the capacity is not free.
        failure: Option<String>,
    },
    /// End the victim with the operator's fence, because the driver could not.
    Fence {
        /// Why the driver could not.
        failure: String,
    },
}

impl Evacuation {
    fn new(record: EvacuationRecord) -> Self {
        Self {
            record,
            token: None,
            superseded: Vec::new(),
            finals: Vec::new(),
            step: Step::Forward,
            tries: 0,
            not_before: Timestamp::default(),
            told: false,
            acted: false,
            fenced: None,
            final_report: None,
            draining_report: None,
            announced: Announced::No,
        }
    }

    /// Restores an evacuation from the journal. Actions with unknown outcome count as done.
    pub(super) fn restored(mut record: EvacuationRecord, now: Timestamp) -> Self {
        if let (Phase::Draining(drain), Some(terms)) = (&mut record.phase, record.terms) {
            // No victim gets more time than its grace period: the clock may have been set back
            // while no agent ran.
            drain.deadline_at = drain.deadline_at.min(now.plus(terms.grace));
        }
        let acted = matches!(record.phase, Phase::Acting { .. });
        let idle = matches!(record.phase, Phase::Done { .. } | Phase::ReleasedEarly);
        Self {
            acted,
            told: !idle,
            ..Self::new(record)
        }
    }

    /// When the next driver call is due, if nothing else happens.
    pub(super) fn due_at(&self, policy: &Policy) -> Option<Timestamp> {
        match (&self.record.phase, &self.step) {
            (Phase::Done { .. } | Phase::ReleasedEarly, _) => None,
            (Phase::Draining(drain), Step::Forward) => {
                let may = self.may_act_at(drain, policy)?;
                Some(may.max(self.not_before))
            }
            _ => Some(self.not_before),
        }
    }

    /// True if it is kept only to answer late messages.
    pub(super) fn is_forgettable(&self) -> bool {
        match self.record.phase {
            Phase::Done { .. } => self.record.settled && self.final_report.is_none(),
            Phase::ReleasedEarly => true,
            _ => false,
        }
    }

    /// Goes to another step, at once.
    pub(super) fn go(&mut self, step: Step) {
        self.step = step;
        self.tries = 0;
        self.not_before = Timestamp::default();
    }

    pub(super) fn enter(&mut self, transition: &mut Transition, phase: Phase) {
        self.record.phase = phase;
        self.go(Step::Forward);
        self.save(transition);
    }

    pub(super) fn save(&self, transition: &mut Transition) {
        transition.journal(Record::Evacuation(self.record.clone()));
    }

    fn hold(&mut self, token: Token) {
        self.superseded.extend(self.token.replace(token));
    }

    /// True if the notice is newer than all earlier ones.
    fn is_newer(&self, terms: &Terms) -> bool {
        // An attempt that the scheduler replaced before sending may have been sent all the same.
        let order = |terms: &Terms| (terms.attempt, terms.begin_before);
        self.record
            .terms
            .is_none_or(|known| order(terms) > order(&known))
    }
}

impl AgentCore {
    fn new_evacuation(
        &mut self,
        evacuation_id: EvacuationId,
        server_id: ServerId,
        command: CommandRef,
        terms: Option<Terms>,
        phase: Phase,
    ) -> Evacuation {
        Evacuation::new(EvacuationRecord {
            evacuation_id,
            server_id,
            order: self.take_order(),
            command,
            terms,
            phase,
            settled: false,
        })
    }

    /// Rejects a message that contradicts the known state.
    fn contradicts(
        transition: &mut Transition,
        e: &Evacuation,
        server_id: ServerId,
        token: Token,
    ) -> bool {
        if e.record.server_id == server_id {
            return false;
        }
        let reason = format!(
            "evacuation {} is about server {}, this message says {server_id}",
            e.record.evacuation_id, e.record.server_id
        );
        transition.effects.push(Effect::DeadLetter(token, reason));
        true
    }

    pub(super) fn notice(
        &mut self,
        transition: &mut Transition,
        token: Token,
        command: CommandRef,
        notice: &Notice,
    ) {
        let terms = Terms {
            behaviour: notice.behaviour,
            grace: notice.grace_seconds,
            attempt: notice.attempt,
            begin_before: notice.begin_before,
        };
        let id = notice.evacuation_id;
        let known = self.evacuations.remove(&id);
        let mut e = known.unwrap_or_else(|| {
            let phase = Phase::ReleasedEarly;
            let mut e = self.new_evacuation(id, notice.server_id, command, None, phase);
            // This is an ordinary first notice: no release arrived before it.
            e.record.phase = Phase::Accepted { released: false };
            e
        });
        if Self::contradicts(transition, &e, notice.server_id, token) {
            self.evacuations.insert(id, e);
            return;
        }
        let newer = e.is_newer(&terms);
        e.hold(token);
        if newer {
            e.record.terms = Some(terms);
        }
        e.record.command = command;
        // The scheduler has ordered a start of this server after it sent this notice, so the
        // evacuation is over.
        if self
            .last_start(notice.server_id)
            .is_some_and(|start| command.time < start)
        {
            self.close(transition, &mut e);
            self.evacuations.insert(id, e);
            return;
        }
        match e.record.phase.clone() {
            Phase::ReleasedEarly => Self::accept(transition, &mut e, true),
            Phase::Accepted { released } if newer => Self::accept(transition, &mut e, released),
            Phase::Withdrawing {
                then: Verdict::Failed { .. },
            } if newer => Self::accept(transition, &mut e, false),
            Phase::Done {
                verdict:
                    Verdict::Failed {
                        still_running: true,
                        ..
                    },
            } if newer => Self::accept(transition, &mut e, false),
            Phase::Accepted { .. } | Phase::Withdrawing { .. } => {}
            Phase::Draining(drain) | Phase::Acting { drain, .. } => {
                self.publish_draining(transition, &mut e, drain);
            }
            Phase::Done { verdict } => self.publish_verdict(transition, &mut e, &verdict),
        }
        self.evacuations.insert(id, e);
    }

    /// Starts to follow a notice. Whether it is too late is checked just before the guest is told.
    fn accept(transition: &mut Transition, e: &mut Evacuation, released: bool) {
        e.announced = Announced::No;
        e.record.settled = false;
        e.final_report = None;
        e.acted = false;
        e.fenced = None;
        e.enter(transition, Phase::Accepted { released });
    }

    pub(super) fn too_late(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        terms: Terms,
    ) {
        let reason = format!(
            "the notice (attempt {}) was to be given before {} and it is {} on host {}: the victim was left alone; if this \
             repeats, compare the clocks of scheduler and host",
            terms.attempt, terms.begin_before, transition.now, self.host
        );
        self.no_time(transition, e, reason);
    }

    /// There was no time left to tell the guest. The scheduler may have sent another notice since.
    pub(super) fn no_time(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        reason: String,
    ) {
        let verdict = Verdict::Failed {
            reason,
            still_running: true,
            too_late: true,
        };
        self.conclude(transition, e, verdict);
    }

    pub(super) fn fail(&mut self, transition: &mut Transition, e: &mut Evacuation, reason: String) {
        let verdict = Verdict::Failed {
            reason,
            still_running: true,
            too_late: false,
        };
        self.conclude(transition, e, verdict);
    }

    /// Ends an evacuation whose victim stays: withdraws the guest's notice if it may have one, then
    /// reports.
    pub(super) fn conclude(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        then: Verdict,
    ) {
        if e.told {
            e.enter(transition, Phase::Withdrawing { then });
        } else {
            self.finish(transition, e, then);
        }
    }

    pub(super) fn finish(
        &mut self,
        transition: &mut Transition,
        e: &mut Evacuation,
        verdict: Verdict,
    ) {
        if matches!(verdict, Verdict::Evacuated { .. }) {
            // This comes first: if the journal ends in between, a finished evacuation must not
            // leave a late start unanswered.
            self.note_ended(transition, e.record.server_id, e.record.command);
            transition.effects.push(Effect::ServersChanged);
        }
        e.told = false;
        e.record.settled = false;
        let phase = Phase::Done {
            verdict: verdict.clone(),
        };
        e.enter(transition, phase);
        self.publish_verdict(transition, e, &verdict);
    }

    pub(super) fn spare(
        &mut self,
        transition: &mut Transition,
        token: Token,
        command: CommandRef,
        spare: &Spare,
    ) {
        let id = spare.evacuation_id;
        let known = self.evacuations.remove(&id);
        let mut e = known.unwrap_or_else(|| {
            self.new_evacuation(id, spare.server_id, command, None, Phase::ReleasedEarly)
        });
        if !Self::contradicts(transition, &e, spare.server_id, token) {
            e.finals.push(token);
            match e.record.phase.clone() {
                Phase::ReleasedEarly | Phase::Accepted { .. } | Phase::Draining(_) => {
                    e.record.command = command;
                    self.conclude(transition, &mut e, Verdict::Spared);
                }
                // An attempt has failed, and a later one may be on its way: the agent must not
                // follow it any more. The report "failed" would not say that, because it may answer
                // the earlier attempt.
                Phase::Done {
                    verdict:
                        Verdict::Failed {
                            still_running: true,
                            ..
                        },
                } => {
                    e.record.command = command;
                    self.conclude(transition, &mut e, Verdict::Spared);
                }
                Phase::Withdrawing {
                    then:
                        Verdict::Failed {
                            still_running: true,
                            ..
                        },
                } => {
                    e.record.command = command;
                    e.record.phase = Phase::Withdrawing {
                        then: Verdict::Spared,
                    };
                    e.save(transition);
                }
                // Too late to be spared, or already decided: the final report answers the spare.
                Phase::Acting { .. } | Phase::Withdrawing { .. } => {}
                Phase::Done { verdict } => {
                    e.record.command = command;
                    self.publish_verdict(transition, &mut e, &verdict);
                }
            }
        }
        self.evacuations.insert(id, e);
    }

    pub(super) fn release(
        &mut self,
        transition: &mut Transition,
        token: Token,
        command: CommandRef,
        release: &Release,
    ) {
        let id = release.evacuation_id;
        let Some(mut e) = self.evacuations.remove(&id) else {
            let phase = Phase::ReleasedEarly;
            let e = self.new_evacuation(id, release.server_id, command, None, phase);
            e.save(transition);
            self.evacuations.insert(id, e);
            transition.ack(token);
            return;
        };
        if !Self::contradicts(transition, &e, release.server_id, token) {
            match e.record.phase {
                Phase::Accepted { released: false } => {
                    e.record.phase = Phase::Accepted { released: true };
                    e.save(transition);
                }
                Phase::Draining(drain) => e.end_grace(transition, drain),
                _ => {}
            }
            // The effect, a shorter grace period, is durable now. There is no report about it.
            transition.ack(token);
        }
        self.evacuations.insert(id, e);
    }

    /// Detects victims that left by themselves and guests that released their time.
    pub(super) fn observed(&mut self, transition: &mut Transition, views: &[ServerView]) {
        let views: BTreeMap<ServerId, &ServerView> =
            views.iter().map(|view| (view.server_id, view)).collect();
        for e in self.evacuations.values_mut() {
            let Phase::Draining(drain) = e.record.phase else {
                continue;
            };
            if e.step != Step::Forward {
                continue;
            }
            match views.get(&e.record.server_id) {
                None => e.go(Step::gone()),
                Some(view) => {
                    let released = view.released == Some(e.record.evacuation_id);
                    if released || view.state != HostedState::Running {
                        e.end_grace(transition, drain);
                    }
                }
            }
        }
    }

    /// The scheduler resumes a server, so it knows that the server was evacuated. An older open
    /// notice is about an earlier run of the server and must not end this one.
    pub(super) fn close_older(
        &mut self,
        transition: &mut Transition,
        server_id: ServerId,
        start: Timestamp,
    ) {
        let older: Vec<EvacuationId> = self
            .evacuations
            .values()
            .filter(|e| e.record.server_id == server_id && e.record.command.time < start)
            .map(|e| e.record.evacuation_id)
            .collect();
        for id in older {
            if let Some(mut e) = self.evacuations.remove(&id) {
                let closed = matches!(e.record.phase, Phase::Done { .. });
                if !closed {
                    self.close(transition, &mut e);
                }
                self.evacuations.insert(id, e);
            }
        }
    }

    /// Closes an open evacuation whose victim goes on, or has gone on since. Repeats the report of
    /// a decided one.
    fn close(&mut self, transition: &mut Transition, e: &mut Evacuation) {
        match e.record.phase.clone() {
            Phase::ReleasedEarly | Phase::Accepted { .. } | Phase::Draining(_) => {
                self.conclude(transition, e, Verdict::Spared);
            }
            // The start waits for the end of this evacuation, whose final report is the answer.
            Phase::Acting { .. } | Phase::Withdrawing { .. } => {}
            Phase::Done {
                verdict:
                    Verdict::Failed {
                        still_running: true,
                        ..
                    },
            } => self.finish(transition, e, Verdict::Spared),
            Phase::Done { verdict } => self.publish_verdict(transition, e, &verdict),
        }
    }

    /// The server was removed, but not by its evacuation.
    pub(super) fn victim_vanished(&mut self, server_id: ServerId) {
        for e in self.evacuations.values_mut() {
            let waiting = matches!(e.record.phase, Phase::Accepted { .. } | Phase::Draining(_));
            if waiting && e.record.server_id == server_id {
                e.go(Step::gone());
            }
        }
    }
}

impl Step {
    /// Check that a victim that is not visible any more is really gone.
    pub(super) fn gone() -> Self {
        Self::Look {
            how: EvacuatedHow::AlreadyGone,
            failure: None,
        }
    }
}

impl Evacuation {
    fn end_grace(&mut self, transition: &mut Transition, drain: Drain) {
        if drain.deadline_at > transition.now {
            let deadline_at = transition.now;
            self.record.phase = Phase::Draining(Drain {
                deadline_at,
                ..drain
            });
            self.save(transition);
        }
    }
}

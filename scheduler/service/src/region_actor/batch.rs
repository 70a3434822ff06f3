//! A batch: inputs with their answers, changes that are not durable yet, and read-only looks at the
//! region.

use super::{Answer, Look, Work};
use crate::error::ServiceError;
use crate::metrics::Metrics;
use ebbtide_model::Timestamp;
use ebbtide_model::record::Change;
use ebbtide_region::{
    DecisionComparison, Effects, Ids, Region, RegionCommand, RegionError, RegionEvent, RegionInput,
    RegionReply, Speculation,
};
use ebbtide_runtime::clock::Stopwatch;
use ebbtide_runtime::ids;
use ebbtide_store::StoreError;
use uuid::Uuid;

/// Identifiers of this process, which sort by the time of their creation.
pub(super) struct RandomIds;

impl Ids for RandomIds {
    fn next(&mut self) -> Uuid {
        ids::new()
    }
}

/// An input that waits for its turn.
pub(super) struct QueuedInput {
    pub(super) input: RegionInput,
    pub(super) answer: Answer<RegionReply>,
    /// Its speculative decision, if there is one.
    pub(super) speculation: Option<Speculation>,
}

impl QueuedInput {
    /// True for inputs that only the scheduler on duty handles: agent reports, confirmations of the
    /// broker, ticks.
    fn is_duty(&self) -> bool {
        !matches!(self.input, RegionInput::Command(_))
    }
}

/// An input with the region's reply.
struct Answered {
    input: RegionInput,
    answer: Answer<RegionReply>,
    reply: Result<RegionReply, RegionError>,
}

/// One batch.
#[derive(Default)]
pub(super) struct Batch {
    pub(super) waiting: Vec<QueuedInput>,
    pub(super) looks: Vec<Look>,
    pub(super) changes: Vec<Change>,
    pub(super) events: Vec<RegionEvent>,
    /// Comparisons with the shadow engine.
    pub(super) compared: Vec<DecisionComparison>,
    /// True if the batch contains a report: the broker does not deliver it again after the answer.
    pub(super) settles: bool,
    answered: Vec<Answered>,
}

impl Batch {
    pub(super) fn of(works: Vec<Work>) -> Self {
        let mut batch = Self::default();
        works.into_iter().for_each(|work| batch.add(work));
        batch
    }

    /// Adds one work item.
    pub(super) fn add(&mut self, work: Work) {
        match work {
            Work::Look(look) | Work::Question(_, _, look) => self.looks.push(look),
            Work::Input(input, answer) => self.waiting.push(QueuedInput {
                input,
                answer,
                speculation: None,
            }),
        }
    }

    /// Returns the inputs that only the scheduler on duty handles; reports go back to the broker.
    /// True if there was a tick.
    pub(super) fn leave_duties(&mut self) -> bool {
        let waiting = std::mem::take(&mut self.waiting);
        let (duties, ours): (Vec<_>, Vec<_>) = waiting.into_iter().partition(QueuedInput::is_duty);
        self.waiting = ours;
        let mut ticked = false;
        for duty in duties {
            let answer = match duty.input {
                RegionInput::Tick => {
                    ticked = true;
                    Ok(RegionReply::Done)
                }
                _ => Err(ServiceError::NotOnDuty),
            };
            // The caller may have gone away; it then needs no answer.
            let _ = duty.answer.send(answer);
        }
        ticked
    }

    /// Makes speculative decisions before this scheduler's turn.
    ///
    /// # Errors
    /// The region in memory is not valid any more; the caller must read it anew.
    pub(super) fn speculate(
        &mut self,
        region: &mut Region,
        now: Timestamp,
        metrics: &Metrics,
    ) -> Result<(), RegionError> {
        for waiting in &mut self.waiting {
            if let RegionInput::Command(RegionCommand::CreateServers(create)) = &waiting.input {
                let watch = Stopwatch::start();
                waiting.speculation = region.speculate(now, &mut RandomIds, create);
                if waiting.speculation.is_some() {
                    metrics.decided(watch.elapsed());
                }
            }
        }
        region.end_speculation()
    }

    /// Drops the speculative decisions, which were made by a region that does not exist any more.
    pub(super) fn forget_speculations(&mut self) {
        for waiting in &mut self.waiting {
            waiting.speculation = None;
        }
    }

    /// Lets the region handle all waiting inputs.
    pub(super) fn handle(&mut self, region: &mut Region, now: Timestamp, metrics: &Metrics) {
        for QueuedInput {
            input,
            answer,
            speculation,
        } in std::mem::take(&mut self.waiting)
        {
            let decides = matches!(input, RegionInput::Command(RegionCommand::CreateServers(_)));
            self.settles |= matches!(input, RegionInput::Report(_));
            let speculated = speculation.is_some();
            let watch = Stopwatch::start();
            let outcome = region.handle_speculated(now, &mut RandomIds, input.clone(), speculation);
            if decides && !speculated {
                metrics.decided(watch.elapsed());
            }
            let reply = outcome.map(|(reply, effects)| {
                let Effects {
                    changes,
                    events,
                    compared,
                } = effects;
                self.changes.extend(changes);
                self.events.extend(events);
                self.compared.extend(compared);
                reply
            });
            self.answered.push(Answered {
                input,
                answer,
                reply,
            });
        }
    }

    /// Sends all answers, after the changes have become durable.
    pub(super) fn answer(self) -> (Vec<RegionEvent>, Vec<Look>) {
        for Answered { answer, reply, .. } in self.answered {
            // The caller may have gone away; it then needs no answer.
            let _ = answer.send(reply.map_err(ServiceError::from));
        }
        (self.events, self.looks)
    }

    /// Returns the work items of the batch, to be handled again.
    pub(super) fn take_apart(self) -> Vec<Work> {
        let answered = self.answered.into_iter();
        let inputs = answered.map(|a| Work::Input(a.input, a.answer)).chain(
            self.waiting
                .into_iter()
                .map(|w| Work::Input(w.input, w.answer)),
        );
        inputs
            .chain(self.looks.into_iter().map(Work::Look))
            .collect()
    }

    /// Refuses all inputs with the reason, because nothing of the batch was written.
    pub(super) fn refuse(self, error: &StoreError) {
        let fenced = matches!(error, StoreError::Fenced { .. });
        let (code, message) = (error.code(), error.to_string());
        let passing = error.is_retryable();
        for look in self.looks {
            look(Err(super::not_read(error)));
        }
        let told = || match fenced {
            true => ServiceError::Fenced,
            false => ServiceError::NotWritten {
                code,
                message: message.clone(),
                passing,
            },
        };
        for waiting in self.waiting {
            let _ = waiting.answer.send(Err(told()));
        }
        for Answered { answer, reply, .. } in self.answered {
            let answer_is = match reply {
                // An input that the region refused would have been refused in any case.
                Err(refused) if !fenced => refused.into(),
                _ => told(),
            };
            let _ = answer.send(Err(answer_is));
        }
    }
}

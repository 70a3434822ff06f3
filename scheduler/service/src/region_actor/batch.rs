//! A batch: inputs with their answers, changes that are not durable yet, and read-only looks at the
//! region.

use super::queued::{HandledInput, QueuedInput, RandomIds};
use super::{Look, Work};
use crate::error::ServiceError;
use crate::metrics::Metrics;
use crate::traces::{self, InputTrace};
use ebbtide_model::record::Change;
use ebbtide_model::{CloudEvent, DecisionComparison, Timestamp};
use ebbtide_region::{Effects, InputKind, Region, RegionError, Speculation};
use ebbtide_runtime::clock::Stopwatch;
use ebbtide_store::StoreError;
use ebbtide_telemetry::Span;

/// An input that waits for its turn.
pub(super) struct WaitingInput {
    input: Box<dyn QueuedInput>,
    /// Its speculative decision, if there is one.
    speculation: Option<Speculation>,
}

#[derive(Default)]
pub(super) struct Batch {
    pub(super) waiting: Vec<WaitingInput>,
    pub(super) looks: Vec<Look>,
    pub(super) changes: Vec<Change>,
    pub(super) events: Vec<CloudEvent>,
    /// Comparisons with the shadow engine.
    pub(super) compared: Vec<DecisionComparison>,
    /// True if the batch contains a report: the broker does not deliver it again after the answer.
    pub(super) settles: bool,
    handled: Vec<Box<dyn HandledInput>>,
    /// The spans of handled inputs, which end when the batch is durable.
    spans: Vec<Span>,
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
            Work::Input(input) => self.waiting.push(WaitingInput {
                input,
                speculation: None,
            }),
        }
    }

    /// Refuses the inputs that only the scheduler on duty handles; reports go back to the broker.
    /// True if there was a tick.
    pub(super) fn leave_duties(&mut self) -> bool {
        let waiting = std::mem::take(&mut self.waiting);
        let is_duty = |waiting: &WaitingInput| waiting.input.kind().is_duty();
        let (duties, ours): (Vec<_>, Vec<_>) = waiting.into_iter().partition(is_duty);
        self.waiting = ours;
        let mut ticked = false;
        for duty in duties {
            ticked |= duty.input.kind() == InputKind::Tick;
            duty.input.refuse(ServiceError::NotOnDuty);
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
            if let InputKind::Placement(create) = waiting.input.kind() {
                let trace = waiting.input.trace();
                let mut span = traces::decision(trace);
                let watch = Stopwatch::start();
                waiting.speculation = region.speculate(now, &mut RandomIds, create);
                if let Some(speculation) = &waiting.speculation {
                    let id = speculation.decision_id();
                    span.set("ebbtide.decision_id", || id.to_string());
                    metrics.decided(watch.elapsed(), Some(id), trace);
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
        for WaitingInput { input, speculation } in std::mem::take(&mut self.waiting) {
            let kind = input.kind();
            let decides = matches!(kind, InputKind::Placement(_)) && speculation.is_none();
            self.settles |= matches!(kind, InputKind::Report(_));
            let trace = input.trace();
            let spans = InputTrace::begin(kind, trace, decides);
            let watch = Stopwatch::start();
            let (handled, mut effects) = input.handle(region, now, speculation);
            let span = spans.handled(effects.as_mut());
            if trace.is_some() {
                self.spans.push(span);
            }
            if decides {
                let events = effects.iter().flat_map(|effects| &effects.events);
                let mut decisions = events.filter_map(|event| match event {
                    CloudEvent::Decision(decision) => Some(decision.id),
                    _ => None,
                });
                metrics.decided(watch.elapsed(), decisions.next(), trace);
            }
            if let Some(effects) = effects {
                let Effects {
                    changes,
                    events,
                    compared,
                } = effects;
                self.changes.extend(changes);
                self.events.extend(events);
                self.compared.extend(compared);
            }
            self.handled.push(handled);
        }
    }

    /// Sends all answers, after the changes have become durable.
    pub(super) fn answer(self) -> (Vec<CloudEvent>, Vec<Look>) {
        // The span of a request ends after them.
        drop(self.spans);
        self.handled.into_iter().for_each(HandledInput::answer);
        (self.events, self.looks)
    }

    /// Returns the work items of the batch, to be handled again.
    pub(super) fn take_apart(self) -> Vec<Work> {
        let handled = self.handled.into_iter().map(HandledInput::again);
        let inputs = handled.chain(self.waiting.into_iter().map(|waiting| waiting.input));
        inputs
            .map(Work::Input)
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
        for mut span in self.spans {
            span.fail(|| message.clone());
        }
        for waiting in self.waiting {
            waiting.input.refuse(told());
        }
        for handled in self.handled {
            handled.refuse(told(), !fenced);
        }
    }
}

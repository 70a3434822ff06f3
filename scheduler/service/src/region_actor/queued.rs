//! An input in the queue. Only its caller knows the type of its reply; the actor handles all types
//! alike and commits them together.

use super::Answer;
use crate::error::ServiceError;
use ebbtide_model::Timestamp;
use ebbtide_region::{Effects, Ids, InputKind, Region, RegionError, RegionInput, Speculation};
use ebbtide_runtime::ids;
use ebbtide_telemetry::TraceContext;
use uuid::Uuid;

/// Identifiers of this process, which sort by the time of their creation.
pub(super) struct RandomIds;

impl Ids for RandomIds {
    fn next(&mut self) -> Uuid {
        ids::new()
    }
}

/// An input of any type that waits for its turn.
pub(super) trait QueuedInput: Send {
    /// What the actor has to know of the input.
    fn kind(&self) -> InputKind<'_>;

    /// The context of the request or message from which the input comes, if it is traced.
    fn trace(&self) -> Option<TraceContext>;

    /// Lets the region handle the input. The effects are missing if the region refuses it.
    fn handle(
        self: Box<Self>,
        region: &mut Region,
        now: Timestamp,
        speculation: Option<Speculation>,
    ) -> (Box<dyn HandledInput>, Option<Effects>);

    /// Sends an error to the caller.
    fn refuse(self: Box<Self>, error: ServiceError);
}

/// An input of any type that the region has handled, with its reply. The effects are not durable
/// yet.
pub(super) trait HandledInput: Send {
    /// Sends the reply, after the effects have become durable.
    fn answer(self: Box<Self>);

    /// Sends an error, because nothing was written. With `keep_refusal` a refusal by the region
    /// stands: the region would have refused the input in any case.
    fn refuse(self: Box<Self>, error: ServiceError, keep_refusal: bool);

    /// The input without its reply, to be handled again.
    fn again(self: Box<Self>) -> Box<dyn QueuedInput>;
}

/// An input with the sender of its answer.
pub(super) struct Call<I: RegionInput> {
    pub(super) input: I,
    pub(super) answer: Answer<I::Reply>,
    pub(super) trace: Option<TraceContext>,
}

/// A call with the region's reply.
struct HandledCall<I: RegionInput> {
    call: Call<I>,
    reply: Result<I::Reply, RegionError>,
}

impl<I: RegionInput> QueuedInput for Call<I> {
    fn kind(&self) -> InputKind<'_> {
        self.input.kind()
    }

    fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    fn handle(
        self: Box<Self>,
        region: &mut Region,
        now: Timestamp,
        speculation: Option<Speculation>,
    ) -> (Box<dyn HandledInput>, Option<Effects>) {
        let input = self.input.clone();
        let outcome = region.handle_speculated(now, &mut RandomIds, input, speculation);
        let (reply, effects) = match outcome {
            Ok((reply, effects)) => (Ok(reply), Some(effects)),
            Err(refused) => (Err(refused), None),
        };
        (Box::new(HandledCall { call: *self, reply }), effects)
    }

    fn refuse(self: Box<Self>, error: ServiceError) {
        // The caller may have gone away; it then needs no answer.
        let _ = self.answer.send(Err(error));
    }
}

impl<I: RegionInput> HandledInput for HandledCall<I> {
    fn answer(self: Box<Self>) {
        // The caller may have gone away; it then needs no answer.
        let _ = self
            .call
            .answer
            .send(self.reply.map_err(ServiceError::from));
    }

    fn refuse(self: Box<Self>, error: ServiceError, keep_refusal: bool) {
        let error = match self.reply {
            Err(refused) if keep_refusal => refused.into(),
            _ => error,
        };
        // The caller may have gone away; it then needs no answer.
        let _ = self.call.answer.send(Err(error));
    }

    fn again(self: Box<Self>) -> Box<dyn QueuedInput> {
        Box::new(self.call)
    }
}

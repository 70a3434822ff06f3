//! Inputs of a region, each with the type of its reply.

use crate::command::CreateServers;
use crate::transition::Transition;
use crate::{Region, RegionError};
use ebbtide_model::message::Message;
use ebbtide_model::{EvacuationId, MessageId};
use std::fmt::Debug;
use uuid::Uuid;

/// Source of new identifiers: random in the service, counted in a simulation.
pub trait Ids {
    /// An identifier that was never returned before.
    fn next(&mut self) -> Uuid;
}

/// Identifiers that count up, for simulations and trials: the same ones every time.
#[derive(Debug, Clone)]
pub struct CountingIds(u128);

impl CountingIds {
    /// The first identifier is the one after this number.
    #[must_use]
    pub fn after(number: u128) -> Self {
        Self(number)
    }
}

impl Ids for CountingIds {
    fn next(&mut self) -> Uuid {
        self.0 += 1;
        Uuid::from_u128(self.0)
    }
}

/// An input to the region. Only this crate has inputs: no other one can name a [`Transition`].
pub trait RegionInput: Debug + Clone + Send + 'static {
    /// The answer to the caller.
    type Reply: Debug + Send + 'static;

    /// What the shell has to know of the input.
    fn kind(&self) -> InputKind<'_> {
        InputKind::Command
    }

    /// True if the region accepts the input before its restored database is reconciled with the
    /// agents. Nothing that follows from the restored records alone may.
    fn works_while_held(&self) -> bool {
        false
    }

    /// Handles the input. [`Region::handle`] is the caller.
    ///
    /// # Errors
    /// The reason for a refusal; the transition is then without effect.
    #[doc(hidden)]
    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<Self::Reply, RegionError>;
}

/// What a shell has to know of an input whose type it does not know.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum InputKind<'i> {
    /// A request for servers, which takes a pass of the engine.
    Placement(&'i CreateServers),
    /// Another request of a tenant or an operator.
    Command,
    /// A report of an agent.
    Report(&'i Message),
    /// A publisher confirm of the broker.
    Published(MessageId),
    /// Time has passed.
    Tick,
}

impl InputKind<'_> {
    /// True if only the scheduler on duty handles the input: agent reports, confirmations of the
    /// broker, ticks. Every scheduler handles requests.
    #[must_use]
    pub fn is_duty(&self) -> bool {
        !matches!(self, Self::Placement(_) | Self::Command)
    }
}

/// A report from an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Report(pub Message);

/// The broker has confirmed a message of the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OutboxConfirmation {
    pub id: MessageId,
    /// The evacuation, if the message is its notice.
    pub evacuation_id: Option<EvacuationId>,
}

/// Time has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tick;

impl RegionInput for Report {
    type Reply = ();

    fn kind(&self) -> InputKind<'_> {
        InputKind::Report(&self.0)
    }

    fn works_while_held(&self) -> bool {
        true
    }

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<(), RegionError> {
        region.report(transition, self.0);
        Ok(())
    }
}

impl RegionInput for OutboxConfirmation {
    type Reply = ();

    fn kind(&self) -> InputKind<'_> {
        InputKind::Published(self.id)
    }

    fn works_while_held(&self) -> bool {
        true
    }

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<(), RegionError> {
        region.published(transition, self.id, self.evacuation_id);
        Ok(())
    }
}

impl RegionInput for Tick {
    type Reply = ();

    fn kind(&self) -> InputKind<'_> {
        InputKind::Tick
    }

    fn works_while_held(&self) -> bool {
        true
    }

    fn apply(
        self,
        region: &mut Region,
        transition: &mut Transition<'_>,
    ) -> Result<(), RegionError> {
        region.tick(transition);
        Ok(())
    }
}

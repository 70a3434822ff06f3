//! The state of one victim and its transitions.

use ebbtide_model::{Evacuation, EvacuationState};

/// Where the evacuation of one victim is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Progress {
    /// The furthest state that was reached.
    pub state: EvacuationState,
    /// The scheduler has asked the agent to let the victim live. Only the agent's answer decides,
    /// because it may have acted already.
    pub spare_requested: bool,
}

/// What a scheduler learns or does about a victim.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EvacuationEvent {
    /// The broker has a notice.
    NoticePublished,
    /// The agent reports that the guest has its notice.
    Draining,
    /// The agent reports that the victim is gone and its capacity is free.
    Evacuated,
    /// The agent reports that it lets the victim live.
    Spared,
    /// The agent reports a failure.
    Failed {
        /// The victim still runs, or the agent cannot tell.
        still_running: bool,
    },
    /// The victim is not needed any more: the scheduler asks the agent to let it live.
    SpareRequested,
    /// The victim is not needed any more, and no notice was ever sent.
    Withdrawn,
    /// The agent has had its time ([`crate::Overdue::GiveUp`]).
    GivenUp,
}

/// What follows when a victim does not leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AfterFailure {
    /// The evacuation has failed at once, and a spare is sent behind it. For a cloud in which the
    /// victim holds its capacity until it is gone: the preemptor can go elsewhere.
    Fail,
    /// The agent is asked to let the victim live, and the evacuation ends with its answer. For a
    /// cloud that has given the victim's capacity away and takes it back now.
    Spare,
    /// The evacuation has failed, and another one of the same victim begins after a rest. For a
    /// cloud that has given the victim's capacity away for good.
    Repeat,
}

impl AfterFailure {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Fail, Self::Spare, Self::Repeat];
}

impl EvacuationEvent {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::NoticePublished,
        Self::Draining,
        Self::Evacuated,
        Self::Spared,
        Self::Failed {
            still_running: true,
        },
        Self::Failed {
            still_running: false,
        },
        Self::SpareRequested,
        Self::Withdrawn,
        Self::GivenUp,
    ];
}

impl Progress {
    /// The beginning: the claim on the victim's capacity is durable.
    pub const CLAIMED: Self = Self::new(EvacuationState::Claimed);

    /// A state in which no spare was requested.
    #[must_use]
    pub const fn new(state: EvacuationState) -> Self {
        Self {
            state,
            spare_requested: false,
        }
    }

    /// The progress of a stored evacuation.
    #[must_use]
    pub fn of(evacuation: &Evacuation) -> Self {
        Self {
            state: evacuation.state,
            spare_requested: evacuation.spare_requested,
        }
    }

    /// Puts the progress into a record.
    pub fn store(self, evacuation: &mut Evacuation) {
        evacuation.state = self.state;
        evacuation.spare_requested = self.spare_requested;
    }

    /// The progress after an event. `None`: the event changes nothing, because it is late, repeated
    /// or does not fit.
    #[must_use]
    pub fn after(self, event: EvacuationEvent, strategy: AfterFailure) -> Option<Self> {
        use EvacuationState::{Claimed, Draining, Evacuated, Failed, Notified, Spared};
        let to = |state| Some(Self { state, ..self });
        let spare = Some(Self {
            spare_requested: true,
            ..self
        });
        // Where capacity was swapped, the first notice of a claimed victim is still due. The agent
        // answers that one.
        let unsent = self == Self::CLAIMED && strategy != AfterFailure::Fail;
        match (event, self.state) {
            // The agent may have acted after it had answered, or after it was given up.
            (EvacuationEvent::Evacuated, Claimed | Notified | Draining | Spared | Failed) => {
                to(Evacuated)
            }
            // The agent may act on a notice of a failed evacuation that would have been repeated.
            (EvacuationEvent::SpareRequested, Failed) if strategy != AfterFailure::Fail => {
                Some(Self {
                    state: Notified,
                    spare_requested: true,
                })
            }
            (_, Evacuated | Spared | Failed) => None,
            (EvacuationEvent::NoticePublished, Claimed) => to(Notified),
            (EvacuationEvent::NoticePublished, _) => None,
            // The report may overtake the broker's confirmation.
            (EvacuationEvent::Draining, Claimed | Notified) => to(Draining),
            (EvacuationEvent::Draining, _) => None,
            (EvacuationEvent::SpareRequested, _) if !self.spare_requested => spare,
            (EvacuationEvent::SpareRequested, _) => None,
            (EvacuationEvent::Withdrawn, Claimed) if !self.spare_requested => to(Spared),
            (EvacuationEvent::Withdrawn, _) => None,
            (EvacuationEvent::Spared, _) if self.spare_requested => to(Spared),
            (EvacuationEvent::Spared | EvacuationEvent::Failed { .. }, _) if unsent => None,
            // The agent will not act, although the scheduler never asked for that.
            (EvacuationEvent::Spared, _) if strategy == AfterFailure::Fail => to(Failed),
            (EvacuationEvent::Spared, _) => to(Spared),
            // This may answer an earlier attempt while a later one is on its way. Only "spared"
            // says that the agent will not act.
            (
                EvacuationEvent::Failed {
                    still_running: true,
                },
                _,
            ) if self.spare_requested && strategy != AfterFailure::Fail => None,
            (
                EvacuationEvent::Failed {
                    still_running: true,
                },
                _,
            ) if strategy == AfterFailure::Spare => spare,
            (EvacuationEvent::Failed { .. }, _) => to(Failed),
            // A silent agent may only be slow or cut off, so it has to be told.
            (EvacuationEvent::GivenUp, _)
                if strategy == AfterFailure::Spare && !self.spare_requested =>
            {
                spare
            }
            (EvacuationEvent::GivenUp, _) => to(Failed),
        }
    }

    /// True if one event, under any strategy, or none leads to the next progress. For checks from
    /// outside. A record may forget in which state a spare was requested, and that one was once the
    /// evacuation is over.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        let is_next = |p: Self| match (p.state.is_final(), next.state.is_final()) {
            (true, true) => p.state == next.state,
            (false, false) => p == next || (p.spare_requested && next.spare_requested),
            _ => false,
        };
        let mut steps = EvacuationEvent::ALL
            .into_iter()
            .flat_map(|event| AfterFailure::ALL.map(|strategy| (event, strategy)));
        is_next(self)
            || steps.any(|(event, strategy)| self.after(event, strategy).is_some_and(is_next))
    }
}

#[cfg(test)]
mod tests;

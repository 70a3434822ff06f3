//! The state machine of a preemption on Placement: newcomers, victims, progress. Pure.
//!
//! The record is the whole state and lives in the ledger; every scheduler that shares the ledger
//! can continue it. The state machine is level-triggered: [`Preemption::due`] returns the actions
//! that are due in the current state, the shell executes them and feeds the outcome back with
//! [`Preemption::feed`], and it writes the changed record before it executes the next action. If a
//! scheduler dies between an action and the write, the action happens twice; every action is safe
//! to repeat.
//!
//! ```text
//! Planned ─▶ Claimed ─▶ Evacuating ─▶ Done
//!    │          │            │
//!    ▼          └────────────┴─▶ Withdrawing ─▶ Withdrawn
//! Refused
//! ```
//!
//! A server that leaves for another cause than a preemption has a record without newcomers
//! ([`Preemption::without_newcomers`]). It begins as `Evacuating`: there is no swap and no caller.
//!
//! The record decides about the newcomers, the swap, the caller and the return of allocations. What
//! happens to one victim is the protocol of `ebbtide-evacuation`, which is the same on both clouds.
//!
//! Invariants:
//! - No notice is sent before Placement has taken the swap and the scheduler has asked whether the
//!   caller still waits.
//! - A withdrawn preemption gives back exactly what it took: victims that live get their
//!   allocations, newcomers lose theirs, in one transaction of Placement.
//! - It gives back at once, before the victims' agents have answered. Otherwise Placement would
//!   show the capacity of a running victim as free. A victim that leaves with allocations loses
//!   them with its server. After the agents' reports the scheduler checks once more.
//! - It ends only when every agent has reported whether its victim lives, or counts as silent.

mod adoption;
mod due;
mod inputs;
mod policy;
mod record;
mod restore;
mod victim_state;
mod victims;

pub use adoption::{RedeliveryAction, RowOwnership, SILENCE_MILLIS};
pub use due::{NoticeOrder, PreemptionAction};
pub use inputs::PreemptionInput;
pub use policy::PreemptionPolicy;
pub use record::{
    HEADROOM_KEY, Holding, Newcomer, Preemption, PreemptionState, ReplyWhen, Victim,
    WithdrawalReason, next_headroom_turn,
};
pub use restore::{RestoredEnd, VictimFate};
pub use victim_state::VictimState;

#[cfg(test)]
mod tests;

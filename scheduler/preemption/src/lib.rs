//! A preemption on Placement: who comes, who has to leave, and how far it is. Pure.
//!
//! The record is the whole truth and lives in the ledger; every scheduler that shares the ledger can go on with it. It is
//! level-triggered: [`Preemption::due`] says what has to be done in the state as it is, the shell does it and feeds the outcome back
//! with [`Preemption::feed`], and what changed is written before the next thing is done. An action may therefore happen twice (the
//! scheduler died between doing and writing); each of them is safe to repeat.
//!
//! ```text
//! Planned ─▶ Claimed ─▶ Evacuating ─▶ Done
//!    │          │            │
//!    ▼          └────────────┴─▶ Withdrawing ─▶ Withdrawn
//! Refused
//! ```
//!
//! What holds:
//! - Nobody is told before Placement has taken the swap, nor without the caller having been asked whether it still waits.
//! - A preemption that is called off gives back exactly what it took: victims that live get their allocations, newcomers lose theirs, in
//!   one transaction of Placement.
//! - It gives back at once, before the victims' agents have answered: a victim that runs without
//!   allocations has its room shown as free, while one that leaves with allocations loses them with
//!   its server. What its agents say later is followed by a second look.
//! - It ends only when every agent has said whether its victim lives, or counts as silent.

mod adoption;
mod due;
mod feed;
mod policy;
mod record;

pub use adoption::{ComesAgain, SILENCE_MILLIS, Standing};
pub use due::{Action, NoticeOrder};
pub use feed::Input;
pub use policy::Policy;
pub use record::{CalledOff, Holding, Newcomer, Preemption, ReplyWhen, State, Victim, VictimState};

#[cfg(test)]
mod tests;

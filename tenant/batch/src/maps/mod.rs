//! A bag that is run by primary and backup maps on servers that may hibernate.
//!
//! [`BagWork`] is what a tenant hands in, with its plan and the node of each server of the plan.
//! [`BagRun`] carries the plan out: [`ebbtide_bag::Executor`], the same one that the simulator
//! runs, decides what is launched, run, cancelled and released; this module tells it what happened
//! and compares what it wants with what there is. Like the batch controller it is level-triggered,
//! and its facts ([`BagEntry`]) are written down before its actions are carried out: a program that
//! is killed applies them again and goes on.

mod entry;
mod run;
mod work;

pub use entry::{BagEntry, BagFact, unfinished};
pub use run::{AttemptSeen, BagDo, BagLook, BagReport, BagRun, BagSeen};
pub use work::{BagWork, read, settle};

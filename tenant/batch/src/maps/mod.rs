//! A bag that is run by primary and backup maps on servers that may hibernate.
//!
//! [`BagWork`] is what a tenant hands in, with its plan and the node of each server of the plan.
//! [`BagRun`] carries the plan out: [`ebbtide_bag::Executor`], the same one that the simulator
//! runs, decides what is launched, run, cancelled and released. The controller tells it what
//! happened, and compares what it wants with what there is (`controller/bags.rs`). What it was told
//! stands in the book: a service that is killed tells it again and goes on.

mod run;
mod work;

pub use run::{BagBook, BagRun, BagSummary};
pub use work::{BagWork, MapServer, is_bag};

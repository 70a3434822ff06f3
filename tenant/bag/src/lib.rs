//! Bags of tasks with a deadline on preemptible instances that may hibernate.
//!
//! After *A bag-of-tasks scheduler tolerant to temporal failures in clouds* (Teylo, Arantes, Sens,
//! Drummond; SBAC-PAD 2019; "the paper" in this crate), and beyond it. Instances are not scarce, a
//! core runs one task at a time, all times are whole seconds since the begin, money is millionths
//! of the currency unit. No I/O, no clock; chance comes from a seed.
//!
//! - [`Bag`] is a checked problem; that there is one proves that its deadline can be met.
//! - [`plan`] makes the primary and the backup map: as in the paper ([`Effort::Literal`]), greedy,
//!   or by search.
//! - [`Executor`] carries a plan out: events in, actions out. With copies
//!   ([`ExecutionPolicy::default`]) the deadline is met for any sequence of hibernations and
//!   interruptions.
//! - [`simulate`] is a world for it, [`read`] takes bags from text.
//!
//! ```
//! use ebbtide_bag::read::{FileOverrides, Format, bag};
//! use ebbtide_bag::simulate::{Outage, OutageEnd, Scenario, simulate};
//! use ebbtide_bag::{Effort, plan};
//!
//! let text = r#"
//!     rules = { deadline = "10h" }
//!     tasks = [{ name = "render", count = 4, duration = "3h", memory_mb = 2000 }]
//!     types = [{ name = "m1", vcpus = 2, memory_mb = 8000, on_demand = 0.10, preemptible = 0.03 }]
//! "#;
//! let bag = bag(text, Format::Toml, FileOverrides::default())?;
//! let plan = plan(&bag, Effort::usual(1));
//! // The first instance hibernates after an hour and never comes back.
//! let outages = vec![Outage { vm: 0, from: 3600, end: OutageEnd::Never }];
//! let run = simulate(&bag, &plan, &Scenario { outages, ..Scenario::default() })?;
//! assert!(run.met);
//! # Ok::<(), ebbtide_bag::BagError>(())
//! ```

mod backup;
mod bound;
mod error;
mod executor;
mod fleet;
mod greedy;
mod input;
mod map;
mod optimise;
mod plan;
pub mod read;
pub mod simulate;

pub use backup::Backup;
pub use bound::{Critical, critical, least_price, smallest_without_copies};
pub use error::BagError;
pub use executor::{BagAction, BagEvent, ExecutionPolicy, Executor, OnHibernation, VmId, VmState};
pub use fleet::plan_on;
pub use input::{
    Bag, Checkpoints, InstanceType, LONGEST, MOST_TASKS, MOST_TYPES, Rules, Task, slots_price,
};
pub use map::{Finish, Market, Vm};
pub use optimise::{BestShare, Effort, best_share, plan, plan_on_demand};
pub use plan::{Method, Plan, PlanPrice, PlannedVm};

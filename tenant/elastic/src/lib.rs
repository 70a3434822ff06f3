//! The elastic partition: preemptible servers for the short jobs of a batch cluster, when long jobs
//! fill the rest.
//!
//! After *CloudCoaster: transient-aware bursty datacenter workload scheduling* (Ogden and Guo,
//! arXiv 1907.02162; "the paper" in this crate). A cluster keeps N servers for short jobs only. A
//! part p of them is given up, and for their price up to K = rNp preemptible servers are held, r
//! being the quotient of the prices; when the long-load ratio l_r = N_long / N_total passes a
//! threshold, as many are asked for as bring it down.
//!
//! - [`ElasticPolicy`] has the formulas; [`Controller`] is the manager, a state machine over
//!   figures and times that are given to it. It can be driven by a simulation or by a live cluster.
//! - [`Trace`] reads jobs from text; [`simulate()`] plays them on a cluster in the manner of Eagle,
//!   with a static or an elastic partition; [`compare`] says what that gains. [`Demand`] is how
//!   many tasks would run on a cluster without end.
//!
//! Times are whole microseconds, delays in reports seconds. No I/O, no clock; chance comes from a
//! seed.
//!
//! ```
//! use ebbtide_elastic::{Controller, ControllerAction, ControllerEvent, ElasticPolicy};
//!
//! let policy = ElasticPolicy::new(80, 3.0, 0.5)?;
//! assert_eq!((policy.on_demand(), policy.budget(), policy.most()), (40, 120, 160));
//! let mut controller = Controller::new(policy);
//! // 3800 of 3960 servers have long tasks: 40 more bring the ratio down to 0.95.
//! let load = ControllerEvent::Load { long: 3_800, on_demand: 3_960 };
//! let actions = controller.handle(0, load, &mut |_| 0)?;
//! assert_eq!(actions.len(), 40);
//! assert!(matches!(actions[0], ControllerAction::Launch(_)));
//! # Ok::<(), ebbtide_elastic::ElasticError>(())
//! ```

pub mod compare;
mod controller;
mod demand;
mod error;
mod policy;
mod simulate;
mod trace;

pub use compare::Gain;
pub use controller::{
    Census, Controller, ControllerAction, ControllerEvent, ServerId, ServerState,
};
pub use demand::Demand;
pub use error::ElasticError;
pub use policy::{
    ElasticPolicy, LONGEST_US, MOST_SERVERS, PROVISIONING_US, THRESHOLD, long_load_ratio,
};
pub use simulate::{
    Cluster, Elastic, MeasuredTimes, NoWatch, Recovery, ServerRole, Setup, SimulationResult,
    Transients, Watch, WatchEvent, simulate,
};
pub use trace::{MOST_TASKS, Trace, TraceJob};

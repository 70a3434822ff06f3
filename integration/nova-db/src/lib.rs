//! Nova's databases, read as nova-scheduler reads them: cells, aggregates, hosts, services,
//! instances, and what changed since.
//!
//! [`NovaDb`] knows the API database and the scheduler's own one (`[database] connection`); a
//! [`CellDb`] is one cell's. Handles are cheap to clone and share a pool; a pool connects when it
//! is first used and again when its server comes back. Nothing here writes but [`OwnService`],
//! which keeps the scheduler's row in `services` as nova-scheduler does.
//!
//! Rows come out as `ebbtide-nova` wants them: JSON columns are taken in by the rules of Nova's
//! objects, so that a row that Nova stumbles over is a
//! [`NovaException`](ebbtide_nova::fault::NovaException) of the same class here. What changed is
//! found by `updated_at` ([`Tracker`], pure), with a slack for the clocks of the many who write.
//!
//! Errors name the database by the cell's name and its URL without the password; no URL is ever
//! shown with it.

mod api;
mod cell;
mod cells;
mod detail;
mod dialect;
mod discover;
mod error;
mod flavors;
mod follow;
mod hints;
mod history;
mod lookup;
mod pool;
mod record;
mod row;
mod schedulers;
mod template;
mod track;
mod url;
mod waits;

pub use api::{NovaDb, NovaDbConfig};
pub use cell::{CellDb, InstanceDetail};
pub use cells::{CELL0_UUID, CellMapping, Secret};
pub use error::NovaDbError;
pub use flavors::{FlavorSpecs, OfferedFlavor};
pub use follow::{CellContent, Changes, FollowOptions, Follower};
pub use history::{GoneMark, PowerChange, ServerHistory};
pub use lookup::{Group, HostMapping};
pub use pool::PoolOptions;
pub use record::{NovaRelease, OldComputePolicy, OwnService, OwnState, ReleaseEvidence};
pub use row::compute::{ComputeColumns, ComputeNode};
pub use row::instance::{Instance, InstanceFlavor};
pub use row::service::NovaService;
pub use schedulers::SchedulerRecord;
pub use template::format_url;
pub use track::{Mark, Tracker};
pub use url::{Backend, DatabaseUrl};
pub use waits::CallerWait;

//! A preemption's access to Placement: the swap, the check of a swap whose answer was lost, and the
//! return of what it took. Also claims of requests that find capacity, if the instance may already
//! hold something.
//!
//! This crate stands between the record (`ebbtide-preemption`, pure) and the client of Placement
//! (`ebbtide-openstack`), and interprets Placement's answers for a record's driver. Everything else
//! of a scheduler (Nova's databases, its other writes, its cloud in memory) comes in through
//! [`SwapEnvironment`]. So the Nova service and the simulator of evacuations run the same code, the
//! latter over a Placement in memory.

mod claims;
mod environment;
mod give_back;
mod holding;
mod release;
mod retake;
mod swap;

pub use claims::{holds, replace, take_back, taken_by};
pub use environment::{InstanceRow, SwapEnvironment};
pub use holding::{Amounts, amounts};
pub use retake::RetakeResult;
pub use swap::{SwapResult, SwapState};

use ebbtide_openstack::Placement;

/// Placement, for one preemption.
#[derive(Debug)]
pub struct PlacementSwap<'a, A> {
    placement: Placement,
    around: &'a A,
}

impl<'a, A: SwapEnvironment> PlacementSwap<'a, A> {
    /// Made from a client of Placement and the scheduler's environment.
    #[must_use]
    pub fn new(placement: Placement, around: &'a A) -> Self {
        Self { placement, around }
    }
}

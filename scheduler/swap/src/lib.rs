//! What a preemption writes into Placement and reads from it: the swap, what became of one whose
//! answer was lost, and the return of what it took. And claims of requests that find room, where
//! something may be held already.
//!
//! It stands between the record (`ebbtide-preemption`, pure) and the client of Placement
//! (`ebbtide-openstack`), and decides everything that a record's driver has to know of Placement's
//! answers. What else a scheduler has (Nova's databases, other writes of its own, what it believes
//! of the cloud) comes in through [`Around`]. So the Nova service and the simulator of evacuations
//! run the same code, the latter over a Placement in memory.

mod around;
mod claims;
mod give_back;
mod holding;
mod swap;

pub use around::{Around, InstanceRow};
pub use claims::{holds, replace, take_back, taken_by};
pub use holding::{Amounts, amounts};
pub use swap::{SwapFound, Swapped};

use ebbtide_openstack::Placement;

/// Placement, for one preemption.
#[derive(Debug)]
pub struct Room<'a, A> {
    placement: Placement,
    around: &'a A,
}

impl<'a, A: Around> Room<'a, A> {
    /// Of a client of Placement and what is around it.
    #[must_use]
    pub fn new(placement: Placement, around: &'a A) -> Self {
        Self { placement, around }
    }
}

//! Jobs and policies for the tests.

use ebbtide_deadline::{DeadlineJob, HourPrices, JobTerms, PolicyKind};
use ebbtide_model::Money;

pub(crate) const POLICIES: [PolicyKind; 6] = [
    PolicyKind::OnDemand,
    PolicyKind::Greedy,
    PolicyKind::TimeSliced { slices: 4 },
    PolicyKind::UniformProgress,
    PolicyKind::UniformProgressKeep,
    PolicyKind::Planned,
];

pub(crate) fn prices() -> HourPrices {
    HourPrices {
        spot: Money::from_micros(920_000),
        on_demand: Money::from_micros(3_060_000),
    }
}

/// A job on a recorded grid: decisions at each step, and no loss between two of them.
pub(crate) fn job(work: u64, deadline: u64, changeover: u64, step: u64) -> DeadlineJob {
    DeadlineJob::new(JobTerms {
        work,
        deadline,
        changeover,
        poll: step,
        loss_lag: 0,
        prices: prices(),
    })
    .unwrap()
}

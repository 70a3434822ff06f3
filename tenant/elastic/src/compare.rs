//! The elastic partition against the static one, on the same trace.

use crate::error::ElasticError;
use crate::policy::ElasticPolicy;
use crate::simulate::{Cluster, Elastic, Setup, SimulationResult, Watch, simulate};
use crate::trace::Trace;

/// How much better the elastic partition is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gain {
    /// The static partition's mean queueing delay of short tasks over the elastic one's; infinite
    /// if the latter is zero and the former is not, 1 if both are.
    pub mean: f64,
    /// The same for the longest delay.
    pub max: f64,
    /// Mean number of transient servers over r: what they cost in on-demand servers (`r-normalised`
    /// in the paper's Table 1).
    pub normalised: f64,
    /// The part of the given-up servers' price that is saved: 1 − normalised / ⌊Np⌋; 0 if none was
    /// given up.
    pub saving: f64,
}

impl Gain {
    /// Of two outcomes of one trace.
    #[must_use]
    pub fn of(
        fixed: &SimulationResult,
        elastic: &SimulationResult,
        policy: &ElasticPolicy,
    ) -> Self {
        let (normalised, saving) = Self::price(elastic.transients.mean_up, policy);
        Self {
            mean: Self::quotient(fixed.short.mean(), elastic.short.mean()),
            max: Self::quotient(fixed.short.max(), elastic.short.max()),
            normalised,
            saving,
        }
    }

    /// How much longer one delay is than the other: infinite if only the latter is zero, 1 if both
    /// are.
    #[must_use]
    pub fn quotient(fixed: f64, elastic: f64) -> f64 {
        if fixed == elastic {
            1.0
        } else {
            fixed / elastic
        }
    }

    /// What `mean_up` transient servers cost in on-demand ones, and the part of the given-up
    /// servers' price that is saved.
    #[must_use]
    pub fn price(mean_up: f64, policy: &ElasticPolicy) -> (f64, f64) {
        let normalised = mean_up / policy.ratio();
        let given_up = f64::from(policy.given_up());
        let saving = if given_up > 0.0 {
            1.0 - normalised / given_up
        } else {
            0.0
        };
        (normalised, saving)
    }
}

/// Plays a trace with all `short_only` servers on demand.
///
/// # Errors
/// As [`simulate`].
pub fn fixed(
    trace: &Trace,
    cluster: &Cluster,
    seed: u64,
    watch: &mut dyn Watch,
) -> Result<SimulationResult, ElasticError> {
    let setup = Setup {
        cluster: cluster.clone(),
        elastic: None,
        seed,
    };
    simulate(trace, &setup, watch)
}

/// Plays it with an elastic partition.
///
/// # Errors
/// As [`simulate`].
pub fn elastic(
    trace: &Trace,
    cluster: &Cluster,
    elastic: Elastic,
    seed: u64,
    watch: &mut dyn Watch,
) -> Result<SimulationResult, ElasticError> {
    let setup = Setup {
        cluster: cluster.clone(),
        elastic: Some(elastic),
        seed,
    };
    simulate(trace, &setup, watch)
}

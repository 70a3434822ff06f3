//! One decision, ready to be made: what the benchmarks of CI count instructions of.

use crate::cloud::{CloudPlan, Fill, LARGE, MEDIUM, NOW_MILLIS, request};
use crate::{BenchError, NoProgress};
use ebbtide_engine::{Budgets, Engine, EngineConfig, HostTable};
use ebbtide_model::{Decision, DecisionId, PlacementRequest, Timestamp};
use uuid::Uuid;

/// An engine, a cloud and a request.
#[derive(Debug)]
pub struct Workload {
    engine: Engine,
    table: HostTable,
    budgets: Budgets,
    request: PlacementRequest,
}

impl Workload {
    /// A request for a medium server on hosts that are partly filled.
    ///
    /// # Errors
    /// Never: the configuration is the default.
    pub fn ordinary(hosts: u32) -> Result<Self, BenchError> {
        Self::new(hosts, Fill::Partly, &MEDIUM)
    }

    /// A request for a large server on saturated hosts with so many preemptible instances each.
    ///
    /// # Errors
    /// Never: the configuration is the default.
    pub fn preempting(hosts: u32, preemptibles: u32) -> Result<Self, BenchError> {
        Self::new(hosts, Fill::Saturated { preemptibles }, &LARGE)
    }

    fn new(hosts: u32, fill: Fill, size: &crate::cloud::Size) -> Result<Self, BenchError> {
        let plan = CloudPlan {
            hosts,
            fill,
            seed: 1,
        };
        Ok(Self {
            engine: Engine::new(EngineConfig::default())?,
            table: plan.table(&mut NoProgress)?,
            budgets: Budgets::unlimited(),
            request: request(size.flavor(), 0),
        })
    }

    /// Decides; `turn` moves the time, so that no cost stays as it was.
    ///
    /// # Errors
    /// Never: the request is good.
    pub fn decide(&self, turn: i64) -> Result<Decision, BenchError> {
        let now = Timestamp::from_millis(NOW_MILLIS + turn * 37_000);
        let id = DecisionId(Uuid::from_u128(3));
        Ok(self
            .engine
            .decide(&self.table, &self.budgets, &self.request, now, 0, id)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_workload_preempts_and_the_other_does_not() {
        let ordinary = Workload::ordinary(50).unwrap().decide(0).unwrap();
        assert_eq!(ordinary.victims().count(), 0);
        let preempting = Workload::preempting(50, 8).unwrap().decide(0).unwrap();
        assert!(preempting.victims().count() > 0);
    }
}

//! A full host with a scheduler that preempts there.

use super::LONG;
use super::full_host::FullHost;
use crate::evacuate::{CountedBudgets, Evacuations, PreemptionDriver, PreemptionResult};
use crate::facts::Facts;
use crate::preemption::{Preemption, PreemptionPolicy};
use oslo_messaging::CallState;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// A full host and the schedulers of its cloud.
pub(super) struct Stage {
    full: FullHost,
    /// The first scheduler.
    pub(super) first: Evacuations,
}

impl Deref for Stage {
    type Target = FullHost;

    fn deref(&self) -> &FullHost {
        &self.full
    }
}

impl DerefMut for Stage {
    fn deref_mut(&mut self) -> &mut FullHost {
        &mut self.full
    }
}

impl Stage {
    pub(super) async fn new() -> Self {
        Self::of(FullHost::new().await).await
    }

    pub(super) async fn of(mut full: FullHost) -> Self {
        let known = full.bench.selector.facts.clone();
        let first = start(&full, "scheduler-1", known).await;
        full.bench.selector.preempting = PreemptionDriver::ready(first.clone());
        Self { full, first }
    }

    /// Another scheduler of the same cloud, which has read everything.
    pub(super) async fn scheduler(&self, name: &str) -> Evacuations {
        start(&self.full, name, self.full.facts().await).await
    }

    /// The same, with what its requests are decided on.
    pub(super) async fn scheduler_with(&self, name: &str, known: Facts) -> Evacuations {
        start(&self.full, name, known).await
    }

    /// The first scheduler carries out a plan.
    pub(super) async fn carries_out(&self, plan: Preemption) -> PreemptionResult {
        let budgets = CountedBudgets::default();
        let begun = self
            .first
            .begin(plan, &budgets, CallState::detached(), None, || {});
        let outcome = tokio::time::timeout(LONG, begun).await;
        outcome.expect("an end in time").unwrap()
    }
}

async fn start(full: &FullHost, name: &str, known: Facts) -> Evacuations {
    let bus = Arc::new(full.broker.connect());
    let tasks = full.bench.tasks.clone();
    full.scheduler(name, known, bus, PreemptionPolicy::default(), tasks)
        .await
}

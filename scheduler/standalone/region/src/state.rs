//! The region's state, and the function that handles every input.

use crate::backup::RestoredRegion;
use crate::books::{EvacuationBook, HostBook, ServerBook};
use crate::market::Market;
use crate::removal::RemovedHost;
use crate::speculate::{Speculation, SpeculationCounts, SpeculativeDecisions};
use crate::transition::Transition;
use crate::{Effects, Ids, RegionConfig, RegionError, RegionInput};
use ebbtide_engine::{Engine, HostTable};
use ebbtide_model::{
    Aggregate, AggregateId, BudgetScope, DisruptionBudget, Flavor, FlavorId, GroupId, ServerGroup,
    Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The state machine of a region. See the crate documentation.
pub struct Region {
    pub(crate) config: RegionConfig,
    pub(crate) engine: Arc<Engine>,
    /// Shadow engine. Its decisions are only compared with those of `engine`.
    pub(crate) shadow: Option<Arc<Engine>>,
    pub(crate) table: HostTable,
    pub(crate) hosts: HostBook,
    /// Hosts that operators removed for good. Their agents are refused.
    pub(crate) removed: BTreeMap<String, RemovedHost>,
    pub(crate) aggregates: BTreeMap<AggregateId, Aggregate>,
    pub(crate) flavors: BTreeMap<FlavorId, Flavor>,
    pub(crate) groups: BTreeMap<GroupId, ServerGroup>,
    pub(crate) budgets: BTreeMap<BudgetScope, DisruptionBudget>,
    /// Servers that are not gone, and those that went recently.
    pub(crate) servers: ServerBook,
    /// Evacuations under way, those that a budget still counts, and those that ended recently.
    pub(crate) evacuations: EvacuationBook,
    /// Set while the database waits to be reconciled after it was restored from a backup.
    pub(crate) restored: Option<RestoredRegion>,
    /// Market prices, and servers whose owners do not pay them.
    pub(crate) market: Market,
    /// Next time that the region purges remembered but obsolete entries.
    pub(crate) forget_at: Timestamp,
    /// Generation counter. Every change that could improve an earlier decision increments it; a
    /// speculative decision with an older value is made again.
    pub(crate) improvements: u64,
    /// Generation counter of aggregates, server groups and budgets. Every change of these
    /// increments it.
    pub(crate) catalog: u64,
    /// Counts of speculative decisions that were kept or made again.
    pub(crate) speculations: SpeculationCounts,
    /// Speculative decisions of the current batch that the host table shows.
    pub(crate) speculating: SpeculativeDecisions,
}

impl Region {
    /// Handles one input. The caller makes the changes durable before it returns the reply and
    /// publishes the events.
    ///
    /// # Errors
    /// The reason for a refusal; there are no effects in this case.
    pub fn handle<I: RegionInput>(
        &mut self,
        now: Timestamp,
        ids: &mut dyn Ids,
        input: I,
    ) -> Result<(I::Reply, Effects), RegionError> {
        self.handle_speculated(now, ids, input, None)
    }

    /// As [`Region::handle`], with the result that [`Region::speculate`] gave for the input.
    ///
    /// # Errors
    /// See [`Region::handle`].
    pub fn handle_speculated<I: RegionInput>(
        &mut self,
        now: Timestamp,
        ids: &mut dyn Ids,
        input: I,
        speculation: Option<Speculation>,
    ) -> Result<(I::Reply, Effects), RegionError> {
        if self.restored.is_some() && !input.works_while_held() {
            return Err(RegionError::Held);
        }
        let mut transition = Transition::new(now, ids);
        transition.speculation = speculation;
        let reply = input.apply(self, &mut transition)?;
        // Claims of a restored database may be of servers that run, or went, long ago.
        if self.restored.is_none() {
            self.reconcile(&mut transition);
        }
        self.new_generations(&transition.changed);
        Ok((reply, transition.effects))
    }

    /// Increments the generation of changed hosts, which invalidates earlier decisions about them.
    pub(crate) fn new_generations(&mut self, changed: &BTreeSet<String>) {
        for host in changed {
            self.hosts.new_generation(host);
        }
    }

    /// True if this engine instance makes the decisions of this region.
    #[must_use]
    pub fn decides_with(&self, engine: &Arc<Engine>) -> bool {
        Arc::ptr_eq(&self.engine, engine)
    }

    /// Replaces the engine that makes the decisions. Speculative decisions of the former engine are
    /// made again.
    pub fn set_engine(&mut self, engine: Arc<Engine>) {
        self.engine = engine;
        self.catalog += 1;
    }

    /// The engine that makes the decisions.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The host table, read-only.
    #[must_use]
    pub fn table(&self) -> &HostTable {
        &self.table
    }
}

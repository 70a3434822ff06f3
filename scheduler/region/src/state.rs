//! The region itself: what it holds, and the one function that takes every input.

use crate::gone::Gone;
use crate::heartbeat::HostEntry;
use crate::lifetimes::Lifetimes;
use crate::market::Market;
use crate::pending_calls::PendingAgentCalls;
use crate::resume_queue::ResumeQueue;
use crate::speculate::{Speculating, Speculation, SpeculationCounts};
use crate::transition::Transition;
use crate::{Command, Effects, Ids, Input, RegionConfig, RegionError, Reply};
use ebbtide_engine::{Engine, HostTable};
use ebbtide_model::{
    Aggregate, AggregateId, BudgetScope, DisruptionBudget, Evacuation, EvacuationId, Flavor,
    FlavorId, GroupId, MessageId, Server, ServerGroup, ServerId, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// Claims on one host that wait for room, the oldest request first, each with the time until which it waits although nobody is
/// being evacuated.
pub(crate) type Queue = BTreeMap<(Timestamp, ServerId), Timestamp>;

/// The state machine. See the crate's text.
pub struct Region {
    pub(crate) config: RegionConfig,
    pub(crate) engine: Arc<Engine>,
    /// Says what it would have decided, and decides nothing.
    pub(crate) shadow: Option<Arc<Engine>>,
    pub(crate) table: HostTable,
    pub(crate) hosts: BTreeMap<String, HostEntry>,
    pub(crate) aggregates: BTreeMap<AggregateId, Aggregate>,
    pub(crate) flavors: BTreeMap<FlavorId, Flavor>,
    pub(crate) groups: BTreeMap<GroupId, ServerGroup>,
    pub(crate) budgets: BTreeMap<BudgetScope, DisruptionBudget>,
    /// Servers that are not gone.
    pub(crate) servers: HashMap<ServerId, Server>,
    /// How many of these each project has. No zeros.
    pub(crate) by_project: HashMap<String, u32>,
    /// Servers by the host where they are or are going to be, if they are not gone.
    pub(crate) by_host: BTreeMap<String, BTreeSet<ServerId>>,
    /// Servers that have gone lately: a repeated request must not make them anew.
    pub(crate) gone: Gone,
    /// Evacuations under way, those that budgets still count, and those that ended lately.
    pub(crate) evacuations: HashMap<EvacuationId, Evacuation>,
    /// The same by what they could count against, whether or not there is such a budget. No empty sets.
    pub(crate) by_scope: HashMap<BudgetScope, BTreeSet<EvacuationId>>,
    /// Evacuations under way.
    pub(crate) active: BTreeSet<EvacuationId>,
    /// Evacuations under way, by host. No empty sets.
    pub(crate) leaving: BTreeMap<String, BTreeSet<EvacuationId>>,
    /// Claims that wait for room, by host. No empty queues.
    pub(crate) waiting: BTreeMap<String, Queue>,
    /// What agents were asked to start and to delete.
    pub(crate) pending_calls: PendingAgentCalls,
    /// Notices that the broker has not confirmed yet.
    pub(crate) unsent_notices: HashMap<EvacuationId, MessageId>,
    /// Victims whose evacuation failed, with the end of their rest.
    pub(crate) resting: BTreeMap<ServerId, Timestamp>,
    /// Servers that wait to come back, and those that have.
    pub(crate) resume_queue: ResumeQueue,
    /// When servers have to have their notice because of their maximum lifetime.
    pub(crate) lifetimes: Lifetimes,
    /// Prices, and who does not pay them.
    pub(crate) market: Market,
    /// When servers were said to run, by their agents' clocks: a heartbeat from before says nothing about those. A server that is not
    /// here has not been heard of since it was to be started.
    pub(crate) started_at: HashMap<ServerId, Timestamp>,
    /// When it is looked next for what need not be remembered any more.
    pub(crate) forget_at: Timestamp,
    /// Goes up with everything after which a request might be served better, or at all, that was decided before it.
    pub(crate) improvements: u64,
    /// Goes up with every change of aggregates, server groups and budgets.
    pub(crate) catalog: u64,
    /// What has become of speculations so far.
    pub(crate) speculations: SpeculationCounts,
    /// What the host table shows at the moment of decisions that are not made yet, and in which order.
    pub(crate) speculating: Speculating,
}

impl Region {
    /// Deals with one input. The reply may be given, and the events told, once the changes are durable.
    ///
    /// # Errors
    /// What was refused; there are no effects then.
    pub fn handle(
        &mut self,
        now: Timestamp,
        ids: &mut dyn Ids,
        input: Input,
    ) -> Result<(Reply, Effects), RegionError> {
        self.handle_speculated(now, ids, input, None)
    }

    /// The same, with what [`Region::speculate`] has said about the input.
    ///
    /// # Errors
    /// See [`Region::handle`].
    pub fn handle_speculated(
        &mut self,
        now: Timestamp,
        ids: &mut dyn Ids,
        input: Input,
        speculation: Option<Speculation>,
    ) -> Result<(Reply, Effects), RegionError> {
        let mut transition = Transition::new(now, ids);
        transition.speculation = speculation;
        let reply = match input {
            Input::Command(command) => self.command(&mut transition, command)?,
            Input::Report(message) => {
                self.report(&mut transition, message);
                Reply::Done
            }
            Input::Published { id, evacuation_id } => {
                self.published(&mut transition, id, evacuation_id);
                Reply::Done
            }
            Input::Tick => {
                self.tick(&mut transition);
                Reply::Done
            }
        };
        self.reconcile(&mut transition);
        self.new_generations(&transition.changed);
        Ok((reply, transition.effects))
    }

    fn command(
        &mut self,
        transition: &mut Transition<'_>,
        command: Command,
    ) -> Result<Reply, RegionError> {
        match command {
            Command::CreateServers(create) => self.create_servers(transition, *create),
            Command::WhatIf(request) => self.what_if(transition, &request),
            Command::DeleteServer(id) => self.delete_server(transition, id),
            Command::ReleaseServer(id) => self.release_server(transition, id),
            Command::AdoptServer(adopt) => self.adopt_server(transition, *adopt),
            Command::DisableHost { name, reason } => {
                self.set_disabled(transition, &name, Some(reason))
            }
            Command::EnableHost(name) => self.set_disabled(transition, &name, None),
            Command::CreateFlavor(flavor) => self.create_flavor(transition, flavor),
            Command::DeleteFlavor(name) => self.delete_flavor(transition, &name),
            Command::PutAggregate(aggregate) => self.put_aggregate(transition, aggregate),
            Command::DeleteAggregate(name) => self.delete_aggregate(transition, &name),
            Command::CreateGroup(group) => self.create_group(transition, group, None),
            Command::CreateGroupWithin(group, most) => {
                self.create_group(transition, group, Some(most))
            }
            Command::DeleteGroup(name) => self.delete_group(transition, &name),
            Command::PutBudget(budget) => self.put_budget(transition, budget),
            Command::DeleteBudget(scope) => self.delete_budget(transition, &scope),
        }
    }

    /// These hosts are not what they were for those who have decided about them before.
    pub(crate) fn new_generations(&mut self, changed: &BTreeSet<String>) {
        for host in changed {
            if let Some(entry) = self.hosts.get_mut(host) {
                entry.generation += 1;
            }
        }
    }

    /// True if this very engine decides here.
    #[must_use]
    pub fn decides_with(&self, engine: &Arc<Engine>) -> bool {
        Arc::ptr_eq(&self.engine, engine)
    }

    /// Another engine decides from now on. What was asked before it was told is decided anew.
    pub fn set_engine(&mut self, engine: Arc<Engine>) {
        self.engine = engine;
        self.catalog += 1;
    }

    /// How the engine decides here.
    #[must_use]
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The host table, for reading.
    #[must_use]
    pub fn table(&self) -> &HostTable {
        &self.table
    }
}

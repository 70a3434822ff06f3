//! A database as plain data: it applies a list of changes completely or not at all.

use ebbtide_evacuation::Progress;
use ebbtide_model::record::{Change, OutboxMessage, REMEMBER_GONE, RestoreMark, Snapshot};
use ebbtide_model::{
    Aggregate, AggregateId, BudgetScope, Decision, DecisionId, DisruptionBudget, Evacuation,
    EvacuationId, Flavor, FlavorId, GroupId, Host, PastLife, PricePoint, Server, ServerGroup,
    ServerId, Timestamp,
};
use std::collections::BTreeMap;

/// All durable records. Unlike the region it keeps ended ones.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Database {
    pub(super) hosts: BTreeMap<String, Host>,
    pub(super) aggregates: BTreeMap<AggregateId, Aggregate>,
    pub(super) flavors: BTreeMap<FlavorId, Flavor>,
    pub(super) groups: BTreeMap<GroupId, ServerGroup>,
    pub(super) budgets: BTreeMap<BudgetScope, DisruptionBudget>,
    pub(super) servers: BTreeMap<ServerId, Server>,
    pub(super) evacuations: BTreeMap<EvacuationId, Evacuation>,
    pub(super) decisions: BTreeMap<DecisionId, Decision>,
    pub(super) prices: BTreeMap<FlavorId, PricePoint>,
    pub(super) lives: BTreeMap<String, PastLife>,
    /// In the order of writing.
    pub(super) outbox: Vec<OutboxMessage>,
    pub(super) restored: Option<RestoreMark>,
}

impl Database {
    pub(super) fn apply(&mut self, changes: &[Change]) {
        for change in changes.iter().cloned() {
            match change {
                Change::PutHost(host) => drop(self.hosts.insert(host.name.clone(), *host)),
                Change::DeleteHost(name) => drop(self.hosts.remove(&name)),
                Change::PutAggregate(a) => drop(self.aggregates.insert(a.id, a)),
                Change::DeleteAggregate(id) => drop(self.aggregates.remove(&id)),
                Change::PutFlavor(flavor) => drop(self.flavors.insert(flavor.id, flavor)),
                Change::DeleteFlavor(id) => drop(self.flavors.remove(&id)),
                Change::PutGroup(group) => drop(self.groups.insert(group.id, group)),
                Change::DeleteGroup(id) => drop(self.groups.remove(&id)),
                Change::PutBudget(b) => drop(self.budgets.insert(b.scope.clone(), b)),
                Change::DeleteBudget(scope) => drop(self.budgets.remove(&scope)),
                Change::PutServer(server) => drop(self.servers.insert(server.id, *server)),
                Change::PutEvacuation(e) => {
                    let before = self.evacuations.get(&e.id).map(Progress::of);
                    let (before, after) = (before.unwrap_or(Progress::CLAIMED), Progress::of(&e));
                    assert!(
                        before.may_become(after),
                        "an evacuation goes from {before:?} to {after:?}"
                    );
                    self.evacuations.insert(e.id, *e);
                }
                Change::PutDecision(d) => {
                    let before = self.decisions.insert(d.id, *d);
                    assert_eq!(before, None, "decisions are never changed");
                }
                Change::PutPrice(p) => drop(self.prices.insert(p.flavor_id, p)),
                Change::PutLife(life) => drop(self.lives.insert(life.key(), *life)),
                Change::Enqueue(message) => self.outbox.push(message),
                Change::Dequeue(id) => self.outbox.retain(|m| m.id != id),
                Change::PutRestoreMark(mark) => self.restored = Some(mark),
                Change::DeleteRestoreMark => self.restored = None,
            }
        }
    }

    /// What a restarted scheduler reads.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut hosts: Vec<Host> = self.hosts.values().cloned().collect();
        hosts.sort_by(|a, b| (a.created_at, &a.name).cmp(&(b.created_at, &b.name)));
        let alive = self.servers.values().filter(|s| !s.status.is_gone());
        let mut servers: Vec<Server> = alive.cloned().collect();
        servers.sort_by_key(|s| (s.created_at, s.id));
        let went = self.servers.values().filter(|s| s.status.is_gone());
        let mut gone: Vec<(ServerId, Timestamp)> = went
            .map(|s| (s.id, s.ended_at.unwrap_or(s.created_at)))
            .collect();
        gone.sort_by_key(|(id, at)| (*at, *id));
        let last = gone.last().map(|(_, at)| *at).unwrap_or_default();
        gone.retain(|(_, at)| *at >= last.minus(REMEMBER_GONE));
        let mut evacuations: Vec<Evacuation> = self.evacuations.values().cloned().collect();
        evacuations.sort_by_key(|e| (e.claimed_at, e.id));
        Snapshot {
            prices: self.prices.values().cloned().collect(),
            hosts,
            aggregates: self.aggregates.values().cloned().collect(),
            flavors: self.flavors.values().cloned().collect(),
            groups: self.groups.values().cloned().collect(),
            budgets: self.budgets.values().cloned().collect(),
            servers,
            gone,
            evacuations,
            outbox: self.outbox.clone(),
            restored: self.restored,
        }
    }
}

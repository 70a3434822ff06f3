//! Who has to leave: decided by the engine, and held against everything that could have been
//! decided.

use super::callers::{CallerRequest, takes};
use super::world::NovaWorld;
use crate::cheapest::{self, Candidate, EPSILON};
use crate::violation::Invariant;
use ebbtide_engine::{Budgets, HostTable, Instance, InstancePhase};
use ebbtide_model::{
    Decision, DecisionId, DecisionOutcome, Flavor, FlavorId, Host, Inventory, Money,
    PlacementRequest, ResourceClass, Resources, ServerId, Timestamp,
};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

impl NovaWorld {
    /// The cheapest victims of all hosts for a normal request, as this scheduler knows who is
    /// leaving.
    pub(super) fn cheapest(
        &mut self,
        who: usize,
        request: &CallerRequest,
    ) -> Option<(usize, Vec<Uuid>)> {
        let now = self.clock(who);
        let table = self.table(who)?;
        let decision = self.decision(&table, request, now)?;
        if self.decision(&table, request, now).as_ref() != Some(&decision) {
            let what = "the same cloud, request and time gave another decision".to_owned();
            self.fail(Invariant::Deterministic, what);
        }
        let chosen = match &decision.outcome {
            DecisionOutcome::NoValidHost(_) => None,
            DecisionOutcome::Placed(placements) => placements.first(),
        };
        let chosen = chosen.and_then(|placement| {
            let host = self.agents.iter().position(|a| a.name == placement.host)?;
            let victims = placement.victims.iter();
            let victims: Vec<(Uuid, f64)> = victims.map(|v| (v.server_id.0, v.cost)).collect();
            Some((host, victims))
        });
        self.check_choice(who, request, now, chosen.as_ref());
        chosen.map(|(host, victims)| (host, victims.into_iter().map(|(id, _)| id).collect()))
    }

    fn decision(
        &self,
        table: &HostTable,
        request: &CallerRequest,
        now: Timestamp,
    ) -> Option<Decision> {
        let asked = PlacementRequest {
            server_ids: vec![ServerId(request.instance)],
            project_id: "pets".to_owned(),
            flavor: Flavor {
                id: FlavorId(Uuid::nil()),
                name: "normal".to_owned(),
                vcpus: u32::try_from(request.vcpus).ok()?,
                ram_mb: 0,
                disk_gb: 0,
                extra_specs: BTreeMap::new(),
            },
            availability_zone: None,
            group_id: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 0,
        };
        let id = DecisionId(request.instance);
        let budgets = Budgets::default();
        let decided = self.engine.decide(table, &budgets, &asked, now, 0, id);
        decided.ok()
    }

    /// The cloud as the engine sees it: who holds what in Placement, and who of them may leave.
    fn table(&self, who: usize) -> Option<HostTable> {
        let mut table = HostTable::new();
        for (host, agent) in self.agents.iter().enumerate() {
            let vcpus = self.placement.capacity.get(host).copied()?;
            let vcpus = vcpus.saturating_sub(self.unseen(host));
            table.put_host(&Host {
                name: agent.name.clone(),
                inventory: BTreeMap::from([(ResourceClass::vcpu(), Inventory::of(vcpus))]),
                traits: BTreeSet::new(),
                disabled_reason: self.is_reclaimed(host).then(|| "reclaimed".to_owned()),
                reclaim: None,
                agent_session: None,
                removed_at: None,
                last_seen: None,
                storage: None,
                created_at: Timestamp::from_millis(i64::try_from(host).ok()?),
            });
        }
        let there = self.placement.consumers.iter();
        for (id, held) in there {
            let instance = self.instances.get(id);
            let may_leave = self.may_leave(who, *id);
            table
                .put_instance(&Instance {
                    id: ServerId(*id),
                    name: String::new(),
                    project_id: "cattle".to_owned(),
                    host: self.agents.get(held.host)?.name.clone(),
                    resources: takes(held.vcpus),
                    retained: Resources::new(),
                    preemptible: may_leave,
                    group_id: None,
                    launched_at: instance.map(|i| i.since),
                    protected_until: None,
                    price_per_hour: Money::default(),
                    max_price: Money::default(),
                    flavor: String::new(),
                    ends_at: None,
                    priority: 0,
                    phase: InstancePhase::Running,
                })
                .ok()?;
        }
        Some(table)
    }

    pub(super) fn may_leave(&self, who: usize, id: Uuid) -> bool {
        let spot = self.instances.get(&id).is_some_and(|i| i.spot);
        spot && !self.schedulers[who].leaving.contains(&id)
    }

    /// The victims are enough, none of them could be left out, and no others would have been
    /// cheaper on any host.
    fn check_choice(
        &mut self,
        who: usize,
        request: &CallerRequest,
        now: Timestamp,
        chosen: Option<&(usize, Vec<(Uuid, f64)>)>,
    ) {
        let size = i64::try_from(request.vcpus).unwrap_or(i64::MAX);
        let mut hosts: Vec<(i64, Vec<Candidate>)> = Vec::with_capacity(self.agents.len());
        let mut frees: BTreeMap<Uuid, Candidate> = BTreeMap::new();
        for host in 0..self.agents.len() {
            // What such a host has counts for no request.
            if self.is_reclaimed(host) {
                hosts.push((i64::MIN / 2, Vec::new()));
                continue;
            }
            let free = self.balance(host);
            let there = self.placement.consumers.iter();
            let there = there.filter(|(id, held)| held.host == host && self.may_leave(who, **id));
            let mut candidates = Vec::new();
            for (id, held) in there {
                let since = self.instances.get(id).map_or(now, |i| i.since);
                let candidate = Candidate {
                    frees: i64::try_from(held.vcpus).unwrap_or(i64::MAX),
                    cost: cheapest::cost(now.millis_since(since)),
                };
                frees.insert(*id, candidate);
                candidates.push(candidate);
            }
            hosts.push((free, candidates));
        }
        let least = cheapest::cheapest_of_all(&hosts, 1, size);
        let wrong = match (chosen, least) {
            (None, None) => None,
            (None, Some(least)) => Some(format!(
                "no server is evicted, where {least} would buy the capacity"
            )),
            (Some((host, victims)), least) => {
                let (free, _) = hosts.get(*host).cloned().unwrap_or_default();
                let each: Vec<Candidate> = victims
                    .iter()
                    .filter_map(|(id, _)| frees.get(id).copied())
                    .collect();
                let freed: i64 = each.iter().map(|c| c.frees).sum();
                let paid: f64 = victims.iter().map(|(_, cost)| cost).sum();
                let truly: f64 = each.iter().map(|c| c.cost).sum();
                if each.len() != victims.len() || free + freed < size {
                    Some(format!("{freed} VCPUs beside {free} for {size}"))
                } else if each.iter().any(|c| free + freed - c.frees >= size) {
                    Some("one of the victims could be left out".to_owned())
                } else if (paid - truly).abs() > EPSILON {
                    Some(format!("victims cost {truly} and are said to cost {paid}"))
                } else {
                    least
                        .filter(|least| *least + EPSILON < paid)
                        .map(|least| format!("victims cost {paid}, others {least}"))
                }
            }
        };
        if let Some(what) = wrong {
            self.fail(Invariant::NoVictimTooMany, what);
        }
    }
}

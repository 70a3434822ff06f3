//! Hosts and servers as the API shows them. Each function goes through all servers of the cloud
//! once.

use super::{Cloud, Node, Provider, instances::CloudInstance};
use crate::facts::InstanceRecord;
use ebbtide_engine::{ClassUsage, HostSummary, HostUsage};
use ebbtide_model::resource::MAX_AMOUNT;
use ebbtide_model::{
    Aggregate, AggregateId, FlavorId, GroupId, Host, HostHealth, Inventory, Server, ServerStatus,
    Timestamp,
};
use ebbtide_nova::model::{Flavor, Service};
use ebbtide_nova::schedule::availability_zone;
use ebbtide_nova::states::HostStateList as _;
use std::collections::{BTreeMap, HashMap};
use uuid::Uuid;

/// Servers of a node.
#[derive(Debug, Clone, Copy, Default)]
struct ServerCount {
    normal: u32,
    preemptible: u32,
    leaving: u32,
}

fn millis(micros: i64) -> Timestamp {
    Timestamp::from_millis(micros.div_euclid(1000))
}

fn amount(number: i64) -> u64 {
    number.max(0).unsigned_abs().min(MAX_AMOUNT)
}

impl Cloud {
    /// All hosts that have a nova-compute, by name. `now` in microseconds since 1970.
    #[must_use]
    pub fn host_summaries(&self, now: i64) -> Vec<HostSummary> {
        let mut counts: HashMap<Uuid, ServerCount> = HashMap::new();
        for (uuid, instance) in &self.instances {
            if let Some(node) = self.node_of(&instance.record) {
                let count = counts.entry(node).or_default();
                match (&instance.terms, self.leaving.contains(uuid)) {
                    (None, _) => count.normal += 1,
                    (Some(_), leaving) => {
                        count.preemptible += 1;
                        count.leaving += u32::from(leaving);
                    }
                }
            }
        }
        let mut hosts: Vec<HostSummary> = self
            .nodes
            .iter()
            .filter_map(|(uuid, node)| {
                let count = counts.get(uuid).copied().unwrap_or_default();
                self.host_summary(*uuid, node, count, now)
            })
            .collect();
        hosts.sort_by(|a, b| a.host.name.cmp(&b.host.name));
        hosts
    }

    fn host_summary(
        &self,
        uuid: Uuid,
        node: &Node,
        count: ServerCount,
        now: i64,
    ) -> Option<HostSummary> {
        let place = node.place?;
        let provider = self.providers.get(&uuid)?;
        let state = self.table.states().get(place);
        let name = self.names.get(place)?.clone();
        let health = self.health(&state.service, now);
        let mut aggregates: Vec<String> = state.aggregates.iter().map(|a| a.name.clone()).collect();
        aggregates.sort();
        let inventories = provider.inventories(&node.row);
        let known = |(class, stock): (&String, &crate::facts::Inventory)| {
            let inventory = Inventory {
                total: amount(stock.total),
                reserved: amount(stock.reserved),
                allocation_ratio: stock.allocation_ratio,
            };
            Some((class.parse().ok()?, inventory))
        };
        Some(HostSummary {
            availability_zone: availability_zone(state, &self.options().default_availability_zone),
            aggregates,
            usage: HostUsage {
                host: name.clone(),
                health,
                servers: count.normal + count.preemptible,
                staying_preemptible_servers: count.preemptible - count.leaving,
                classes: classes(provider, &inventories),
            },
            normal_servers: count.normal,
            preemptible_servers: count.preemptible,
            host: Host {
                name,
                inventory: inventories.iter().filter_map(known).collect(),
                traits: provider
                    .traits
                    .iter()
                    .flatten()
                    .filter_map(|name| name.parse().ok())
                    .collect(),
                disabled_reason: state.service.disabled.then(|| {
                    let reason = state.service.disabled_reason.clone();
                    reason.unwrap_or_else(|| "no reason given".to_owned())
                }),
                // The ledger has it.
                reclaim: None,
                agent_session: None,
                removed_at: None,
                last_seen: state.service.last_seen_up.map(millis),
                storage: None,
                created_at: millis(state.service.created_at.unwrap_or_default()),
            },
            health,
        })
    }

    /// Up, down or disabled, as ComputeFilter judges.
    fn health(&self, service: &Service, now: i64) -> HostHealth {
        if service.disabled {
            return HostHealth::Disabled;
        }
        let window = self.options().service_down_time.unwrap_or(0);
        let heartbeat = service.last_seen_up.or(service.created_at);
        let fresh = heartbeat.is_some_and(|at| {
            (i128::from(now) - i128::from(at)).abs() <= i128::from(window) * 1_000_000
        });
        match fresh && !service.forced_down {
            true => HostHealth::Up,
            false => HostHealth::Down,
        }
    }

    /// All servers that are not deleted, by id.
    #[must_use]
    pub fn servers(&self) -> Vec<Server> {
        let all = self.instances.iter();
        let mut servers: Vec<Server> = all.map(|(id, one)| self.server_of(*id, one)).collect();
        servers.sort_by_key(|server| server.id);
        servers
    }

    /// A server that is not deleted.
    #[must_use]
    pub fn server(&self, uuid: Uuid) -> Option<Server> {
        Some(self.server_of(uuid, self.instances.get(&uuid)?))
    }

    /// A server as the API shows it. Its group and zone are as far as its row tells.
    fn server_of(&self, uuid: Uuid, instance: &CloudInstance) -> Server {
        let record = &instance.record;
        let node = self.node_of(record).and_then(|node| self.nodes.get(&node));
        let name = node.and_then(|node| self.names.get(node.place?).cloned());
        let created = record.created_at.or(record.launched_at);
        Server {
            id: uuid.into(),
            name: record.name.clone(),
            project_id: record.project_id.clone(),
            flavor: flavor_view(&record.flavor),
            group_id: record.group.map(GroupId),
            availability_zone: None,
            host: name.or_else(|| record.host.clone()),
            status: status(record, self.leaving.contains(&uuid)),
            // Nova starts it.
            external: true,
            decision_id: None,
            evacuation_id: None,
            created_at: millis(created.unwrap_or_default()),
            launched_at: record.launched_at.map(millis),
            reported_at: None,
            ended_at: None,
            fault: None,
            max_price: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            refused_hosts: Vec::new(),
            left_hosts: BTreeMap::new(),
            last_message_at: None,
            starts: 0,
            comeback: None,
        }
    }

    /// All aggregates, by name.
    #[must_use]
    pub fn aggregate_views(&self) -> Vec<Aggregate> {
        let mut all: Vec<Aggregate> = self
            .aggregates
            .values()
            .filter_map(|aggregate| {
                Some(Aggregate {
                    id: AggregateId(aggregate.uuid.parse().ok()?),
                    name: aggregate.name.clone(),
                    hosts: aggregate.hosts.iter().cloned().collect(),
                    metadata: aggregate.metadata.clone(),
                })
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }
}

/// Usage by class. What victims of open preemptions still use while Placement shows it as free is
/// leaving; as long as their preemptors hold it, it counts for those.
fn classes(
    provider: &Provider,
    inventories: &BTreeMap<String, crate::facts::Inventory>,
) -> Vec<ClassUsage> {
    let usage = |(name, inventory): (&String, &crate::facts::Inventory)| {
        let cell = provider.cell(name, inventory);
        let of = |amounts: &BTreeMap<String, i64>| amounts.get(name).copied().unwrap_or(0);
        let (preemptible, leaving) = (of(&provider.preemptible), of(&provider.running));
        Some(ClassUsage {
            class: name.parse().ok()?,
            capacity: super::capacity(inventory),
            normal: provider.normal_use(name).saturating_sub(leaving),
            preemptible,
            leaving,
            claimed: 0,
            free_full: i64::from(cell.free),
            free_normal: i64::from(cell.free_normal),
        })
    };
    let mut classes: Vec<ClassUsage> = inventories.iter().filter_map(usage).collect();
    classes.sort_by(|a, b| a.class.cmp(&b.class));
    classes
}

/// A flavor in the model's form. Nova's id need not be a UUID; then one is derived from it.
#[must_use]
pub fn flavor_view(flavor: &Flavor) -> ebbtide_model::Flavor {
    let count = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
    let specs = flavor.extra_specs.iter().flat_map(|specs| specs.iter());
    ebbtide_model::Flavor {
        id: flavor_id(flavor),
        name: flavor.name.clone(),
        vcpus: count(flavor.vcpus),
        ram_mb: count(flavor.memory_mb),
        disk_gb: count(flavor.root_gb.saturating_add(flavor.ephemeral_gb)),
        extra_specs: specs
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect(),
    }
}

/// Nova's id of a flavor, or one that is derived from it where it is no UUID.
pub(super) fn flavor_id(flavor: &Flavor) -> FlavorId {
    let id = &flavor.flavorid;
    let derived = || Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes());
    FlavorId(id.parse().unwrap_or_else(|_| derived()))
}

/// Nova's states in the words of the API: stopped and suspended servers are `stopped`, shelved ones
/// `hibernated`, all others that exist `active`.
fn status(record: &InstanceRecord, leaving: bool) -> ServerStatus {
    if record.task_state.as_deref() == Some("deleting") {
        return ServerStatus::Deleting;
    }
    if leaving {
        return ServerStatus::Evacuating;
    }
    match record.vm_state.as_deref() {
        Some("building") => ServerStatus::Building,
        Some("stopped" | "suspended") => ServerStatus::Stopped,
        Some("shelved" | "shelved_offloaded") => ServerStatus::Hibernated,
        Some("soft-delete") => ServerStatus::Deleting,
        Some("deleted") => ServerStatus::Deleted,
        Some("error") => ServerStatus::Error,
        _ => ServerStatus::Active,
    }
}

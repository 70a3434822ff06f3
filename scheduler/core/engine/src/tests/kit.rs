//! Words for tests: clouds, instances, requests, decisions.

use crate::{Budgets, Engine, EngineConfig, EngineError, HostTable, Instance, InstancePhase};
use ebbtide_model::{
    Aggregate, AggregateId, Decision, DecisionId, DecisionOutcome, Flavor, FlavorId, GroupId,
    GroupPolicy, Host, Inventory, Money, NoValidHost, Placement, PlacementRequest, ResourceClass,
    Resources, ServerGroup, ServerId, Timestamp,
};
use std::collections::BTreeMap;
use uuid::Uuid;

/// The moment at which everything is decided.
pub(crate) fn now() -> Timestamp {
    minutes_ago(0)
}

/// A moment before [`now`].
pub(crate) fn minutes_ago(minutes: i64) -> Timestamp {
    Timestamp::from_millis(1_770_000_000_000 - minutes * 60_000)
}

pub(crate) fn server(number: u128) -> ServerId {
    ServerId(Uuid::from_u128(number))
}

pub(crate) fn group_id(number: u128) -> GroupId {
    GroupId(Uuid::from_u128(number))
}

/// VCPUs and 1000 MiB for each.
pub(crate) fn sized(vcpus: u64) -> Resources {
    resources(&[("VCPU", vcpus), ("MEMORY_MB", 1000 * vcpus)])
}

pub(crate) fn resources(amounts: &[(&str, u64)]) -> Resources {
    let mut resources = Resources::new();
    for (class, amount) in amounts {
        resources.set(class.parse().unwrap(), *amount).unwrap();
    }
    resources
}

/// A host with VCPUs, and 1000 MiB and 10 GiB for each. Registered in the order of `position`.
pub(crate) fn host(name: &str, position: i64, vcpus: u64) -> Host {
    Host {
        name: name.to_owned(),
        inventory: BTreeMap::from([
            (ResourceClass::vcpu(), Inventory::of(vcpus)),
            (ResourceClass::memory_mb(), Inventory::of(1000 * vcpus)),
            (ResourceClass::disk_gb(), Inventory::of(10 * vcpus)),
        ]),
        traits: Default::default(),
        disabled_reason: None,
        reclaim: None,
        agent_session: None,
        removed_at: None,
        last_seen: None,
        storage: None,
        created_at: Timestamp::from_millis(position),
    }
}

/// A normal instance that runs.
pub(crate) fn normal(number: u128, host: &str, vcpus: u64) -> Instance {
    Instance {
        id: server(number),
        name: format!("vm-{number}"),
        project_id: "project-n".to_owned(),
        host: host.to_owned(),
        resources: sized(vcpus),
        retained: Resources::new(),
        preemptible: false,
        group_id: None,
        launched_at: Some(minutes_ago(100)),
        protected_until: None,
        price_per_hour: Money::default(),
        max_price: Money::default(),
        flavor: String::new(),
        ends_at: None,
        priority: 0,
        phase: InstancePhase::Running,
    }
}

/// A preemptible instance that runs since so many minutes: with the default cost module it costs
/// those of the started hour.
pub(crate) fn spot(number: u128, host: &str, vcpus: u64, minutes: i64) -> Instance {
    Instance {
        project_id: "project-s".to_owned(),
        preemptible: true,
        launched_at: Some(minutes_ago(minutes)),
        ..normal(number, host, vcpus)
    }
}

/// As [`spot`], with a disk that stays when it is evacuated.
pub(crate) fn keeper(number: u128, host: &str, vcpus: u64, disk: u64, minutes: i64) -> Instance {
    let mut resources = sized(vcpus);
    resources.set(ResourceClass::disk_gb(), disk).unwrap();
    Instance {
        retained: resources.only(&ResourceClass::disk_gb()),
        resources,
        ..spot(number, host, vcpus, minutes)
    }
}

/// A flavor with VCPUs and 1000 MiB for each.
pub(crate) fn flavor(vcpus: u32) -> Flavor {
    Flavor {
        id: FlavorId(Uuid::from_u128(7)),
        name: format!("v{vcpus}"),
        vcpus,
        ram_mb: 1000 * vcpus,
        disk_gb: 0,
        extra_specs: BTreeMap::new(),
    }
}

/// A request for one normal instance. Its servers are numbered from 1,000,000 on.
pub(crate) fn wants(vcpus: u32) -> PlacementRequest {
    PlacementRequest {
        server_ids: vec![server(1_000_000)],
        project_id: "project-n".to_owned(),
        flavor: flavor(vcpus),
        availability_zone: None,
        group_id: None,
        ignore_hosts: Vec::new(),
        force_hosts: Vec::new(),
        alternates: 0,
    }
}

/// Requests, refined.
pub(crate) trait Refine: Sized {
    fn times(self, count: u128) -> Self;
    fn preemptible(self) -> Self;
    fn spec(self, key: &str, value: &str) -> Self;
    fn joins(self, group: GroupId) -> Self;
}

impl Refine for PlacementRequest {
    fn times(mut self, count: u128) -> Self {
        self.server_ids = (0..count).map(|n| server(1_000_000 + n)).collect();
        self
    }

    fn preemptible(self) -> Self {
        self.spec("ebbtide:preemptible", "true")
    }

    fn spec(mut self, key: &str, value: &str) -> Self {
        self.flavor
            .extra_specs
            .insert(key.to_owned(), value.to_owned());
        self
    }

    fn joins(mut self, group: GroupId) -> Self {
        self.group_id = Some(group);
        self
    }
}

/// A cloud of hosts (name, VCPUs), registered in this order, with instances.
pub(crate) fn cloud(hosts: &[(&str, u64)], instances: &[Instance]) -> HostTable {
    let mut table = HostTable::new();
    for (position, (name, vcpus)) in hosts.iter().enumerate() {
        table.put_host(&host(name, i64::try_from(position).unwrap(), *vcpus));
    }
    for instance in instances {
        table.put_instance(instance).unwrap();
    }
    table.check_consistency().unwrap();
    table
}

pub(crate) fn aggregate(number: u128, hosts: &[&str], metadata: &[(&str, &str)]) -> Aggregate {
    Aggregate {
        id: AggregateId(Uuid::from_u128(number)),
        name: format!("aggregate-{number}"),
        hosts: hosts.iter().map(|h| (*h).to_owned()).collect(),
        metadata: metadata
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect(),
    }
}

pub(crate) fn group(number: u128, policy: GroupPolicy) -> ServerGroup {
    ServerGroup {
        id: group_id(number),
        name: format!("group-{number}"),
        project_id: "project-n".to_owned(),
        policy,
        max_server_per_host: 1,
    }
}

pub(crate) fn engine(config: EngineConfig) -> Engine {
    Engine::new(config).unwrap()
}

/// Decides with the default configuration and no budgets.
pub(crate) fn decide(table: &HostTable, request: &PlacementRequest) -> Decision {
    decide_with(&engine(EngineConfig::default()), table, request)
}

pub(crate) fn decide_with(
    engine: &Engine,
    table: &HostTable,
    request: &PlacementRequest,
) -> Decision {
    try_decide(engine, table, &Budgets::unlimited(), request).unwrap()
}

pub(crate) fn try_decide(
    engine: &Engine,
    table: &HostTable,
    budgets: &Budgets,
    request: &PlacementRequest,
) -> Result<Decision, EngineError> {
    engine.decide(
        table,
        budgets,
        request,
        now(),
        42,
        DecisionId(Uuid::from_u128(9)),
    )
}

/// The placements; the test fails if there are none.
pub(crate) fn placed(decision: &Decision) -> &[Placement] {
    match &decision.outcome {
        DecisionOutcome::Placed(placements) => placements,
        DecisionOutcome::NoValidHost(no) => panic!("{}", no.reason),
    }
}

/// The refusal; the test fails if there is none.
pub(crate) fn refused(decision: &Decision) -> &NoValidHost {
    match &decision.outcome {
        DecisionOutcome::NoValidHost(no) => no,
        DecisionOutcome::Placed(placements) => panic!("placed: {placements:?}"),
    }
}

/// Host and numbers of the victims of each placement.
pub(crate) fn summary(decision: &Decision) -> Vec<(&str, Vec<u128>)> {
    let numbers = |p: &Placement| {
        let mut numbers: Vec<u128> = p.victims.iter().map(|v| v.server_id.0.as_u128()).collect();
        numbers.sort_unstable();
        numbers
    };
    placed(decision)
        .iter()
        .map(|p| (p.host.as_str(), numbers(p)))
        .collect()
}

/// Applies a decision as the caller of the engine does: victims begin to leave, and the new
/// instances claim their capacity.
pub(crate) fn apply(table: &mut HostTable, decision: &Decision) {
    let properties = decision.request.flavor.properties().unwrap();
    for placement in placed(decision) {
        for victim in &placement.victims {
            let mut instance = table.instance(victim.server_id).unwrap().to_instance();
            assert_ne!(
                instance.phase,
                InstancePhase::Leaving,
                "a victim was chosen twice"
            );
            instance.phase = InstancePhase::Leaving;
            table.put_instance(&instance).unwrap();
        }
        table
            .put_instance(&Instance {
                id: placement.server_id,
                name: "new".to_owned(),
                project_id: decision.request.project_id.clone(),
                host: placement.host.clone(),
                resources: properties.resources.clone(),
                retained: properties.retained(),
                preemptible: properties.preemptible,
                group_id: decision.request.group_id,
                launched_at: None,
                protected_until: None,
                price_per_hour: properties.price_per_hour,
                max_price: properties.price_per_hour,
                flavor: decision.request.flavor.name.clone(),
                ends_at: None,
                priority: properties.priority,
                phase: InstancePhase::Claimed,
            })
            .unwrap();
    }
    table.check_consistency().unwrap();
}

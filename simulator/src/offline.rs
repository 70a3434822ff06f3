//! A replay against the engine alone: no region, no network, no waiting.
//!
//! Time is the trace's. A victim leaves a fixed grace period after the decision, and its preemptor
//! runs from then on. No victim is spared: if a preemptor is deleted while it waits, its victims
//! still leave (the region does better; see its evacuations).

use crate::{
    ClassSample, EventKind, Latencies, LifeTotals, PreemptibleShare, RecordedPlacements,
    ReplayReport, Sample, Sampling, SimError, Trace, TraceEvent, VmEnd, VmLifetime, VmSize,
};
use ebbtide_engine::{Budgets, Engine, EngineConfig, HostTable, Instance, InstancePhase};
use ebbtide_model::{
    Decision, DecisionId, DecisionOutcome, Flavor, FlavorId, Host, HostHealth, Inventory,
    Placement, PlacementRequest, ResourceClass, Seconds, ServerId, Timestamp, flavor,
};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::ops::ControlFlow;
use std::time::Duration;
use uuid::Uuid;

/// Zero of the trace's time, in milliseconds since the epoch. Any fixed moment does; a year after
/// the hosts' registration looks sane.
const ZERO_MILLIS: i64 = 365 * 24 * 3_600_000;
/// Whose VMs they are.
const PROJECT: &str = "replay";
/// Namespace of the identifiers of servers, decisions and flavors: fixed, so that a replay is
/// repeatable bit for bit.
const NAMESPACE: Uuid = Uuid::from_u128(0x6562_6274_6964_6500_7265_706c_6179_0000);

/// What to replay on.
#[derive(Debug, Clone)]
pub struct OfflineOptions {
    /// Names of the hosts, in the order in which first-fit takes them.
    pub hosts: Vec<String>,
    /// Virtual CPUs of each.
    pub host_cpu: u32,
    /// Memory of each, in GiB.
    pub host_mem_gb: u32,
    /// Policy, weighers, cost module.
    pub engine: EngineConfig,
    /// Which VMs are preemptible.
    pub preemptible: PreemptibleShare,
    /// Time from decision to the end of a victim.
    pub grace: Seconds,
    /// A sample every so many seconds of trace time.
    pub sample_every: Option<f64>,
    /// Preemptible VMs that would run so many seconds at most count as short work.
    pub short_seconds: f64,
}

/// Replays a trace. `clock` is a monotonic clock, for the decision latencies; `progress` hears the
/// number of events done and may stop the replay.
///
/// # Errors
/// [`SimError::Engine`] if the configuration or a request is refused, [`SimError::Option`] for
/// hosts that cannot be.
pub fn replay(
    trace: &Trace,
    options: &OfflineOptions,
    recorded: Option<&RecordedPlacements>,
    clock: &dyn Fn() -> Duration,
    progress: &mut dyn FnMut(usize) -> ControlFlow<()>,
) -> Result<ReplayReport, SimError> {
    let started = clock();
    let mut cloud = Cloud::new(options)?;
    let mut sampling = Sampling::new(trace.span(), options.sample_every)?;
    let mut report = ReplayReport {
        against: "offline".to_owned(),
        policy: options.engine.policy.as_str().to_owned(),
        cost_module: options.engine.cost_module.clone(),
        preemptible_share: options.preemptible.share(),
        seed: options.preemptible.seed(),
        events_in_trace: trace.events.len() as u64,
        irregularities: trace.irregularities,
        placements: recorded.map(RecordedPlacements::comparison),
        lives: Some(LifeTotals::new(options.short_seconds)),
        ..ReplayReport::default()
    };
    let mut latencies = Latencies::default();
    let first = trace.span().0;
    let ends = ends(trace);
    for (done, event) in trace.events.iter().enumerate() {
        if progress(done).is_break() {
            report.interrupted = true;
            break;
        }
        cloud.advance(event.at, &mut report);
        if sampling.due(event.at) {
            report.samples.push(cloud.sample(event.at));
        }
        match event.kind {
            EventKind::Create => {
                let index = usize::try_from(report.creates).unwrap_or(usize::MAX);
                let asked = clock();
                let decision = cloud.decide(event)?;
                latencies.add(clock().saturating_sub(asked));
                let end = ends.get(done).copied().unwrap_or(event.at);
                let host = cloud.create(event, end, &decision, &mut report)?;
                if let (Some(recorded), Some(comparison)) = (recorded, &mut report.placements) {
                    recorded.compare(comparison, index, event.line, &event.vm, host.as_deref());
                }
            }
            EventKind::Delete => cloud.delete(event, &mut report),
        }
        report.events += 1;
        report.trace_seconds = event.at - first;
    }
    if let Some(last) = trace
        .events
        .get(usize::try_from(report.events).unwrap_or(0).wrapping_sub(1))
    {
        report.samples.push(cloud.sample(last.at));
    }
    report.decision_latency = latencies.summary();
    report.wall_seconds = clock().saturating_sub(started).as_secs_f64();
    Ok(report)
}

/// When the user deletes the VM that each event creates, in trace time: at the end of the trace if
/// never. For deletes it means nothing.
fn ends(trace: &Trace) -> Vec<f64> {
    let last = trace.span().1;
    let mut ends = vec![last; trace.events.len()];
    let mut alive: HashMap<&str, usize> = HashMap::new();
    for (at, event) in trace.events.iter().enumerate() {
        match event.kind {
            EventKind::Create => {
                alive.insert(&event.vm, at);
            }
            EventKind::Delete => {
                if let Some(created) = alive.remove(event.vm.as_str()) {
                    ends[created] = event.at;
                }
            }
        }
    }
    ends
}

/// Something that happens by itself, ordered by time, then by order of planning.
type Planned = Reverse<(i64, u64, ServerId, bool)>;

/// The engine with its table, and what will happen by itself.
struct Cloud<'a> {
    options: &'a OfflineOptions,
    engine: Engine,
    table: HostTable,
    budgets: Budgets,
    flavors: BTreeMap<(VmSize, bool), Flavor>,
    servers: HashMap<&'a str, ServerId>,
    /// When their users end the preemptible ones, in trace time.
    ends: HashMap<ServerId, f64>,
    planned: BinaryHeap<Planned>,
    sequence: u64,
}

fn at(seconds: f64) -> Timestamp {
    #[allow(clippy::cast_possible_truncation)] // At most 1e9 s, checked by the reader.
    let millis = (seconds * 1000.0).round() as i64;
    Timestamp::from_millis(ZERO_MILLIS + millis)
}

impl<'a> Cloud<'a> {
    fn new(options: &'a OfflineOptions) -> Result<Self, SimError> {
        let inventory: BTreeMap<ResourceClass, Inventory> = [
            (ResourceClass::vcpu(), u64::from(options.host_cpu)),
            (
                ResourceClass::memory_mb(),
                u64::from(options.host_mem_gb) * 1024,
            ),
        ]
        .into_iter()
        .map(|(class, total)| (class, Inventory::of(total)))
        .collect();
        let mut table = HostTable::new();
        for (position, name) in options.hosts.iter().enumerate() {
            let host = Host {
                name: name.clone(),
                inventory: inventory.clone(),
                traits: std::collections::BTreeSet::new(),
                disabled_reason: None,
                reclaim: None,
                agent_session: None,
                removed_at: None,
                last_seen: None,
                storage: None,
                // The order of registration is the order of first-fit.
                created_at: Timestamp::from_millis(i64::try_from(position).unwrap_or(i64::MAX)),
            };
            host.check()
                .map_err(|problem| SimError::Option(problem.to_string()))?;
            table.put_host(&host);
            table.set_health(name, HostHealth::Up);
        }
        Ok(Self {
            options,
            engine: Engine::new(options.engine.clone())?,
            table,
            budgets: Budgets::default(),
            flavors: BTreeMap::new(),
            servers: HashMap::new(),
            ends: HashMap::new(),
            planned: BinaryHeap::new(),
            sequence: 0,
        })
    }

    /// Lets everything happen that was planned up to a time.
    fn advance(&mut self, seconds: f64, report: &mut ReplayReport) {
        let now = at(seconds).as_millis();
        while let Some(Reverse((when, _, id, leaves))) = self.planned.peek().copied() {
            if when > now {
                return;
            }
            self.planned.pop();
            if leaves {
                let when = Timestamp::from_millis(when);
                report.preempted += u64::from(self.remove(id, when, VmEnd::Preempted, report));
            } else {
                self.start(id, Timestamp::from_millis(when));
            }
        }
    }

    /// Takes an instance away and notes what became of a preemptible one. True if it was there.
    fn remove(
        &mut self,
        id: ServerId,
        now: Timestamp,
        ended: VmEnd,
        report: &mut ReplayReport,
    ) -> bool {
        let end = self.ends.remove(&id);
        let lived = self.table.instance(id).and_then(|instance| {
            let launched = instance.launched_at?;
            let seconds = now.millis_since(launched) as f64 / 1000.0;
            let trace_now = now.millis_since(Timestamp::from_millis(ZERO_MILLIS)) as f64 / 1000.0;
            let lost_seconds = match ended {
                VmEnd::Preempted => (end? - trace_now).max(0.0),
                VmEnd::Stopped => 0.0,
            };
            Some(VmLifetime {
                flavor: instance.flavor.to_owned(),
                vcpus: u32::try_from(instance.resources.amount("VCPU")).unwrap_or(u32::MAX),
                seconds,
                ended,
                lost_seconds,
            })
        });
        if let (Some(_), Some(lived), Some(lives)) = (end, lived, &mut report.lives) {
            lives.add(lived);
        }
        self.table.remove_instance(id)
    }

    /// A preemptor runs from now on, if it is still there.
    fn start(&mut self, id: ServerId, now: Timestamp) {
        let Some(mut instance) = self.table.instance(id).map(|view| view.to_instance()) else {
            return;
        };
        instance.phase = InstancePhase::Running;
        instance.launched_at = Some(now);
        // It was there a moment ago, and so was its host.
        let _ = self.table.put_instance(&instance);
    }

    fn plan(&mut self, when: Timestamp, id: ServerId, leaves: bool) {
        self.sequence += 1;
        self.planned
            .push(Reverse((when.as_millis(), self.sequence, id, leaves)));
    }

    fn flavor(&mut self, shape: VmSize, preemptible: bool) -> Flavor {
        let build = || {
            let name = shape.flavor_name(preemptible);
            let word = preemptible.to_string();
            Flavor {
                id: FlavorId(Uuid::new_v5(&NAMESPACE, name.as_bytes())),
                name,
                vcpus: shape.vcpus,
                ram_mb: shape.ram_mb,
                disk_gb: 0,
                extra_specs: [(flavor::PREEMPTIBLE.to_owned(), word)].into(),
            }
        };
        self.flavors
            .entry((shape, preemptible))
            .or_insert_with(build)
            .clone()
    }

    fn decide(&mut self, event: &TraceEvent) -> Result<Decision, SimError> {
        let preemptible = self.options.preemptible.contains(&event.vm);
        // By line, because a VM may come again after its delete.
        let name = format!("{}:{}", event.line, event.vm);
        let request = PlacementRequest {
            server_ids: vec![ServerId(Uuid::new_v5(&NAMESPACE, name.as_bytes()))],
            project_id: PROJECT.to_owned(),
            flavor: self.flavor(event.shape, preemptible),
            availability_zone: None,
            group_id: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 0,
        };
        let id = DecisionId(Uuid::new_v5(
            &NAMESPACE,
            format!("decision:{name}").as_bytes(),
        ));
        let seed = self.options.preemptible.seed();
        Ok(self
            .engine
            .decide(&self.table, &self.budgets, &request, at(event.at), seed, id)?)
    }

    /// Does what was decided; answers with the host.
    fn create(
        &mut self,
        event: &'a TraceEvent,
        end: f64,
        decision: &Decision,
        report: &mut ReplayReport,
    ) -> Result<Option<String>, SimError> {
        report.creates += 1;
        let placement = match &decision.outcome {
            DecisionOutcome::Placed(placements) => placements.first(),
            DecisionOutcome::NoValidHost(_) => None,
        };
        let Some(placement) = placement else {
            report.refused += 1;
            return Ok(None);
        };
        report.placed += 1;
        report.waited += u64::from(placement.waits_for_room);
        self.occupy(event, placement, decision)?;
        if self.options.preemptible.contains(&event.vm) {
            self.ends.insert(placement.server_id, end);
        }
        Ok(Some(placement.host.clone()))
    }

    fn occupy(
        &mut self,
        event: &'a TraceEvent,
        placement: &Placement,
        decision: &Decision,
    ) -> Result<(), SimError> {
        let now = at(event.at);
        let end = now.plus(self.options.grace);
        for victim in &placement.victims {
            if let Some(view) = self.table.instance(victim.server_id) {
                let mut leaving = view.to_instance();
                leaving.phase = InstancePhase::Leaving;
                self.table.put_instance(&leaving)?;
                self.plan(end, victim.server_id, true);
            }
        }
        let properties = decision
            .request
            .flavor
            .properties()
            .map_err(|problem| SimError::Option(problem.to_string()))?;
        let waits = placement.waits_for_room;
        self.table.put_instance(&Instance {
            id: placement.server_id,
            name: event.vm.clone(),
            project_id: PROJECT.to_owned(),
            host: placement.host.clone(),
            retained: properties.retained(),
            resources: properties.resources,
            preemptible: properties.preemptible,
            group_id: None,
            launched_at: (!waits).then_some(now),
            protected_until: None,
            price_per_hour: properties.price_per_hour,
            max_price: properties.price_per_hour,
            flavor: decision.request.flavor.name.clone(),
            ends_at: None,
            priority: properties.priority,
            phase: if waits {
                InstancePhase::Claimed
            } else {
                InstancePhase::Running
            },
        })?;
        if waits {
            // Every leaving instance of the host leaves within one grace period from now.
            self.plan(end, placement.server_id, false);
        }
        self.servers.insert(&event.vm, placement.server_id);
        Ok(())
    }

    fn delete(&mut self, event: &TraceEvent, report: &mut ReplayReport) {
        let there = self.servers.remove(event.vm.as_str());
        let now = at(event.at);
        if there.is_some_and(|id| self.remove(id, now, VmEnd::Stopped, report)) {
            report.deletes += 1;
        } else {
            report.deletes_without_server += 1;
        }
    }

    fn sample(&self, seconds: f64) -> Sample {
        let amount = |n: i64| u64::try_from(n).unwrap_or(0);
        let class = |totals: ebbtide_engine::ClassUsage| ClassSample {
            resource_class: totals.class.to_string(),
            capacity: amount(totals.capacity),
            normal: amount(totals.normal),
            preemptible: amount(totals.preemptible),
            leaving: amount(totals.leaving),
        };
        Sample {
            at_seconds: seconds,
            classes: self.table.totals().into_iter().map(class).collect(),
        }
    }
}

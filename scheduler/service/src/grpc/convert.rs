//! Conversion of objects from the model to the wire. Each of their fields is set here only.

use crate::bills::{Bill, InstanceHour};
use ebbtide_counterfactual::WithoutWeigher;
use ebbtide_engine::{ClassUsage, HostSummary, PluginFailure};
use ebbtide_live_plugins::ListedPlugin;
use ebbtide_market::FlavorPrice;
use ebbtide_model::{
    Aggregate, BudgetScope, CloudEvent, Decision, DecisionOutcome, DisruptionBudget, Evacuation,
    Explanation, Flavor, Host, HostHealth, Inventory, LifeInterval, NoValidHost, PartTime,
    PastLife, Placement, PricePoint, RefusedClaim, Resources, Server, ServerGroup, Timestamp,
    Victim, decision,
};
use ebbtide_proto::v1;
use std::collections::HashMap;

fn time(at: Option<Timestamp>) -> String {
    at.map(|t| t.to_string()).unwrap_or_default()
}

fn id<T: ToString>(id: Option<T>) -> String {
    id.map(|i| i.to_string()).unwrap_or_default()
}

fn amounts(resources: &Resources) -> HashMap<String, u64> {
    resources
        .iter()
        .map(|(class, n)| (class.to_string(), n))
        .collect()
}

fn whole(n: i64) -> u64 {
    u64::try_from(n).unwrap_or(0)
}

pub(super) fn flavor(f: &Flavor) -> v1::Flavor {
    v1::Flavor {
        id: f.id.to_string(),
        name: f.name.clone(),
        vcpus: f.vcpus,
        ram_mb: f.ram_mb,
        disk_gb: f.disk_gb,
        extra_specs: f.extra_specs.clone().into_iter().collect(),
        preemptible: f.is_preemptible(),
    }
}

pub(super) fn aggregate(a: &Aggregate) -> v1::Aggregate {
    v1::Aggregate {
        id: a.id.to_string(),
        name: a.name.clone(),
        hosts: a.hosts.iter().cloned().collect(),
        metadata: a.metadata.clone().into_iter().collect(),
    }
}

pub(super) fn group(g: &ServerGroup) -> v1::ServerGroup {
    v1::ServerGroup {
        id: g.id.to_string(),
        name: g.name.clone(),
        project_id: g.project_id.clone(),
        policy: g.policy.to_string(),
        max_server_per_host: g.max_server_per_host,
    }
}

pub(super) fn budget(b: &DisruptionBudget) -> v1::DisruptionBudget {
    let (project_id, group_id) = match &b.scope {
        BudgetScope::Project(project) => (project.clone(), String::new()),
        BudgetScope::Group(group) => (String::new(), group.to_string()),
    };
    v1::DisruptionBudget {
        project_id,
        group_id,
        max_victims: b.max_victims,
        window_seconds: b.window.0,
    }
}

/// A resource class of a host, or of the region with its inventories summed up.
pub(super) fn usage(u: &ClassUsage, inventory: Option<&Inventory>) -> v1::ResourceUsage {
    v1::ResourceUsage {
        resource_class: u.class.to_string(),
        total: inventory.map_or(0, |i| i.total),
        reserved: inventory.map_or(0, |i| i.reserved),
        allocation_ratio: inventory.map_or(0.0, |i| i.allocation_ratio),
        capacity: whole(u.capacity),
        normal: whole(u.normal),
        preemptible: whole(u.preemptible),
        leaving: whole(u.leaving),
        free_full: u.free_full,
        free_normal: u.free_normal,
    }
}

pub(super) fn host(view: &HostSummary) -> v1::Host {
    v1::Host {
        availability_zone: view.availability_zone.clone(),
        aggregates: view.aggregates.clone(),
        traits: view.host.traits.iter().map(ToString::to_string).collect(),
        resources: view
            .usage
            .classes
            .iter()
            .map(|u| usage(u, view.host.inventory.get(&u.class)))
            .collect(),
        normal_servers: view.normal_servers,
        preemptible_servers: view.preemptible_servers,
        created_at: view.host.created_at.to_string(),
        ..host_news(&view.host, view.health)
    }
}

/// The health of a host in the event that tells of its removal.
const REMOVED: &str = "removed";

fn host_news(host: &Host, health: HostHealth) -> v1::Host {
    let health = match host.removed_at {
        Some(_) => REMOVED,
        None => health.as_str(),
    };
    v1::Host {
        name: host.name.clone(),
        health: health.to_owned(),
        disabled_reason: host.disabled_reason.clone().unwrap_or_default(),
        last_seen: time(host.last_seen),
        storage: host.storage.clone().unwrap_or_default(),
        ..v1::Host::default()
    }
}

/// A server; its evacuation, if it is known, gives the deadline.
pub(super) fn server(s: &Server, leaving: Option<&Evacuation>) -> v1::Server {
    let properties = s.flavor.properties().ok();
    let life = LifeInterval::of(s, leaving, ebbtide_runtime::clock::now());
    v1::Server {
        id: s.id.to_string(),
        name: s.name.clone(),
        project_id: s.project_id.clone(),
        flavor_name: s.flavor.name.clone(),
        preemptible: s.is_preemptible(),
        status: s.status.to_string(),
        host: s.host.clone().unwrap_or_default(),
        group_id: id(s.group_id),
        availability_zone: s.availability_zone.clone().unwrap_or_default(),
        decision_id: id(s.decision_id),
        evacuation_id: id(s.evacuation_id),
        created_at: s.created_at.to_string(),
        launched_at: time(s.launched_at),
        ended_at: time(s.ended_at),
        fault_code: s.fault.as_ref().map(|f| f.code.clone()).unwrap_or_default(),
        fault_message: s
            .fault
            .as_ref()
            .map(|f| f.message.clone())
            .unwrap_or_default(),
        resources: properties
            .as_ref()
            .map(|p| amounts(&p.resources))
            .unwrap_or_default(),
        interruption: properties
            .map(|p| p.interruption.to_string())
            .unwrap_or_default(),
        deadline_at: time(leaving.and_then(|e| e.deadline_at)),
        state: life.state.to_string(),
        state_since: time(life.since),
        state_until: time(life.until),
        state_reason: life.reason,
        max_price: s.max_price.map(|p| p.to_string()).unwrap_or_default(),
    }
}

pub(super) fn evacuation(e: &Evacuation) -> v1::Evacuation {
    v1::Evacuation {
        id: e.id.to_string(),
        victim_id: e.victim_id.to_string(),
        victim_project_id: e.victim_project_id.clone(),
        host: e.host.clone(),
        cause: e.cause.as_str().to_owned(),
        preemptor_id: e.preemptor_id.map(|id| id.to_string()).unwrap_or_default(),
        decision_id: e.decision_id.map(|id| id.to_string()).unwrap_or_default(),
        behaviour: e.behaviour.to_string(),
        grace_seconds: e.grace.0,
        cost: e.cost,
        state: e.state.to_string(),
        attempts: e.attempts,
        reason: e.reason.clone().unwrap_or_default(),
        claimed_at: e.claimed_at.to_string(),
        notified_at: time(e.notified_at),
        draining_at: time(e.draining_at),
        deadline_at: time(e.deadline_at),
        ended_at: time(e.ended_at),
        victim_name: e.victim_name.clone(),
        reclaim_owner: e.reclaim_owner.clone().unwrap_or_default(),
    }
}

pub(super) fn price(p: &PricePoint) -> v1::PriceRecord {
    v1::PriceRecord {
        id: p.key(),
        flavor: p.flavor.clone(),
        at: p.at.to_string(),
        price: p.price.to_string(),
        supply: p.supply,
        demand: p.demand,
    }
}

pub(super) fn flavor_price(p: &FlavorPrice) -> v1::FlavorPrice {
    let last = p.last.as_ref();
    v1::FlavorPrice {
        flavor: p.flavor.clone(),
        preemptible: p.preemptible,
        price: p.price.to_string(),
        price_per_hour: p.base.to_string(),
        floor: p.floor.to_string(),
        ceiling: p.ceiling.to_string(),
        since: time(last.map(|last| last.at)),
        supply: last.map_or(0, |last| last.supply),
        demand: last.map_or(0, |last| last.demand),
    }
}

pub(super) fn life(l: &PastLife) -> v1::Life {
    v1::Life {
        id: l.key(),
        server_id: l.server_id.to_string(),
        name: l.name.clone(),
        project_id: l.project_id.clone(),
        flavor: l.flavor.clone(),
        preemptible: l.preemptible,
        host: l.host.clone(),
        zone: l.zone.clone(),
        launched_at: l.launched_at.to_string(),
        ended_at: l.ended_at.to_string(),
        end: l.end.to_string(),
        price_per_hour: l.price_per_hour.to_string(),
        max_lifetime_seconds: l.max_lifetime.map_or(0, |s| s.0),
    }
}

fn victim(v: &Victim) -> v1::Victim {
    let hidden = v.server_id.0.is_nil();
    v1::Victim {
        server_id: if hidden {
            String::new()
        } else {
            v.server_id.to_string()
        },
        name: v.name.clone(),
        project_id: v.project_id.clone(),
        resources: amounts(&v.resources),
        age_seconds: v.age_seconds,
        cost: v.cost,
    }
}

fn placement(p: &Placement) -> v1::Placement {
    v1::Placement {
        server_id: p.server_id.to_string(),
        host: p.host.clone(),
        victims: p.victims.iter().map(victim).collect(),
        waits_for_room: p.waits_for_room,
        alternates: p.alternates.clone(),
    }
}

fn no_valid_host(n: &NoValidHost) -> v1::NoValidHost {
    v1::NoValidHost {
        reason: n.reason.clone(),
        placed_before: n.placed_before,
        dropped: n
            .dropped
            .iter()
            .map(|c| v1::FilterCount {
                filter: c.filter.clone(),
                dropped: c.dropped,
            })
            .collect(),
        hosts: n.hosts,
    }
}

fn instance(i: &decision::InstanceExplanation) -> v1::InstanceExplanation {
    let dropped = |d: &decision::DroppedHost| v1::DroppedHost {
        host: d.host.clone(),
        reason: d.reason.clone(),
    };
    let weight = |w: &decision::Weight| v1::Weight {
        weigher: w.weigher.clone(),
        raw: w.raw,
        normalised: w.normalised,
        multiplier: w.multiplier,
    };
    v1::InstanceExplanation {
        filters: i
            .filters
            .iter()
            .map(|s| v1::FilterStep {
                filter: s.filter.clone(),
                before: s.before,
                after: s.after,
                dropped: s.dropped.iter().map(dropped).collect(),
            })
            .collect(),
        ranking: i
            .ranking
            .iter()
            .map(|h| v1::RankedHost {
                host: h.host.clone(),
                chosen: h.chosen,
                eviction_cost: h.eviction_cost,
                victims: h.victims.iter().map(victim).collect(),
                weight: h.weight,
                weights: h.weights.iter().map(weight).collect(),
            })
            .collect(),
        ranked: i.ranked,
    }
}

fn explanation(e: &Explanation) -> v1::Explanation {
    v1::Explanation {
        policy: e.policy.clone(),
        cost_module: e.cost_module.clone(),
        filtered_on: e.filtered_on.clone(),
        seed: e.seed,
        instances: e.instances.iter().map(instance).collect(),
        optimal: e.optimal,
        gap: e.gap,
        surcharge: e.surcharge,
        warnings: e.warnings.clone(),
    }
}

/// A decision without its explanation.
pub(super) fn decision_short(d: &Decision) -> v1::Decision {
    let (placements, none) = match &d.outcome {
        DecisionOutcome::Placed(placements) => (placements.iter().map(placement).collect(), None),
        DecisionOutcome::NoValidHost(none) => (Vec::new(), Some(no_valid_host(none))),
    };
    v1::Decision {
        id: d.id.to_string(),
        at: d.at.to_string(),
        project_id: d.request.project_id.clone(),
        flavor_name: d.request.flavor.name.clone(),
        preemptible: d.request.flavor.is_preemptible(),
        server_ids: d
            .request
            .server_ids
            .iter()
            .map(ToString::to_string)
            .collect(),
        placements,
        no_valid_host: none,
        explanation: None,
        request_id: d.trace.request_id.clone(),
        user_id: d.trace.user_id.clone(),
        scheduler: d.trace.scheduler.clone(),
        refused_claims: Vec::new(),
        times: Vec::new(),
    }
}

pub(super) fn decision(d: &Decision) -> v1::Decision {
    v1::Decision {
        explanation: Some(explanation(&d.explanation)),
        refused_claims: d.trace.refused_claims.iter().map(refused_claim).collect(),
        times: d.trace.times.iter().map(part_time).collect(),
        ..decision_short(d)
    }
}

/// Of the decision as its reader may see it.
pub(super) fn counterfactuals(d: &Decision) -> v1::Counterfactuals {
    let victims = d.victims().count();
    let waits = match &d.outcome {
        DecisionOutcome::Placed(placements) => placements.first().is_some_and(|p| p.waits_for_room),
        DecisionOutcome::NoValidHost(_) => false,
    };
    let others = ebbtide_counterfactual::without_weighers(&d.explanation, waits);
    let one_more = ebbtide_counterfactual::one_more_host(&d.explanation, victims);
    v1::Counterfactuals {
        without_weighers: others.into_iter().map(without_weigher).collect(),
        needs_victims: ebbtide_counterfactual::needs_victims(&d.explanation, victims),
        one_more_host: one_more.unwrap_or_default().to_owned(),
    }
}

fn without_weigher(other: WithoutWeigher) -> v1::WithoutWeigher {
    v1::WithoutWeigher {
        weigher: other.weigher,
        hosts: other.hosts,
        certain: other.certain,
    }
}

pub(super) fn bill(((project_id, flavor), bill): (&(String, String), &Bill)) -> v1::Bill {
    v1::Bill {
        project_id: project_id.clone(),
        flavor: flavor.clone(),
        charged_hours: bill.charged_hours,
        free_hours: bill.free_hours,
        unknown_hours: bill.unknown_hours,
        charged: bill.charged.to_string(),
    }
}

pub(super) fn billed_hour(row: &InstanceHour) -> v1::BilledHour {
    let InstanceHour { of, hour } = row;
    v1::BilledHour {
        id: row.key().to_string(),
        project_id: of.project_id.clone(),
        server_id: of.server_id.clone(),
        name: of.name.clone(),
        flavor: of.flavor.clone(),
        hour: hour.number,
        from: hour.from.to_string(),
        to: hour.to.to_string(),
        price: hour.price.map(|p| p.to_string()).unwrap_or_default(),
        charged: hour.charged.to_string(),
        charge: hour.charge.as_str().to_owned(),
    }
}

fn refused_claim(claim: &RefusedClaim) -> v1::RefusedClaim {
    v1::RefusedClaim {
        server_id: claim.server_id.to_string(),
        host: claim.host.clone(),
        reason: claim.reason.clone(),
    }
}

fn part_time(time: &PartTime) -> v1::PartTime {
    v1::PartTime {
        part: time.part.clone(),
        micros: time.micros,
    }
}

/// An event for watchers; `None` for events that are only logged.
pub(super) fn event(event: &CloudEvent) -> Option<v1::watch_event::Event> {
    use v1::watch_event::Event as Wire;
    Some(match event {
        CloudEvent::Decision(d) => Wire::Decision(decision_short(d)),
        CloudEvent::Server(s) => Wire::Server(server(s, None)),
        CloudEvent::Evacuation(e) => Wire::Evacuation(evacuation(e)),
        CloudEvent::Host(h, health) => Wire::Host(host_news(h, *health)),
        CloudEvent::Ignored(_) | CloudEvent::Alarm { .. } => return None,
    })
}

/// True if the event is about this project's servers, or is a decision about its request.
pub(super) fn concerns(event: &CloudEvent, project: &str) -> bool {
    match event {
        CloudEvent::Decision(d) => d.request.project_id == project,
        CloudEvent::Server(s) => s.project_id == project,
        CloudEvent::Evacuation(e) => e.victim_project_id == project,
        CloudEvent::Host(..) | CloudEvent::Ignored(_) | CloudEvent::Alarm { .. } => false,
    }
}

/// A plugin with its role and multiplier in the deciding engine.
pub(super) fn plugin(listed: &ListedPlugin) -> v1::Plugin {
    let ListedPlugin {
        plugin,
        added,
        usage,
    } = listed;
    let health = plugin.health.report();
    let shadow = plugin.shadow_health.report();
    let refuses = usage.on_failure == PluginFailure::Refuse;
    v1::Plugin {
        name: plugin.config.name.clone(),
        kind: plugin.kind.as_str().to_owned(),
        carrier: plugin.carrier.as_str().to_owned(),
        enabled: plugin.config.enabled,
        multiplier: usage.multiplier,
        on_failure: if refuses { "refuse" } else { "ignore" }.to_owned(),
        file: plugin.config.source(),
        digest: plugin.digest.clone(),
        calls: health.calls,
        failures: health.failures,
        skipped: health.skipped,
        resting: health.resting,
        last_failure: health.last_failure.unwrap_or_default(),
        in_use: usage.in_use,
        shadow: plugin.config.shadow,
        missing: plugin.missing().unwrap_or_default().to_owned(),
        added: *added,
        shadow_calls: shadow.calls,
        shadow_failures: shadow.failures,
        refused: health.refused,
        shadow_refused: shadow.refused,
    }
}

//! The record of a request that has its answer.

use super::trace::{Answer, AnsweredRequest, DecisionTrace};
use crate::facts::Facts;
use ebbtide_model::decision::{Explanation, FilterCount, FilterStep, InstanceExplanation};
use ebbtide_model::{
    Decision, DecisionComparison, DecisionOutcome, Flavor, FlavorId, GroupId, NoValidHost,
    PartTime, Placement, PlacementRequest, RequestTrace, Resources, ServerId, Victim,
};
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova::schedule::ScheduleCall;
use ebbtide_nova_cloud::{
    PlacementQuery, PlannedInstance, PlannedVictim, PreemptionPlan, SelectedHost, ShadowChoice,
};
use uuid::Uuid;

/// Ranking by Nova's weights, without victims.
const POLICY: &str = "nova";

/// Makes the record. Looks at the cloud for the hosts that Placement did not offer.
pub(super) fn decision(left: AnsweredRequest, scheduler: &str, facts: &Facts) -> Decision {
    let mut trace = left.trace;
    let request = request(&left.spec, &left.call);
    let mut explanation = match &mut trace.plan {
        Some(plan) => std::mem::take(&mut plan.explanation),
        None => {
            let mut warnings = Vec::new();
            let record = trace.record.as_ref();
            let instances = record.map(|record| record.explain(&mut warnings));
            Explanation {
                policy: POLICY.to_owned(),
                cost_module: facts.read(|cloud| cloud.settings().engine.cost_module.clone()),
                filtered_on: "full".to_owned(),
                instances: instances.unwrap_or_default(),
                optimal: true,
                warnings,
                ..Explanation::default()
            }
        }
    };
    explanation.seed = left.seed;
    let answered = left.asked.as_ref().filter(|_| !left.placement_silent);
    let offer = answered.and_then(|asked| offer(&left.spec, asked, &trace, facts));
    if trace.plan.is_none()
        && let Some(offer) = &offer
    {
        if explanation.instances.is_empty() {
            explanation.instances.push(InstanceExplanation::default());
        }
        if let Some(first) = explanation.instances.first_mut() {
            first.filters.insert(0, offer.clone());
        }
    }
    if let Some(engine) = trace
        .no_plan
        .as_mut()
        .and_then(|why| why.explanation.take())
    {
        append(&mut explanation, *engine);
    }
    let outcome = match (&left.answer, &trace.plan) {
        (Answer::Selected, Some(plan)) => {
            DecisionOutcome::Placed(planned(plan, &explanation, left.at.as_millis()))
        }
        (Answer::Selected, None) => {
            DecisionOutcome::Placed(placed(&request.server_ids, &trace.selected))
        }
        (Answer::Raised { class, message }, _) => {
            let mut refusal = refusal(class, message, &trace, offer.as_ref());
            if left.placement_silent {
                "Placement did not answer".clone_into(&mut refusal.reason);
            }
            DecisionOutcome::NoValidHost(refusal)
        }
    };
    Decision {
        id: left.decision_id,
        at: left.at,
        request,
        outcome,
        explanation,
        trace: RequestTrace {
            request_id: left.request_id,
            user_id: left.spec.user_id.unwrap_or(left.user_id),
            scheduler: scheduler.to_owned(),
            runs: trace.runs,
            comparison: None,
            refused_claims: trace.refused,
            times: trace
                .times
                .into_iter()
                .map(|(part, time)| PartTime {
                    part: part.to_owned(),
                    micros: u64::try_from(time.as_micros()).unwrap_or(u64::MAX),
                })
                .collect(),
        },
    }
}

/// What plugins in shadow would have decided. `None`: nothing is compared, among others a request
/// for which no servers can leave.
pub(super) fn in_shadow(left: &AnsweredRequest) -> Option<ShadowChoice> {
    if let Some(plan) = &left.trace.plan {
        return plan.shadow.clone();
    }
    let compares = left.trace.no_plan.is_none();
    let record = left.trace.record.as_ref().filter(|_| compares)?;
    record.in_shadow()
}

/// The comparison of a decision with what plugins in shadow would have decided.
pub(super) fn comparison(decision: &Decision, choice: ShadowChoice) -> DecisionComparison {
    DecisionComparison {
        decision_id: decision.id,
        flavor: decision.request.flavor.name.clone(),
        decided: choice.decided,
        shadow: choice.shadow,
        warnings: choice.warnings,
    }
}

/// Adds why the engine found no victims: its steps stand behind Placement's and Nova's.
fn append(explanation: &mut Explanation, engine: Explanation) {
    let Some(theirs) = engine.instances.into_iter().next() else {
        return;
    };
    match explanation.instances.last_mut() {
        Some(ours) => {
            ours.filters.extend(theirs.filters);
            if ours.ranking.is_empty() {
                ours.ranking = theirs.ranking;
            }
        }
        None => explanation.instances.push(theirs),
    }
    explanation.warnings.extend(engine.warnings);
}

/// What Placement's answer left of the hosts; `None` if the request did not get so far.
fn offer(
    spec: &RequestSpec,
    asked: &PlacementQuery,
    trace: &DecisionTrace,
    facts: &Facts,
) -> Option<FilterStep> {
    let record = trace.record.as_ref();
    let offered = trace.offered.as_ref();
    let offered = offered.or_else(|| Some(record?.candidates()))?;
    Some(facts.read(|cloud| cloud.explain_offer(spec, asked, offered)))
}

/// The request in the words of both clouds.
fn request(spec: &RequestSpec, call: &ScheduleCall) -> PlacementRequest {
    let amount = |n: i64| u32::try_from(n.max(0)).unwrap_or(u32::MAX);
    let flavor = &spec.flavor;
    let specs = flavor.extra_specs.iter().flat_map(|specs| specs.iter());
    let uuids = call.instance_uuids.iter().flatten();
    let names = |names: &Option<Vec<String>>| names.clone().unwrap_or_default();
    PlacementRequest {
        server_ids: uuids
            .map(|uuid| ServerId(uuid.parse::<Uuid>().unwrap_or_default()))
            .collect(),
        project_id: spec.project_id.clone().unwrap_or_default(),
        flavor: Flavor {
            // Nova's ids of flavors need not be UUIDs; the name says which it is.
            id: FlavorId(flavor.flavorid.parse::<Uuid>().unwrap_or_default()),
            name: flavor.name.clone(),
            vcpus: amount(flavor.vcpus),
            ram_mb: amount(flavor.memory_mb),
            disk_gb: amount(flavor.root_gb.saturating_add(flavor.ephemeral_gb)),
            extra_specs: specs
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        },
        availability_zone: spec.availability_zone.clone(),
        group_id: spec
            .instance_group
            .as_ref()
            .and_then(|group| group.uuid.parse::<Uuid>().ok())
            .map(GroupId),
        ignore_hosts: names(&spec.ignore_hosts),
        force_hosts: names(&spec.force_hosts),
        alternates: 0,
    }
}

fn placement(server_id: ServerId, hosts: &[SelectedHost]) -> Placement {
    let mut names = hosts.iter().map(|selected| selected.host.host.clone());
    Placement {
        server_id,
        host: names.next().unwrap_or_default(),
        victims: Vec::new(),
        waits_for_room: false,
        alternates: names.collect(),
    }
}

fn placed(servers: &[ServerId], selected: &[Vec<SelectedHost>]) -> Vec<Placement> {
    // A caller of old asks for a number of instances and names none.
    let servers = servers.iter().copied();
    let servers = servers.chain(std::iter::repeat(ServerId(Uuid::nil())));
    let pairs = servers.zip(selected);
    pairs
        .map(|(server, hosts)| placement(server, hosts))
        .collect()
}

/// The instances of a plan, each with its victims.
fn planned(plan: &PreemptionPlan, explanation: &Explanation, now: i64) -> Vec<Placement> {
    let instance = |instance: &PlannedInstance| {
        let victims = instance.victims.iter().filter_map(|uuid| {
            let planned = plan.victims.iter().find(|victim| victim.uuid == *uuid)?;
            Some(victim(planned, explanation, now))
        });
        Placement {
            victims: victims.collect(),
            waits_for_room: !instance.victims.is_empty(),
            ..placement(ServerId(instance.uuid), &instance.selections)
        }
    };
    plan.instances.iter().map(instance).collect()
}

/// A victim as the engine described it.
fn victim(planned: &PlannedVictim, explanation: &Explanation, now: i64) -> Victim {
    let rankings = explanation.instances.iter().flat_map(|i| &i.ranking);
    let mut all = rankings.flat_map(|host| &host.victims);
    let known = all.find(|victim| victim.server_id.0 == planned.uuid);
    known.cloned().unwrap_or_else(|| Victim {
        server_id: ServerId(planned.uuid),
        name: planned.name.clone(),
        project_id: planned.project_id.clone(),
        resources: Resources::new(),
        age_seconds: planned
            .launched_at
            .map_or(0.0, |at| (now - at / 1000) as f64 / 1000.0),
        cost: planned.cost,
    })
}

/// Why there is no host, in words that say which part said no.
fn refusal(
    class: &str,
    message: &str,
    trace: &DecisionTrace,
    offer: Option<&FilterStep>,
) -> NoValidHost {
    let (mut dropped, mut hosts) = trace
        .record
        .as_ref()
        .map(|record| record.dropped())
        .unwrap_or_default();
    if let Some(offer) = offer {
        hosts = hosts.max(offer.before);
        dropped.insert(
            0,
            FilterCount {
                filter: offer.filter.clone(),
                dropped: offer.before.saturating_sub(offer.after),
            },
        );
    }
    let mut reason = if class != "NoValidHost" {
        format!("{class}: {message}")
    } else if offer.is_some_and(|offer| offer.after == 0) {
        "Placement offers no host".to_owned()
    } else if !trace.refused.is_empty() {
        format!(
            "no host is left after {} refused claims",
            trace.refused.len()
        )
    } else if message.is_empty() {
        "no host is left".to_owned()
    } else {
        message.to_owned()
    };
    if let Some(why) = &trace.no_plan {
        reason.push_str("; no server can be preempted: ");
        reason.push_str(&why.text);
    }
    NoValidHost {
        reason,
        placed_before: trace.record.as_ref().map_or(0, |record| record.placed()),
        dropped,
        hosts,
    }
}

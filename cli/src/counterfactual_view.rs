//! What would have been decided otherwise, below a decision.

use ebbtide_counterfactual::{WithoutWeigher, needs_victims, one_more_host, without_weighers};
use ebbtide_model::decision::{Explanation, InstanceExplanation, RankedHost, Weight};
use ebbtide_model::{Resources, ServerId, Victim};
use ebbtide_proto::v1;

/// Lines about a decision that has hosts; none if nothing can be said.
#[must_use]
pub(crate) fn lines(decision: &v1::Decision, why: &v1::Explanation) -> Vec<String> {
    let Some(chosen) = decision.placements.first() else {
        return Vec::new();
    };
    let explanation = explanation(why);
    let all = without_weighers(&explanation, chosen.waits_for_room);
    let as_now = |other: &WithoutWeigher| other.certain && other.hosts == [chosen.host.as_str()];
    let mut lines: Vec<String> = match all.iter().all(as_now) {
        true if all.is_empty() => Vec::new(),
        true => vec![format!(
            "Without any one of the weighers, {} would have been chosen, too",
            chosen.host
        )],
        false => {
            let others = all.iter().filter(|other| !as_now(other));
            others.map(|other| line(other, &chosen.host)).collect()
        }
    };
    let victims = decision.placements.iter().map(|p| p.victims.len()).sum();
    if needs_victims(&explanation, victims) {
        lines.push("If no server could be preempted, there would be no valid host".to_owned());
    }
    if let Some(host) = one_more_host(&explanation, victims) {
        lines.push(format!(
            "One more host like {host}, without servers, would have had room without a victim"
        ));
    }
    lines
}

fn line(other: &WithoutWeigher, chosen: &str) -> String {
    let would = if other.certain { "would" } else { "might" };
    match other.hosts.iter().any(|host| host == chosen) {
        true => format!(
            "Without {}, another host might have been chosen",
            other.weigher
        ),
        false => format!(
            "Without {}, {} {would} have been chosen",
            other.weigher,
            other.hosts.join(" or ")
        ),
    }
}

/// The part that counterfactuals are made of.
fn explanation(why: &v1::Explanation) -> Explanation {
    let instance = |instance: &v1::InstanceExplanation| InstanceExplanation {
        filters: Vec::new(),
        ranking: instance.ranking.iter().map(ranked).collect(),
        ranked: instance.ranked,
    };
    Explanation {
        policy: why.policy.clone(),
        instances: why.instances.iter().map(instance).collect(),
        ..Explanation::default()
    }
}

fn ranked(host: &v1::RankedHost) -> RankedHost {
    let weight = |weight: &v1::Weight| Weight {
        weigher: weight.weigher.clone(),
        raw: weight.raw,
        normalised: weight.normalised,
        multiplier: weight.multiplier,
    };
    // Only how many they are counts.
    let victim = |victim: &v1::Victim| Victim {
        server_id: ServerId(uuid::Uuid::nil()),
        name: String::new(),
        project_id: String::new(),
        resources: Resources::new(),
        age_seconds: 0.0,
        cost: victim.cost,
    };
    RankedHost {
        host: host.host.clone(),
        chosen: host.chosen,
        eviction_cost: host.eviction_cost,
        victims: host.victims.iter().map(victim).collect(),
        weight: host.weight,
        weights: host.weights.iter().map(weight).collect(),
    }
}

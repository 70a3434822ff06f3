//! The engine's decision, with its explanation.
//!
//! An explanation is data. It is complete enough to draw a table from and small enough to keep for
//! every decision: lists are cut at the number of hosts that the engine's configuration sets, and
//! the counts beside them cover all hosts.

use crate::{DecisionId, PlacementRequest, RequestTrace, Resources, ServerId, Timestamp};
use serde::{Deserialize, Serialize};

/// One decision: request, answer, reasons.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Decision {
    /// The handle for `explain`.
    pub id: DecisionId,
    /// When it was made.
    pub at: Timestamp,
    /// What was asked.
    pub request: PlacementRequest,
    /// What was answered.
    pub outcome: DecisionOutcome,
    pub explanation: Explanation,
    /// Where the request came from and how it was served.
    #[serde(default, skip_serializing_if = "RequestTrace::is_empty")]
    pub trace: RequestTrace,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionOutcome {
    /// Every instance has a host, in the order of the request.
    Placed(Vec<Placement>),
    /// Not all instances have a host; nothing was claimed.
    NoValidHost(NoValidHost),
}

/// The host of one instance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placement {
    /// The instance.
    pub server_id: ServerId,
    pub host: String,
    /// Its victims. Empty if the host has enough free capacity.
    pub victims: Vec<Victim>,
    /// True if it has to wait for instances to leave: the victims above, or others that are already
    /// leaving.
    pub waits_for_room: bool,
    /// Hosts that could take it instead without preemption, best first.
    pub alternates: Vec<String>,
}

/// A preemptible instance that is, or could be, evacuated.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Victim {
    /// The instance.
    pub server_id: ServerId,
    /// Its name, as its owner gave it.
    pub name: String,
    /// Who owns it.
    pub project_id: String,
    /// What it frees.
    pub resources: Resources,
    /// How long it has been running, in seconds.
    pub age_seconds: f64,
    /// What its loss costs, in the cost module's unit.
    pub cost: f64,
}

/// Why no host was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NoValidHost {
    /// In words.
    pub reason: String,
    /// How many instances of the request could be placed before it failed.
    pub placed_before: u32,
    /// For each filter in order: how many hosts it dropped for the instance that failed.
    pub dropped: Vec<FilterCount>,
    /// How many hosts were considered.
    pub hosts: u32,
}

/// How many hosts one filter dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilterCount {
    pub filter: String,
    pub dropped: u32,
}

/// The reasons for the answer.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// The ranking policy: `tiered`, `nova` or `first-fit`.
    pub policy: String,
    pub cost_module: String,
    /// Which state the filters saw: `normal` (h_n) or `full` (h_f).
    pub filtered_on: String,
    /// The seed of the random choices that the policy allows.
    pub seed: u64,
    /// One for each instance of the request, up to and including the one that failed.
    pub instances: Vec<InstanceExplanation>,
    /// False if a limit cut the search for victims.
    pub optimal: bool,
    /// How far the victims' cost can be above the optimum, in the cost module's unit. Zero if
    /// optimal.
    pub gap: f64,
    /// What all victims together cost beyond the sum of their costs, in the cost module's unit:
    /// zero unless the module charges for sets, like `fairness`.
    #[serde(default)]
    pub surcharge: f64,
    /// Plugins that failed and were ignored, with the failure.
    #[serde(default)]
    pub warnings: Vec<String>,
}

/// Why one instance got its host.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct InstanceExplanation {
    /// What each filter left, in order.
    pub filters: Vec<FilterStep>,
    /// The best hosts, best first; the first is the chosen one unless `chosen` says otherwise.
    pub ranking: Vec<RankedHost>,
    /// How many hosts were ranked in all.
    pub ranked: u32,
}

/// What one filter did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FilterStep {
    pub filter: String,
    /// Hosts before it.
    pub before: u32,
    /// Hosts after it.
    pub after: u32,
    /// Some of the hosts that it dropped, with the reason.
    pub dropped: Vec<DroppedHost>,
}

/// A host that a filter dropped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedHost {
    pub host: String,
    /// Why, in words.
    pub reason: String,
}

/// A host that passed all filters, and how good it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RankedHost {
    pub host: String,
    /// True for the chosen host.
    pub chosen: bool,
    /// The cost of the host's cheapest sufficient victim set, the surcharge for the set included;
    /// zero if no instance has to leave; `None` if the decision did not need it. If several
    /// instances were placed together, for the chosen host: the cost of this instance's victims.
    pub eviction_cost: Option<f64>,
    /// That victim set.
    pub victims: Vec<Victim>,
    /// Sum of the weighted weights.
    pub weight: f64,
    /// What each weigher gave.
    pub weights: Vec<Weight>,
}

/// What one weigher gave one host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Weight {
    pub weigher: String,
    /// As the weigher returned it.
    pub raw: f64,
    /// Between 0 and 1 over all ranked hosts.
    pub normalised: f64,
    /// How much it counts on this host.
    pub multiplier: f64,
}

impl Decision {
    /// All victims of the decision, in the order of the placements.
    pub fn victims(&self) -> impl Iterator<Item = (&Placement, &Victim)> {
        let placements = match &self.outcome {
            DecisionOutcome::Placed(placements) => placements.as_slice(),
            DecisionOutcome::NoValidHost(_) => &[],
        };
        placements
            .iter()
            .flat_map(|p| p.victims.iter().map(move |v| (p, v)))
    }

    /// The decision as the tenant `project_id` may see it. Servers of other projects lose id, name,
    /// owner, age and cost. What counts or prices them is removed, too: the reasons of dropped
    /// hosts, weights, plugin warnings, and the cost of a victim set that does not belong to the
    /// tenant alone. The hosts, and how many each filter dropped, stay.
    #[must_use]
    pub fn for_tenant(&self, project_id: &str) -> Self {
        let mut seen = self.clone();
        let redact = |victims: &mut Vec<Victim>| {
            for victim in victims.iter_mut().filter(|v| v.project_id != project_id) {
                victim.server_id = ServerId(uuid::Uuid::nil());
                victim.name = "another tenant's".to_owned();
                victim.project_id = String::new();
                victim.age_seconds = 0.0;
                victim.cost = 0.0;
            }
        };
        if let DecisionOutcome::Placed(placements) = &mut seen.outcome {
            placements.iter_mut().for_each(|p| redact(&mut p.victims));
        }
        seen.trace.redact();
        seen.explanation.warnings.clear();
        seen.explanation.surcharge = 0.0;
        for instance in &mut seen.explanation.instances {
            let dropped = instance.filters.iter_mut().flat_map(|f| &mut f.dropped);
            dropped.for_each(|host| host.reason = FOR_OPERATORS.to_owned());
            for host in &mut instance.ranking {
                if host.victims.iter().any(|v| v.project_id != project_id) {
                    host.eviction_cost = None;
                }
                redact(&mut host.victims);
                host.weight = 0.0;
                host.weights.clear();
            }
        }
        seen
    }
}

/// Replaces the reason why a host was dropped, if the tenant may not see it: such reasons reveal
/// how much others use there.
pub const FOR_OPERATORS: &str = "the operator can see why";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Flavor, FlavorId, RefusedClaim};
    use uuid::Uuid;

    fn victim(number: u128, project_id: &str) -> Victim {
        Victim {
            server_id: ServerId(Uuid::from_u128(number)),
            name: format!("secret-name-{number}"),
            project_id: project_id.to_owned(),
            resources: Resources::new(),
            age_seconds: 77.25,
            cost: 88.5,
        }
    }

    fn ranked(host: &str, victims: Vec<Victim>) -> RankedHost {
        RankedHost {
            host: host.to_owned(),
            chosen: false,
            eviction_cost: Some(88.5),
            victims,
            weight: 66.75,
            weights: vec![Weight {
                weigher: "preemptible-age".to_owned(),
                raw: 55.5,
                normalised: 0.625,
                multiplier: 2.0,
            }],
        }
    }

    fn decision() -> Decision {
        let mixed = vec![victim(1, "mine"), victim(2, "theirs")];
        Decision {
            id: DecisionId(Uuid::from_u128(1)),
            at: Timestamp::from_millis(1),
            request: PlacementRequest {
                server_ids: vec![ServerId(Uuid::from_u128(9))],
                project_id: "mine".to_owned(),
                flavor: Flavor {
                    id: FlavorId(Uuid::from_u128(3)),
                    name: "m".to_owned(),
                    vcpus: 1,
                    ram_mb: 1,
                    disk_gb: 1,
                    extra_specs: Default::default(),
                },
                availability_zone: None,
                group_id: None,
                ignore_hosts: Vec::new(),
                force_hosts: Vec::new(),
                alternates: 0,
            },
            outcome: DecisionOutcome::Placed(vec![Placement {
                server_id: ServerId(Uuid::from_u128(9)),
                host: "host-a".to_owned(),
                victims: mixed.clone(),
                waits_for_room: true,
                alternates: Vec::new(),
            }]),
            explanation: Explanation {
                instances: vec![InstanceExplanation {
                    filters: vec![FilterStep {
                        filter: "capacity".to_owned(),
                        before: 2,
                        after: 1,
                        dropped: vec![DroppedHost {
                            host: "host-z".to_owned(),
                            reason: "VCPU: needs 4, has 3 of 4711".to_owned(),
                        }],
                    }],
                    ranking: vec![
                        ranked("host-a", mixed),
                        ranked("host-b", vec![victim(3, "mine")]),
                        ranked("host-c", vec![victim(4, "theirs")]),
                    ],
                    ranked: 3,
                }],
                warnings: vec!["the cost module gave NaN for candidate number 4242".to_owned()],
                ..Explanation::default()
            },
            trace: RequestTrace {
                request_id: "req-1".to_owned(),
                refused_claims: vec![RefusedClaim {
                    server_id: ServerId(Uuid::from_u128(9)),
                    host: "host-b".to_owned(),
                    reason: "VCPU: 1234 of 4096 in use".to_owned(),
                }],
                ..RequestTrace::default()
            },
        }
    }

    #[test]
    fn a_tenant_sees_its_own_victims_whole_and_of_others_only_that_they_are() {
        let seen = decision().for_tenant("mine");
        let victims: Vec<&Victim> = seen.victims().map(|(_, v)| v).collect();
        assert_eq!(*victims[0], victim(1, "mine"));
        assert_eq!(victims[1].server_id, ServerId(Uuid::nil()));
        assert_eq!((victims[1].age_seconds, victims[1].cost), (0.0, 0.0));
        let ranking = &seen.explanation.instances[0].ranking;
        let costs: Vec<_> = ranking.iter().map(|host| host.eviction_cost).collect();
        assert_eq!(costs, [None, Some(88.5), None]);
        assert_eq!(ranking[1].victims, [victim(3, "mine")]);
        assert!(
            ranking
                .iter()
                .all(|h| h.weight == 0.0 && h.weights.is_empty())
        );
        let step = &seen.explanation.instances[0].filters[0];
        assert_eq!((step.before, step.after), (2, 1), "counts of hosts stay");
        assert_eq!(step.dropped[0].host, "host-z");
    }

    #[test]
    fn nothing_that_counts_others_is_left_anywhere_in_the_text() {
        let whole = serde_json::to_string(&decision()).unwrap();
        let seen = serde_json::to_string(&decision().for_tenant("other-project")).unwrap();
        let id = Uuid::from_u128(4).to_string();
        for secret in [
            "secret-name",
            "theirs",
            "77.25",
            "88.5",
            "66.75",
            "55.5",
            "4711",
            "4242",
            "1234",
            &id,
        ] {
            assert!(
                whole.contains(secret),
                "the test looks for nothing: {secret}"
            );
            assert!(!seen.contains(secret), "{secret} in {seen}");
        }
    }

    #[test]
    fn a_record_without_a_trace_is_read_and_written_as_before() {
        let mut plain = decision();
        plain.trace = RequestTrace::default();
        let text = serde_json::to_string(&plain).unwrap();
        assert!(!text.contains("trace"), "{text}");
        assert_eq!(serde_json::from_str::<Decision>(&text).unwrap(), plain);
        let text = serde_json::to_string(&decision()).unwrap();
        assert_eq!(serde_json::from_str::<Decision>(&text).unwrap(), decision());
    }
}

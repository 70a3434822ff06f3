//! Makes plans: Placement's query on h_n, then Nova's filters and weighers, then the engine's
//! choice of victims.

use super::group::{GroupRule, here};
use super::needs::FilterNeeds;
use super::tree_needs::{TreeNeeds, TreePlacement};
use super::{
    NoPlan, NoPlanReason, PlanOptions, PlanRules, PlannedInstance, PreemptionPlan, SecondBest,
};
use crate::candidates::{CandidateHosts, CandidateOffer, PlacementOnly, PlacementQuery, candidate};
use crate::cloud::follow::requested;
use crate::cloud::{Cloud, HostStateKind};
use crate::expected::ExpectedInstances;
use crate::explain::filter_step;
use crate::facts::Allocations;
use crate::scheduling::SelectedHost;
use crate::trees::{TreeIndex, unsupported};
use ebbtide_engine::{EligibleDecision, EligibleHosts, EligibleRequest, Engine, EngineError};
use ebbtide_model::{DecisionOutcome, Explanation, Placement, ServerId, Timestamp};
use ebbtide_nova::model::{AllocationCandidate, HostState, RequestSpec};
use ebbtide_nova::placement::Query;
use ebbtide_nova::schedule::{ScheduleCall, SortedHosts, availability_zone};
use ebbtide_nova::states::{HostStateList, HostStates};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// A request that is being planned.
pub(super) struct RequestPlanner<'a> {
    pub(super) cloud: &'a Cloud,
    engine: &'a Engine,
    pub(super) spec: RequestSpec,
    pub(super) uuids: Vec<Uuid>,
    resources: BTreeMap<String, u64>,
    /// NUMA cells and PCI devices, if the request needs any.
    needs: Option<FilterNeeds<'a>>,
    /// The trees of providers into which the request is placed; then they have the other needs.
    trees: Option<TreeNeeds<'a>>,
    /// The hosts after Nova's filters.
    states: HostStates,
    pub(super) sorted: SortedHosts,
    /// Maximum number of alternates for one instance.
    alternates: usize,
}

fn no(reason: NoPlanReason, text: impl Into<String>) -> NoPlan {
    NoPlan {
        reason,
        text: text.into(),
        explanation: None,
    }
}

impl Cloud {
    /// Chooses the victims for a normal request that found no capacity. The plan looks at h_n: the
    /// inventories minus the usage of normal consumers. `now` is in microseconds since 1970, UTC.
    ///
    /// Instances of the request that fit without an eviction get their hosts that way. For the
    /// others the engine chooses the cheapest sufficient victims over all hosts (policy `tiered`:
    /// cost, then Nova's weights), jointly, within the server group's policy.
    ///
    /// # Errors
    /// [`NoPlan`] with the reason.
    pub fn plan(
        &self,
        spec: &RequestSpec,
        call: &ScheduleCall,
        asked: &PlacementQuery,
        now: i64,
        options: &PlanOptions,
    ) -> Result<PreemptionPlan, NoPlan> {
        let rules = PlanRules {
            engine: &self.engine,
            options: None,
        };
        let mut plan = self.plan_by(rules, spec, call, asked, now, options)?;
        if options.compared {
            plan.shadow = self.compare_plan(&plan, now, |rules| {
                self.plan_by(rules, spec, call, asked, now, options)
            });
        }
        Ok(plan)
    }

    fn plan_by(
        &self,
        rules: PlanRules<'_>,
        spec: &RequestSpec,
        call: &ScheduleCall,
        asked: &PlacementQuery,
        now: i64,
        options: &PlanOptions,
    ) -> Result<PreemptionPlan, NoPlan> {
        if spec.flavor.is_preemptible() {
            return Err(no(
                NoPlanReason::Preemptible,
                "a preemptible request evicts no server",
            ));
        }
        let uuids = uuids(call)?;
        let mut spec = spec.clone();
        if let Some(first) = call.instance_uuids.iter().flatten().next() {
            spec.instance_uuid.clone_from(first);
        }
        let expected = options.expected.members(&spec, call);
        self.complete_group(&mut spec, call, &expected);
        let mut planning =
            self.survey_normal(rules, spec, uuids, asked, now, options, &expected)?;
        if call.return_alternates {
            planning.alternates = usize::try_from(self.options().max_attempts - 1).unwrap_or(0);
        }
        let cheapest = planning.decide(GroupRule::Demanded, now, options)?;
        for rule in planning.soft_rules() {
            if let Ok(kept) = planning.decide(rule, now, options)
                && kept.victims.len() <= cheapest.victims.len()
            {
                return Ok(kept);
            }
        }
        Ok(cheapest)
    }

    /// Evaluates Placement's query on h_n, then Nova's filters and weighers.
    #[expect(clippy::too_many_arguments, reason = "one caller")]
    fn survey_normal<'a>(
        &'a self,
        rules: PlanRules<'a>,
        spec: RequestSpec,
        uuids: Vec<Uuid>,
        asked: &'a PlacementQuery,
        now: i64,
        options: &PlanOptions,
        expected: &ExpectedInstances,
    ) -> Result<RequestPlanner<'a>, NoPlan> {
        let within = self.hosts_for(&spec);
        let mut found = None;
        for query in [Some(&asked.query), asked.fallback.as_ref()]
            .into_iter()
            .flatten()
        {
            let (mut hosts, resources, index) = match self.fitting(query, HostStateKind::Normal) {
                Ok((hosts, resources)) => (hosts, resources, None),
                Err(why) => {
                    let index = self.tree_index_for(query, uuids.len(), why)?;
                    let hosts = self.hosts_of_trees(&within, query, &index);
                    (hosts, BTreeMap::new(), Some((query, index)))
                }
            };
            hosts.keep(&within);
            for place in options
                .avoided
                .iter()
                .filter_map(|uuid| self.nodes.get(uuid)?.place)
            {
                hosts.clear(place);
            }
            if !hosts.is_empty() {
                found = Some((hosts, resources, index));
                break;
            }
        }
        let Some((hosts, resources, index)) = found else {
            return Err(no(
                NoPlanReason::NoHost,
                "no host would have room even without its preemptible instances",
            ));
        };
        let before = hosts.count();
        let candidates = CandidateHosts {
            offer: CandidateOffer::Alike(vec![(hosts.clone(), resources.clone())]),
            hosts,
            layout: self.layout,
        };
        let mut needs = FilterNeeds::of(self, &spec);
        // The needs are judged by the victims that leave, and no weigher looks at them.
        let plain = needs.is_some().then(|| RequestSpec {
            numa_topology: None,
            pci_requests: Some(Vec::new()),
            ..spec.clone()
        });
        let filtered = plain.as_ref().unwrap_or(&spec);
        let (states, sorted) = self
            .sort_once(filtered, &candidates, now, expected, rules.options)
            .map_err(|fault| {
                no(
                    NoPlanReason::Filtered,
                    format!("Nova's filters fail: {fault}"),
                )
            })?;
        if sorted.hosts.is_empty() {
            let filters = sorted.record.filters.iter();
            let steps: Vec<String> = filters
                .map(|step| {
                    let counted = format!("{}: {} to {}", step.filter, step.before, step.after);
                    let first = step.dropped.first().zip(step.reasons.first());
                    match first {
                        None => counted,
                        Some((at, why)) => {
                            format!("{counted}, {}: {why}", states.get(*at).host)
                        }
                    }
                })
                .collect();
            let text = format!(
                "of {before} hosts that would have room none passes Nova's filters ({})",
                steps.join(", ")
            );
            return Err(no(NoPlanReason::Filtered, text));
        }
        let trees = index.map(|(query, index)| {
            let hosts = sorted.hosts.iter().copied();
            TreeNeeds::of(self, query, needs.take(), &index, hosts)
        });
        Ok(RequestPlanner {
            cloud: self,
            engine: rules.engine,
            spec,
            uuids,
            resources,
            needs,
            trees,
            states,
            sorted,
            alternates: 0,
        })
    }
}

impl Cloud {
    /// The index of trees, for a query that only they can answer.
    ///
    /// # Errors
    /// Nothing is known of h_n for such a query.
    fn tree_index_for(
        &self,
        query: &Query,
        instances: usize,
        why: PlacementOnly,
    ) -> Result<TreeIndex, NoPlan> {
        let unknown = |why: &str| {
            let text = format!("h_n is not known here: {why}");
            no(NoPlanReason::Unsupported, text)
        };
        match why {
            PlacementOnly::NoResources => return Err(unknown(why.as_str())),
            PlacementOnly::Unknown if self.others.is_empty() => {
                return Err(unknown(why.as_str()));
            }
            _ => {}
        }
        let index = self.tree_index();
        match unsupported(query, instances, &index) {
            Some(why) => Err(unknown(&why)),
            None => Ok(index),
        }
    }
}

fn uuids(call: &ScheduleCall) -> Result<Vec<Uuid>, NoPlan> {
    let bad = |text: String| no(NoPlanReason::BadRequest, text);
    let uuids = call.instance_uuids.as_deref().unwrap_or_default();
    if uuids.is_empty() || call.no_placement {
        return Err(bad("the request claims nothing".to_owned()));
    }
    let parse = |uuid: &String| {
        uuid.parse::<Uuid>()
            .map_err(|_| bad(format!("the instance {uuid:?} is no UUID")))
    };
    uuids.iter().map(parse).collect()
}

impl RequestPlanner<'_> {
    /// Chooses hosts and victims.
    fn decide(
        &self,
        rule: GroupRule,
        now: i64,
        options: &PlanOptions,
    ) -> Result<PreemptionPlan, NoPlan> {
        let eligible = self.eligible(rule, options);
        let at = Timestamp::from_millis(now.div_euclid(1000));
        let decided = self.request().and_then(|request| {
            self.engine.decide_for_eligible(
                &self.cloud.victims,
                &options.budgets,
                &request,
                &eligible,
                at,
                options.seed,
            )
        });
        match decided {
            Ok(decision) => self.plan(decision),
            Err(error) => Err(no(
                NoPlanReason::BadRequest,
                format!("{}: {error}", error.code()),
            )),
        }
    }

    pub(super) fn state(&self, place: usize) -> &HostState {
        self.states.get(place)
    }

    /// Cells and devices, if the request needs any.
    fn filter_needs(&self) -> Option<&FilterNeeds<'_>> {
        let trees = self.trees.as_ref();
        let of_trees = trees.and_then(|trees| trees.filters.as_ref());
        of_trees.or(self.needs.as_ref())
    }

    /// The hosts that passed, with Nova's weights and the limits of the server group.
    fn eligible(&self, rule: GroupRule, options: &PlanOptions) -> EligibleHosts<'_> {
        let table = &self.cloud.victims;
        let mut eligible = EligibleHosts::none(table);
        match (&self.trees, &self.needs) {
            (Some(trees), _) => eligible.judge_by(trees),
            (None, Some(needs)) => eligible.judge_by(needs),
            (None, None) => {}
        }
        let evacuated = self.filter_needs().map(FilterNeeds::evacuated);
        let evacuated = evacuated.unwrap_or_default();
        // What the trees of providers need is not known before they are searched.
        let is_counted = self.needs.is_some() && self.trees.is_none();
        let demands = self.needs.as_ref().filter(|_| is_counted);
        let demands = demands.map_or_else(Vec::new, FilterNeeds::device_demands);
        let several = self.uuids.len() > 1;
        let members = self.members();
        // An invalid number in the rule has already failed the request in the filter.
        let demanded = || {
            let group = self.spec.instance_group.as_ref()?;
            let rule = group.rules.get("max_server_per_host");
            let rule = rule.and_then(|rule| rule.trim().parse::<u32>().ok());
            Some(rule.unwrap_or(1))
        };
        let most = match rule {
            GroupRule::AtMost(most) => Some(most),
            _ if several && self.policy() == "anti-affinity" => demanded(),
            _ => None,
        };
        for (place, total) in self.sorted.hosts.iter().zip(&self.sorted.totals) {
            let Some(number) = self.cloud.numbers.get(*place).copied().flatten() else {
                continue;
            };
            let is_unknown = |trees: &TreeNeeds<'_>| !trees.knows(*place);
            if evacuated.contains(place) || self.trees.as_ref().is_some_and(is_unknown) {
                continue;
            }
            let here = match (rule, most) {
                (GroupRule::WithMembers(_), _) | (_, Some(_)) => here(&members, self.state(*place)),
                _ => 0,
            };
            let left = most.map(|most| most.saturating_sub(here));
            let too_few = matches!(rule, GroupRule::WithMembers(least) if here < least);
            if left == Some(0) || too_few {
                continue;
            }
            eligible.insert(number, *total);
            if is_counted {
                let mut each = demands.iter().map(|demand| {
                    let here = demand.hosts.get(*place);
                    here.map_or(Some(0), |here| here.fewest(demand.wanted))
                });
                let fewest = each.try_fold(0, |most, fewest| Some(fewest?.max(most)));
                eligible.at_least(number, fewest);
            }
            if let Some(left) = left {
                eligible.limit(number, left);
            }
        }
        let affinity = self.policy() == "affinity";
        if several && (affinity || matches!(rule, GroupRule::Together | GroupRule::WithMembers(_)))
        {
            eligible.together();
        }
        if affinity || self.policy() == "soft-affinity" {
            // Members of the group that must stay together are not victims for each other.
            let parsed = members.iter().filter_map(|uuid| uuid.parse::<Uuid>().ok());
            parsed.for_each(|uuid| eligible.spare(uuid.into()));
        }
        let spared = options.spared.iter().chain(&self.uuids);
        spared.for_each(|uuid| eligible.spare((*uuid).into()));
        eligible
    }

    /// The request as the engine takes it. The eligible hosts are passed separately.
    ///
    /// # Errors
    /// A class that is none of Placement's.
    fn request(&self) -> Result<EligibleRequest, EngineError> {
        // Hosts in other cells are removed from the alternates afterwards.
        let cells = self.cloud.cells.len().max(1);
        let alternates = self.alternates.saturating_mul(cells.min(8));
        let project = self
            .spec
            .project_id
            .as_ref()
            .filter(|project| !project.is_empty());
        Ok(EligibleRequest {
            server_ids: self.uuids.iter().map(|uuid| (*uuid).into()).collect(),
            project_id: project.cloned().unwrap_or_else(|| "-".to_owned()),
            resources: requested(&self.resources)?,
            alternates: u32::try_from(alternates).unwrap_or(u32::MAX),
        })
    }

    fn plan(&self, decision: EligibleDecision) -> Result<PreemptionPlan, NoPlan> {
        let mut explanation = decision.explanation;
        self.explain_plugins(&mut explanation);
        let placements = match decision.outcome {
            DecisionOutcome::Placed(placements) => placements,
            DecisionOutcome::NoValidHost(refusal) => {
                return Err(NoPlan {
                    reason: NoPlanReason::NotEnoughVictims,
                    text: refusal.reason,
                    explanation: Some(Box::new(explanation)),
                });
            }
        };
        let lost = || {
            no(
                NoPlanReason::BadRequest,
                "the engine named an unknown host or instance",
            )
        };
        let mut instances = Vec::with_capacity(placements.len());
        let mut victims = Vec::new();
        let mut claims = self.tree_claims(&placements).ok_or_else(lost)?;
        for placement in &placements {
            let claim = claims.get_mut(&placement.host).and_then(Vec::pop);
            instances.push(self.instance(placement, claim).ok_or_else(lost)?);
            for victim in &placement.victims {
                let planned = self.cloud.victim(victim.server_id.0, victim.cost);
                let mut planned = planned.ok_or_else(lost)?;
                let needs = self.filter_needs();
                planned.frees = needs.map_or_else(Vec::new, |needs| needs.freed(planned.uuid));
                if let Some(trees) = &self.trees {
                    planned.frees.extend(trees.freed_in_words(planned.uuid));
                }
                victims.push(planned);
            }
        }
        let was_cut = self.trees.as_ref().is_some_and(TreeNeeds::was_cut);
        let cost = victims.iter().map(|victim| victim.cost).sum::<f64>() + explanation.surcharge;
        Ok(PreemptionPlan {
            instances,
            victims,
            cost,
            cost_unit: self.engine.cost_unit().to_owned(),
            optimal: explanation.optimal && !was_cut,
            gap: if was_cut { cost } else { explanation.gap },
            second: second(&explanation),
            explanation,
            judged: self.filter_needs().map(|_| Arc::new(self.spec.clone())),
            tree_query: self
                .trees
                .as_ref()
                .map(|trees| Arc::new(trees.query.clone())),
            shadow: None,
            trait_changes: self.cloud.trait_changes(),
        })
    }

    /// The steps of the operator's filters come before those of the engine, which was given only
    /// the hosts that passed.
    fn explain_plugins(&self, explanation: &mut Explanation) {
        let own = &self.cloud.options().filter_plugins;
        let steps = self.sorted.record.filters.iter();
        let steps: Vec<_> = steps.filter(|step| own.has(step.filter)).collect();
        let problems = steps.iter().filter_map(|step| step.problem.clone());
        explanation.warnings.extend(problems);
        for instance in &mut explanation.instances {
            let told = steps.iter().map(|step| {
                let unnamed = |_: &HostState| String::new();
                filter_step(step, &self.states, unnamed)
            });
            instance.filters.splice(0..0, told);
        }
    }

    /// What the instances claim in the trees of their hosts, the first one last.
    fn tree_claims(
        &self,
        placements: &[Placement],
    ) -> Option<BTreeMap<String, Vec<TreePlacement>>> {
        let mut claims = BTreeMap::new();
        let Some(trees) = &self.trees else {
            return Some(claims);
        };
        for host in placements.iter().map(|placement| &placement.host) {
            if claims.contains_key(host) {
                continue;
            }
            let here = placements
                .iter()
                .filter(|placement| placement.host == *host);
            let count = u32::try_from(here.clone().count()).unwrap_or(u32::MAX);
            let gone = here.flat_map(|placement| &placement.victims);
            let gone: Vec<ServerId> = gone.map(|victim| victim.server_id).collect();
            let mut placed = trees.placements(host, count, &gone)?;
            placed.reverse();
            claims.insert(host.clone(), placed);
        }
        Some(claims)
    }

    fn instance(
        &self,
        placement: &Placement,
        claim: Option<TreePlacement>,
    ) -> Option<PlannedInstance> {
        let place = *self.cloud.named.get(&placement.host)?;
        let host = self.cloud.host_at(place);
        let claim = claim.unwrap_or_else(|| TreePlacement {
            candidate: candidate(host.uuid, &self.resources),
            allocations: Allocations::from([(host.uuid, self.resources.clone())]),
        });
        let candidate = claim.candidate;
        let mut selections = vec![self.selected(place, candidate.clone())];
        let alternates = placement
            .alternates
            .iter()
            .filter_map(|name| self.cloud.named.get(name));
        let alternates = alternates.filter_map(|place| {
            let claim = self.free_claim(*place)?;
            Some(self.selected(*place, claim))
        });
        let alternates = alternates.filter(|other| other.host.cell_uuid == host.cell_uuid);
        // If members must stay together, another host is no alternate for one of them alone.
        let apart = self.uuids.len() == 1 || self.policy() != "affinity";
        selections.extend(alternates.take(if apart { self.alternates } else { 0 }));
        Some(PlannedInstance {
            uuid: placement.server_id.0,
            allocations: claim.allocations,
            host,
            candidate,
            victims: placement
                .victims
                .iter()
                .map(|victim| victim.server_id.0)
                .collect(),
            selections,
        })
    }

    /// What an instance claims on a host that has room for it.
    fn free_claim(&self, place: usize) -> Option<AllocationCandidate> {
        let Some(trees) = &self.trees else {
            let host = self.cloud.host_at(place);
            return Some(candidate(host.uuid, &self.resources));
        };
        let placed = trees.placements(self.cloud.names.get(place)?, 1, &[])?;
        placed.into_iter().next().map(|placed| placed.candidate)
    }

    fn selected(&self, place: usize, claim: AllocationCandidate) -> SelectedHost {
        let state = self.states.get(place);
        let host = self.cloud.host_at(place);
        SelectedHost {
            candidate: Some(claim),
            host,
            limits: match self.filter_needs() {
                Some(needs) => needs.limits(state),
                None => state.numa_limits,
            },
            availability_zone: availability_zone(
                state,
                &self.cloud.options().default_availability_zone,
            ),
        }
    }
}

/// The runner-up of the first instance whose chosen host needs an eviction.
fn second(explanation: &Explanation) -> Option<SecondBest> {
    let evicts =
        |ranked: &&ebbtide_model::decision::RankedHost| ranked.chosen && !ranked.victims.is_empty();
    let step = explanation
        .instances
        .iter()
        .find(|step| step.ranking.iter().any(|ranked| evicts(&ranked)))?;
    let other = step.ranking.iter().find(|ranked| !ranked.chosen)?;
    Some(SecondBest {
        host: other.host.clone(),
        cost: other.eviction_cost,
        victims: other
            .victims
            .iter()
            .map(|victim| victim.server_id.0)
            .collect(),
    })
}

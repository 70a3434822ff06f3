//! No victim too many: the simulator compares every decision with victims with plain arithmetic
//! over the durable state.

use super::checks::holds_room;
use super::world::RegionWorld;
use crate::cheapest::{self, Candidate, EPSILON};
use crate::violation::Invariant;
use ebbtide_model::{
    Decision, DecisionOutcome, EvacuationState, Placement, Seconds, Server, ServerId, ServerStatus,
    Timestamp,
};
use std::collections::BTreeMap;

/// Longer than a victim rests whose evacuation has failed.
const LONG: Seconds = Seconds(300);

impl RegionWorld {
    pub(super) fn check_decision(&mut self, decision: &Decision) {
        self.event_log.fold_id(decision.id.0);
        match &decision.outcome {
            DecisionOutcome::NoValidHost(none) => {
                if none.reason.is_empty() {
                    self.fail(
                        Invariant::Explained,
                        "no valid host without a reason".to_owned(),
                    );
                }
            }
            DecisionOutcome::Placed(placements) => {
                if !decision.explanation.optimal || decision.explanation.gap > 0.0 {
                    self.fail(
                        Invariant::NoVictimTooMany,
                        "the search did not end, in a world of a few hosts".to_owned(),
                    );
                }
                // Within other transactions more has changed before the decision than what is
                // durable shows.
                if self.single_request && placements.iter().any(|p| !p.victims.is_empty()) {
                    self.check_victims(decision, placements);
                }
            }
        }
    }

    fn check_victims(&mut self, decision: &Decision, placements: &[Placement]) {
        let vcpus = i64::from(decision.request.flavor.vcpus);
        let mut needs: BTreeMap<&str, (i64, Vec<ServerId>)> = BTreeMap::new();
        for placement in placements {
            let entry = needs.entry(&placement.host).or_default();
            entry.0 += vcpus;
            entry
                .1
                .extend(placement.victims.iter().map(|v| v.server_id));
        }
        for (host, (needed, victims)) in needs {
            let Some((free, sizes)) = self.future_room(host, &decision.request.server_ids) else {
                continue;
            };
            let size = |id: &ServerId| sizes.get(id).copied().unwrap_or(0);
            let freed: i64 = victims.iter().map(size).sum();
            let too_many = victims
                .iter()
                .any(|victim| free + freed - size(victim) >= needed);
            if free + freed < needed {
                self.fail(
                    Invariant::NoRoomTwice,
                    format!(
                        "{host}: {needed} VCPUs are given where {} will be free",
                        free + freed
                    ),
                );
            } else if too_many {
                self.fail(
                    Invariant::NoVictimTooMany,
                    format!("{host}: {} victims free {freed} VCPUs beside {free}, and {needed} are needed: one could be left out", victims.len()),
                );
            }
        }
        self.check_cost(decision, placements, vcpus);
    }

    /// No set of victims is cheaper, on whatever host: everything is tried. Who may not be chosen
    /// for a reason that is not to be seen here is left out, so the engine may find something
    /// cheaper, never something dearer.
    fn check_cost(&mut self, decision: &Decision, placements: &[Placement], vcpus: i64) {
        if decision.request.group_id.is_some() || !self.database.budgets.is_empty() {
            return;
        }
        let (now, asked) = (decision.at, &decision.request.server_ids);
        let chosen = placements.iter().flat_map(|p| &p.victims);
        let mut paid = 0.0;
        for victim in chosen {
            let server = self.database.server(victim.server_id);
            let launched = server.and_then(|s| s.launched_at).unwrap_or(now);
            let cost = cheapest::cost(now.millis_since(launched));
            if (cost - victim.cost).abs() > EPSILON {
                let what = format!("a victim costs {cost} and is said to cost {}", victim.cost);
                return self.fail(Invariant::NoVictimTooMany, what);
            }
            paid += cost;
        }
        let Some(first) = decision.explanation.instances.first() else {
            return;
        };
        let mut hosts = Vec::with_capacity(first.ranking.len());
        for ranked in &first.ranking {
            let Some((free, _)) = self.future_room(&ranked.host, asked) else {
                return;
            };
            hosts.push((free, self.certain_candidates(&ranked.host, now)));
        }
        let least = cheapest::cheapest_of_all(&hosts, placements.len(), vcpus);
        if let Some(least) = least.filter(|least| *least + EPSILON < paid) {
            let what = format!("the victims cost {paid}, and others would have cost {least}");
            self.fail(Invariant::NoVictimTooMany, what);
        }
    }

    /// Who can certainly be a victim on a host.
    fn certain_candidates(&self, host: &str, now: Timestamp) -> Vec<Candidate> {
        let rests = |id: ServerId| {
            // The evacuation may have been claimed long ago: while the broker is away, the
            // scheduler does not give up a notice. So the time of its end counts.
            let mut ended = self.database.ended.values();
            ended.any(|e| {
                let lately = e.ended_at.is_some_and(|at| at.plus(LONG) > now);
                e.victim_id == id && lately && e.state == EvacuationState::Failed
            })
        };
        let there = self.database.servers.values();
        let there = there.filter(|s| {
            s.host.as_deref() == Some(host)
                && s.status == ServerStatus::Active
                && s.is_preemptible()
                && !s.external
        });
        let protected = |s: &Server| {
            let protected = s.flavor.properties().ok().and_then(|p| p.protected);
            s.launched_at
                .is_none_or(|at| at.plus(protected.unwrap_or_default()) > now)
        };
        there
            .filter(|s| !protected(s) && !rests(s.id))
            .map(|s| Candidate {
                frees: i64::from(s.flavor.vcpus),
                cost: cheapest::cost(now.millis_since(s.launched_at.unwrap_or(now))),
            })
            .collect()
    }

    /// VCPUs that will be free on a host after every leaving server has left and every promised
    /// server has come, and what each server there takes. `None` if a heartbeat of the host was
    /// wrong.
    fn future_room(
        &self,
        host: &str,
        without: &[ServerId],
    ) -> Option<(i64, BTreeMap<ServerId, i64>)> {
        let place = self.agents.iter().position(|a| a.name == host)?;
        if self.liars[place] {
            return None;
        }
        let known = self.database.hosts.get(host)?;
        let mut free = i64::try_from(known.capacity(&ebbtide_model::ResourceClass::vcpu())).ok()?;
        let mut sizes = BTreeMap::new();
        for server in self.database.servers.values() {
            let here = server.host.as_deref() == Some(host) && holds_room(server);
            if !here || without.contains(&server.id) {
                continue;
            }
            let takes = i64::from(server.flavor.vcpus);
            sizes.insert(server.id, takes);
            let spared = server
                .evacuation_id
                .and_then(|id| self.database.evacuation(id))
                .is_some_and(|e| e.spare_requested);
            let leaves = match server.status {
                ServerStatus::Evacuating => !spared,
                ServerStatus::Deleting => server.is_preemptible(),
                _ => false,
            };
            if !leaves {
                free -= takes;
            }
        }
        Some((free, sizes))
    }
}

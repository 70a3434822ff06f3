//! No victim too many: every decision that takes room from somebody is held against plain arithmetic over what is durable.

use super::checks::holds_room;
use super::world::RegionWorld;
use crate::violation::Promise;
use ebbtide_model::{Decision, Outcome, Placement, ServerId, ServerStatus};
use std::collections::BTreeMap;

impl RegionWorld {
    pub(super) fn check_decision(&mut self, decision: &Decision) {
        self.story.fold_id(decision.id.0);
        match &decision.outcome {
            Outcome::NoValidHost(none) => {
                if none.reason.is_empty() {
                    self.fail(
                        Promise::Explained,
                        "no valid host, and nobody says why".to_owned(),
                    );
                }
            }
            Outcome::Placed(placements) => {
                if !decision.explanation.optimal || decision.explanation.gap > 0.0 {
                    self.fail(
                        Promise::NoVictimTooMany,
                        "the search did not end, in a world of a few hosts".to_owned(),
                    );
                }
                // Within other transactions more has changed before the decision than what is durable shows.
                if self.only_asked && placements.iter().any(|p| !p.victims.is_empty()) {
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
                    Promise::NoRoomTwice,
                    format!(
                        "{host}: {needed} VCPUs are given where {} will be free",
                        free + freed
                    ),
                );
            } else if too_many {
                self.fail(
                    Promise::NoVictimTooMany,
                    format!("{host}: {} victims free {freed} VCPUs beside {free}, and {needed} are needed: one could be left out", victims.len()),
                );
            }
        }
        // With one instance the chosen host is the one whose cheapest set is the cheapest of all.
        if let ([_], [explained]) = (placements, decision.explanation.instances.as_slice()) {
            let chosen = explained.ranking.iter().find(|h| h.chosen);
            let chosen = chosen.and_then(|h| h.eviction_cost).unwrap_or(0.0);
            let cheaper = explained
                .ranking
                .iter()
                .find(|h| h.eviction_cost.unwrap_or(0.0) < chosen);
            if let Some(cheaper) = cheaper {
                let what = format!(
                    "{} would have cost {:?}, the chosen host costs {chosen}",
                    cheaper.host, cheaper.eviction_cost
                );
                self.fail(Promise::NoVictimTooMany, what);
            }
        }
    }

    /// VCPUs that will be free on a host once everybody has left who is leaving and everybody has come who was promised room, and what
    /// each server there takes. `None` for a host about which somebody has lied.
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

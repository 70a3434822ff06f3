//! Speculative decisions, made before the request's turn.
//!
//! If several schedulers are active on one database, a scheduler that writes locks the database's
//! head for a moment (`ebbtide-store`, `write_transaction`) and applies what the others have
//! written. A pass over all hosts under the lock would delay the others, so each scheduler decides
//! before that, on what it knows then. It keeps a decision if the hosts in it are still at the
//! generation at which it was made, including the earlier decisions of the same batch. In addition,
//! nothing may have improved that could change the decision: no request is refused and no victim
//! evicted because of an obsolete state. Otherwise it decides again, under the lock.
//!
//! While the next decision of a batch is made, the host table shows the earlier ones; afterwards it
//! is restored.

use crate::capacity;
use crate::transition::Transition;
use crate::{CreateServers, Ids, Region};
use ebbtide_model::{
    Decision, DecisionId, DecisionOutcome, Server, ServerId, ServerStatus, Timestamp,
};
use std::collections::{BTreeSet, HashMap};

/// A decision about a request, with the generations that it depends on. It is valid only for the
/// region that made it: a region that is read anew counts generations from zero.
#[derive(Debug, Clone, PartialEq)]
pub struct Speculation {
    decision: Decision,
    /// The hosts in the decision, with the generation that each has at the request's turn if
    /// nothing intervenes.
    hosts: Vec<(String, u64)>,
    improvements: u64,
    catalog: u64,
}

impl Speculation {
    /// The decision's identifier.
    #[must_use]
    pub fn decision_id(&self) -> DecisionId {
        self.decision.id
    }
}

/// Counts of speculative decisions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpeculationCounts {
    /// Decisions that were still valid at the request's turn.
    pub valid: u64,
    /// Conflicts: another scheduler was faster, or the state had changed. The decision was made
    /// again.
    pub conflicts: u64,
}

/// Speculative decisions of a batch that the host table shows while later requests are decided.
#[derive(Debug, Default)]
pub(crate) struct SpeculativeDecisions {
    /// Servers that the table shows in a speculative state.
    shown: Vec<ServerId>,
    /// Number of these decisions for each host.
    about: HashMap<String, u64>,
    /// Hosts where a victim was selected since [`Region::note_leftovers`].
    pub(crate) emptied: BTreeSet<String>,
}

impl Region {
    /// The decision for a request now, after all requests since [`Region::end_speculation`]. `None`
    /// if speculation is not useful: the request is refused or repeated, or its decision depends on
    /// more than a few hosts (server groups, disruption budgets).
    ///
    /// The caller must not read the region or give it an input before it calls
    /// [`Region::end_speculation`].
    pub fn speculate(
        &mut self,
        now: Timestamp,
        ids: &mut dyn Ids,
        create: &CreateServers,
    ) -> Option<Speculation> {
        let request = &create.request;
        let fresh = request.check().is_ok() && self.is_new(create);
        if !fresh || request.group_id.is_some() {
            return None;
        }
        let decision = self.decide(&mut Transition::new(now, ids), request).ok()?;
        let mut hosts: Vec<(String, u64)> = Vec::new();
        if let DecisionOutcome::Placed(placements) = &decision.outcome {
            let preempts = placements.iter().any(|p| !p.victims.is_empty());
            if preempts && !self.budgets.is_empty() {
                return None;
            }
            for placement in placements {
                if hosts.iter().all(|(host, _)| *host != placement.host) {
                    let before = self.speculating.about.entry(placement.host.clone());
                    let before = before.or_default();
                    let generation = self.hosts.get(&placement.host)?.generation;
                    hosts.push((placement.host.clone(), generation + *before));
                    *before += 1;
                }
            }
            for (server, placement) in self
                .servers_for(create, &decision, now)
                .iter()
                .zip(placements)
            {
                let claim = Server {
                    host: Some(placement.host.clone()),
                    status: ServerStatus::Waiting,
                    ..server.clone()
                };
                self.show_as(&claim)?;
                for victim in &placement.victims {
                    let leaving = Server {
                        status: ServerStatus::Evacuating,
                        evacuation_id: None,
                        ..self.servers.get(&victim.server_id)?.clone()
                    };
                    self.show_as(&leaving)?;
                }
            }
        }
        Some(Speculation {
            decision,
            hosts,
            improvements: self.improvements,
            catalog: self.catalog,
        })
    }

    fn show_as(&mut self, server: &Server) -> Option<()> {
        self.speculating.shown.push(server.id);
        let instance = self.instance_of(server).ok().flatten()?;
        self.table.put_instance(&instance).ok()
    }

    /// Restores the host table to the region's real state.
    ///
    /// # Errors
    /// The table cannot be restored; the caller must then read the region anew.
    pub fn end_speculation(&mut self) -> Result<(), crate::RegionError> {
        self.speculating.about.clear();
        for id in std::mem::take(&mut self.speculating.shown) {
            self.show_to_table(id)?;
        }
        Ok(())
    }

    /// Counts of speculative decisions since the region was read.
    #[must_use]
    pub fn speculation_counts(&self) -> SpeculationCounts {
        self.speculations
    }

    /// Victims may free more than their claims need, so a later request may need no victim. That is
    /// an improvement, which is visible only after the claims are in the host table.
    pub(crate) fn note_leftovers(&mut self) {
        for host in std::mem::take(&mut self.speculating.emptied) {
            let usage = self.table.usage(&host);
            self.improvements += u64::from(usage.as_ref().is_some_and(capacity::has_surplus));
        }
    }

    /// The speculative decision, if it would be the same now, or if it was right when it was made
    /// and nothing that it depends on has changed.
    pub(crate) fn still_right(&mut self, speculation: Speculation) -> Option<Decision> {
        let Speculation {
            decision,
            hosts,
            improvements,
            catalog,
        } = speculation;
        let hosts_stand = hosts.iter().all(|(host, generation)| {
            self.hosts
                .get(host)
                .is_some_and(|entry| entry.generation == *generation)
        });
        let harmless = match &decision.outcome {
            DecisionOutcome::Placed(placements) => placements.iter().all(|p| p.victims.is_empty()),
            DecisionOutcome::NoValidHost(_) => false,
        };
        let stands = hosts_stand
            && catalog == self.catalog
            && (harmless || improvements == self.improvements);
        if stands {
            self.speculations.valid += 1;
            return Some(decision);
        }
        self.speculations.conflicts += 1;
        // Later decisions of the batch on the same hosts depended on this one: invalidate them.
        for (host, _) in &hosts {
            self.hosts.new_generation(host);
        }
        None
    }
}

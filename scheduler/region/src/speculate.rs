//! Decisions that are made before it is their turn.
//!
//! Where several schedulers are active on one database, whoever writes first locks its head for a moment (`ebbtide-store`, `turn`), and takes in
//! what the others have written meanwhile. Going over all hosts would keep the others waiting, so that is done before, on what is known then:
//! optimistically. A decision is kept if the hosts that it names are still at the generation at which it was made, counting the decisions of the same
//! batch that came before it, and if nothing has got better since where that could have made a difference: nobody is refused, and nobody has to leave,
//! because of something that had already changed. Else it is made again, now under the lock.
//!
//! The host table shows what is decided so far while the next one of the batch is decided; afterwards it is as it was.

use crate::room;
use crate::transition::Transition;
use crate::{CreateServers, Ids, Region};
use ebbtide_model::{Decision, Outcome, Server, ServerId, ServerStatus, Timestamp};
use std::collections::{BTreeSet, HashMap};

/// A decision about a request, with what it rests on. It is good for the region that made it, and for no other: one that was read anew counts
/// generations from the beginning.
#[derive(Debug, Clone, PartialEq)]
pub struct Speculation {
    decision: Decision,
    /// The hosts that it names, and their generations when its turn comes if nothing intervenes.
    hosts: Vec<(String, u64)>,
    improvements: u64,
    catalog: u64,
}

/// What has become of speculations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpeculationCounts {
    /// They were right when their turn came.
    pub kept: u64,
    /// Somebody was faster, or something had changed: a conflict. The decision was made again.
    pub conflicts: u64,
}

/// Decisions of a batch that are shown to the next ones and are not made.
#[derive(Debug, Default)]
pub(crate) struct Speculating {
    /// Servers that the table shows as they might become.
    shown: Vec<ServerId>,
    /// How many of these decisions there are about a host.
    about: HashMap<String, u64>,
    /// Hosts where somebody was chosen to leave since [`Region::note_leftovers`].
    pub(crate) emptied: BTreeSet<String>,
}

impl Region {
    /// What would be decided about a request now, after all requests that were asked about since [`Region::end_speculation`]. `None` if that
    /// is not worth it: the request is refused or repeated anyway, or what it rests on is more than a few hosts (server groups, disruption budgets).
    ///
    /// The region must not be looked at, nor given an input, before [`Region::end_speculation`].
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
        if let Outcome::Placed(placements) = &decision.outcome {
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

    /// The host table is again what the region knows.
    ///
    /// # Errors
    /// The table cannot be brought back; the region then has to be read anew.
    pub fn end_speculation(&mut self) -> Result<(), crate::RegionError> {
        self.speculating.about.clear();
        for id in std::mem::take(&mut self.speculating.shown) {
            self.show_to_table(id)?;
        }
        Ok(())
    }

    /// What has become of speculations since the region was read.
    #[must_use]
    pub fn speculation_counts(&self) -> SpeculationCounts {
        self.speculations
    }

    /// Who leaves may leave more room than was asked for: whoever comes next need not send anybody away then. That is an improvement, which shows only
    /// when the claims on that room are known, too.
    pub(crate) fn note_leftovers(&mut self) {
        for host in std::mem::take(&mut self.speculating.emptied) {
            let usage = self.table.usage(&host);
            self.improvements += u64::from(usage.as_ref().is_some_and(room::is_left_over));
        }
    }

    /// The decision, if it would be the same now, or was right when it was made and nothing that it rests on has changed.
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
            Outcome::Placed(placements) => placements.iter().all(|p| p.victims.is_empty()),
            Outcome::NoValidHost(_) => false,
        };
        let stands = hosts_stand
            && catalog == self.catalog
            && (harmless || improvements == self.improvements);
        if stands {
            self.speculations.kept += 1;
            return Some(decision);
        }
        self.speculations.conflicts += 1;
        // What was decided after it, on the same hosts, counted on it.
        for (host, _) in &hosts {
            if let Some(entry) = self.hosts.get_mut(host) {
                entry.generation += 1;
            }
        }
        None
    }
}

//! Hosts for all instances of a request, all or nothing (`SchedulerManager._schedule`).
//!
//! What Nova leaves to `random` is decided here: of the hosts that it might put first, the best is taken, and hosts with the same
//! weight stay in the order of the input. [`Outcome::by_chance`] says whether Nova might have chosen otherwise.

mod alternates;

use crate::fault::Fault;
use crate::filtering::{self, FilterFault};
use crate::filters::Context;
use crate::hosts;
use crate::model::{AllocationCandidate, HostState, InstanceFacts, RequestSpec};
use crate::weighing;

pub use alternates::{Selection, availability_zone, availability_zones};

/// Where allocations are claimed: Placement.
pub trait Claims {
    /// Claims a candidate on a host (its place in the list of states) for an instance. False: refused, try the next host.
    ///
    /// # Errors
    /// What fails the whole request: AllocationUpdateFailed. Allocations of earlier instances are left behind, as Nova leaves them.
    fn claim(
        &mut self,
        instance_uuid: &str,
        host: usize,
        candidate: &AllocationCandidate,
    ) -> Result<bool, Fault>;

    /// Gives back what an instance claimed.
    fn delete(&mut self, instance_uuid: &str);
}

/// How a request is to be scheduled.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Call {
    /// Instances in order; `None`: a legacy caller, who gets hosts for `num_instances` and claims nothing.
    pub instance_uuids: Option<Vec<String>>,
    /// Whether hosts to fall back on are wanted.
    pub return_alternates: bool,
    /// Without Placement's data (a rebuild, or an old caller): nothing is claimed.
    pub no_placement: bool,
    /// True if an instance of a group that was just placed has no metadata that ImagePropertiesWeigher could read. In a whole
    /// Nova the database answers for it; the oracle has none.
    pub orphans: bool,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// For each instance the chosen host and its alternates, or what is raised.
    pub selections: Result<Vec<Vec<Selection>>, Fault>,
    /// True if somewhere `random` had more than one host to choose from.
    pub by_chance: bool,
    /// True if somewhere a total was NaN, so that the order of hosts is whatever Python's sort makes of it.
    pub unordered: bool,
}

/// Chooses hosts, claims, and uses up what was chosen. States and request are left as Nova leaves them.
pub fn schedule(
    states: &mut [HostState],
    spec: &mut RequestSpec,
    context: &Context<'_>,
    call: &Call,
    claims: &mut dyn Claims,
) -> Outcome {
    let mut run = Run {
        states,
        spec,
        context,
        call,
        by_chance: false,
        unordered: false,
    };
    let selections = run.run(claims);
    Outcome {
        selections,
        by_chance: run.by_chance,
        unordered: run.unordered,
    }
}

struct Run<'a> {
    states: &'a mut [HostState],
    spec: &'a mut RequestSpec,
    context: &'a Context<'a>,
    call: &'a Call,
    by_chance: bool,
    unordered: bool,
}

/// A host that was chosen, with the candidate that was claimed there.
struct Chosen {
    host: usize,
    candidate: Option<AllocationCandidate>,
}

impl Run<'_> {
    fn run(&mut self, claims: &mut dyn Claims) -> Result<Vec<Vec<Selection>>, Fault> {
        let hosts: Vec<usize> = (0..self.states.len()).collect();
        // An empty list of instances counts as none here, but not for the question whether to claim.
        let uuids = self.call.instance_uuids.as_deref();
        let wanted = match uuids {
            Some(uuids) if !uuids.is_empty() => uuids.len() as i64,
            _ => self.spec.num_instances,
        };
        let alternates = if self.call.return_alternates {
            self.context.options.max_attempts - 1
        } else {
            0
        };
        match uuids {
            Some(uuids) if !self.call.no_placement => {
                let uuids = uuids.to_vec();
                self.claimed(hosts, &uuids, wanted, alternates, claims)
            }
            _ => self.legacy(hosts, wanted, alternates),
        }
    }

    fn claimed(
        &mut self,
        mut hosts: Vec<usize>,
        uuids: &[String],
        wanted: i64,
        alternates: i64,
        claims: &mut dyn Claims,
    ) -> Result<Vec<Vec<Selection>>, Fault> {
        let mut chosen: Vec<Chosen> = Vec::new();
        let mut last = None;
        for (index, uuid) in uuids.iter().enumerate() {
            last = Some(index);
            self.spec.instance_uuid.clone_from(uuid);
            hosts = self.sorted(hosts, index)?;
            let Some((host, candidate)) = self.claim(&hosts, uuid, claims)? else {
                break;
            };
            let mappings = candidate.mappings.clone();
            chosen.push(Chosen {
                host,
                candidate: Some(candidate),
            });
            provide(self.spec, &mappings)?;
            self.consume(host, Some(uuid));
        }
        if chosen.len() as i64 != wanted {
            for (_, uuid) in chosen.iter().zip(uuids) {
                claims.delete(uuid);
            }
            return Err(not_enough());
        }
        self.with_alternates(&chosen, hosts, last, alternates, true)
    }

    /// The first host, best first, that has a candidate left and where Placement takes the claim. Only a host's first candidate is
    /// tried.
    fn claim(
        &self,
        hosts: &[usize],
        uuid: &str,
        claims: &mut dyn Claims,
    ) -> Result<Option<(usize, AllocationCandidate)>, Fault> {
        for &host in hosts {
            let Some(candidate) = self.states[host].allocation_candidates.first() else {
                continue;
            };
            if filtering::is_rebuild(self.spec)? || claims.claim(uuid, host, candidate)? {
                return Ok(Some((host, candidate.clone())));
            }
        }
        Ok(None)
    }

    fn legacy(
        &mut self,
        mut hosts: Vec<usize>,
        wanted: i64,
        alternates: i64,
    ) -> Result<Vec<Vec<Selection>>, Fault> {
        let uuids = self.call.instance_uuids.clone().unwrap_or_default();
        let mut chosen = Vec::new();
        let mut last = None;
        for index in 0..usize::try_from(wanted).unwrap_or(0) {
            last = Some(index);
            let uuid = uuids.get(index).filter(|uuid| !uuid.is_empty());
            if let Some(uuid) = uuid {
                self.spec.instance_uuid.clone_from(uuid);
            }
            hosts = self.sorted(hosts, index)?;
            let Some(&host) = hosts.first() else { break };
            chosen.push(Chosen {
                host,
                candidate: None,
            });
            self.consume(host, uuid.map(String::as_str));
        }
        if chosen.len() as i64 != wanted {
            return Err(not_enough());
        }
        self.with_alternates(&chosen, hosts, last, alternates, false)
    }

    /// Filters and weighs (`_get_sorted_hosts`). What it returns replaces the hosts: who fails for one instance is gone for
    /// those after it.
    fn sorted(&mut self, hosts: Vec<usize>, index: usize) -> Result<Vec<usize>, Fault> {
        let mut trace = Vec::new();
        let passed = filtering::filter(
            self.states,
            hosts,
            self.spec,
            self.context,
            index,
            &mut trace,
        )
        .map_err(|FilterFault { fault, .. }| fault)?;
        let states: Vec<&HostState> = passed.iter().map(|host| &self.states[*host]).collect();
        let weighed = weighing::weigh(&states, self.spec, self.context.options)
            .map_err(|fault| fault.fault)?;
        self.by_chance |= weighing::choosable(&weighed, self.context.options).len() > 1;
        self.unordered |= weighed.totals.iter().any(|total| total.is_nan());
        Ok(weighed.order.iter().map(|place| passed[*place]).collect())
    }

    /// Uses up what was chosen (`_consume_selected_host`), and writes it into the server group.
    fn consume(&mut self, host: usize, uuid: Option<&str>) {
        // Nova logs what goes wrong here and goes on.
        let _ignored = hosts::consume(&mut self.states[host], self.spec, self.context.options);
        let Some(group) = self.spec.instance_group.as_mut() else {
            return;
        };
        let name = self.states[host].host.clone();
        group.hosts.push(name.clone());
        let Some(uuid) = uuid else { return };
        if self.states[host].instances.contains_key(uuid) {
            return;
        }
        // The nodes of one host share their instances, unless each request asks for them anew.
        let shared = self.context.options.track_instance_changes;
        for (place, state) in self.states.iter_mut().enumerate() {
            if place == host || (shared && state.host == name) {
                let facts = InstanceFacts {
                    orphan: self.call.orphans,
                    ..InstanceFacts::default()
                };
                state.instances.insert(uuid.to_owned(), facts);
            }
        }
    }

    fn with_alternates(
        &mut self,
        chosen: &[Chosen],
        mut hosts: Vec<usize>,
        last: Option<usize>,
        alternates: i64,
        claimed: bool,
    ) -> Result<Vec<Vec<Selection>>, Fault> {
        // Nova's loop variable, which does not exist if there was nothing to place.
        let last = last.ok_or_else(|| {
            Fault::new(
                "UnboundLocalError",
                "there was no instance to find a host for",
            )
        })?;
        if last > 0 && alternates > 0 {
            hosts = self.sorted(hosts, last)?;
        }
        let zone = &self.context.options.default_availability_zone;
        Ok(alternates::select(
            self.states,
            chosen,
            &hosts,
            alternates,
            claimed,
            zone,
        ))
    }
}

/// Tells each request group by which providers the claim serves it.
fn provide(spec: &mut RequestSpec, mappings: &serde_json::Value) -> Result<(), Fault> {
    if spec.requested_resources.is_empty() {
        return Ok(());
    }
    let missing = |what: &str| Fault::new("KeyError", format!("the candidate has no {what}"));
    let mappings = mappings.as_object().ok_or_else(|| missing("mappings"))?;
    for group in &mut spec.requested_resources {
        let name = group.requester_id.as_deref();
        let providers = name
            .and_then(|name| mappings.get(name))
            .ok_or_else(|| missing("mapping of a request group"))?;
        group.provider_uuids = match providers {
            serde_json::Value::Array(uuids) => uuids
                .iter()
                .map(|uuid| {
                    uuid.as_str()
                        .map_or_else(|| uuid.to_string(), str::to_owned)
                })
                .collect(),
            // The field takes its default for null; only who needs a provider then fails.
            serde_json::Value::Null => Vec::new(),
            _ => return Err(Fault::new("ValueError", "a mapping is no list")),
        };
    }
    Ok(())
}

fn not_enough() -> Fault {
    Fault::new("NoValidHost", "There are not enough hosts available.")
}

//! The schedule of one request as a sequence of steps. The caller makes the claims, so it can wait
//! for Placement between two steps without holding anything.

use super::alternates;
use super::random::SelectionRng;
use super::record::{
    FilterRecord, InstanceRecord, OrderRecord, RECORDED_HOSTS, RECORDED_INSTANCES, SortRecord,
    WeighingRecord,
};
use super::{Chosen, ScheduleCall, Selection};
use crate::fault::NovaException;
use crate::filtering::{self, FilterFault};
use crate::filters::Context;
use crate::hosts;
use crate::model::{AllocationCandidate, HostState, InstanceFacts, RequestSpec};
use crate::states::{HostStateList, HostStates};
use crate::weighing::{self, WeigherResult};
use std::sync::Arc;

/// Hosts in order, best first, and what is worth knowing about the order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SortedHosts {
    /// Places, best first.
    pub hosts: Vec<usize>,
    /// Their totals, parallel to `hosts`; empty if the caller does not need them.
    pub totals: Vec<f64>,
    /// True if a total is NaN.
    pub unordered: bool,
    /// What explains the order.
    pub record: Arc<OrderRecord>,
    /// How many more hosts pass, each of which comes behind the last of `hosts`; see
    /// [`Field::behind`].
    pub behind: usize,
}

/// Where the hosts of a request are, and how they are filtered and weighed.
pub trait Field: HostStateList {
    /// The hosts in question when the request begins, in order.
    fn all(&self) -> Vec<usize> {
        (0..self.len()).collect()
    }

    /// The states, if what is decided on them is to be explained later.
    fn snapshot(&self) -> Option<HostStates> {
        None
    }

    /// What would be claimed on a host: the first of its candidates that are left.
    fn candidate(&self, at: usize) -> Option<AllocationCandidate> {
        self.get(at).allocation_candidates.first().cloned()
    }

    /// Filters and weighs hosts for the `index`-th instance. May leave out hosts at the end, but
    /// none that chance could move: not the first `host_subset_size`, and none at all where the
    /// options shuffle equals.
    ///
    /// # Errors
    /// What Nova raises.
    fn sorted(
        &mut self,
        hosts: Vec<usize>,
        spec: &RequestSpec,
        context: &Context<'_>,
        index: usize,
    ) -> Result<SortedHosts, NovaException> {
        sorted(self, hosts, spec, context, index)
    }

    /// The hosts that [`Self::sorted`] left out when it was asked last, best first: those behind
    /// the first `given`.
    fn behind(&self, _given: usize) -> Vec<usize> {
        Vec::new()
    }
}

/// Filters and weighs host by host (`_get_sorted_hosts`, up to the choice that is left to chance).
///
/// # Errors
/// What Nova raises.
pub fn sorted<S: HostStateList + ?Sized>(
    states: &mut S,
    hosts: Vec<usize>,
    spec: &RequestSpec,
    context: &Context<'_>,
    index: usize,
) -> Result<SortedHosts, NovaException> {
    let mut trace = Vec::new();
    let passed = filtering::filter(states, hosts, spec, context, index, &mut trace)
        .map_err(|FilterFault { fault, .. }| fault)?;
    let of_passed: Vec<&HostState> = passed.iter().map(|host| states.get(*host)).collect();
    let weighed =
        weighing::weigh(&of_passed, spec, context.options).map_err(|fault| fault.fault)?;
    let order = weighed.order.iter();
    let filters = trace.into_iter().map(FilterRecord::from);
    Ok(SortedHosts {
        hosts: order.clone().map(|place| passed[*place]).collect(),
        totals: order.map(|place| weighed.totals[*place]).collect(),
        unordered: weighed.totals.iter().any(|total| total.is_nan()),
        record: Arc::new(OrderRecord {
            filters: filters.collect(),
            weighing: recorded(&weighed.parts, &weighed.order),
        }),
        behind: 0,
    })
}

/// What each weigher gave the first hosts.
fn recorded(parts: &[WeigherResult], order: &[usize]) -> WeighingRecord {
    if parts.is_empty() {
        return WeighingRecord::Nothing;
    }
    let first = &order[..order.len().min(RECORDED_HOSTS)];
    let of = |all: &[f64]| first.iter().map(|place| all[*place]).collect();
    let part = |part: &WeigherResult| WeigherResult {
        class: part.class,
        raw: of(&part.raw),
        norm: of(&part.norm),
        mult: of(&part.mult),
        weighted: of(&part.weighted),
    };
    WeighingRecord::Parts(parts.iter().map(part).collect())
}

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum ScheduleStep {
    /// Claim a candidate on a host for an instance, and say how it went.
    Claim {
        instance_uuid: String,
        /// Place of the host.
        host: usize,
        /// The allocation candidate to claim.
        candidate: AllocationCandidate,
    },
    /// For each instance the chosen host and its alternates.
    Done(Vec<Vec<Selection>>),
    /// What is raised, after the claims of these instances were given back.
    Failed {
        fault: NovaException,
        /// Whose claims are given back.
        release: Vec<String>,
    },
}

/// Where a request stands.
#[derive(Debug)]
enum Stage {
    /// The next instance has to be looked at.
    Instance,
    /// Its hosts are sorted; those before this one have refused.
    Host(usize),
    /// A claim is out.
    Asked(usize, AllocationCandidate),
    Over(ScheduleStep),
}

/// The schedule of one request.
#[derive(Debug)]
pub struct ScheduleRun<S> {
    states: S,
    spec: RequestSpec,
    call: ScheduleCall,
    chance: SelectionRng,
    wanted: i64,
    claiming: bool,
    hosts: Vec<usize>,
    /// How many hosts pass that are not among `hosts`: all of them behind the last.
    behind: usize,
    chosen: Vec<Chosen>,
    /// The instance that is being placed.
    index: usize,
    /// Nova's loop variable.
    last: Option<usize>,
    stage: Stage,
    by_chance: bool,
    unordered: bool,
    record: Arc<OrderRecord>,
    passing: Option<usize>,
    records: Vec<InstanceRecord>,
}

impl<S: Field> ScheduleRun<S> {
    /// A request that begins. `seed`: see [`SelectionRng`].
    pub fn new(states: S, spec: RequestSpec, call: ScheduleCall, seed: Option<u64>) -> Self {
        // An empty list of instances counts as none here, but not for the question whether to
        // claim.
        let uuids = call.instance_uuids.as_deref();
        let wanted = match uuids {
            Some(uuids) if !uuids.is_empty() => uuids.len() as i64,
            _ => spec.num_instances,
        };
        let claiming = uuids.is_some() && !call.no_placement;
        Self {
            hosts: states.all(),
            states,
            spec,
            call,
            chance: SelectionRng::new(seed),
            wanted,
            claiming,
            behind: 0,
            chosen: Vec::new(),
            index: 0,
            last: None,
            stage: Stage::Instance,
            by_chance: false,
            unordered: false,
            record: Arc::default(),
            passing: None,
            records: Vec::new(),
        }
    }

    /// Continues until the caller has to claim, or to the end. A second call without
    /// [`Self::claimed`] returns the same step.
    pub fn next(&mut self, context: &Context<'_>) -> ScheduleStep {
        loop {
            let step = match &self.stage {
                Stage::Over(step) => return step.clone(),
                Stage::Asked(host, candidate) => {
                    return ScheduleStep::Claim {
                        instance_uuid: self.spec.instance_uuid.clone(),
                        host: *host,
                        candidate: candidate.clone(),
                    };
                }
                Stage::Instance if self.claiming => self.begin(context),
                Stage::Instance => self.legacy(context),
                Stage::Host(from) => {
                    let from = *from;
                    self.offer(from, context)
                }
            };
            self.stage = step.unwrap_or_else(|fault| {
                Stage::Over(ScheduleStep::Failed {
                    fault,
                    release: Vec::new(),
                })
            });
        }
    }

    /// How the claim went that is out: taken or not, or what fails the whole request
    /// (AllocationUpdateFailed; what earlier instances claimed is left behind, as Nova leaves it).
    /// Without a claim it does nothing.
    pub fn claimed(&mut self, outcome: Result<bool, NovaException>, context: &Context<'_>) {
        let stage = std::mem::replace(&mut self.stage, Stage::Instance);
        let Stage::Asked(host, candidate) = stage else {
            self.stage = stage;
            return;
        };
        let taken = match outcome {
            Ok(true) => self.take(host, candidate, context),
            Ok(false) => {
                let at = self.hosts.iter().position(|other| *other == host);
                Ok(Stage::Host(at.map_or(self.hosts.len(), |at| at + 1)))
            }
            Err(fault) => Err(fault),
        };
        self.stage = taken.unwrap_or_else(|fault| {
            Stage::Over(ScheduleStep::Failed {
                fault,
                release: Vec::new(),
            })
        });
    }

    /// True if somewhere `random` had more than one host to choose from.
    pub fn by_chance(&self) -> bool {
        self.by_chance
    }

    /// True if somewhere a total was NaN, so that the order of hosts is whatever Python's sort
    /// makes of it.
    pub fn unordered(&self) -> bool {
        self.unordered
    }

    /// What each filter did for the instance that was looked at last.
    pub fn filters(&self) -> &[FilterRecord] {
        &self.record.filters
    }

    /// How many hosts passed for the first instance.
    pub fn passing(&self) -> Option<usize> {
        self.passing
    }

    /// How the hosts of each instance were sorted, the host that each got, and the request as it is
    /// now. Of a field without snapshots there are no records.
    pub fn into_records(self) -> (Vec<InstanceRecord>, Vec<usize>, RequestSpec) {
        let chosen = self.chosen.iter().map(|chosen| chosen.host).collect();
        (self.records, chosen, self.spec)
    }

    /// The states as the request has changed them.
    pub fn states(&self) -> &S {
        &self.states
    }

    /// What is left when it is over: states and request as Nova leaves them.
    pub fn into_parts(self) -> (S, RequestSpec) {
        (self.states, self.spec)
    }

    fn uuids(&self) -> &[String] {
        self.call.instance_uuids.as_deref().unwrap_or_default()
    }

    fn begin(&mut self, context: &Context<'_>) -> Result<Stage, NovaException> {
        let Some(uuid) = self.uuids().get(self.index).cloned() else {
            return self.finish(context);
        };
        self.last = Some(self.index);
        self.spec.instance_uuid = uuid;
        self.sort(self.index, context)?;
        Ok(Stage::Host(0))
    }

    /// The first host, best first, that has a candidate left. Only a host's first candidate is
    /// tried.
    fn offer(&mut self, from: usize, context: &Context<'_>) -> Result<Stage, NovaException> {
        let mut next = self.claimable(from);
        if next.is_none() && self.behind > 0 {
            let seen = self.hosts.len();
            self.complete();
            next = self.claimable(seen.max(from));
        }
        match next {
            // No host takes the instance: Nova stops here and checks how many instances it has
            // placed.
            None => self.finish(context),
            Some((host, candidate)) if filtering::is_rebuild(&self.spec)? => {
                self.take(host, candidate, context)
            }
            Some((host, candidate)) => Ok(Stage::Asked(host, candidate)),
        }
    }

    /// The first host from a place on that has a candidate, with it.
    fn claimable(&self, from: usize) -> Option<(usize, AllocationCandidate)> {
        let mut rest = self.hosts.iter().skip(from).copied();
        rest.find_map(|host| Some((host, self.states.candidate(host)?)))
    }

    /// Gets the hosts that were left out of the order.
    fn complete(&mut self) {
        if self.behind > 0 {
            let rest = self.states.behind(self.hosts.len());
            self.hosts.extend(rest);
            self.behind = 0;
        }
    }

    fn take(
        &mut self,
        host: usize,
        candidate: AllocationCandidate,
        context: &Context<'_>,
    ) -> Result<Stage, NovaException> {
        let mappings = candidate.mappings.clone();
        self.chosen.push(Chosen {
            host,
            candidate: Some(candidate),
        });
        super::provide(&mut self.spec, &mappings)?;
        let uuid = self.spec.instance_uuid.clone();
        self.consume(host, Some(&uuid), context);
        self.index += 1;
        Ok(Stage::Instance)
    }

    /// Without claims, one instance a step.
    fn legacy(&mut self, context: &Context<'_>) -> Result<Stage, NovaException> {
        if self.index >= usize::try_from(self.wanted).unwrap_or(0) {
            return self.finish(context);
        }
        self.last = Some(self.index);
        let uuid = self.uuids().get(self.index).cloned();
        let uuid = uuid.filter(|uuid| !uuid.is_empty());
        if let Some(uuid) = &uuid {
            self.spec.instance_uuid.clone_from(uuid);
        }
        self.sort(self.index, context)?;
        let Some(&host) = self.hosts.first() else {
            return self.finish(context);
        };
        self.chosen.push(Chosen {
            host,
            candidate: None,
        });
        self.consume(host, uuid.as_deref(), context);
        self.index += 1;
        Ok(Stage::Instance)
    }

    /// Filters and weighs (`_get_sorted_hosts`). The result replaces the hosts: a host that fails
    /// for one instance is not available for later ones.
    fn sort(&mut self, index: usize, context: &Context<'_>) -> Result<(), NovaException> {
        self.complete();
        let hosts = std::mem::take(&mut self.hosts);
        let sorted = self.states.sorted(hosts, &self.spec, context, index)?;
        // The order is made once more for the alternates.
        if index == self.records.len()
            && index < RECORDED_INSTANCES
            && let Some(states) = self.states.snapshot()
        {
            let sort = SortRecord::new(&sorted);
            self.records.push(InstanceRecord { sort, states });
        }
        self.by_chance |= self.chance.is_open(&sorted, context.options);
        self.unordered |= sorted.unordered;
        self.passing
            .get_or_insert(sorted.hosts.len() + sorted.behind);
        self.behind = sorted.behind;
        self.hosts = self
            .chance
            .choose(sorted.hosts, &sorted.totals, context.options);
        self.record = sorted.record;
        Ok(())
    }

    /// Uses up what was chosen (`_consume_selected_host`), and writes it into the server group.
    fn consume(&mut self, host: usize, uuid: Option<&str>, context: &Context<'_>) {
        // Nova logs what goes wrong here and goes on.
        let state = self.states.edit(host);
        let _ignored = hosts::consume(state, &mut self.spec, context.options);
        let Some(group) = self.spec.instance_group.as_mut() else {
            return;
        };
        let name = self.states.get(host).host.clone();
        group.hosts.push(name.clone());
        let Some(uuid) = uuid else { return };
        if self.states.get(host).instances.contains_key(uuid) {
            return;
        }
        // The nodes of one host share their instances, unless each request asks for them anew.
        let shared = context.options.track_instance_changes;
        for place in 0..self.states.len() {
            if place == host || (shared && self.states.get(place).host == name) {
                let facts = InstanceFacts {
                    orphan: self.call.orphans,
                    ..InstanceFacts::default()
                };
                let instances = &mut self.states.edit(place).instances;
                Arc::make_mut(instances).insert(uuid.to_owned(), facts);
            }
        }
    }

    fn finish(&mut self, context: &Context<'_>) -> Result<Stage, NovaException> {
        if self.chosen.len() as i64 != self.wanted {
            let claimed = if self.claiming { self.chosen.len() } else { 0 };
            return Ok(Stage::Over(ScheduleStep::Failed {
                fault: super::not_enough(),
                release: self.uuids().iter().take(claimed).cloned().collect(),
            }));
        }
        // Nova's loop variable, which does not exist if there was nothing to place.
        let last = self.last.ok_or_else(|| {
            NovaException::new(
                "UnboundLocalError",
                "there was no instance to find a host for",
            )
        })?;
        let alternates = if self.call.return_alternates {
            context.options.max_attempts - 1
        } else {
            0
        };
        if last > 0 && alternates > 0 {
            self.sort(last, context)?;
        }
        let mut selections = self.select(alternates, context);
        if self.behind > 0 && selections.iter().any(|one| one.len() as i64 <= alternates) {
            // Most hosts are of another cell, or have no candidate left.
            self.complete();
            selections = self.select(alternates, context);
        }
        Ok(Stage::Over(ScheduleStep::Done(selections)))
    }

    fn select(&self, alternates: i64, context: &Context<'_>) -> Vec<Vec<Selection>> {
        let zone = &context.options.default_availability_zone;
        alternates::select(
            &self.states,
            &self.chosen,
            &self.hosts,
            alternates,
            self.claiming,
            zone,
        )
    }
}

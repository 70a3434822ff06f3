//! One request, processed step by step. The caller makes the claims, outside any lock.

use crate::candidates::{CandidateHosts, CandidateOffer, PlacementQuery, candidate};
use crate::cloud::Cloud;
use crate::cloud::devices::DeviceDemand;
use crate::error::CloudError;
use crate::expected::ExpectedInstances;
use crate::explain::SchedulingRecord;
use crate::facts::HostRef;
use crate::plan::PCI_FILTER;
use crate::shadow::ShadowRules;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::filtering;
use ebbtide_nova::filters::{self, Context, FilterPlugins, PreemptibleHold};
use ebbtide_nova::model::{AllocationCandidate, HostState, Options, PciRequest, RequestSpec};
use ebbtide_nova::schedule::{
    Field, ScheduleCall, ScheduleRun, ScheduleStep, Selection, SortedHosts, sorted,
};
use ebbtide_nova::states::{HostStateList, HostStates};
use ebbtide_nova::table::{HostSet, HostSurvey, first_of};
use std::sync::Arc;
use uuid::Uuid;

/// What the caller does next.
#[derive(Debug, Clone, PartialEq)]
pub enum SchedulingAction {
    /// Claim this (`PUT /allocations/{instance}`), then say how it went with
    /// [`Scheduling::claimed`].
    Claim(Claim),
    /// Answer with these.
    Done(Vec<Vec<SelectedHost>>),
    /// Take back what these instances claimed, then raise the fault.
    Failed {
        /// What Nova raises, mostly NoValidHost.
        fault: NovaException,
        /// Instances whose claims are to be deleted. Empty for faults after which Nova leaves them
        /// behind.
        release: Vec<String>,
    },
}

/// A claim to be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    pub instance_uuid: String,
    pub host: HostRef,
    pub candidate: AllocationCandidate,
    /// [`Cloud::trait_changes`] when it was decided.
    pub trait_changes: u64,
}

/// How a claim went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClaimResult {
    /// It was written.
    Taken,
    /// It was refused: the next host is tried.
    Refused,
    /// It failed in a way that fails the request (AllocationUpdateFailed).
    Fault(NovaException),
}

/// A host for an instance (`Selection`).
#[derive(Debug, Clone, PartialEq)]
pub struct SelectedHost {
    pub host: HostRef,
    /// What was claimed there, or would be; `None` without Placement.
    pub candidate: Option<AllocationCandidate>,
    /// CPU and memory allocation ratio, where NUMATopologyFilter left them as limits.
    pub limits: Option<(f64, f64)>,
    pub availability_zone: String,
}

/// The hosts of a request: a copy of the cloud's, changed where the request changes them.
#[derive(Debug)]
pub(crate) struct WorkingHosts {
    states: HostStates,
    hosts: HostSet,
    offer: CandidateOffer,
    /// Candidates stand in the states, where filters narrow them.
    attached: bool,
    /// Hosts without the devices that the request needs, whatever their candidates: no candidate
    /// stands in their states.
    lacking: HostSet,
    /// What the columns say for the first instance: the first hosts in order.
    first: Option<SortedHosts>,
    /// What the columns say of all hosts, while some are not in order.
    survey: Option<HostSurvey>,
    uuids: Arc<Vec<Option<Uuid>>>,
}

impl WorkingHosts {
    /// All candidates of a host, made up where Placement was not asked.
    fn offered(&self, at: usize) -> Vec<AllocationCandidate> {
        if self.states.get(at).uuid.is_none() {
            // A node that was never updated has no UUID for Nova, so no candidate is its.
            return Vec::new();
        }
        match &self.offer {
            CandidateOffer::Nothing => Vec::new(),
            CandidateOffer::Answered(told) => told.get(&at).cloned().unwrap_or_default(),
            CandidateOffer::Alike(sets) => {
                let Some(uuid) = self.uuids.get(at).copied().flatten() else {
                    return Vec::new();
                };
                let sets = sets.iter().filter(|(hosts, _)| hosts.has(at));
                sets.map(|(_, resources)| candidate(uuid, resources))
                    .collect()
            }
        }
    }

    fn attach(&mut self) {
        for at in self.hosts.without(&self.lacking).iter().collect::<Vec<_>>() {
            let offered = self.offered(at);
            self.states.edit(at).allocation_candidates = offered;
        }
        self.attached = true;
    }
}

impl HostStateList for WorkingHosts {
    fn len(&self) -> usize {
        self.states.len()
    }

    fn get(&self, at: usize) -> &HostState {
        self.states.get(at)
    }

    fn edit(&mut self, at: usize) -> &mut HostState {
        self.states.edit(at)
    }
}

impl Field for WorkingHosts {
    fn snapshot(&self) -> Option<HostStates> {
        Some(self.states.clone())
    }

    fn all(&self) -> Vec<usize> {
        if self.first.is_some() {
            // They are already sorted, and no caller asks for the hosts that did not pass.
            return Vec::new();
        }
        self.hosts.iter().collect()
    }

    fn candidate(&self, at: usize) -> Option<AllocationCandidate> {
        if self.attached {
            return self.states.get(at).allocation_candidates.first().cloned();
        }
        self.offered(at).into_iter().next()
    }

    fn sorted(
        &mut self,
        hosts: Vec<usize>,
        spec: &RequestSpec,
        context: &Context<'_>,
        index: usize,
    ) -> Result<SortedHosts, NovaException> {
        match self.first.take() {
            Some(first) => Ok(first),
            None => sorted(&mut self.states, hosts, spec, context, index),
        }
    }

    fn behind(&self, given: usize) -> Vec<usize> {
        let survey = self.survey.as_ref();
        survey.map_or_else(Vec::new, |survey| survey.behind(given))
    }
}

/// One request that is being processed. It owns its data: if the cloud changes meanwhile, the
/// request continues with the state at its beginning, as in Nova.
#[derive(Debug)]
pub struct Scheduling {
    steps: ScheduleRun<WorkingHosts>,
    options: Arc<Options>,
    now: i64,
    trait_changes: u64,
    candidates: CandidateHosts,
    /// The hosts that the filters saw.
    hosts: HostSet,
    shadow: Option<Arc<ShadowRules>>,
}

impl Scheduling {
    /// What to do next. Without [`Self::claimed`] in between it returns the same again.
    #[allow(
        clippy::should_implement_trait,
        reason = "a request is no iterator: it waits for claims"
    )]
    pub fn next(&mut self) -> SchedulingAction {
        let context = Context {
            options: &self.options,
            now: self.now,
        };
        match self.steps.next(&context) {
            ScheduleStep::Claim {
                instance_uuid,
                host,
                candidate,
            } => SchedulingAction::Claim(Claim {
                instance_uuid,
                host: self.host(host),
                candidate,
                trait_changes: self.trait_changes,
            }),
            ScheduleStep::Done(all) => {
                let selections = all.into_iter().map(|one| {
                    let one = one.into_iter();
                    one.map(|selection| self.selected(selection)).collect()
                });
                SchedulingAction::Done(selections.collect())
            }
            ScheduleStep::Failed { fault, release } => SchedulingAction::Failed { fault, release },
        }
    }

    /// Reports the outcome of the claim that [`Self::next`] asked for. Does nothing if there is
    /// none.
    pub fn claimed(&mut self, outcome: ClaimResult) {
        let context = Context {
            options: &self.options,
            now: self.now,
        };
        let outcome = match outcome {
            ClaimResult::Taken => Ok(true),
            ClaimResult::Refused => Ok(false),
            ClaimResult::Fault(fault) => Err(fault),
        };
        self.steps.claimed(outcome, &context);
    }

    /// How many hosts passed the filters for the first instance; zero before the first
    /// [`Self::next`].
    #[must_use]
    pub fn passing(&self) -> usize {
        self.steps.passing().unwrap_or(0)
    }

    /// For each filter that ran for the instance looked at last: its name, hosts before, hosts
    /// after. Nova logs these before a NoValidHost.
    #[must_use]
    pub fn filtered(&self) -> Vec<(String, usize, usize)> {
        let filters = self.steps.filters().iter();
        filters
            .map(|step| (step.filter.to_owned(), step.before, step.after))
            .collect()
    }

    /// What explains the decision, as far as it has come.
    #[must_use]
    pub fn into_record(self) -> SchedulingRecord {
        let (instances, chosen, spec) = self.steps.into_records();
        SchedulingRecord {
            instances,
            chosen,
            spec,
            options: self.options,
            now: self.now,
            candidates: self.candidates,
            hosts: self.hosts,
            shadow: self.shadow,
        }
    }

    fn host(&self, at: usize) -> HostRef {
        let working = self.steps.states();
        let state = working.get(at);
        HostRef {
            host: state.host.clone(),
            nodename: state.nodename.clone(),
            uuid: working.uuids.get(at).copied().flatten().unwrap_or_default(),
            cell_uuid: state.cell_uuid.clone(),
        }
    }

    fn selected(&self, selection: Selection) -> SelectedHost {
        SelectedHost {
            host: self.host(selection.host),
            candidate: selection.candidate,
            limits: selection.limits,
            availability_zone: selection.availability_zone,
        }
    }
}

/// Whether a filter or the request looks at the candidates themselves, so that the host states must
/// contain them: filters that narrow candidates, and (rare) requests that name them.
fn looks_at_candidates(spec: &RequestSpec, options: &Options) -> bool {
    narrows(spec, options, |_| true) || names_candidates(spec, options)
}

/// Whether any of these filters narrows candidates for the request.
fn narrows(spec: &RequestSpec, options: &Options, which: impl Fn(&str) -> bool) -> bool {
    let names = options.enabled_filters.iter();
    let mut filters = names.filter_map(|name| filters::by_name(name).filter(|_| which(name)));
    filters.any(|filter| filter.narrows(spec))
}

/// Whether the request can look at candidates by their name.
fn names_candidates(spec: &RequestSpec, options: &Options) -> bool {
    let hints = spec.scheduler_hints.as_ref();
    let asks = |filter: &str| options.enabled_filters.iter().any(|name| name == filter);
    let json = asks("JsonFilter") && hints.is_some_and(|hints| hints.contains_key("query"));
    let specs = spec
        .flavor
        .extra_specs
        .iter()
        .flat_map(|specs| specs.iter());
    let odd = |key: &str| key.contains("candidates") || key.contains("__");
    json || specs.into_iter().any(|(key, _)| odd(key))
}

impl Cloud {
    /// Begins to decide a request. `now` in microseconds since 1970, UTC. `seed`: chance where
    /// Nova's options allow it; `None` takes the best.
    ///
    /// # Errors
    /// [`CloudError::Stale`].
    pub fn decide(
        &self,
        spec: RequestSpec,
        call: ScheduleCall,
        candidates: &CandidateHosts,
        now: i64,
        seed: Option<u64>,
    ) -> Result<Scheduling, CloudError> {
        self.decide_expecting(
            spec,
            call,
            candidates,
            now,
            seed,
            &ExpectedInstances::default(),
        )
    }

    /// As [`Self::decide`], but filters and weighers of server groups count members that are not on
    /// their hosts yet.
    ///
    /// # Errors
    /// [`CloudError::Stale`].
    pub fn decide_expecting(
        &self,
        mut spec: RequestSpec,
        call: ScheduleCall,
        candidates: &CandidateHosts,
        now: i64,
        seed: Option<u64>,
        expected: &ExpectedInstances,
    ) -> Result<Scheduling, CloudError> {
        if candidates.layout != self.layout {
            return Err(CloudError::Stale);
        }
        let mut hosts = candidates.hosts.clone();
        hosts.keep(&self.hosts_for(&spec));
        let uuids = call.instance_uuids.as_deref().unwrap_or_default();
        if let Some(first) = uuids.first().filter(|uuid| !uuid.is_empty()) {
            spec.instance_uuid.clone_from(first);
        }
        let members = expected.members(&spec, &call);
        self.complete_group(&mut spec, &call, &members);
        let offer = candidates.offer.clone();
        let first = first_of(&spec, &call, self.options());
        let order = |survey: &HostSurvey| survey.best(first);
        let filtered = hosts.clone();
        let own = &self.options().filter_plugins;
        let working = self.working(own, &spec, hosts, offer, now, &members, order);
        Ok(Scheduling {
            hosts: filtered,
            shadow: self.shadow.clone(),
            steps: ScheduleRun::new(working, spec, call, seed),
            options: self.table.shared_options(),
            now,
            trait_changes: self.trait_changes(),
            candidates: candidates.names_only(),
        })
    }

    /// Alternate hosts for an instance in the current state: they pass and have enough free
    /// capacity without an eviction, because Nova's conductor claims an alternate by itself. In
    /// Nova's order; empty if memory cannot tell.
    #[must_use]
    pub fn alternates(
        &self,
        spec: &RequestSpec,
        instance: Uuid,
        asked: &PlacementQuery,
        now: i64,
        seed: Option<u64>,
        expected: &ExpectedInstances,
    ) -> Vec<SelectedHost> {
        let call = ScheduleCall {
            instance_uuids: Some(vec![instance.to_string()]),
            return_alternates: true,
            ..ScheduleCall::default()
        };
        let Ok(candidates) = self.candidates(asked) else {
            return Vec::new();
        };
        let begun = self.decide_expecting(spec.clone(), call, &candidates, now, seed, expected);
        let Ok(mut scheduling) = begun else {
            return Vec::new();
        };
        loop {
            match scheduling.next() {
                // Nothing is claimed: the best host is an alternate itself.
                SchedulingAction::Claim(_) => scheduling.claimed(ClaimResult::Taken),
                SchedulingAction::Done(selected) => {
                    return selected.into_iter().flatten().collect();
                }
                SchedulingAction::Failed { .. } => return Vec::new(),
            }
        }
    }

    /// The hosts of a request with what the columns say of them.
    #[expect(clippy::too_many_arguments, reason = "two callers")]
    fn working(
        &self,
        own: &FilterPlugins,
        spec: &RequestSpec,
        hosts: HostSet,
        offer: CandidateOffer,
        now: i64,
        members: &ExpectedInstances,
        order: impl FnOnce(&HostSurvey) -> SortedHosts,
    ) -> WorkingHosts {
        let mut working = self.host_by_host(spec, hosts, offer, members);
        // The columns know nothing of expected members: such a request is decided host by host.
        if members.is_empty() {
            let hosts = working.hosts.clone();
            let working = &mut working;
            let (lacking, states) = (&working.lacking, &mut working.states);
            let survey = self
                .table
                .survey_with(own, spec, hosts, lacking, now, states);
            working.first = survey.as_ref().map(order);
            let more = working.first.as_ref().is_some_and(|first| first.behind > 0);
            working.survey = survey.filter(|_| more);
        }
        working
    }

    /// Hosts of which the columns are not asked.
    fn host_by_host(
        &self,
        spec: &RequestSpec,
        hosts: HostSet,
        offer: CandidateOffer,
        members: &ExpectedInstances,
    ) -> WorkingHosts {
        let mut working = WorkingHosts {
            states: self.table.states().clone(),
            hosts,
            offer,
            attached: false,
            lacking: HostSet::none(self.at.len()),
            first: None,
            survey: None,
            uuids: Arc::clone(&self.at),
        };
        if looks_at_candidates(spec, self.options()) {
            working.lacking = self.lacking_devices(spec, &working);
            working.attach();
        }
        if !members.is_empty() {
            let hosts = working.hosts.clone();
            members.stand(hosts.iter(), &mut working.states);
        }
        working
    }

    /// The candidates on which PciPassthroughFilter will find too few devices, whatever stands in
    /// their candidates, and no other filter looks at those. None where that is not sure, or where
    /// Nova could raise instead.
    fn lacking_devices(&self, spec: &RequestSpec, working: &WorkingHosts) -> HostSet {
        let options = self.options();
        let mut lacking = HostSet::none(self.at.len());
        let given = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|l| !l.is_empty());
        let is_sure = narrows(spec, options, |name| name == PCI_FILTER)
            && !narrows(spec, options, |name| name != PCI_FILTER)
            && !names_candidates(spec, options)
            && matches!(working.offer, CandidateOffer::Alike(_))
            && !given(&spec.force_hosts)
            && !given(&spec.force_nodes)
            && filtering::is_rebuild(spec) == Ok(false);
        let requests = spec.pci_requests.as_deref().filter(|_| is_sure);
        let requests = requests.unwrap_or_default();
        let is_good = |request: &PciRequest| {
            request.alias_name.is_none()
                || (request.request_id.is_some() && !request.spec.is_empty())
        };
        if !requests.iter().all(is_good) {
            return lacking;
        }
        for DeviceDemand { wanted, hosts } in self.device_demands(requests) {
            for at in working.hosts.iter() {
                if hosts.get(at).is_some_and(|host| !host.has(wanted)) {
                    lacking.set(at);
                }
            }
        }
        lacking
    }

    /// Filters and weighs candidates once, for the first instance, in any order; and the states as
    /// the filters left them. The operator's filters see h_n. `others`: by these options instead of
    /// the cloud's.
    pub(crate) fn sort_once(
        &self,
        spec: &RequestSpec,
        candidates: &CandidateHosts,
        now: i64,
        members: &ExpectedInstances,
        others: Option<&Options>,
    ) -> Result<(HostStates, SortedHosts), NovaException> {
        let hosts = candidates.hosts.clone();
        let offer = candidates.offer.clone();
        let options = others.unwrap_or_else(|| self.options());
        let on_normal = (!options.filter_plugins.is_empty()).then(|| {
            let held = self.held_by_preemptible();
            let own = options.filter_plugins.on_normal(held);
            options.clone().with_filter_plugins(own)
        });
        let options = on_normal.as_ref().unwrap_or(options);
        let mut working = match others {
            // The columns hold the weights of the weighers in use.
            Some(_) => self.host_by_host(spec, hosts, offer, members),
            None => {
                let own = &options.filter_plugins;
                let order = HostSurvey::unsorted;
                self.working(own, spec, hosts, offer, now, members, order)
            }
        };
        let context = Context { options, now };
        let hosts = working.all();
        let sorted = working.sorted(hosts, spec, &context, 0)?;
        Ok((working.states, sorted))
    }

    /// What preemptible instances hold of each host, by place.
    fn held_by_preemptible(&self) -> Vec<PreemptibleHold> {
        let amount = |class: &str, at: usize| self.columns.evictable(class, at);
        let each = self.numbers.iter().enumerate();
        each.map(|(at, number)| PreemptibleHold {
            vcpus: amount("VCPU", at),
            memory_mb: amount("MEMORY_MB", at),
            disk_gb: amount("DISK_GB", at),
            instances: number.map_or(0, |number| {
                i64::try_from(self.victims.preemptible_on(number)).unwrap_or(i64::MAX)
            }),
        })
        .collect()
    }

    /// The hosts in the cells where a request looks: all that are enabled, or the one it must not
    /// leave, even if that is disabled.
    pub(crate) fn hosts_for(&self, spec: &RequestSpec) -> HostSet {
        let destination = spec.requested_destination.as_ref();
        let only = destination
            .filter(|destination| destination.allow_cross_cell_move != Some(true))
            .and_then(|destination| destination.cell.as_ref());
        match only {
            Some(cell) => self.of_cell.get(cell).cloned().unwrap_or_default(),
            None => self.enabled(),
        }
    }
}

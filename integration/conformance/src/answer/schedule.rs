//! The part `schedule` of an answer.

use super::{error, index, ratios};
use crate::case::{self, Case, IndexedHostState, ScheduleCase};
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::filters::Context;
use ebbtide_nova::model::{AllocationCandidate, HostState, NumaTopology, RequestSpec};
use ebbtide_nova::python::{Dict, Value};
use ebbtide_nova::schedule::{
    Claims, Field, ScheduleCall, ScheduleResult, Selection, SortedHosts, availability_zones, drive,
    sorted,
};
use ebbtide_nova::states::{HostStateList, HostStates};
use ebbtide_nova::table::{CloudTable, HostSurvey};

/// Placement as the oracle fakes it: it answers claims as the case says and writes them down.
struct CasePlacement<'a> {
    case: &'a Case,
    schedule: &'a ScheduleCase,
    places: Vec<usize>,
    claims: Vec<Value>,
    deleted: Vec<Value>,
}

impl Claims for CasePlacement<'_> {
    fn claim(
        &mut self,
        instance_uuid: &str,
        host: usize,
        candidate: &AllocationCandidate,
    ) -> Result<bool, NovaException> {
        let place = self.case.first_provider(self.places[host], candidate);
        let name = place.map(|place| self.case.names()[place].0.as_str());
        let is_in = |names: &std::collections::BTreeSet<String>| {
            name.is_some_and(|name| names.contains(name))
        };
        let raises = is_in(&self.schedule.raise_hosts);
        let early = (self.claims.len() as i128) < self.schedule.fail_first;
        let taken = !early && !is_in(&self.schedule.fail_hosts);
        self.claims.push(Value::List(vec![
            Value::from(instance_uuid),
            place.map_or(Value::None, index),
            if raises {
                Value::from("raise")
            } else {
                Value::Bool(taken)
            },
        ]));
        if raises {
            return Err(NovaException::new(
                "AllocationUpdateFailed",
                "the case says so",
            ));
        }
        Ok(taken)
    }

    fn delete(&mut self, instance_uuid: &str) {
        self.deleted.push(Value::from(instance_uuid));
    }
}

/// Schedules a case and tells what came of it. Sets `by_chance` where Nova might have answered
/// otherwise.
///
/// It is scheduled twice: host by host, and as a cloud in memory does it, over columns with only as
/// many hosts in order as are needed. The second answer is given besides where it is another one.
pub(super) fn answer(
    case: &Case,
    placed: Vec<IndexedHostState>,
    spec: RequestSpec,
    context: &Context<'_>,
    rebuild: bool,
) -> (Dict<Value>, Option<Dict<Value>>) {
    let Some(given) = &case.schedule else {
        return (Dict::default(), None);
    };
    let no_placement = given.no_placement || rebuild;
    let before: Vec<HostState> = placed.iter().map(|p| p.state.clone()).collect();
    let places: Vec<usize> = placed.iter().map(|p| p.place).collect();
    let mut placed = placed;
    if !no_placement {
        case::attach_candidates(case, &mut placed);
    }
    let states: Vec<HostState> = placed.into_iter().map(|p| p.state).collect();
    let call = ScheduleCall {
        instance_uuids: given.instance_uuids.clone(),
        return_alternates: given.return_alternates,
        no_placement,
        orphans: true,
    };
    let told = |field: Hosts| {
        let mut claims = CasePlacement {
            case,
            schedule: given,
            places: places.clone(),
            claims: Vec::new(),
            deleted: Vec::new(),
        };
        let (outcome, hosts, spec) = drive(field, spec.clone(), context, &call, &mut claims);
        tell(&before, &places, &hosts, &outcome, claims, &spec)
    };
    let columns = Hosts::over_columns(states.clone(), &spec, &call, context).map(&told);
    let out = told(Hosts::one_by_one(states));
    let other = columns.filter(|columns| format!("{columns:?}") != format!("{out:?}"));
    (out, other)
}

/// The hosts of a case.
struct Hosts {
    states: HostStates,
    /// What the columns say of the first instance, and the first of the order.
    survey: Option<(HostSurvey, SortedHosts)>,
    asked: bool,
}

impl Hosts {
    fn one_by_one(states: Vec<HostState>) -> Self {
        Self {
            states: states.into_iter().collect(),
            survey: None,
            asked: false,
        }
    }

    /// As few hosts in order as chance allows, so that most cases need more. `None` if this has to
    /// be decided host by host.
    fn over_columns(
        states: Vec<HostState>,
        spec: &RequestSpec,
        call: &ScheduleCall,
        context: &Context<'_>,
    ) -> Option<Self> {
        let mut spec = spec.clone();
        let uuids = call.instance_uuids.as_deref().unwrap_or_default();
        let first = uuids.first();
        if let Some(first) = first.filter(|uuid| !call.no_placement || !uuid.is_empty()) {
            spec.instance_uuid.clone_from(first);
        }
        let cloud = CloudTable::new(states, context.options.clone(), context.now);
        let mut states = cloud.states().clone();
        let survey = cloud.survey(&spec, cloud.known().clone(), context.now, &mut states)?;
        let order = if context.options.shuffle_best_same_weighed_hosts {
            survey.sorted()
        } else {
            let subset = usize::try_from(context.options.host_subset_size);
            survey.cut(subset.unwrap_or(usize::MAX).max(2))
        };
        Some(Self {
            states,
            survey: Some((survey, order)),
            asked: false,
        })
    }
}

impl HostStateList for Hosts {
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

impl Field for Hosts {
    fn sorted(
        &mut self,
        hosts: Vec<usize>,
        spec: &RequestSpec,
        context: &Context<'_>,
        index: usize,
    ) -> Result<SortedHosts, NovaException> {
        let first = !std::mem::replace(&mut self.asked, true);
        match &self.survey {
            Some((_, order)) if first => Ok(order.clone()),
            _ => sorted(&mut self.states, hosts, spec, context, index),
        }
    }

    fn behind(&self, given: usize) -> Vec<usize> {
        let survey = self.survey.as_ref();
        survey.map_or_else(Vec::new, |(survey, _)| survey.behind(given))
    }
}

fn tell(
    before: &[HostState],
    places: &[usize],
    hosts: &Hosts,
    outcome: &ScheduleResult,
    claims: CasePlacement<'_>,
    spec: &RequestSpec,
) -> Dict<Value> {
    let mut out = Dict::default();
    match &outcome.selections {
        Ok(selections) => {
            let all = selections.iter().map(|one| {
                Value::List(
                    one.iter()
                        .map(|s| selection(s, hosts.get(s.host), places[s.host]))
                        .collect(),
                )
            });
            out.insert("selections", Value::List(all.collect()));
        }
        Err(fault) => out.insert("error", error(fault, "schedule", None)),
    }
    out.insert("claims", Value::List(claims.claims));
    out.insert("deleted", Value::List(claims.deleted));
    let mut touched: Dict<Value> = Dict::default();
    for (at, (before, place)) in before.iter().zip(places).enumerate() {
        let after = hosts.get(at);
        if numbers(after) != numbers(before) {
            touched.insert(place.to_string(), difference(after, before));
        }
    }
    out.insert("touched", Value::Dict(touched));
    if let Some(group) = &spec.instance_group {
        let hosts = group.hosts.iter().map(|host| Value::from(host.as_str()));
        out.insert("group_hosts", Value::List(hosts.collect()));
    }
    if outcome.by_chance || outcome.unordered {
        out.insert("by_chance", Value::Bool(true));
    }
    out
}

fn selection(selection: &Selection, state: &HostState, place: usize) -> Value {
    let mut out = Dict::default();
    out.insert("idx", index(place));
    // Of several zones Nova takes any: all of them stand in the answer.
    let zones = availability_zones(state);
    out.insert(
        "az",
        match zones.len() {
            0 | 1 => Value::from(selection.availability_zone.as_str()),
            _ => Value::List(zones.into_iter().map(Value::from).collect()),
        },
    );
    out.insert(
        "alloc",
        match &selection.candidate {
            None => Value::None,
            Some(candidate) => Value::from(&serde_json::json!({
                "allocations": candidate.allocations,
                "mappings": candidate.mappings,
            })),
        },
    );
    let version = selection.candidate.as_ref().map(|_| "1.36");
    out.insert("version", Value::from(version));
    if let Some(limits) = selection.limits {
        out.insert("limits", ratios(limits));
    }
    Value::Dict(out)
}

/// What tells the oracle that a host was touched.
fn numbers(state: &HostState) -> (Option<i64>, i64, i64, i64, i64) {
    (
        state.free_ram_mb,
        state.free_disk_mb,
        state.vcpus_used,
        state.num_instances,
        state.num_io_ops,
    )
}

fn difference(after: &HostState, before: &HostState) -> Value {
    let mut out = Dict::default();
    out.insert("free_ram_mb", Value::from(after.free_ram_mb));
    out.insert("free_disk_mb", Value::from(after.free_disk_mb));
    out.insert("vcpus_used", Value::from(after.vcpus_used));
    out.insert("num_instances", Value::from(after.num_instances));
    out.insert("num_io_ops", Value::from(after.num_io_ops));
    let new = after
        .instances
        .keys()
        .filter(|uuid| !before.instances.contains_key(*uuid));
    out.insert(
        "instances",
        Value::List(new.map(|uuid| Value::from(uuid.as_str())).collect()),
    );
    if let Some(topology) = &after.numa_topology {
        out.insert("numa", numa(topology));
    }
    if let Some(pools) = after.pci_pools.as_ref().filter(|pools| !pools.is_empty()) {
        let counts = pools.iter().map(|pool| Value::from(pool.count));
        out.insert("pci_counts", Value::List(counts.collect()));
    }
    Value::Dict(out)
}

fn numa(topology: &NumaTopology) -> Value {
    let cells = topology.cells.iter().map(|cell| {
        let mut out = Dict::default();
        out.insert("id", Value::from(cell.id));
        out.insert("cpu_usage", Value::from(cell.cpu_usage));
        out.insert("memory_usage", Value::from(cell.memory_usage));
        let pinned = cell.pinned_cpus.iter().map(|cpu| Value::from(*cpu));
        out.insert("pinned_cpus", Value::List(pinned.collect()));
        let pages = cell.mempages.iter().map(|page| {
            let mut out = Dict::default();
            out.insert("size_kb", Value::from(page.size_kb));
            out.insert("total", Value::from(page.total));
            out.insert("used", Value::from(page.used));
            Value::Dict(out)
        });
        out.insert("mempages", Value::List(pages.collect()));
        Value::Dict(out)
    });
    let mut out = Dict::default();
    out.insert("cells", Value::List(cells.collect()));
    Value::Dict(out)
}

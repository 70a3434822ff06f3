//! How each filter runs over many hosts at once.

use super::Instances;
use super::classes::{ClassVerdict, Classes, ReferenceNeeded};
use super::up::ComputeUpColumn;
use crate::filtering;
use crate::filters::{self, Context, Filter, attributes, compute_capabilities};
use crate::model::{HostState, Options, RequestSpec};
use crate::python::Value;
use crate::states::{HostStateList, HostStates};
use ebbtide_model::host_set::HostSet;
use std::collections::HashMap;
use std::sync::RwLock;

/// Divisions by attribute that are kept; a cloud whose flavors name more than so many has them made
/// anew.
const DIVISIONS: usize = 32;

/// One filter of the pipeline, and how it is run.
pub(super) struct FilterPlan {
    pub(super) filter: &'static dyn Filter,
    how: How,
}

/// How a filter is run.
enum How {
    /// Every host passes.
    Nothing,
    /// ComputeFilter.
    Up(ComputeUpColumn),
    /// The answer is the same for all hosts of a class.
    Alike(fn(&HostState) -> Key, Classes<Key>),
    /// ComputeCapabilitiesFilter: hosts are alike if the attribute that an extra spec names is the
    /// same. Divisions are kept by attribute.
    Capabilities(RwLock<HashMap<String, Classes<Attribute>>>),
    /// ServerGroupAntiAffinityFilter: only hosts with members of the group are checked.
    AntiAffinity,
    /// Each host is checked.
    Each,
    /// Each host is checked if the filter may narrow it for the request. Otherwise one host of each
    /// class is checked, or with `None` no host, because every host passes.
    Narrowing(Option<Classes<bool>>),
}

/// What makes hosts alike.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Hypervisor(Option<Vec<Vec<Option<String>>>>, Option<i64>),
    /// The same aggregates are the same objects or have the same content.
    Aggregates(Vec<i64>),
    Number(i64),
    AggregatesAndNumber(Vec<i64>, i64),
    Host(String),
}

/// All that an extra spec can see of a host under a name.
type Attribute = (Option<String>, Option<Option<String>>, bool);

impl std::fmt::Debug for FilterPlan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.filter.name())
    }
}

fn aggregates(state: &HostState) -> Vec<i64> {
    let aggregates = state.aggregates.iter();
    aggregates.map(|aggregate| aggregate.id).collect()
}

/// True for hosts on which a guest that requires thread siblings fails.
fn without_threads(state: &HostState) -> bool {
    let topology = state.numa_topology.as_ref();
    topology.is_some_and(|host| !host.cells.is_empty() && !host.has_threads())
}

impl FilterPlan {
    /// The pipeline of the options.
    pub(super) fn all(options: &Options) -> Vec<Self> {
        let known = options
            .enabled_filters
            .iter()
            .filter_map(|name| filters::by_name(name));
        known
            .map(|filter| Self {
                filter,
                how: Self::how(filter.name()),
            })
            .collect()
    }

    fn how(name: &str) -> How {
        let alike = |key: fn(&HostState) -> Key| How::Alike(key, Classes::new());
        match name {
            "ComputeFilter" => How::Up(ComputeUpColumn::default()),
            "AllHostsFilter" => How::Nothing,
            "ImagePropertiesFilter" => {
                alike(|s| Key::Hypervisor(s.supported_instances.clone(), s.hypervisor_version))
            }
            "AggregateImagePropertiesIsolation"
            | "AggregateInstanceExtraSpecsFilter"
            | "AggregateMultiTenancyIsolation"
            | "AvailabilityZoneFilter"
            | "AggregateTypeAffinityFilter" => alike(|s| Key::Aggregates(aggregates(s))),
            "IoOpsFilter" => alike(|s| Key::Number(s.num_io_ops)),
            "AggregateIoOpsFilter" => {
                alike(|s| Key::AggregatesAndNumber(aggregates(s), s.num_io_ops))
            }
            "NumInstancesFilter" => alike(|s| Key::Number(s.num_instances)),
            "AggregateNumInstancesFilter" => {
                alike(|s| Key::AggregatesAndNumber(aggregates(s), s.num_instances))
            }
            "ServerGroupAffinityFilter" => alike(|s| Key::Host(s.host.clone())),
            "ComputeCapabilitiesFilter" => How::Capabilities(RwLock::default()),
            "ServerGroupAntiAffinityFilter" => How::AntiAffinity,
            "NUMATopologyFilter" => How::Narrowing(Some(Classes::new())),
            "PciPassthroughFilter" => How::Narrowing(None),
            _ => How::Each,
        }
    }

    /// Takes a host in, or out.
    pub(super) fn put(&mut self, at: usize, state: Option<&HostState>) {
        match &mut self.how {
            How::Up(up) => up.put(at, state),
            How::Alike(key, classes) => classes.put(at, state.map(key)),
            How::Capabilities(known) => {
                let known = known.get_mut().unwrap_or_else(|poisoned| {
                    // A thread that panicked may have left an incomplete division.
                    let known = poisoned.into_inner();
                    known.clear();
                    known
                });
                for (name, classes) in known {
                    classes.put(at, state.map(|state| attribute_key(state, name)));
                }
            }
            How::Narrowing(Some(classes)) => classes.put(at, state.map(without_threads)),
            How::Nothing | How::AntiAffinity | How::Each | How::Narrowing(None) => {}
        }
    }

    /// Takes out the hosts that fail. `states` are the request's own: what the filter narrows on a
    /// host is changed there.
    pub(super) fn run(
        &self,
        states: &mut HostStates,
        instances: &Instances,
        spec: &RequestSpec,
        context: &Context<'_>,
        alive: &mut HostSet,
    ) -> Result<(), ReferenceNeeded> {
        let ask = |at: usize| verdict(filtering::looks(self.filter, states.get(at), spec, context));
        match &self.how {
            How::Nothing => Ok(()),
            How::Up(up) => up.run(alive, context.options, context.now),
            How::Alike(_, classes) => {
                // Its classes are many, and without a group of its policy it has nothing to say.
                let group = spec.instance_group.as_ref();
                let affinity = group.is_some_and(|group| group.policy == "affinity");
                if self.filter.name() == "ServerGroupAffinityFilter" && !affinity {
                    return Ok(());
                }
                let verdicts = classes.judge(ask);
                classes.apply(alive, &verdicts)
            }
            How::Capabilities(known) => self.capabilities(known, states, spec, context, alive),
            How::AntiAffinity => self.anti_affinity(states, instances, spec, context, alive),
            How::Narrowing(_) if self.filter.narrows(spec) => {
                let mut gone = Vec::new();
                for at in alive.iter() {
                    let passed = filtering::passes(self.filter, states.edit(at), spec, context);
                    if !passed.map_err(|_| ReferenceNeeded)? {
                        gone.push(at);
                    }
                }
                gone.into_iter().for_each(|at| alive.clear(at));
                Ok(())
            }
            How::Narrowing(Some(classes)) => {
                let verdicts = classes.judge(ask);
                classes.apply(alive, &verdicts)
            }
            How::Narrowing(None) => Ok(()),
            How::Each => self.each(states, spec, context, alive),
        }
    }

    fn each(
        &self,
        states: &HostStates,
        spec: &RequestSpec,
        context: &Context<'_>,
        alive: &mut HostSet,
    ) -> Result<(), ReferenceNeeded> {
        let mut gone = Vec::new();
        for at in alive.iter() {
            let passed = filtering::looks(self.filter, states.get(at), spec, context);
            if !passed.map_err(|_| ReferenceNeeded)? {
                gone.push(at);
            }
        }
        gone.into_iter().for_each(|at| alive.clear(at));
        Ok(())
    }

    fn anti_affinity(
        &self,
        states: &HostStates,
        instances: &Instances,
        spec: &RequestSpec,
        context: &Context<'_>,
        alive: &mut HostSet,
    ) -> Result<(), ReferenceNeeded> {
        let group = spec.instance_group.as_ref();
        let Some(group) = group.filter(|group| group.policy == "anti-affinity") else {
            return Ok(());
        };
        let uuids = group.members.iter().chain([&spec.instance_uuid]);
        let mut asked: Vec<usize> = uuids.flat_map(|uuid| instances.hosts(uuid)).collect();
        // One host without members stands for all others: a bad rule raises there, too.
        asked.extend(alive.iter().find(|at| !asked.contains(at)));
        asked.sort_unstable();
        asked.dedup();
        let other = |at: usize| {
            let mut here = states.get(at).instances.keys();
            !here.any(|uuid| group.members.contains(uuid) || *uuid == spec.instance_uuid)
        };
        for at in asked {
            if !alive.has(at) {
                continue;
            }
            let passed = filtering::looks(self.filter, states.get(at), spec, context);
            if !passed.map_err(|_| ReferenceNeeded)? {
                if other(at) {
                    // All hosts without members fail with it: the limit is 0 or less.
                    return Err(ReferenceNeeded);
                }
                alive.clear(at);
            }
        }
        Ok(())
    }

    /// Checks extra specs one after the other. A host that fails one is not checked for the next,
    /// so it cannot raise there.
    fn capabilities(
        &self,
        known: &RwLock<HashMap<String, Classes<Attribute>>>,
        states: &HostStates,
        spec: &RequestSpec,
        context: &Context<'_>,
        alive: &mut HostSet,
    ) -> Result<(), ReferenceNeeded> {
        let Some(specs) = &spec.flavor.extra_specs else {
            return Ok(());
        };
        if specs.contains_key("hw:maxphysaddr_bits") {
            // Its place in the order is Nova's own.
            return self.each(states, spec, context, alive);
        }
        for (key, requirement) in specs.iter() {
            let name = match key.split_once(':') {
                None => key.as_str(),
                Some(("capabilities", rest)) => rest.split(':').next().unwrap_or_default(),
                Some(_) => continue,
            };
            if !known
                .read()
                .map_err(|_| ReferenceNeeded)?
                .contains_key(name)
            {
                let mut classes = Classes::new();
                for at in alive_or_not(states) {
                    classes.put(at, Some(attribute_key(states.get(at), name)));
                }
                let mut known = known.write().map_err(|_| ReferenceNeeded)?;
                if known.len() >= DIVISIONS {
                    known.clear();
                }
                known.insert(name.to_owned(), classes);
            }
            let known = known.read().map_err(|_| ReferenceNeeded)?;
            // Another request may have cleared them in between.
            let classes = known.get(name).ok_or(ReferenceNeeded)?;
            let verdicts = classes.judge(|at| {
                verdict(compute_capabilities::meets(
                    states.get(at),
                    key,
                    requirement,
                ))
            });
            classes.apply(alive, &verdicts)?;
        }
        Ok(())
    }
}

/// All places. A place without a host is never checked, but has a class.
fn alive_or_not(states: &HostStates) -> std::ops::Range<usize> {
    0..states.len()
}

fn verdict(passed: Result<bool, crate::fault::NovaException>) -> ClassVerdict {
    match passed {
        Ok(true) => ClassVerdict::Pass,
        Ok(false) => ClassVerdict::Fail,
        Err(_) => ClassVerdict::Fault,
    }
}

fn attribute_key(state: &HostState, name: &str) -> Attribute {
    let attribute = attributes::attribute(state, name);
    let is_none = matches!(attribute, Some(Value::None));
    let stats = state
        .stats
        .as_ref()
        .and_then(|stats| stats.get(name))
        .cloned();
    (attribute.map(|value| format!("{value:?}")), stats, is_none)
}

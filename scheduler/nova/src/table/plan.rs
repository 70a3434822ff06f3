//! How each filter is asked about many hosts at once.

use super::Saved;
use super::bits::Bits;
use super::classes::{Classes, Raises, Verdict};
use crate::filtering;
use crate::filters::{self, Context, Filter, attributes, compute_capabilities};
use crate::model::{HostState, Options, RequestSpec};
use crate::python::Value;
use std::collections::HashMap;

/// How one filter of the pipeline is run.
pub(super) enum Plan {
    /// What it says does not hang on the request: it was asked when the cloud was built.
    Fixed(Classes, Vec<Verdict>),
    /// What it says is the same for hosts of a class.
    Alike(&'static dyn Filter, Classes),
    /// ComputeCapabilitiesFilter: hosts are alike if the attribute that an extra spec names is. Divisions are kept by attribute.
    Capabilities(&'static dyn Filter, HashMap<String, Classes>),
    /// ServerGroupAntiAffinityFilter: only hosts with members of the group are asked.
    AntiAffinity(&'static dyn Filter),
    /// Each host is asked.
    Each(&'static dyn Filter),
    /// Each host is asked, and what the filter narrows on it is put back later. A request without needs passes everywhere.
    Narrowing(&'static dyn Filter),
}

impl std::fmt::Debug for Plan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self {
            Self::Fixed(..) => "Fixed",
            Self::Alike(..) => "Alike",
            Self::Capabilities(..) => "Capabilities",
            Self::AntiAffinity(..) => "AntiAffinity",
            Self::Each(..) => "Each",
            Self::Narrowing(..) => "Narrowing",
        };
        f.write_str(kind)
    }
}

/// Aggregates of a host, as a key: the same aggregates are the same objects or have the same content.
fn aggregates(state: &HostState) -> Vec<i64> {
    state
        .aggregates
        .iter()
        .map(|aggregate| aggregate.id)
        .collect()
}

impl Plan {
    /// The pipeline of the options.
    pub(super) fn all(states: &mut [HostState], options: &Options, now: i64) -> Vec<Self> {
        let context = Context { options, now };
        let known = options
            .enabled_filters
            .iter()
            .filter_map(|name| filters::by_name(name));
        known
            .map(|filter| Self::of(filter, states, &context))
            .collect()
    }

    fn of(filter: &'static dyn Filter, states: &mut [HostState], context: &Context<'_>) -> Self {
        let len = states.len();
        match filter.name() {
            // Asked with an empty request, which it does not look at.
            "ComputeFilter" => {
                let classes = Classes::by(len, |at| {
                    let s = &states[at].service;
                    (s.disabled, s.forced_down, s.last_seen_up, s.created_at)
                });
                let spec = RequestSpec {
                    scheduler_hints: Some(Default::default()),
                    ..RequestSpec::default()
                };
                let verdicts = ask(filter, &classes, states, &spec, context);
                Self::Fixed(classes, verdicts)
            }
            "AllHostsFilter" => {
                let classes = Classes::by(len, |_| ());
                let verdicts = vec![Verdict::Pass; classes.examples().len()];
                Self::Fixed(classes, verdicts)
            }
            "ImagePropertiesFilter" => {
                let key = |at: usize| {
                    (
                        states[at].supported_instances.clone(),
                        states[at].hypervisor_version,
                    )
                };
                Self::Alike(filter, Classes::by(len, key))
            }
            "AggregateImagePropertiesIsolation"
            | "AggregateInstanceExtraSpecsFilter"
            | "AggregateMultiTenancyIsolation"
            | "AggregateTypeAffinityFilter" => {
                Self::Alike(filter, Classes::by(len, |at| aggregates(&states[at])))
            }
            "IoOpsFilter" => Self::Alike(filter, Classes::by(len, |at| states[at].num_io_ops)),
            "AggregateIoOpsFilter" => {
                let key = |at: usize| (aggregates(&states[at]), states[at].num_io_ops);
                Self::Alike(filter, Classes::by(len, key))
            }
            "NumInstancesFilter" => {
                Self::Alike(filter, Classes::by(len, |at| states[at].num_instances))
            }
            "AggregateNumInstancesFilter" => {
                let key = |at: usize| (aggregates(&states[at]), states[at].num_instances);
                Self::Alike(filter, Classes::by(len, key))
            }
            "ServerGroupAffinityFilter" => {
                Self::Alike(filter, Classes::by(len, |at| states[at].host.clone()))
            }
            "ComputeCapabilitiesFilter" => Self::Capabilities(filter, HashMap::new()),
            "ServerGroupAntiAffinityFilter" => Self::AntiAffinity(filter),
            "NUMATopologyFilter" | "PciPassthroughFilter" => Self::Narrowing(filter),
            _ => Self::Each(filter),
        }
    }

    /// Takes out the hosts that fail.
    pub(super) fn run(
        &mut self,
        states: &mut [HostState],
        instances: &HashMap<String, Vec<u32>>,
        spec: &RequestSpec,
        context: &Context<'_>,
        alive: &mut Bits,
        saved: &mut Saved,
    ) -> Result<(), Raises> {
        match self {
            Self::Fixed(classes, verdicts) => classes.apply(alive, verdicts),
            Self::Alike(filter, classes) => {
                // Its classes are many, and without a group of its policy it has nothing to say.
                let group = spec.instance_group.as_ref();
                let affinity = group.is_some_and(|group| group.policy == "affinity");
                if filter.name() == "ServerGroupAffinityFilter" && !affinity {
                    return Ok(());
                }
                let verdicts = ask(*filter, classes, states, spec, context);
                classes.apply(alive, &verdicts)
            }
            Self::Capabilities(filter, known) => {
                capabilities(*filter, known, states, spec, context, alive)
            }
            Self::AntiAffinity(filter) => {
                let Some(group) = spec.instance_group.as_ref() else {
                    return Ok(());
                };
                if group.policy != "anti-affinity" {
                    return Ok(());
                }
                let uuids = group.members.iter().chain([&spec.instance_uuid]);
                let mut asked: Vec<usize> = uuids
                    .filter_map(|uuid| instances.get(uuid))
                    .flatten()
                    .map(|at| *at as usize)
                    .collect();
                // One host without members stands for all others: a bad rule raises there, too.
                asked.extend(alive.iter().find(|at| !asked.contains(at)));
                asked.sort_unstable();
                asked.dedup();
                let other = |states: &[HostState], at: usize| {
                    !states[at]
                        .instances
                        .keys()
                        .any(|uuid| group.members.contains(uuid) || *uuid == spec.instance_uuid)
                };
                for at in asked
                    .into_iter()
                    .filter(|at| alive.has(*at))
                    .collect::<Vec<_>>()
                {
                    let passed = filtering::passes(*filter, &mut states[at], spec, context)
                        .map_err(|_| Raises)?;
                    if !passed {
                        if other(states, at) {
                            // All hosts without members fail with it: the limit is 0 or less.
                            return Err(Raises);
                        }
                        alive.clear(at);
                    }
                }
                Ok(())
            }
            Self::Each(filter) => each(*filter, states, spec, context, alive, None),
            Self::Narrowing(filter) => {
                let devices = spec
                    .pci_requests
                    .as_ref()
                    .is_some_and(|all| !all.is_empty());
                let narrows = devices || spec.numa_topology.is_some();
                if filter.name() == "PciPassthroughFilter" && !devices {
                    return Ok(());
                }
                each(
                    *filter,
                    states,
                    spec,
                    context,
                    alive,
                    narrows.then_some(saved),
                )
            }
        }
    }
}

fn verdict(passed: Result<bool, crate::fault::Fault>) -> Verdict {
    match passed {
        Ok(true) => Verdict::Pass,
        Ok(false) => Verdict::Fail,
        Err(_) => Verdict::Fault,
    }
}

fn ask(
    filter: &dyn Filter,
    classes: &Classes,
    states: &mut [HostState],
    spec: &RequestSpec,
    context: &Context<'_>,
) -> Vec<Verdict> {
    let examples = classes.examples().iter();
    examples
        .map(|at| verdict(filtering::passes(filter, &mut states[*at], spec, context)))
        .collect()
}

fn each(
    filter: &dyn Filter,
    states: &mut [HostState],
    spec: &RequestSpec,
    context: &Context<'_>,
    alive: &mut Bits,
    mut saved: Option<&mut Saved>,
) -> Result<(), Raises> {
    let mut gone = Vec::new();
    for at in alive.iter() {
        let state = &mut states[at];
        if let Some(saved) = saved.as_deref_mut() {
            saved
                .entry(at)
                .or_insert_with(|| (state.allocation_candidates.clone(), state.numa_limits));
        }
        if !filtering::passes(filter, state, spec, context).map_err(|_| Raises)? {
            gone.push(at);
        }
    }
    gone.into_iter().for_each(|at| alive.clear(at));
    Ok(())
}

/// Extra specs are asked one after the other; who fails one is not asked about the next, so it cannot raise there.
fn capabilities(
    filter: &'static dyn Filter,
    known: &mut HashMap<String, Classes>,
    states: &mut [HostState],
    spec: &RequestSpec,
    context: &Context<'_>,
    alive: &mut Bits,
) -> Result<(), Raises> {
    let Some(specs) = &spec.flavor.extra_specs else {
        return Ok(());
    };
    if specs.contains_key("hw:maxphysaddr_bits") {
        // Its place in the order is Nova's own.
        return each(filter, states, spec, context, alive, None);
    }
    for (key, requirement) in specs.iter() {
        let name = match key.split_once(':') {
            None => key.as_str(),
            Some(("capabilities", rest)) => rest.split(':').next().unwrap_or_default(),
            Some(_) => continue,
        };
        if !known.contains_key(name) {
            let classes = Classes::by(states.len(), |at| attribute_key(&states[at], name));
            known.insert(name.to_owned(), classes);
        }
        let Some(classes) = known.get(name) else {
            continue;
        };
        let verdicts: Vec<Verdict> = classes
            .examples()
            .iter()
            .map(|at| verdict(compute_capabilities::meets(&states[*at], key, requirement)))
            .collect();
        classes.apply(alive, &verdicts)?;
    }
    Ok(())
}

/// All that an extra spec can see of a host under a name.
fn attribute_key(state: &HostState, name: &str) -> (Option<String>, Option<Option<String>>, bool) {
    let attribute = attributes::attribute(state, name);
    let is_none = matches!(attribute, Some(Value::None));
    let stats = state
        .stats
        .as_ref()
        .and_then(|stats| stats.get(name))
        .cloned();
    (attribute.map(|value| format!("{value:?}")), stats, is_none)
}

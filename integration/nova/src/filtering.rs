//! Which hosts pass (`HostManager.get_filtered_hosts`, `nova/filters.py`).

use crate::fault::NovaException;
use crate::filters::{self, Context, Filter};
use crate::model::{Destination, HostState, RequestSpec};
use crate::states::HostStateList;
use std::collections::BTreeSet;

/// What one filter of the pipeline did. Hosts are places in the list of states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterPass {
    /// Nova's class name.
    pub filter: &'static str,
    /// Hosts that came in.
    pub start: usize,
    /// Hosts that went on.
    pub end: usize,
    /// Those that did not.
    pub removed: Vec<usize>,
    /// Why, in the words of a filter that is a plugin, parallel to `removed`. Nova's own filters
    /// give no reasons.
    pub reasons: Vec<String>,
    /// The failure of a filter that is a plugin, with what followed.
    pub problem: Option<String>,
}

/// What makes filtering fail the whole request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterFault {
    /// The filter that raised; `None` if it happened before the first.
    pub filter: Option<&'static str>,
    pub fault: NovaException,
}

/// `request_is_rebuild`.
///
/// # Errors
/// AttributeError where the request has null for hints.
pub fn is_rebuild(spec: &RequestSpec) -> Result<bool, NovaException> {
    Ok(hints(spec)?
        .get("_nova_check_type")
        .is_some_and(|kind| kind == &["rebuild"]))
}

fn hints(
    spec: &RequestSpec,
) -> Result<&std::collections::BTreeMap<String, Vec<String>>, NovaException> {
    spec.scheduler_hints
        .as_ref()
        .ok_or_else(|| NovaException::new("AttributeError", "the scheduler hints are null"))
}

/// One filter on one host (`BaseHostFilter._filter_one`).
///
/// # Errors
/// What the filter raises.
pub fn passes(
    filter: &dyn Filter,
    host: &mut HostState,
    spec: &RequestSpec,
    context: &Context<'_>,
) -> Result<bool, NovaException> {
    if !filter.narrows(spec) {
        return looks(filter, host, spec, context);
    }
    if !filter.on_rebuild() && is_rebuild(spec)? {
        return Ok(true);
    }
    filter.narrow(host, spec, context)
}

/// One filter on one host, where it does not narrow anything for this request.
///
/// # Errors
/// What the filter raises.
pub(crate) fn looks(
    filter: &dyn Filter,
    host: &HostState,
    spec: &RequestSpec,
    context: &Context<'_>,
) -> Result<bool, NovaException> {
    if !filter.on_rebuild() && is_rebuild(spec)? {
        return Ok(true);
    }
    filter.passes(host, spec, context)
}

/// Narrows `hosts`, which are places in `states`, down to those that pass, for the `index`-th
/// instance of a request. Writes what each filter did into `trace`.
///
/// # Errors
/// What a filter raises, or what is wrong with the destination or the hints.
pub fn filter<S: HostStateList + ?Sized>(
    states: &mut S,
    hosts: Vec<usize>,
    spec: &RequestSpec,
    context: &Context<'_>,
    index: usize,
    trace: &mut Vec<FilterPass>,
) -> Result<Vec<usize>, FilterFault> {
    let early = |fault| FilterFault {
        filter: None,
        fault,
    };
    match narrow(states, hosts, spec).map_err(early)? {
        InitialHosts::Decided(hosts) => Ok(hosts),
        InitialHosts::Open(hosts) => pipeline(states, hosts, spec, context, index, trace),
    }
}

/// What is left when the filters begin.
pub(crate) enum InitialHosts {
    /// These hosts, without running a filter: the request forces them, or no host is left.
    Decided(Vec<usize>),
    /// The hosts that the filters have to check.
    Open(Vec<usize>),
}

/// What comes before the filters: destination, hosts to leave out, hosts and nodes that are forced.
///
/// # Errors
/// ObjectActionError for a destination with a host and no node, AttributeError for hints that are
/// null.
pub(crate) fn narrow<S: HostStateList + ?Sized>(
    states: &S,
    mut hosts: Vec<usize>,
    spec: &RequestSpec,
) -> Result<InitialHosts, NovaException> {
    if let Some(destination) = &spec.requested_destination {
        hosts = at_destination(states, hosts, destination)?;
    }
    let given = |list: &Option<Vec<String>>| list.clone().unwrap_or_default();
    let (ignored, forced_hosts) = (given(&spec.ignore_hosts), given(&spec.force_hosts));
    let forced_nodes = given(&spec.force_nodes);
    let forced = !forced_hosts.is_empty() || !forced_nodes.is_empty();
    if !forced && ignored.is_empty() {
        return Ok(InitialHosts::Open(hosts));
    }
    let lower = |names: &[String]| -> BTreeSet<String> {
        names.iter().map(|name| name.to_lowercase()).collect()
    };
    if !ignored.is_empty() {
        let ignored = lower(&ignored);
        hosts.retain(|h| !ignored.contains(&states.get(*h).host.to_lowercase()));
        if hosts.is_empty() {
            // Nothing left: Nova does not even look at the hints.
            return Ok(InitialHosts::Decided(hosts));
        }
    }
    if !forced_hosts.is_empty() {
        let forced = lower(&forced_hosts);
        hosts.retain(|h| forced.contains(&states.get(*h).host.to_lowercase()));
    }
    if !forced_nodes.is_empty() {
        hosts.retain(|h| forced_nodes.contains(&states.get(*h).nodename));
    }
    let checked = hints(spec)?.get("_nova_check_type");
    Ok(if forced && checked.is_none_or(Vec::is_empty) {
        InitialHosts::Decided(hosts)
    } else {
        InitialHosts::Open(hosts)
    })
}

/// The node is read even where the destination does not name one, and then it is an error.
fn at_destination<S: HostStateList + ?Sized>(
    states: &S,
    mut hosts: Vec<usize>,
    destination: &Destination,
) -> Result<Vec<usize>, NovaException> {
    let Some(host) = &destination.host else {
        return Ok(hosts);
    };
    let Some(node) = &destination.node else {
        return Err(NovaException::new(
            "ObjectActionError",
            "the destination names a host and leaves the node out",
        ));
    };
    let node = node.as_ref().filter(|node| !node.is_empty());
    hosts.retain(|h| {
        host.as_ref() == Some(&states.get(*h).host)
            && node.is_none_or(|node| *node == states.get(*h).nodename)
    });
    Ok(hosts)
}

fn pipeline<S: HostStateList + ?Sized>(
    states: &mut S,
    mut hosts: Vec<usize>,
    spec: &RequestSpec,
    context: &Context<'_>,
    index: usize,
    trace: &mut Vec<FilterPass>,
) -> Result<Vec<usize>, FilterFault> {
    for name in &context.options.enabled_filters {
        let Some(filter) = filters::by_name(name) else {
            continue;
        };
        if filter.once_per_request() && index > 0 {
            continue;
        }
        let narrows = filter.narrows(spec);
        let mut kept = Vec::with_capacity(hosts.len());
        let mut removed = Vec::new();
        for &host in &hosts {
            let passed = if narrows {
                passes(filter, states.edit(host), spec, context)
            } else {
                looks(filter, states.get(host), spec, context)
            };
            let passed = passed.map_err(|fault| FilterFault {
                filter: Some(filter.name()),
                fault,
            })?;
            if passed {
                kept.push(host);
            } else {
                removed.push(host);
            }
        }
        trace.push(FilterPass {
            filter: filter.name(),
            start: hosts.len(),
            end: kept.len(),
            removed,
            reasons: Vec::new(),
            problem: None,
        });
        hosts = kept;
        if hosts.is_empty() {
            break;
        }
    }
    let own = &context.options.filter_plugins;
    if hosts.is_empty() || own.is_empty() {
        return Ok(hosts);
    }
    let rebuild = is_rebuild(spec).map_err(|fault| FilterFault {
        filter: None,
        fault,
    })?;
    match rebuild {
        true => Ok(hosts),
        false => Ok(own.run(states, hosts, spec, context.options, trace)),
    }
}

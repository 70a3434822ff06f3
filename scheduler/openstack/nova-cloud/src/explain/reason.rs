//! Why a filter of Nova's dropped a host, in words. Nova's filters say yes or no and nothing else;
//! this reads the same facts.

use ebbtide_nova::model::{HostState, RequestSpec};

/// Why `filter` dropped the host.
pub(super) fn reason(filter: &str, host: &HostState, spec: &RequestSpec, now: i64) -> String {
    match filter {
        "ComputeFilter" => service(host, now),
        "AvailabilityZoneFilter" => format!(
            "it is not in the zone {}",
            spec.availability_zone.as_deref().unwrap_or_default()
        ),
        "IoOpsFilter" | "AggregateIoOpsFilter" => {
            format!("{} disk operations are under way on it", host.num_io_ops)
        }
        "NumInstancesFilter" | "AggregateNumInstancesFilter" => {
            format!("it has {} instances", host.num_instances)
        }
        "ServerGroupAntiAffinityFilter" => {
            format!("it has {} members of the server group", members(host, spec))
        }
        "ServerGroupAffinityFilter" => "the server group is on other hosts".to_owned(),
        "ImagePropertiesFilter" => format!(
            "its hypervisor ({}) does not run what the image asks for",
            host.hypervisor_type.as_deref().unwrap_or("unknown")
        ),
        "ComputeCapabilitiesFilter" => {
            "it does not have what the flavor's extra specs ask for".to_owned()
        }
        "NUMATopologyFilter" => "the instance does not fit into its NUMA cells".to_owned(),
        "PciPassthroughFilter" => "its PCI devices do not suffice".to_owned(),
        "SameHostFilter" => "none of the servers of the hint same_host is on it".to_owned(),
        "DifferentHostFilter" => "a server of the hint different_host is on it".to_owned(),
        "AggregateMultiTenancyIsolation" => "its aggregates are for other projects".to_owned(),
        "AggregateInstanceExtraSpecsFilter" | "AggregateTypeAffinityFilter" => {
            "its aggregates are for other flavors".to_owned()
        }
        "AggregateImagePropertiesIsolation" | "IsolatedHostsFilter" => {
            "it is for other images".to_owned()
        }
        other => format!("{other} does not let it pass"),
    }
}

fn service(host: &HostState, now: i64) -> String {
    let service = &host.service;
    if service.disabled {
        return match service.disabled_reason.as_deref() {
            Some(why) if !why.is_empty() => format!("its service is disabled: {why}"),
            _ => "its service is disabled".to_owned(),
        };
    }
    if service.forced_down {
        return "its service is forced down".to_owned();
    }
    match service.last_seen_up.or(service.created_at) {
        Some(seen) => {
            let seconds = now.saturating_sub(seen).div_euclid(1_000_000);
            format!("its service is down: the last heartbeat was {seconds} s ago")
        }
        None => "its service was never seen".to_owned(),
    }
}

/// How many members of the request's group are on the host.
fn members(host: &HostState, spec: &RequestSpec) -> usize {
    let group = spec.instance_group.iter();
    let members = group.flat_map(|group| &group.members);
    members
        .filter(|uuid| host.instances.contains_key(*uuid))
        .count()
}

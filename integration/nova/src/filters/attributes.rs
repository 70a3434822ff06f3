//! A host state's attributes by name, as `getattr` finds them: ComputeCapabilitiesFilter and
//! JsonFilter let requests name any.

use crate::model::HostState;
use crate::python::{Dict, Object, Value};

/// Methods of HostState; the text of one holds that of the host state.
const METHODS: [&str; 6] = [
    "__init__",
    "__repr__",
    "_locked_consume_from_request",
    "_update_from_compute_node",
    "consume_from_request",
    "update",
];

/// Attributes that every Python object has and that are not None. Their texts hold memory
/// addresses.
const COMMON: [&str; 20] = [
    "__delattr__",
    "__dir__",
    "__eq__",
    "__format__",
    "__ge__",
    "__getattribute__",
    "__getstate__",
    "__gt__",
    "__hash__",
    "__init_subclass__",
    "__le__",
    "__lt__",
    "__ne__",
    "__new__",
    "__reduce__",
    "__reduce_ex__",
    "__setattr__",
    "__sizeof__",
    "__str__",
    "__subclasshook__",
];

fn object(text: impl Into<String>) -> Value {
    with_attributes(text, Dict::default(), None)
}

fn with_attributes(text: impl Into<String>, attributes: Dict<Value>, len: Option<usize>) -> Value {
    Value::Object(Box::new(Object {
        text: text.into(),
        attributes,
        mapping: false,
        len,
    }))
}

fn int(value: i64) -> Value {
    Value::from(value)
}

fn text(value: Option<&String>) -> Value {
    value.map_or(Value::None, |text| Value::Str(text.clone()))
}

/// Two digits.
fn two(value: i64) -> String {
    format!("{value:02}")
}

/// Year, month, day of days since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    // Howard Hinnant's civil_from_days: eras of 400 years that begin in March.
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let of_era = shifted.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

/// A moment. Its text and its repr differ, so the caller states which one it needs.
fn moment(micros: Option<i64>, repr: bool) -> Value {
    let Some(micros) = micros else {
        return Value::None;
    };
    let seconds = micros.div_euclid(1_000_000);
    let micro = micros.rem_euclid(1_000_000);
    let (year, month, day) = date(seconds.div_euclid(86_400));
    let (hour, minute, second) = (
        seconds.rem_euclid(86_400) / 3600,
        seconds.rem_euclid(3600) / 60,
        seconds.rem_euclid(60),
    );
    let told = if repr {
        let mut parts = vec![year, month, day, hour, minute];
        if second != 0 || micro != 0 {
            parts.push(second);
        }
        if micro != 0 {
            parts.push(micro);
        }
        let parts: Vec<String> = parts.iter().map(i64::to_string).collect();
        format!(
            "datetime.datetime({}, tzinfo=datetime.timezone.utc)",
            parts.join(", ")
        )
    } else {
        let fraction = if micro == 0 {
            String::new()
        } else {
            format!(".{micro:06}")
        };
        let (month, day) = (two(month), two(day));
        format!(
            "{year:04}-{month}-{day} {}:{}:{}{fraction}+00:00",
            two(hour),
            two(minute),
            two(second)
        )
    };
    let attributes = [
        ("year", year),
        ("month", month),
        ("day", day),
        ("hour", hour),
        ("minute", minute),
        ("second", second),
        ("microsecond", micro),
    ];
    with_attributes(
        told,
        attributes
            .into_iter()
            .map(|(name, value)| (name, int(value)))
            .collect(),
        None,
    )
}

/// The service record, a dict behind a `UserDict`.
fn service(host: &HostState) -> Value {
    let service = &host.service;
    let mut data: Dict<Value> = Dict::default();
    data.insert("id", int(1));
    data.insert("uuid", text(host.uuid.as_ref()));
    data.insert("host", Value::Str(host.host.clone()));
    data.insert("binary", Value::from("nova-compute"));
    data.insert("topic", Value::from("compute"));
    data.insert("report_count", int(0));
    data.insert("disabled", Value::Bool(service.disabled));
    data.insert("disabled_reason", text(service.disabled_reason.as_ref()));
    data.insert("last_seen_up", moment(service.last_seen_up, true));
    data.insert("forced_down", Value::Bool(service.forced_down));
    data.insert("version", int(74));
    data.insert("created_at", moment(service.created_at, true));
    data.insert("updated_at", Value::None);
    data.insert("deleted_at", Value::None);
    data.insert("deleted", Value::Bool(false));
    let whole = Value::Dict(data.clone());
    let told = whole.text();
    let len = data.len();
    let mut attributes = data;
    // `get` looks into the dict; `getattr` finds the dict itself only. Both are asked through
    // `mapping`.
    attributes.insert("data", whole);
    Value::Object(Box::new(Object {
        text: told,
        attributes,
        mapping: true,
        len: Some(len),
    }))
}

/// `(host, node) ram: …`, the text of a host state.
fn state_text(host: &HostState) -> String {
    format!(
        "({}, {}) ram: {}MB disk: {}MB io_ops: {} instances: {}, allocation_candidates: {}",
        host.host,
        host.nodename,
        host.free_ram_mb
            .map_or_else(|| "None".to_owned(), |ram| ram.to_string()),
        host.free_disk_mb,
        host.num_io_ops,
        host.num_instances,
        host.allocation_candidates.len()
    )
}

fn ip(host: &HostState) -> Value {
    let Some(parsed) = host
        .host_ip
        .as_ref()
        .and_then(|ip| ip.parse::<std::net::IpAddr>().ok())
    else {
        return text(host.host_ip.as_ref());
    };
    let (version, value) = match parsed {
        std::net::IpAddr::V4(ip) => (4, u128::from(u32::from(ip))),
        std::net::IpAddr::V6(ip) => (6, u128::from(ip)),
    };
    let value = Value::Int(i128::try_from(value).unwrap_or(i128::MAX));
    let attributes = [
        ("version", int(version)),
        ("value", value.clone()),
        ("_value", value.clone()),
    ];
    // An address is false where its number is zero.
    let len = usize::from(value.truth());
    with_attributes(
        parsed.to_string(),
        attributes.into_iter().collect(),
        Some(len),
    )
}

fn numa_topology(host: &HostState) -> Value {
    host.numa_topology.as_ref().map_or(Value::None, |topology| {
        let cells: Vec<Value> = topology
            .cells
            .iter()
            .map(|cell| object(format!("NUMACell({})", cell.id)))
            .collect();
        let names: Vec<String> = topology
            .cells
            .iter()
            .map(|cell| format!("NUMACell({})", cell.id))
            .collect();
        let told = format!("NUMATopology(cells=[{}])", names.join(","));
        let len = cells.len();
        with_attributes(
            told,
            [("cells", Value::List(cells))].into_iter().collect(),
            Some(len),
        )
    })
}

fn pci_stats(host: &HostState) -> Value {
    host.pci_pools.as_ref().map_or(Value::None, |pools| {
        let pools: Vec<Value> = pools
            .iter()
            .map(|pool| {
                let mut entries: Dict<Value> = Dict::default();
                entries.insert("product_id", Value::Str(pool.product_id.clone()));
                entries.insert("vendor_id", Value::Str(pool.vendor_id.clone()));
                entries.insert("numa_node", pool.numa_node.into());
                entries.insert("count", int(pool.count));
                for (tag, value) in &pool.tags {
                    entries.insert(tag.clone(), Value::from(value));
                }
                Value::Dict(entries)
            })
            .collect();
        let told = "<nova.pci.stats.PciDeviceStats object at 0x000000000000>";
        with_attributes(
            told,
            [("pools", Value::List(pools))].into_iter().collect(),
            None,
        )
    })
}

fn metrics(host: &HostState) -> Value {
    host.metrics.as_ref().map_or(Value::None, |metrics| {
        let told = format!(
            "MonitorMetricList(objects=[{}])",
            vec!["MonitorMetric"; metrics.len()].join(",")
        );
        let one = |metric: &crate::model::Metric| {
            object(format!("MonitorMetric(name='{}')", metric.name))
        };
        let items = Value::List(metrics.iter().map(one).collect());
        with_attributes(
            told,
            [("objects", items)].into_iter().collect(),
            Some(metrics.len()),
        )
    })
}

/// The text of an aggregate, fields by name, as versioned objects write it.
fn aggregate(aggregate: &crate::model::Aggregate) -> Value {
    let hosts: Vec<String> = aggregate
        .hosts
        .iter()
        .map(|host| format!("'{host}'"))
        .collect();
    let metadata: Vec<String> = aggregate
        .metadata
        .iter()
        .map(|(key, value)| format!("{key}='{value}'"))
        .collect();
    object(format!(
        "Aggregate(created_at=<?>,deleted=<?>,deleted_at=<?>,hosts=[{}],id={},metadata={{{}}},name='{}',updated_at=<?>,uuid={})",
        hosts.join(","),
        aggregate.id,
        metadata.join(","),
        aggregate.name,
        aggregate.uuid
    ))
}

fn limits(host: &HostState) -> Value {
    let mut limits = Dict::default();
    if let Some((cpu, ram)) = host.numa_limits {
        let attributes = [("cpu_allocation_ratio", cpu), ("ram_allocation_ratio", ram)];
        let told = format!(
            "NUMATopologyLimits(cpu_allocation_ratio={cpu:?},network_metadata=<?>,ram_allocation_ratio={ram:?})"
        );
        let attributes = attributes
            .into_iter()
            .map(|(name, value)| (name, Value::Float(value)))
            .collect();
        limits.insert("numa_topology", with_attributes(told, attributes, None));
    }
    Value::Dict(limits)
}

/// `getattr(host_state, name)`; `None`: there is no such attribute (a `Value::None` is one that is
/// None).
pub(crate) fn attribute(host: &HostState, name: &str) -> Option<Value> {
    let updated = host.uuid.is_some();
    let value = match name {
        "host" => Value::Str(host.host.clone()),
        "nodename" => Value::Str(host.nodename.clone()),
        "uuid" => text(host.uuid.as_ref()),
        "_lock_name" => Value::Str(format!("{}-{}", host.host, host.nodename)),
        "cell_uuid" => Value::Str(host.cell_uuid.clone()),
        "total_usable_ram_mb" => int(host.total_usable_ram_mb),
        "total_usable_disk_gb" => int(host.total_usable_disk_gb),
        "disk_mb_used" => int(host.disk_mb_used),
        "free_ram_mb" => host.free_ram_mb.into(),
        "free_disk_mb" => int(host.free_disk_mb),
        "vcpus_total" => int(host.vcpus_total),
        "vcpus_used" => int(host.vcpus_used),
        "num_instances" => int(host.num_instances),
        "num_io_ops" => int(host.num_io_ops),
        "failed_builds" => int(host.failed_builds),
        "host_ip" => ip(host),
        "hypervisor_type" => text(host.hypervisor_type.as_ref()),
        "hypervisor_version" => host.hypervisor_version.into(),
        "hypervisor_hostname" if updated => Value::Str(host.nodename.clone()),
        "hypervisor_hostname" => Value::None,
        "cpu_info" => text(host.cpu_info.as_ref()),
        "supported_instances" => host
            .supported_instances
            .as_ref()
            .map_or(Value::None, |triples| {
                let triple = |words: &Vec<Option<String>>| {
                    Value::List(words.iter().map(|word| text(word.as_ref())).collect())
                };
                Value::List(triples.iter().map(triple).collect())
            }),
        "cpu_allocation_ratio" => host.cpu_allocation_ratio.into(),
        "ram_allocation_ratio" => host.ram_allocation_ratio.into(),
        "disk_allocation_ratio" => host.disk_allocation_ratio.into(),
        "updated" => moment(host.updated_at.filter(|_| updated), false),
        "limits" => limits(host),
        "metrics" => metrics(host),
        "aggregates" => Value::List(
            host.aggregates
                .iter()
                .map(|known| aggregate(known))
                .collect(),
        ),
        "instances" => {
            let told = |uuid: &String| object(format!("Instance(uuid={uuid})"));
            Value::Dict(
                host.instances
                    .keys()
                    .map(|uuid| (uuid.clone(), told(uuid)))
                    .collect(),
            )
        }
        "allocation_candidates" => {
            let one = |candidate: &crate::model::AllocationCandidate| {
                let entries = [
                    ("allocations", &candidate.allocations),
                    ("mappings", &candidate.mappings),
                ];
                Value::Dict(
                    entries
                        .into_iter()
                        .map(|(name, value)| (name, Value::from(value)))
                        .collect(),
                )
            };
            Value::List(host.allocation_candidates.iter().map(one).collect())
        }
        "numa_topology" => numa_topology(host),
        "pci_stats" => pci_stats(host),
        "service" => service(host),
        "stats" => {
            let stats = host.stats.as_ref()?;
            Value::Dict(
                stats
                    .iter()
                    .map(|(name, value)| (name.clone(), text(value.as_ref())))
                    .collect(),
            )
        }
        "__class__" => object("<class 'nova.scheduler.host_manager.HostState'>"),
        "__module__" => Value::from("nova.scheduler.host_manager"),
        "__weakref__" => Value::None,
        "__doc__" | "__dict__" => object(format!("<{name}>")),
        _ if METHODS.contains(&name) => object(format!(
            "<bound method HostState.{name} of {}>",
            state_text(host)
        )),
        _ if COMMON.contains(&name) => object(format!(
            "<method-wrapper '{name}' of HostState object at 0x000000000000>"
        )),
        _ => return None,
    };
    Some(value)
}

/// `getattr` of a value that is no dict; `None`: no such attribute, or one that is None.
pub(super) fn of_value(value: &Value, name: &str) -> Option<Value> {
    let method = || object(format!("<built-in method {name} at 0x000000000000>"));
    match (value, name) {
        (Value::Object(object), "data") if object.mapping => object.attributes.get("data").cloned(),
        (
            Value::Object(object),
            "get" | "keys" | "items" | "values" | "pop" | "update" | "copy",
        ) if object.mapping => Some(method()),
        (Value::Object(object), _) if !object.mapping => object
            .attributes
            .get(name)
            .filter(|value| !matches!(value, Value::None))
            .cloned(),
        (Value::Int(number), "real" | "numerator") => Some(Value::Int(*number)),
        (Value::Bool(bool), "real" | "numerator") => Some(Value::Int(i128::from(*bool))),
        (Value::Int(_) | Value::Bool(_), "imag") => Some(Value::Int(0)),
        (Value::Int(_) | Value::Bool(_), "denominator") => Some(Value::Int(1)),
        (
            Value::Int(_) | Value::Bool(_),
            "bit_length" | "bit_count" | "conjugate" | "to_bytes" | "as_integer_ratio",
        ) => Some(method()),
        (Value::Float(number), "real") => Some(Value::Float(*number)),
        (Value::Float(_), "imag") => Some(Value::Float(0.0)),
        (Value::Float(_), "is_integer" | "hex" | "conjugate" | "as_integer_ratio" | "fromhex") => {
            Some(method())
        }
        (
            Value::List(_),
            "append" | "clear" | "copy" | "count" | "extend" | "index" | "insert" | "pop"
            | "remove" | "reverse" | "sort",
        ) => Some(method()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_reads_as_python_writes_it() {
        let micros = 1_772_366_359_000_000;
        assert_eq!(
            moment(Some(micros), false).text(),
            "2026-03-01 11:59:19+00:00"
        );
        assert_eq!(
            moment(Some(micros + 5), true).text(),
            "datetime.datetime(2026, 3, 1, 11, 59, 19, 5, tzinfo=datetime.timezone.utc)"
        );
        assert_eq!(
            moment(Some(951_782_400_000_000), false).text(),
            "2000-02-29 00:00:00+00:00"
        );
    }
}

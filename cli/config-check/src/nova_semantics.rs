//! What in nova.conf is allowed and does probably not what was meant, weighers aside.

use crate::finding::{Finding, Level, Position, code};
use crate::nova::shown;
use ebbtide_nova_objects::nova_conf::NovaConf;
use oslo_config::FileValue;

/// Options that only one filter reads, and that filter, or one that stands in for it.
const OF_FILTERS: [(&str, &[&str]); 7] = [
    (
        "max_io_ops_per_host",
        &["IoOpsFilter", "AggregateIoOpsFilter"],
    ),
    (
        "max_instances_per_host",
        &["NumInstancesFilter", "AggregateNumInstancesFilter"],
    ),
    ("isolated_hosts", &["IsolatedHostsFilter"]),
    ("isolated_images", &["IsolatedHostsFilter"]),
    (
        "restrict_isolated_hosts_to_isolated_images",
        &["IsolatedHostsFilter"],
    ),
    (
        "aggregate_image_properties_isolation_namespace",
        &["AggregateImagePropertiesIsolation"],
    ),
    (
        "aggregate_image_properties_isolation_separator",
        &["AggregateImagePropertiesIsolation"],
    ),
];

/// All of it. `place` says where an option stands.
pub(crate) fn findings(
    conf: &NovaConf,
    given: &[FileValue],
    place: &dyn Fn(&str, &str) -> Option<Position>,
) -> Vec<Finding> {
    let mut found = filters(conf, place);
    found.extend(settings(given, conf, place));
    found.extend(times(conf, place));
    found.extend(preemption(conf, place));
    if conf
        .placement
        .get("insecure")
        .is_some_and(|text| is_true(&text))
    {
        found.push(
            Finding::new(Level::Warning, code::OPEN, "[placement] insecure")
                .at(place("placement", "insecure"))
                .what("the certificates of Keystone and Placement are not looked at")
                .why("any server that answers gets the password")
                .next("name the roots with cafile"),
        );
    }
    let multiplier = |given: &&FileValue| {
        given.name.ends_with("_weight_multiplier")
            || (given.group == "metrics" && given.name == "weight_multiplier")
    };
    if let Some(first) = given.iter().find(multiplier) {
        found.push(
            Finding::new(Level::Note, code::ELSEWHERE, shown(&first.group, &first.name))
                .at(place(&first.group, &first.name))
                .what("the metadata of aggregates can override every multiplier for their hosts")
                .why("of several aggregates of a host the smallest value counts; one that is no number, and the file counts")
                .next("`openstack aggregate show NAME` shows the metadata; the keys are the names of these options"),
        );
    }
    found
}

fn is_true(text: &str) -> bool {
    matches!(
        text.trim().to_lowercase().as_str(),
        "1" | "true" | "yes" | "on" | "t" | "y"
    )
}

fn filters(conf: &NovaConf, place: &dyn Fn(&str, &str) -> Option<Position>) -> Vec<Finding> {
    let enabled = &conf.options.enabled_filters;
    let mut found = Vec::new();
    for (name, readers) in OF_FILTERS {
        let at = place("filter_scheduler", name);
        if at.is_none()
            || readers
                .iter()
                .any(|reader| enabled.iter().any(|filter| filter == reader))
        {
            continue;
        }
        let key = shown("filter_scheduler", name);
        found.push(
            Finding::new(Level::Warning, code::NO_EFFECT, key.clone())
                .at(at)
                .what(format!(
                    "{key} has no effect: {} is not among enabled_filters",
                    readers[0]
                ))
                .why("only this filter reads it")
                .next(format!(
                    "add {} to enabled_filters, or remove the option",
                    readers[0]
                )),
        );
    }
    found
}

/// Lists of `name=ratio`, of which Nova leaves out what it cannot read.
fn settings(
    given: &[FileValue],
    conf: &NovaConf,
    place: &dyn Fn(&str, &str) -> Option<Position>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (group, name, read, counts, multiplier) in [
        (
            "metrics",
            "weight_setting",
            conf.options.metrics_weight_setting.len(),
            true,
            "weight_multiplier",
        ),
        (
            "filter_scheduler",
            "image_props_weight_setting",
            conf.options.image_props_weight_setting.len(),
            conf.options.image_props_weight_multiplier != Some(0.0),
            "image_props_weight_multiplier",
        ),
    ] {
        let key = shown(group, name);
        let at = place(group, name);
        let last = given
            .iter()
            .rev()
            .find(|given| given.group == group && given.name == name);
        let written = last.map_or(0, |last| {
            last.text
                .split(',')
                .filter(|part| !part.trim().is_empty())
                .count()
        });
        if written > read {
            found.push(
                Finding::new(Level::Warning, code::VALUE, key.clone())
                    .at(at)
                    .what(format!(
                        "{} of the {written} entries of {key} cannot be read",
                        written - read
                    ))
                    .why("Nova leaves out what is not name=number, without a word")
                    .next("write name=number, with commas between"),
            );
        }
        if written > 0 && !counts {
            found.push(
                Finding::new(Level::Warning, code::NO_EFFECT, key.clone())
                    .at(at)
                    .what(format!("{key} has no effect: [{group}] {multiplier} is 0"))
                    .why("the weigher that reads it is off")
                    .next(format!("set {multiplier}, or remove the setting")),
            );
        }
    }
    if place("metrics", "weight_multiplier").is_some()
        && conf.options.metrics_weight_setting.is_empty()
    {
        found.push(
            Finding::new(
                Level::Warning,
                code::NO_EFFECT,
                "[metrics] weight_multiplier",
            )
            .at(place("metrics", "weight_multiplier"))
            .what("[metrics] weight_multiplier has no effect: weight_setting names no metric")
            .why("a weigher without metrics gives every host 0")
            .next("name metrics in weight_setting, or remove the multiplier"),
        );
    }
    found
}

fn times(conf: &NovaConf, place: &dyn Fn(&str, &str) -> Option<Position>) -> Vec<Finding> {
    let general = &conf.general;
    let mut found = Vec::new();
    if general.service_down_time <= general.report_interval {
        found.push(
            Finding::new(Level::Warning, code::TIMES, "[DEFAULT] service_down_time")
                .at(place("DEFAULT", "service_down_time").or_else(|| place("DEFAULT", "report_interval")))
                .what(format!(
                    "service_down_time ({} s) is not longer than report_interval ({} s)",
                    general.service_down_time, general.report_interval
                ))
                .why("Nova takes two and a half times report_interval instead, without a word in the file")
                .next(format!("write service_down_time = {}", general.report_interval.saturating_mul(3))),
        );
    }
    if conf.ebbtide.preemption
        && conf.ebbtide.connection.is_some()
        && general.long_rpc_timeout <= conf.ebbtide.room_timeout
    {
        found.push(
            Finding::new(Level::Warning, code::TIMES, "[ebbtide] room_timeout")
                .at(place("ebbtide", "room_timeout").or_else(|| place("DEFAULT", "long_rpc_timeout")))
                .what(format!(
                    "room_timeout ({} s) is not shorter than long_rpc_timeout ({} s)",
                    conf.ebbtide.room_timeout, general.long_rpc_timeout
                ))
                .why("the conductor gives up before the room is called off: servers are evicted for a request that the conductor has given up")
                .next(format!("use at most {}", general.long_rpc_timeout / 2)),
        );
    }
    found
}

fn preemption(conf: &NovaConf, place: &dyn Fn(&str, &str) -> Option<Position>) -> Vec<Finding> {
    let ours = &conf.ebbtide;
    let mut found = Vec::new();
    let why = match (ours.preemption, ours.connection.is_some()) {
        (true, true) => return found,
        (false, _) => "[ebbtide] preemption is false",
        (true, false) => "[ebbtide] connection is not set, so there is no ledger",
    };
    found.push(
        Finding::new(Level::Note, code::NO_EFFECT, "[ebbtide] preemption")
            .at(place("ebbtide", "preemption"))
            .what("no server is preempted")
            .why(why)
            .next("nothing, if that is meant; else name a database in [ebbtide] connection"),
    );
    for name in [
        "cost_module",
        "reply_when",
        "room_timeout",
        "default_grace",
        "notice_timeout",
        "act_timeout",
        "plan_rounds",
        "bus_url",
        "bus_prefix",
    ] {
        if let Some(at) = place("ebbtide", name) {
            let key = shown("ebbtide", name);
            found.push(
                Finding::new(Level::Warning, code::NO_EFFECT, key.clone())
                    .at(Some(at))
                    .what(format!("{key} has no effect: no server is preempted"))
                    .why(why)
                    .next("remove it, or switch preemption on"),
            );
        }
    }
    found
}

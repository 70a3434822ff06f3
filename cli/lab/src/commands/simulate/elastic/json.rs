//! The comparison as JSON: delays in seconds, lives and what was paid in hours. What is infinite or
//! no number is null.

use super::play::{Figures, PartitionResults, SimulatedPartition};
use super::tables::verdict;
use super::{ElasticArgs, Terms};
use ebbtide_elastic::Trace;
use ebbtide_shell::json::Json;

fn count(value: usize) -> Json {
    Json::from(value as u64)
}

fn seconds(us: u64) -> Json {
    Json::from(us as f64 / 1e6)
}

/// Everything. `improvement` is that of the last r.
pub(super) fn all(
    args: &ElasticArgs,
    trace: &Trace,
    terms: &Terms,
    all: &PartitionResults,
) -> Json {
    let cluster = &terms.cluster;
    let servers = Json::object([("servers", Json::from(cluster.servers))])
        .with("short_only", cluster.short_only)
        .with("cutoff_seconds", seconds(cluster.cutoff_us))
        .with("probe_ratio", cluster.probe_ratio)
        .with("min_probes", cluster.min_probes)
        .with("message_seconds", seconds(cluster.network_us))
        .with("srpt_cap", cluster.srpt_cap)
        .with("whole_seconds", cluster.whole_seconds);
    let lifetime = terms.lifetime.as_ref();
    let last = all.asked().last();
    let number = |of: fn(&SimulatedPartition) -> f64| Json::from(last.map_or(f64::NAN, of));
    let distribution: Vec<Json> = pairs(&all.fixed);
    let asked: Vec<Json> = all
        .asked()
        .map(|one| partition(one).with("distribution", pairs(&one.figures)))
        .collect();
    let sweeps: Vec<Json> = all
        .knobs()
        .into_iter()
        .map(|knob| {
            let point = |(value, one)| partition(one).with("value", Json::from(value));
            let points: Vec<Json> = all.swept(knob).map(point).collect();
            Json::object([("setting", Json::from(knob.as_str()))]).with("points", points)
        })
        .collect();
    Json::object([("trace", Json::from(args.trace.display().to_string()))])
        .with("jobs", count(trace.jobs().len()))
        .with("tasks", count(trace.tasks()))
        .with("short_tasks", count(all.short_tasks))
        .with("span_seconds", seconds(trace.span_us()))
        .with("improvement", number(|one| one.improvement))
        .with("max_improvement", number(|one| one.max_improvement))
        .with("cluster", servers)
        .with(
            "lifetime",
            lifetime.map_or(Json::Null, |given| given.json()),
        )
        .with("seeds", args.seeds)
        .with("seed", args.seed)
        .with(
            "static",
            figures(&all.fixed).with("distribution", distribution),
        )
        .with("elastic", asked)
        .with("sweeps", sweeps)
        .with("seconds", all.seconds)
}

pub(super) fn figures(figures: &Figures) -> Json {
    Json::object([("mean_delay_seconds", Json::from(figures.mean))])
        .with("median_delay_seconds", figures.median)
        .with("p90_delay_seconds", figures.p90)
        .with("p99_delay_seconds", figures.p99)
        .with("max_delay_seconds", figures.max)
        .with("long_mean_delay_seconds", figures.long_mean)
        .with("short_job_mean_seconds", figures.short_job)
        .with("long_job_mean_seconds", figures.long_job)
        .with("mean_long_load_ratio", figures.long_load)
}

pub(super) fn partition(one: &SimulatedPartition) -> Json {
    let policy = &one.elastic.policy;
    let of = &one.figures;
    let transients = Json::object([("mean_active", Json::from(of.transients_up))])
        .with("mean_active_normalised", one.normalised)
        .with("most", of.transients_most)
        .with("launched", of.launched)
        .with("interrupted", of.interrupted)
        .with("mean_life_hours", of.life_mean_hours)
        .with("max_life_hours", of.life_max_hours)
        .with("paid_hours", of.paid_hours);
    let Json::Object(delays) = figures(of) else {
        return Json::Null;
    };
    let mut json = Json::object([("ratio", Json::from(policy.ratio()))])
        .with("share", policy.share())
        .with("threshold", policy.threshold_ratio())
        .with("on_demand", policy.on_demand())
        .with("budget", policy.budget())
        .with("most_short", policy.most())
        .with("provisioning_seconds", seconds(one.elastic.provisioning_us))
        .with(
            "release_interval_seconds",
            seconds(policy.release_interval_us()),
        )
        .with("notice_seconds", seconds(one.elastic.notice_us))
        .with("improvement", one.improvement)
        .with("improvement_least_seed", one.spread.0)
        .with("improvement_greatest_seed", one.spread.1)
        .with("max_improvement", one.max_improvement)
        .with("waits", verdict(one.improvement));
    for (key, value) in delays {
        json = json.with(&key, value);
    }
    json.with("share_of_time_above_threshold", of.above)
        .with("transients", transients)
        .with("saving", one.saving)
        .with("tasks_lost", of.lost)
        .with("lost_seconds", of.lost_seconds)
}

/// The distribution as pairs of seconds and the share of tasks that do not wait longer.
fn pairs(figures: &Figures) -> Vec<Json> {
    let points = figures.distribution.iter();
    points
        .map(|(seconds, share)| Json::List(vec![Json::from(*seconds), Json::from(*share)]))
        .collect()
}

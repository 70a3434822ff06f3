//! The comparison as JSON. Costs are parts of the cost on demand, times seconds or hours as their
//! names say.

use super::play::{SettingResult, Summary, above_optimum};
use super::{DeadlineArgs, seconds};
use ebbtide_deadline::RecordedSeries;
use ebbtide_shell::json::Json;

/// Everything. `mean` has the mean cost above the optimum over all jobs, by policy.
pub(super) fn all(
    args: &DeadlineArgs,
    traces: &[RecordedSeries],
    settings: &[SettingResult],
) -> Json {
    let policies = args.policies();
    let means = policies
        .iter()
        .enumerate()
        .map(|(policy, kind)| (kind.as_str(), Json::from(above_optimum(settings, policy))));
    let jobs: usize = settings.iter().map(|setting| setting.jobs.len()).sum();
    let missed: u64 = settings.iter().map(SettingResult::missed).sum();
    let series = traces.iter().map(|trace| {
        Json::object([("name", Json::from(trace.series.name()))])
            .with("step_seconds", trace.series.step())
            .with("servers", trace.servers)
            .with("available", trace.series.fraction())
    });
    Json::object([("mean", Json::object(means))])
        .with("jobs", jobs as u64)
        .with("missed", missed)
        .with("seed", args.seed)
        .with("starts", args.starts)
        .with("slices", args.slices)
        .with("history_seconds", seconds(args.history))
        .with("spot_price", args.job.spot_price.to_string())
        .with("on_demand_price", args.job.on_demand_price.to_string())
        .with("traces", series.collect::<Vec<_>>())
        .with(
            "settings",
            settings
                .iter()
                .map(|result| setting(args, traces, result))
                .collect::<Vec<_>>(),
        )
}

fn setting(args: &DeadlineArgs, traces: &[RecordedSeries], result: &SettingResult) -> Json {
    let each = |trace: Option<usize>| -> Json {
        let policies = result.policies.iter().enumerate();
        Json::object(policies.filter_map(|(policy, kind)| {
            let summary = result.summary(policy, trace)?;
            Some((kind.as_str(), policy_json(&summary)))
        }))
    };
    let setting = result.setting;
    let json = Json::object([("work_seconds", Json::from(setting.work))])
        .with("fraction", setting.fraction)
        .with("deadline_seconds", setting.deadline)
        .with("changeover_seconds", setting.changeover)
        .with("jobs", result.jobs.len() as u64)
        .with("optimum_of_on_demand", result.optimum())
        .with("policies", each(None));
    if !args.by_trace {
        return json;
    }
    let by_trace = traces.iter().enumerate().map(|(at, trace)| {
        Json::object([("name", Json::from(trace.series.name()))]).with("policies", each(Some(at)))
    });
    json.with("traces", by_trace.collect::<Vec<_>>())
}

fn policy_json(summary: &Summary) -> Json {
    Json::object([("of_on_demand", Json::from(summary.of_on_demand))])
        .with("of_on_demand_p25", summary.quartiles.0)
        .with("of_on_demand_p75", summary.quartiles.1)
        .with("above_optimum", summary.above_optimum)
        .with("above_optimum_by_job", summary.above_each)
        .with("above_optimum_p95", summary.above_p95)
        .with("on_demand_hours", summary.on_demand_hours)
        .with("spot_hours", summary.spot_hours)
        .with("servers", summary.servers)
        .with("jobs", summary.jobs)
        .with("missed", summary.missed)
}

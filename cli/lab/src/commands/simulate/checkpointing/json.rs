//! The comparison as JSON. Money is text, exact where it is a price; means are numbers.

use super::CheckpointingArgs;
use super::sweep::{BidSweep, SweepResult};
use ebbtide_checkpointing::{
    AccReading, AdaptKnowledge, BidComparison, OptComparison, SchemeResult, SchemeSummary, Spread,
};
use ebbtide_shell::json::Json;

fn integer(value: i64) -> Json {
    Json::Number(value.into())
}

fn count(value: usize) -> Json {
    Json::from(value as u64)
}

/// Everything.
pub(super) fn all(args: &CheckpointingArgs, all: &SweepResult) -> Json {
    let terms = args.terms();
    let starts = args.starts();
    let ceiling = terms.ceiling.map(|price| price.to_string());
    let reading = match terms.reading {
        AccReading::Strict => "strict",
        AccReading::Naive => "naive",
    };
    let knows = match terms.adapt.knowledge {
        AdaptKnowledge::Past => "past",
        AdaptKnowledge::Whole => "whole",
    };
    let terms = Json::object([("checkpoint_seconds", integer(terms.checkpoint_seconds))])
        .with("restart_seconds", integer(terms.restart_seconds))
        .with("terminate_seconds", integer(terms.terminate_seconds))
        .with("ceiling", ceiling.map_or(Json::Null, Json::from))
        .with("acc", reading)
        .with("adapt_every_seconds", integer(terms.adapt.every_seconds))
        .with("adapt_knows", knows)
        .with("start_every_seconds", integer(starts.every_seconds))
        .with("tail_seconds", integer(starts.tail_seconds));
    let series: Vec<Json> = all.series.iter().map(one).collect();
    Json::object([("history", Json::from(args.history.words()))])
        .with("job_seconds", integer(super::seconds(args.job)))
        .with("terms", terms)
        .with("series", series)
        .with("summary", summaries(&all.summaries, "series"))
        .with("jobs", count(all.jobs))
        .with("seconds", all.seconds)
}

fn one(one: &BidSweep) -> Json {
    let rows: Vec<Json> = one.rows.iter().map(bid).collect();
    Json::object([("series", Json::from(one.name.as_str()))])
        .with("from", integer(one.span.0))
        .with("until", integer(one.span.1))
        .with("lowest_price", one.extremes.0.to_string())
        .with("highest_price", one.extremes.1.to_string())
        .with("bids", rows)
        .with("summary", summaries(&one.summaries, "bids"))
}

fn bid(row: &BidComparison) -> Json {
    let never = row
        .schemes
        .iter()
        .all(|result| result.never_ran == row.starts);
    Json::object([("bid", Json::from(row.bid.to_string()))])
        .with("available", row.available)
        .with("starts", count(row.starts))
        .with("never_runs", never)
        .with(
            "schemes",
            row.schemes.iter().map(scheme).collect::<Vec<_>>(),
        )
}

fn scheme(result: &SchemeResult) -> Json {
    let against = |a: &OptComparison| {
        Json::object([("starts", count(a.starts))])
            .with("cost_percent", a.cost_percent)
            .with("time_percent", a.time_percent)
            .with("product_percent", a.product_percent)
    };
    Json::object([("scheme", Json::from(result.kind.as_str()))])
        .with("finished", count(result.finished))
        .with("never_ran", count(result.never_ran))
        .with("cost", result.cost)
        .with("hours", result.hours)
        .with("product", result.product)
        .with("launches", result.launches)
        .with("kills", result.kills)
        .with("checkpoints", result.checkpoints)
        .with("lost_hours", result.lost_hours)
        .with(
            "against_opt",
            result.against_opt.as_ref().map_or(Json::Null, against),
        )
}

fn summaries(summaries: &[SchemeSummary], of: &'static str) -> Vec<Json> {
    let spread = |spread: Spread| {
        Json::object([("mean", Json::from(spread.mean))])
            .with("min", spread.min)
            .with("max", spread.max)
    };
    let all = summaries.iter().map(|summary| {
        Json::object([("scheme", Json::from(summary.kind.as_str()))])
            .with(of, count(summary.of))
            .with("cost_percent", spread(summary.cost))
            .with("time_percent", spread(summary.time))
            .with("product_percent", spread(summary.product))
    });
    all.collect()
}

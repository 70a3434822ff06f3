//! What to do about the errors of the tenants' planners, on this command line.

use ebbtide_checkpointing::CheckpointingError;
use ebbtide_elastic::ElasticError;
use ebbtide_lifetime::LifetimeError;

/// What to do about an error of lifetimes, on this command line.
pub(super) fn lifetimes(error: &LifetimeError) -> Option<&'static str> {
    match error {
        LifetimeError::Observation { .. } => Some(
            "lifetimes are hours; --max-lifetime says how long instances live at most (none for no maximum)",
        ),
        LifetimeError::TooFew { .. } => Some(
            "give more lifetimes, or coarser groups; instances that only their users stopped never say how long they would have lived",
        ),
        LifetimeError::Row { .. } | LifetimeError::Columns { .. } => {
            Some("docs/tenants/lifetimes.md has the format")
        }
        LifetimeError::Description { .. } => Some(
            "a model looks like bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45; `ebbtide-lab model fit FILE -o json > model.json` makes one of lifetimes",
        ),
        LifetimeError::NeverEnds { .. } => {
            Some("make checkpoints cheaper or steps shorter, or use instances that live longer")
        }
        _ => None,
    }
}

/// What to do about an error of a trace or a partition, on this command line.
pub(super) fn elastic(error: &ElasticError) -> Option<&'static str> {
    match error {
        ElasticError::Line { .. } | ElasticError::Empty => {
            Some("docs/tenants/elastic.md has the format")
        }
        ElasticError::Unsorted { .. } => Some("`sort -g` puts the lines in order"),
        ElasticError::TooMany { .. } => Some("give a part of the trace"),
        ElasticError::NoRoom { .. } => {
            Some("raise --servers, lower --short-only, or raise --cutoff if no job is long")
        }
        ElasticError::Setting { .. } | ElasticError::Event { .. } => None,
    }
}

/// What to do about an error of price histories and bids, on this command line.
pub(super) fn checkpointing(error: &CheckpointingError) -> Option<&'static str> {
    match error {
        CheckpointingError::Empty
        | CheckpointingError::OneRow { .. }
        | CheckpointingError::Row { .. }
        | CheckpointingError::Header { .. } => Some("docs/tenants/checkpointing.md has the format"),
        CheckpointingError::Unsorted { .. } => Some("sort the file by unix_ts_utc"),
        CheckpointingError::Duplicate { .. } => {
            Some("keep one of the rows; or a column that tells two series apart is missing")
        }
        CheckpointingError::Gap { .. } => {
            Some("if the price held all that time, allow it with --max-gap, for example 90d")
        }
        CheckpointingError::NeverRuns { .. } => {
            Some("raise the bids, or leave --bids out to take the price's own band")
        }
        CheckpointingError::NeverEnds { .. } | CheckpointingError::Question { .. } => None,
    }
}

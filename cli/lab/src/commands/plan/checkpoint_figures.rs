//! `ebbtide-lab plan checkpoint --figure`: the paper's figures 8a and 8b as numbers.

use super::reuse_figures::hours;
use crate::figure_rows::{FigureRows, FigureUnit};
use clap::ValueEnum;
use ebbtide_lifetime::plan::checkpoint::CheckpointOptions;
use ebbtide_lifetime::plan::figures::{OverheadRow, overhead};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::json::Json;
use ebbtide_shell::model::SourcedModel;

/// A figure of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum CheckpointFigure {
    /// Overhead of --job by age of the instance, every hour
    #[value(name = "8a")]
    ByAge,
    /// Overhead of jobs of 1 h up to --job, from --age
    #[value(name = "8b")]
    ByLength,
}

/// Shows a figure. Job, age and MTTF in hours.
pub(super) fn show(
    context: &mut Context,
    figure: CheckpointFigure,
    given: &SourcedModel,
    (job, age): (f64, f64),
    options: &CheckpointOptions,
    mttf: f64,
) -> Result<(), CliError> {
    let model = given.model.as_ref();
    let of = |job, age| overhead(model, job, age, options, mttf);
    let rows: Result<Vec<OverheadRow>, _> = match figure {
        CheckpointFigure::ByAge => {
            let ages = hours(model, 0).into_iter();
            ages.map(|age| of(job, age)).collect()
        }
        CheckpointFigure::ByLength => {
            if job < 1.0 {
                return Err(CliError::Usage(
                    "--figure 8b shows jobs of 1 h up to --job, which is shorter".to_owned(),
                ));
            }
            let lengths = (1..=job as u32).map(f64::from);
            lengths.map(|length| of(length, age)).collect()
        }
    };
    let rows = rows?;
    let mean = |value: fn(&OverheadRow) -> Option<f64>| -> Option<f64> {
        let values: Option<Vec<f64>> = rows.iter().map(value).collect();
        values.map(|values| values.iter().sum::<f64>() / values.len() as f64)
    };
    let means = [
        ("corrected", mean(|row| Some(row.corrected))),
        ("paper", mean(|row| row.paper)),
        ("paper_reckons", mean(|row| row.paper_reckons)),
        ("young_daly", mean(|row| Some(row.young_daly))),
    ];
    let (name, at) = match figure {
        CheckpointFigure::ByAge => ("8a", ("age_hours", "Age [h]")),
        CheckpointFigure::ByLength => ("8b", ("job_hours", "Job [h]")),
    };
    let share = FigureUnit::Share;
    let shown = FigureRows {
        figure: name,
        columns: vec![
            (at.0, at.1, FigureUnit::Count),
            ("corrected", "Corrected plan", share),
            ("paper", "Paper's plan", share),
            ("paper_reckons", "as the paper reckons", share),
            ("young_daly", "Young–Daly", share),
            ("none", "No checkpoints", share),
        ],
        rows: rows.iter().map(|row| cells(row, figure)).collect(),
    };
    let mut facts = vec![
        ("model", given.json()),
        ("young_daly_mttf_hours", Json::from(mttf)),
    ];
    let mut object = Json::object::<String>([]);
    for (key, value) in means {
        object = object.with(key, value.map_or(Json::Null, Json::from));
    }
    facts.push(("mean", object));
    let known = means.into_iter().filter_map(|(key, value)| {
        Some(format!("{} {:.2} %", key.replace('_', " "), value? * 100.0))
    });
    let words = format!(
        "model: {}; mean of the rows: {}",
        given.words(),
        known.collect::<Vec<_>>().join(", ")
    );
    shown.show(context, &words, facts)
}

fn cells(row: &OverheadRow, figure: CheckpointFigure) -> Vec<Option<f64>> {
    let at = match figure {
        CheckpointFigure::ByAge => row.age,
        CheckpointFigure::ByLength => row.length,
    };
    vec![
        Some(at),
        Some(row.corrected),
        row.paper,
        row.paper_reckons,
        Some(row.young_daly),
        Some(row.none),
    ]
}

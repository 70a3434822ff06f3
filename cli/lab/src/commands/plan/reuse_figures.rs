//! `ebbtide-lab plan reuse --figure`: the paper's figures 4 to 7 as numbers.

use crate::figure_rows::{FigureRows, FigureUnit};
use clap::ValueEnum;
use ebbtide_lifetime::Lifetime;
use ebbtide_lifetime::distributions::Uniform;
use ebbtide_lifetime::plan::figures::{self, FailureRow};
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::model::SourcedModel;

/// A figure of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ReuseFigure {
    /// Work that a failure costs, by length of the job; beside it a uniform lifetime
    #[value(name = "4")]
    Waste,
    /// Chance to fail of --job, by age of the instance
    #[value(name = "5")]
    FailureByAge,
    /// Chance to fail by length of the job, averaged over instances of every age
    #[value(name = "6")]
    FailureByLength,
    /// The same, decided by the model of --wrong
    #[value(name = "7")]
    WrongModel,
}

/// Shows a figure.
pub(super) fn show(
    context: &mut Context,
    figure: ReuseFigure,
    given: &SourcedModel,
    wrong: Option<&SourcedModel>,
    job: Hours,
) -> Result<(), CliError> {
    let model = given.model.as_ref();
    let believed = wrong.map(|wrong| wrong.model.as_ref());
    let words = format!("model: {}", given.words());
    let facts = vec![("model", given.json())];
    let rows = match figure {
        ReuseFigure::Waste => waste(model)?,
        ReuseFigure::FailureByAge => {
            let rows = figures::failures_by_age(model, believed, job.0, &hours(model, 0))?;
            failures("5", ("age_hours", "Age [h]"), rows)
        }
        ReuseFigure::FailureByLength => {
            let rows = figures::failures_by_length(model, believed, &hours(model, 1))?;
            failures("6", ("job_hours", "Job [h]"), rows)
        }
        ReuseFigure::WrongModel => {
            let Some(wrong) = wrong else {
                return Err(CliError::Usage(
                    "--figure 7 compares with decisions by another model: name it with --wrong"
                        .to_owned(),
                ));
            };
            let rows = figures::failures_by_length(model, believed, &hours(model, 1))?;
            let rows = failures("7", ("job_hours", "Job [h]"), rows);
            let words = format!("{words}; wrong model: {}", wrong.words());
            let facts = vec![("model", given.json()), ("wrong_model", wrong.json())];
            return rows.show(context, &words, facts);
        }
    };
    rows.show(context, &words, facts)
}

/// Whole hours below the longest life.
pub(super) fn hours(model: &dyn Lifetime, from: u32) -> Vec<f64> {
    let end = model.maximum().min(model.quantile(0.99));
    // A day of rows for models of one provider; a fortnight at most.
    let last = ((end.ceil() - 1.0).clamp(1.0, 336.0)) as u32;
    (from..=last).map(f64::from).collect()
}

/// The uniform lifetime of the figure ends with the model, or where 99 of 100 instances have ended.
fn waste(model: &dyn Lifetime) -> Result<FigureRows, CliError> {
    let lengths = hours(model, 1);
    let uniform = Uniform::new(model.maximum().min(model.quantile(0.99)))?;
    let own = figures::waste(model, &lengths)?;
    let even = figures::waste(&uniform, &lengths)?;
    let hours = FigureUnit::Hours;
    Ok(FigureRows {
        figure: "4",
        columns: vec![
            ("job_hours", "Job [h]", FigureUnit::Count),
            ("lost_hours", "Lost if it fails [h]", hours),
            ("lost_hours_uniform", "uniform [h]", hours),
            ("increase_hours", "Expected increase [h]", hours),
            ("increase_hours_uniform", "uniform [h]", hours),
        ],
        rows: own
            .iter()
            .zip(&even)
            .map(|(own, even)| {
                let row = [
                    own.length,
                    own.lost_if_failed,
                    even.lost_if_failed,
                    own.increase,
                    even.increase,
                ];
                row.map(Some).to_vec()
            })
            .collect(),
    })
}

fn failures(
    figure: &'static str,
    at: (&'static str, &'static str),
    rows: Vec<FailureRow>,
) -> FigureRows {
    let share = FigureUnit::Share;
    let mut columns = vec![
        (at.0, at.1, FigureUnit::Count),
        ("always_kept", "Fails, always kept", share),
        ("by_model", "by the model", share),
    ];
    if rows.iter().any(|row| row.by_wrong_model.is_some()) {
        columns.push(("by_wrong_model", "by the wrong model", share));
    }
    let rows = rows.into_iter().map(|row| {
        let values = [Some(row.at), Some(row.always_kept), Some(row.by_model)];
        let wrong = row.by_wrong_model.map(Some);
        values.into_iter().chain(wrong).collect()
    });
    FigureRows {
        figure,
        columns,
        rows: rows.collect(),
    }
}

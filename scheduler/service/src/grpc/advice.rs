//! Conversion of advice to and from the wire.

use ebbtide_advice::{Advice, AdviceQuery, ForecastBand, ForecastTest, ModelFigures, Schedule};
use ebbtide_proto::v1;

/// The question in a request; it is validated later.
pub(super) fn question(wire: &v1::GetAdviceRequest) -> AdviceQuery {
    let usual = AdviceQuery::default();
    AdviceQuery {
        age: wire.age_hours,
        // An absent number means no job. NaN is passed on, and is refused with the other invalid
        // values.
        job: (wire.job_hours != 0.0).then_some(wire.job_hours),
        checkpoint: wire.checkpoint_hours.unwrap_or(usual.checkpoint),
        restart: wire.restart_hours,
    }
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

pub(super) fn wire(
    flavor: String,
    question: &AdviceQuery,
    advice: Advice,
) -> v1::GetAdviceResponse {
    let answer = v1::GetAdviceResponse {
        flavor,
        age_hours: question.age,
        max_lifetime_hours: if advice.maximum.is_finite() {
            advice.maximum
        } else {
            0.0
        },
        scope: advice.scope.as_str().to_owned(),
        whose: advice.owners.as_str().to_owned(),
        lives: count(advice.lives),
        own_lives: count(advice.own),
        interruptions: count(advice.interruptions),
        lived_hours: advice.total_hours,
        ..Default::default()
    };
    match advice.figures {
        Err(too_little) => v1::GetAdviceResponse {
            too_little,
            ..answer
        },
        Ok(figures) => add_model_figures(answer, figures),
    }
}

fn add_model_figures(
    answer: v1::GetAdviceResponse,
    figures: ModelFigures,
) -> v1::GetAdviceResponse {
    let chances = figures.chances.iter().map(|one| v1::InterruptionChance {
        within_hours: one.within,
        chance: one.chance,
        seen: one.seen.map(share),
    });
    let curve = figures.curve.iter().map(|point| v1::LifetimePoint {
        hours: point.hours,
        model: point.model,
        seen: point.seen,
    });
    v1::GetAdviceResponse {
        model: figures.model,
        model_fits: figures.fits,
        model_words: figures.words,
        expected_hours: figures.expected,
        chances: chances.collect(),
        curve: curve.collect(),
        calibration: Some(calibration(&figures.calibration)),
        schedule: figures.schedule.map(schedule),
        ..answer
    }
}

fn share((share, low, high): (f64, f64, f64)) -> v1::SeenShare {
    v1::SeenShare { share, low, high }
}

fn calibration(tested: &ForecastTest) -> v1::Calibration {
    let row = |row: &ForecastBand| v1::ToldBefore {
        within_hours: row.within,
        told: row.forecast,
        lives: count(row.lives),
        were: Some(share(row.observed)),
        off: row.differs,
    };
    v1::Calibration {
        rows: tested.rows.iter().map(row).collect(),
        overall: tested.overall.iter().map(row).collect(),
        untold: count(tested.without_forecast),
        verdict: match tested.agrees {
            Some(true) => "agrees",
            Some(false) => "differs",
            None => "unknown",
        }
        .to_owned(),
    }
}

fn schedule(plan: Schedule) -> v1::CheckpointSchedule {
    let ends = |hours: f64| hours.is_finite().then_some(hours);
    v1::CheckpointSchedule {
        interval_hours: plan.intervals,
        new_server_before: plan.new_instances.into_iter().map(count).collect(),
        step_hours: plan.step,
        job_hours: plan.job,
        expected_hours: plan.makespan,
        hourly_hours: ends(plan.hourly),
        without_hours: ends(plan.none),
    }
}

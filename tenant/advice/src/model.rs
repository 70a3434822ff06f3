//! The model of an answer: fitted, selected and rounded. All figures are computed from the rounded
//! model.

use crate::error::AdviceError;
use ebbtide_lifetime::description::Description;
use ebbtide_lifetime::fit::{Estimator, Family, Fit, distance_from, fit, phases, verdict};
use ebbtide_lifetime::{Lifetime, LifetimeError, Observations};
use std::fmt::Write as _;

/// Ends of the phases, hours, for a maximum lifetime of a day and in proportion for others: finer
/// where instances end young and near the limit. They are fixed, so that they reveal no age at
/// which a server ended.
const PHASES_OF_A_DAY: [f64; 14] = [
    0.25, 0.5, 1.0, 2.0, 3.0, 6.0, 9.0, 12.0, 15.0, 18.0, 20.0, 22.0, 23.0, 24.0,
];
/// Ends of the phases without a limit, hours; the last phase never ends.
const PHASES_WITHOUT_LIMIT: [f64; 13] = [
    0.25, 0.5, 1.0, 2.0, 3.0, 6.0, 12.0, 24.0, 48.0, 96.0, 168.0, 336.0, 720.0,
];
/// The 5 % critical value of Kolmogorov and Smirnov, times the square root of the sample size.
const KS_5_PERCENT: f64 = 1.358;

/// A model and its quality.
#[derive(Debug)]
pub struct SelectedModel {
    /// The model with the rounded parameters.
    pub model: Box<dyn Lifetime>,
    /// The same as text that `--model` takes.
    pub text: String,
    /// Whether the test of Kolmogorov and Smirnov does not reject it at 5 %.
    pub fits: bool,
    /// Greatest distance between its distribution function and the observations: a share, in whole
    /// percents, rounded up.
    pub distance: f64,
    /// The model, and the reason for its selection, for people.
    pub words: String,
}

/// Selects the model of these lives. Every formula is fitted by maximum likelihood, with the users'
/// own ends as censored, and Akaike's criterion selects the best. If no formula passes the test and
/// there are enough lives, the model has constant hazards in fixed phases. Its parameters have
/// three digits.
///
/// # Errors
/// [`LifetimeError::TooFew`] or [`LifetimeError::NoFit`] if no model can be fitted.
pub fn choose(seen: &Observations) -> Result<SelectedModel, AdviceError> {
    let mut fits: Vec<Fit> = Vec::with_capacity(Family::ALL.len());
    let mut first_error = None;
    for family in Family::ALL {
        match fit(family, Estimator::MaximumLikelihood, seen) {
            Ok(fit) => fits.push(fit),
            // Models with a wall need a maximum lifetime; models with many parameters need more
            // lives.
            Err(error) => first_error = first_error.or(Some(error)),
        }
    }
    if verdict(&fits, seen).is_none_or(|said| said.empirical)
        && let Some(text) = text_of_phases(seen)
    {
        return chosen(text, seen, "no formula is near enough");
    }
    fits.sort_by(|a, b| a.aic.total_cmp(&b.aic));
    let mut refused = first_error;
    for one in &fits {
        let text = text_of(one, seen.maximum());
        match chosen(text, seen, "of all formulas the likeliest") {
            Ok(chosen) => return Ok(chosen),
            // Rounding to three digits made the parameters invalid: try the next one.
            Err(AdviceError::Model(error)) => refused = refused.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    // For example, all lives have the same length. The number of ends per hour lived still gives a
    // model.
    if let Some(text) = text_of_phases(seen) {
        return chosen(text, seen, "no formula could be fitted");
    }
    Err(refused
        .unwrap_or_else(|| LifetimeError::TooFew {
            needed: 2,
            found: seen.ended(),
            censored: seen.censored(),
        })
        .into())
}

fn chosen(text: String, seen: &Observations, why: &str) -> Result<SelectedModel, AdviceError> {
    let model = Description::parse(&text)?.model()?;
    let ks = distance_from(model.as_ref(), seen);
    let distance = (ks * 100.0).ceil() / 100.0;
    let fits = ks <= KS_5_PERCENT / (seen.ended().max(1) as f64).sqrt();
    let mut words = format!(
        "{}, {why}; largest error {:.0} percentage points",
        model.name(),
        distance * 100.0
    );
    if !fits {
        words.push_str(", more than sampling noise explains: use it with care");
    }
    Ok(SelectedModel {
        model,
        text,
        fits,
        distance,
        words,
    })
}

/// A number with three significant digits: more digits could reveal single lives.
#[must_use]
pub(crate) fn three(value: f64) -> String {
    if value == 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = (2.0 - value.abs().log10().floor()).clamp(0.0, 12.0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn text_of(fit: &Fit, maximum: f64) -> String {
    let mut text = format!("{}:", fit.family.name());
    for (name, value) in fit.family.parameter_names().iter().zip(&fit.parameters) {
        // Writing into a string does not fail.
        let _ = write!(text, "{name}={},", three(*value));
    }
    if maximum.is_finite() {
        let _ = write!(text, "max={maximum}");
    } else {
        text.push_str("max=none");
    }
    text
}

/// Hazards in fixed phases; `None` if the data do not allow them.
fn text_of_phases(seen: &Observations) -> Option<String> {
    let maximum = seen.maximum();
    let mut ends: Vec<f64> = if maximum.is_finite() {
        let day = 24.0 / maximum;
        PHASES_OF_A_DAY.iter().map(|end| end / day).collect()
    } else {
        PHASES_WITHOUT_LIMIT.to_vec()
    };
    let fitted = if maximum.is_finite() {
        if let Some(last) = ends.last_mut() {
            *last = maximum;
        }
        phases(&ends, seen).ok()?
    } else {
        // At least one end must lie in the phase that never ends.
        loop {
            ends.pop()?;
            let mut with_end = ends.clone();
            with_end.push(f64::INFINITY);
            if let Ok(fitted) = phases(&with_end, seen) {
                break fitted;
            }
            if ends.is_empty() {
                return None;
            }
        }
    };
    let parts = fitted.model.phases().iter();
    let parts = parts.map(|phase| format!("{}={}", phase.until, three(phase.hazard)));
    Some(format!("phases:{}", parts.collect::<Vec<_>>().join(",")))
}

//! A group of lifetimes and what was fitted to it.

use ebbtide_lifetime::fit::{
    Curve, Estimator, Family, Fit, FitVerdict, default_phases, distance_from, fit, kaplan_meier,
    phases, verdict,
};
use ebbtide_lifetime::labelled_life::Group;
use ebbtide_lifetime::{Lifetime, LifetimeError, Observations};
use ebbtide_shell::json::Json;
use ebbtide_shell::model::{parameters_json, short};
use ebbtide_shell::output::TableCell;
use ebbtide_shell::render::Tone;

/// Which model is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum Choice {
    /// A (1 - exp(-t/tau1) + exp((t-b)/tau2)): the paper's.
    Bathtub,
    /// Memoryless: lambda.
    Exponential,
    /// lambda, k.
    Weibull,
    /// lambda, alpha, beta.
    GompertzMakeham,
    /// All ages up to the maximum alike.
    Uniform,
    /// A constant hazard in each of the paper's three phases.
    Phases,
    /// What was seen, without a formula.
    Empirical,
    /// What the verdict says.
    Best,
}

impl Choice {
    fn family(self) -> Option<Family> {
        match self {
            Self::Bathtub => Some(Family::Bathtub),
            Self::Exponential => Some(Family::Exponential),
            Self::Weibull => Some(Family::Weibull),
            Self::GompertzMakeham => Some(Family::GompertzMakeham),
            Self::Uniform => Some(Family::Uniform),
            Self::Phases | Self::Empirical | Self::Best => None,
        }
    }
}

/// How parameters are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum FitMethod {
    /// Least squares on the distribution of those that the provider ended: the paper's way. Forgets
    /// that users stop instances.
    LeastSquares,
    /// Maximum likelihood, with instances that users stopped as censored.
    Mle,
}

impl FitMethod {
    fn method(self) -> Estimator {
        match self {
            Self::LeastSquares => Estimator::LeastSquares(Curve::EndedOnly),
            Self::Mle => Estimator::MaximumLikelihood,
        }
    }

    /// Its name on the command line.
    fn name(self) -> &'static str {
        match self {
            Self::LeastSquares => "least-squares",
            Self::Mle => "mle",
        }
    }
}

/// A model and how good it is.
#[derive(Debug)]
pub(super) struct FittedModel {
    pub(super) model: Box<dyn Lifetime>,
    method: &'static str,
    errors: Option<Vec<f64>>,
    r2: Option<f64>,
    ks: f64,
    log_likelihood: Option<f64>,
    aic: Option<f64>,
    /// The phases or points that parameters cannot say.
    more: Option<(&'static str, Json)>,
}

/// A group and what became of it.
#[derive(Debug)]
pub(super) struct FittedGroup {
    pub(super) name: String,
    labels: Vec<(String, String)>,
    pub(super) seen: Observations,
    pub(super) fitted: Result<FittedModel, LifetimeError>,
    compared: Vec<Fit>,
    pub(super) verdict: Option<FitVerdict>,
}

impl FittedGroup {
    /// Fits what is wanted, and every formula beside it for the verdict.
    pub(super) fn of(
        group: &Group<'_>,
        choice: Choice,
        way: FitMethod,
        maximum: f64,
    ) -> Result<Self, LifetimeError> {
        let members = group.members.iter().map(|row| row.observation);
        let seen = Observations::new(members, maximum)?;
        let method = way.method();
        let mut compared = Vec::new();
        let mut failed = Vec::new();
        for family in Family::ALL {
            match fit(family, method, &seen) {
                Ok(fit) => compared.push(fit),
                Err(error) => failed.push((family, error)),
            }
        }
        let verdict = verdict(&compared, &seen);
        let of_family = |family: Family| {
            if let Some(fit) = compared.iter().find(|fit| fit.family == family) {
                return from_fit(fit, way, maximum);
            }
            let why = failed.iter().find(|(other, _)| *other == family);
            Err(why.map_or_else(|| unfitted(family), |(_, error)| error.clone()))
        };
        let fitted = match (choice.family(), choice, &verdict) {
            (Some(family), _, _) => of_family(family),
            (None, Choice::Phases, _) => of_phases(&seen),
            (None, Choice::Best, Some(said)) if !said.empirical => compared
                .get(said.best)
                .ok_or_else(|| unfitted(Family::Exponential))
                .and_then(|fit| from_fit(fit, way, maximum)),
            (None, Choice::Best, None) => of_family(Family::Exponential),
            _ => of_points(&seen),
        };
        Ok(Self {
            name: group.name.clone(),
            labels: group.labels.clone(),
            seen,
            fitted,
            compared,
            verdict,
        })
    }

    /// Its row in the table.
    pub(super) fn row(&self) -> Vec<TableCell> {
        let mut row = vec![
            TableCell::new(&self.name),
            TableCell::new(self.seen.all().len()),
            TableCell::new(self.seen.ended()),
        ];
        let number = |value: Option<f64>, digits: usize| match value {
            Some(value) => TableCell::new(format!("{value:.digits$}")),
            None => TableCell::new("-"),
        };
        match &self.fitted {
            Ok(fitted) => row.extend([
                TableCell::new(fitted.model.name()).tone(Tone::Strong),
                TableCell::new(fitted.words()),
                number(fitted.r2, 3),
                number(Some(fitted.ks), 3),
                number(fitted.aic, 1),
                number(Some(fitted.model.mean()), 2),
            ]),
            Err(error) => row.extend([
                TableCell::new("-").tone(Tone::Bad),
                TableCell::new(error.code()),
                TableCell::new("-"),
                TableCell::new("-"),
                TableCell::new("-"),
                TableCell::new("-"),
            ]),
        }
        row
    }

    /// The same as JSON.
    pub(super) fn json(&self) -> Json {
        let labels = self.labels.iter();
        let labels = labels.map(|(k, v)| (k.clone(), Json::from(v.as_str())));
        let count = |n: usize| Json::from(n as u64);
        let json = Json::object([("group", Json::from(self.name.as_str()))])
            .with("labels", Json::Object(labels.collect()))
            .with("lifetimes", count(self.seen.all().len()))
            .with("preempted", count(self.seen.ended()))
            .with("stopped", count(self.seen.censored()));
        let json = match &self.fitted {
            Ok(fitted) => fitted.json(json, self.seen.maximum()),
            Err(error) => json.with(
                "error",
                Json::object([("code", Json::from(error.code()))])
                    .with("message", error.to_string()),
            ),
        };
        let compared = self.compared.iter().map(|fit| {
            Json::object([("model", Json::from(fit.family.name()))])
                .with("parameters", parameters_json(fit.model.as_ref()))
                .with("r2", fit.r2)
                .with("ks", fit.ks)
                .with("aic", fit.aic)
        });
        let verdict = match &self.verdict {
            Some(verdict) => {
                let best = self.compared.get(verdict.best);
                Json::object([("best", best.map_or(Json::Null, |f| f.family.name().into()))])
                    .with("fits", verdict.fits)
                    .with("use_empirical", verdict.empirical)
                    .with("words", verdict.words.as_str())
            }
            None => Json::Null,
        };
        json.with("compared", Json::List(compared.collect()))
            .with("verdict", verdict)
    }
}

impl FittedModel {
    /// `A 0.414 ± 0.003, …`; phases as `0.2/h until 3 h, …`.
    fn words(&self) -> String {
        let parameters = self.model.parameters();
        if parameters.is_empty() {
            return match &self.more {
                Some((_, Json::List(points))) => format!("{} points", points.len()),
                _ => "-".to_owned(),
            };
        }
        if self.more.is_some() {
            let phases = parameters.chunks(2).map(|pair| match pair {
                [(_, until), (_, hazard)] if until.is_finite() => {
                    format!("{}/h until {} h", short(*hazard), short(*until))
                }
                [_, (_, hazard)] => format!("{}/h for ever", short(*hazard)),
                _ => String::new(),
            });
            return phases.collect::<Vec<_>>().join(", ");
        }
        let words = parameters.iter().enumerate().map(|(at, (name, value))| {
            match self.errors.as_ref().and_then(|errors| errors.get(at)) {
                Some(error) => format!("{name} {} ± {}", short(*value), two(*error)),
                None => format!("{name} {}", short(*value)),
            }
        });
        words.collect::<Vec<_>>().join(", ")
    }

    fn json(&self, json: Json, maximum: f64) -> Json {
        let model = self.model.as_ref();
        let optional = |value: Option<f64>| value.map_or(Json::Null, Json::from);
        let errors = match &self.errors {
            Some(errors) if self.more.is_none() => {
                let names = model.parameters().into_iter().map(|(name, _)| name);
                Json::object(names.zip(errors.iter().map(|e| Json::from(*e))))
            }
            Some(errors) => Json::List(errors.iter().map(|e| Json::from(*e)).collect()),
            None => Json::Null,
        };
        let mut json = json
            .with("model", model.name())
            .with("method", self.method)
            .with("parameters", parameters_json(model))
            .with("standard_errors", errors)
            .with("maximum_hours", Json::from(maximum));
        if let Some((key, more)) = &self.more {
            json = json.with(key, more.clone());
        }
        json.with("r2", optional(self.r2))
            .with("ks", self.ks)
            .with("log_likelihood", optional(self.log_likelihood))
            .with("aic", optional(self.aic))
            .with("expected_lifetime_hours", model.mean())
            .with("share_at_maximum", model.atom())
    }
}

/// Two digits that matter, for standard errors.
fn two(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return format!("{value}");
    }
    let digits = (1.0 - value.log10().floor()).clamp(0.0, 12.0) as usize;
    format!("{value:.digits$}")
}

fn unfitted(family: Family) -> LifetimeError {
    LifetimeError::NoFit {
        model: family.name(),
        problem: "no parameters were found".to_owned(),
    }
}

fn from_fit(fit: &Fit, way: FitMethod, maximum: f64) -> Result<FittedModel, LifetimeError> {
    Ok(FittedModel {
        model: fit.family.model(&fit.parameters, maximum)?,
        method: way.name(),
        errors: fit.standard_errors.clone(),
        r2: Some(fit.r2),
        ks: fit.ks,
        log_likelihood: Some(fit.log_likelihood),
        aic: Some(fit.aic),
        more: None,
    })
}

/// Phases are fitted by likelihood, whatever the method: ends over time lived.
fn of_phases(seen: &Observations) -> Result<FittedModel, LifetimeError> {
    let fit = phases(&default_phases(seen), seen)?;
    let list = fit.model.phases().iter().map(|phase| {
        Json::object([("until", Json::from(phase.until))]).with("hazard", phase.hazard)
    });
    Ok(FittedModel {
        method: "mle",
        errors: Some(fit.standard_errors),
        r2: None,
        ks: distance_from(&fit.model, seen),
        log_likelihood: Some(fit.log_likelihood),
        aic: Some(fit.aic),
        more: Some(("phases", Json::List(list.collect()))),
        model: Box::new(fit.model),
    })
}

/// The empirical model is Kaplan's and Meier's, whatever the method.
fn of_points(seen: &Observations) -> Result<FittedModel, LifetimeError> {
    let model = kaplan_meier(seen)?;
    let points = model
        .points()
        .map(|(t, share)| Json::List(vec![Json::from(t), Json::from(share)]));
    Ok(FittedModel {
        method: "kaplan-meier",
        errors: None,
        r2: None,
        ks: distance_from(&model, seen),
        log_likelihood: None,
        aic: None,
        more: Some(("points", Json::List(points.collect()))),
        model: Box::new(model),
    })
}

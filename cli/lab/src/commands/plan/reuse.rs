//! `ebbtide-lab plan reuse`: keep this instance for the next job, or take a new one?

use super::reuse_chart;
use super::reuse_figures::{self, ReuseFigure};
use clap::Args;
use ebbtide_lifetime::plan::{
    RunningTime, as_likely_to_last, average_failure_believing, failure_probability, keeps,
    running_time, switch_age, switch_age_by_risk, switch_length,
};
use ebbtide_lifetime::{Lifetime, LifetimeError};
use ebbtide_shell::Context;
use ebbtide_shell::charts;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::json::Json;
use ebbtide_shell::model::{ModelArgs, SourcedModel};
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_shell::render::Tone;
use std::path::PathBuf;

pub(super) const HELP: &str = "\
Young instances of some clouds end more often than those that have survived their first hours, so keeping one can
be better than taking a new one, until its maximum lifetime comes near. Decided by the expected time until a job
without checkpoints is done, failures of the new instances included. Beside it equation 8 of Kadupitiya et al. (HPDC
2020), corrected (given that the instance has lived until now) and as printed, which count lost work only; and the
chance to fail alone, which gives the age that the paper names.

Examples:
  ebbtide-lab plan reuse --job 6h --age 10h --model bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45
  ebbtide-lab plan reuse --job 6h --age 18h --model model.json --group n1-highcpu-16 -o json
  ebbtide-lab plan reuse --job 6h --age 10h --model model.json --svg reuse.svg
  ebbtide-lab plan reuse --job 6h --age 10h --model model.json --group n1-highcpu-2 --wrong model.json
  ebbtide-lab plan reuse --job 6h --figure 5 --model bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45 -o json";

/// Options of `plan reuse`.
#[derive(Debug, Clone, Args)]
pub struct ReuseArgs {
    /// How long the job is: 6h, 90m
    #[arg(long, value_name = "TIME")]
    job: Hours,
    /// How old the instance is that is there
    #[arg(long, value_name = "TIME", required_unless_present = "figure")]
    age: Option<Hours>,
    #[command(flatten)]
    model: ModelArgs,
    /// Say what it would cost to decide by this model while instances live as --model says
    #[arg(long, value_name = "MODEL")]
    wrong: Option<String>,
    /// Print a figure of the paper as numbers instead of deciding
    #[arg(long, value_enum, value_name = "4|5|6|7", conflicts_with = "svg")]
    figure: Option<ReuseFigure>,
    /// Draw the curves of the paper's figures 4 to 7 into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

impl ReuseArgs {
    /// The age; it is there unless a figure is asked for.
    fn age(&self) -> Hours {
        self.age.unwrap_or(Hours(0.0))
    }
}

/// By one criterion: whether to keep, until which age for this job, up to which job at this age
/// (hours).
struct Rule {
    name: &'static str,
    keep: bool,
    age: Option<f64>,
    length: Option<f64>,
}

/// Decides and shows.
pub(super) fn run(context: &mut Context, args: &ReuseArgs) -> Result<(), CliError> {
    let given = SourcedModel::read(&args.model)?;
    let model = given.model.as_ref();
    let (job, age) = (args.job.0, args.age().0);
    if job >= model.maximum() {
        return Err(LifetimeError::Question {
            what: "the length of the job",
            value: job,
            allowed: format!(
                "below the maximum lifetime, {:.4} h: no instance lives long enough, old or new; `ebbtide-lab plan checkpoint` plans such jobs",
                model.maximum()
            ),
        }
        .into());
    }
    let wrong = args.wrong.clone().map(|model| {
        let group = None;
        SourcedModel::read(&ModelArgs { model, group })
    });
    let wrong = wrong.transpose()?;
    if let Some(figure) = args.figure {
        return reuse_figures::show(context, figure, &given, wrong.as_ref(), args.job);
    }
    let of_time = |name, reading| -> Result<Rule, CliError> {
        Ok(Rule {
            name,
            keep: keeps(model, age, job, reading)?,
            age: switch_age(model, job, reading)?,
            length: switch_length(model, age, reading)?,
        })
    };
    let rules = [
        of_time("expected time until done", RunningTime::UntilDone)?,
        of_time("equation 8, corrected", RunningTime::Corrected)?,
        of_time("equation 8, as printed", RunningTime::Literal)?,
        Rule {
            name: "chance to fail",
            keep: as_likely_to_last(model, age, job)?,
            age: switch_age_by_risk(model, job)?,
            length: None,
        },
    ];
    let of_age = |age: f64| -> Result<(f64, f64), CliError> {
        Ok((
            failure_probability(model, age, job)?,
            running_time(model, age, job, RunningTime::UntilDone)?,
        ))
    };
    let (kept, new) = (of_age(age)?, of_age(0.0)?);
    let averages = Averages::of(model, wrong.as_ref().map(|w| w.model.as_ref()), job)?;
    let [decisive, ..] = &rules;
    match context.output.format() {
        Format::Json => {
            let json = json(args, &given, &rules, kept, new);
            let averages = averages.as_ref().map_or(Json::Null, Averages::json);
            context
                .output
                .json(&json.with("average_failure", averages))?;
        }
        Format::Value => context.output.line(word(decisive.keep))?,
        Format::Table | Format::Markdown => {
            table(context, args, &given, &rules, kept, new)?;
            if let Some(averages) = &averages {
                context.output.line(&averages.words(wrong.as_ref()))?;
            }
        }
    }
    match &args.svg {
        Some(path) => {
            let wrong = wrong.as_ref().map(|wrong| wrong.model.as_ref());
            let figure = reuse_chart::figure(model, wrong, job, age, decisive.age)?;
            charts::write(context, path, &figure)
        }
        None => Ok(()),
    }
}

/// How often the job fails, averaged over instances of every age.
struct Averages {
    always_kept: f64,
    decided: f64,
    /// Where decisions are made by another model than lives follow.
    decided_wrongly: Option<f64>,
}

impl Averages {
    /// `None` for a model without a maximum lifetime, which has no ages to average over.
    fn of(
        model: &dyn Lifetime,
        wrong: Option<&dyn Lifetime>,
        job: f64,
    ) -> Result<Option<Self>, LifetimeError> {
        if !model.maximum().is_finite() {
            return Ok(None);
        }
        let policy = Some(RunningTime::UntilDone);
        let by = |believed| average_failure_believing(model, believed, job, policy);
        Ok(Some(Self {
            always_kept: average_failure_believing(model, model, job, None)?,
            decided: by(model)?,
            decided_wrongly: wrong.map(by).transpose()?,
        }))
    }

    fn words(&self, wrong: Option<&SourcedModel>) -> String {
        let mut words = format!(
            "averaged over instances of every age it fails with chance {:.1} % if they are always kept, {:.1} % if kept while that is better",
            self.always_kept * 100.0,
            self.decided * 100.0
        );
        if let (Some(chance), Some(wrong)) = (self.decided_wrongly, wrong) {
            words.push_str(&format!(
                ", {:.1} % if decided by {}",
                chance * 100.0,
                wrong.words()
            ));
        }
        words
    }

    fn json(&self) -> Json {
        let wrong = self.decided_wrongly.map_or(Json::Null, Json::from);
        Json::object([("always_kept", Json::from(self.always_kept))])
            .with("decided", self.decided)
            .with("decided_by_wrong_model", wrong)
    }
}

fn word(keep: bool) -> &'static str {
    if keep { "keep" } else { "new" }
}

fn table(
    context: &mut Context,
    args: &ReuseArgs,
    given: &SourcedModel,
    rules: &[Rule],
    kept: (f64, f64),
    new: (f64, f64),
) -> Result<(), CliError> {
    context.output.line(&format!("model: {}", given.words()))?;
    context.output.line(&format!(
        "job of {}: on the instance of age {} it fails with chance {:.1} % and takes {} in expectation; on a new one {:.1} %, {}",
        args.job,
        args.age(),
        kept.0 * 100.0,
        Hours(kept.1),
        new.0 * 100.0,
        Hours(new.1)
    ))?;
    let columns = [
        text("by", "Decided by"),
        text("decision", "Decision"),
        number("switch_age", "Keep for this job until age"),
        number("switch_length", "Keep at this age for jobs up to"),
    ];
    let until = |hours: Option<f64>, without: &str| {
        hours.map_or_else(
            || without.to_owned(),
            |hours| match hours {
                hours if hours.is_finite() => format!("{hours:.2} h"),
                _ => "any".to_owned(),
            },
        )
    };
    let rows: Vec<Vec<TableCell>> = rules
        .iter()
        .map(|rule| {
            let tone = if rule.keep { Tone::Good } else { Tone::Warn };
            vec![
                TableCell::new(rule.name),
                TableCell::new(word(rule.keep)).tone(tone),
                TableCell::new(until(rule.age, "-")),
                TableCell::new(until(rule.length, "-")),
            ]
        })
        .collect();
    context.output.table(&columns, &rows)
}

fn json(
    args: &ReuseArgs,
    given: &SourcedModel,
    rules: &[Rule],
    kept: (f64, f64),
    new: (f64, f64),
) -> Json {
    let optional = |value: Option<f64>| value.map_or(Json::Null, Json::from);
    let instance = |of: (f64, f64)| {
        Json::object([("failure_probability", Json::from(of.0))])
            .with("running_time_hours", Json::from(of.1))
    };
    let rules_json = rules.iter().map(|rule| {
        Json::object([("by", Json::from(rule.name))])
            .with("decision", word(rule.keep))
            .with("switch_age_hours", optional(rule.age))
            .with("switch_length_hours", optional(rule.length))
    });
    let first = rules.first();
    Json::object([(
        "decision",
        first.map_or(Json::Null, |rule| word(rule.keep).into()),
    )])
    .with("job_hours", args.job.0)
    .with("age_hours", args.age().0)
    .with("model", given.json())
    .with("kept", instance(kept))
    .with("new", instance(new))
    .with(
        "switch_age_hours",
        optional(first.and_then(|rule| rule.age)),
    )
    .with(
        "switch_length_hours",
        optional(first.and_then(|rule| rule.length)),
    )
    .with("rules", Json::List(rules_json.collect()))
}

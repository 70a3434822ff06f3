//! `ebbtide-lab plan checkpoint`: when to write checkpoints.

use super::checkpoint_chart;
use super::checkpoint_figures::{self, CheckpointFigure};
use clap::Args;
use ebbtide_lifetime::plan::checkpoint::{
    CheckpointOptions, EquationReading, Estimate, Planner, expected_makespan, without_checkpoints,
    young_daly,
};
use ebbtide_lifetime::plan::failure_probability;
use ebbtide_lifetime::{Lifetime, LifetimeError};
use ebbtide_shell::Context;
use ebbtide_shell::charts;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::{self, Hours};
use ebbtide_shell::json::Json;
use ebbtide_shell::model::{ModelArgs, SourcedModel};
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_shell::render::Tone;
use std::path::PathBuf;

pub(super) const HELP: &str = "\
The schedule by dynamic programming after Kadupitiya et al. (HPDC 2020): what is lost by a failure against what
checkpoints cost, for every state that the job can come into. It holds as long as nothing fails; then the job
goes on from its last checkpoint on a new instance, by the schedule that the JSON has under `resume`.
The default reading of the paper's equations is the corrected one: failures conditional on the instance's age,
and the exact expectation of what they lose. --reading paper gives the schedules that the paper prints.
\"Expected\" is the exact expectation under the model, whatever a reading reckons.

Examples:
  ebbtide-lab plan checkpoint --job 5h --cost 1m --age 0 --model bathtub:A=0.414,tau1=0.94,tau2=0.77,b=24.45
  ebbtide-lab plan checkpoint --job 5h --reading paper --mttf 1h --model model.json
  ebbtide-lab plan checkpoint --job 24h --cost 90s --restart 4m --age 3h --model model.json --group n1-highcpu-16
  ebbtide-lab plan checkpoint --job 8h --model weibull:lambda=0.03,k=0.45 --simulate 100000 --svg plan.svg
  ebbtide-lab plan checkpoint --job 9h --mttf 1h --figure 8b --model model.json -o json";

/// Which reading of the paper's equations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ReadingChoice {
    /// Failures conditional on the age, exact expectation of the loss.
    Corrected,
    /// As the paper's schedules: unconditional failures, half an interval lost.
    Paper,
    /// Unconditional failures, exact expectation of the loss.
    PaperExactLoss,
}

impl ReadingChoice {
    fn reading(self) -> EquationReading {
        match self {
            Self::Corrected => EquationReading::Corrected,
            Self::Paper => EquationReading::Paper,
            Self::PaperExactLoss => EquationReading::PaperExactLoss,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Corrected => "corrected",
            Self::Paper => "paper",
            Self::PaperExactLoss => "paper-exact-loss",
        }
    }
}

/// Options of `plan checkpoint`.
#[derive(Debug, Clone, Args)]
pub struct CheckpointArgs {
    /// How much work the job is: 5h, 90m, 1h30m
    #[arg(long, value_name = "TIME")]
    job: Hours,
    /// How long a checkpoint takes
    #[arg(long, default_value = "1m", value_name = "TIME")]
    cost: Hours,
    /// How long it takes to get a new instance and load the checkpoint
    #[arg(long, default_value = "0", value_name = "TIME")]
    restart: Hours,
    /// How old the instance is when the job begins
    #[arg(long, default_value = "0", value_name = "TIME")]
    age: Hours,
    #[command(flatten)]
    model: ModelArgs,
    /// Which reading of the paper's equations
    #[arg(long, value_enum, default_value_t = ReadingChoice::Corrected, hide_possible_values = true,
          value_name = "corrected|paper|paper-exact-loss")]
    reading: ReadingChoice,
    /// The grain of the plan: intervals are multiples of it
    #[arg(long, default_value = "1m", value_name = "TIME")]
    step: Hours,
    /// The mean time to failure that Young and Daly are told [default: the model's expected
    /// lifetime]
    #[arg(long, value_name = "TIME")]
    mttf: Option<Hours>,
    /// The end of the job needs no checkpoint
    #[arg(long)]
    no_final_checkpoint: bool,
    /// Live through the job so many times, as a check of the expectation
    #[arg(long, value_name = "RUNS", value_parser = clap::value_parser!(u32).range(2..=100_000_000))]
    simulate: Option<u32>,
    /// The seed of --simulate
    #[arg(long, default_value_t = 1, value_name = "S")]
    seed: u64,
    /// Print a figure of the paper as numbers instead of a plan
    #[arg(long, value_enum, value_name = "8a|8b", conflicts_with_all = ["svg", "simulate", "reading"])]
    figure: Option<CheckpointFigure>,
    /// Draw the schedules into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// So many steps take a second or more; far more are refused.
const LONG: std::ops::RangeInclusive<f64> = 5_000.0..=20_000.0;

/// One way to checkpoint.
#[derive(Debug)]
pub(super) struct CheckpointPlan {
    pub(super) name: String,
    /// Work between checkpoints, hours.
    pub(super) intervals: Vec<f64>,
    /// Which of them need a new instance, since the one before reaches its maximum lifetime first.
    pub(super) new_instances: Vec<usize>,
    /// How many checkpoints it writes if nothing fails.
    checkpoints: usize,
    /// The expected time to the end, hours.
    pub(super) makespan: f64,
    /// What the reading itself reckons, where that is another thing.
    reckoned: Option<f64>,
}

/// Everything that is shown.
struct CheckpointView<'a> {
    args: &'a CheckpointArgs,
    given: &'a SourcedModel,
    /// The work that is planned, hours: the job, rounded to steps.
    work: f64,
    plans: Vec<CheckpointPlan>,
    resume: Vec<(f64, Vec<f64>)>,
    failure: f64,
    mttf: f64,
    estimate: Option<Estimate>,
}

/// Plans and shows.
pub(super) fn run(context: &mut Context, args: &CheckpointArgs) -> Result<(), CliError> {
    let given = SourcedModel::read(&args.model)?;
    let model = given.model.as_ref();
    let options = CheckpointOptions {
        step: args.step.0,
        cost: args.cost.0,
        restart: args.restart.0,
        reading: args.reading.reading(),
        final_checkpoint: !args.no_final_checkpoint,
    };
    let mttf = args.mttf.map_or_else(|| model.mean(), |given| given.0);
    if let Some(figure) = args.figure {
        let job = (args.job.0, args.age.0);
        return checkpoint_figures::show(context, figure, &given, job, &options, mttf);
    }
    let steps = args.job.0 / args.step.0;
    if LONG.contains(&steps) {
        context.output.say(&format!(
            "planning {steps:.0} steps of {}: with --step {} it is quicker",
            args.step,
            Hours(args.step.0 * (steps / LONG.start()).ceil())
        ));
    }
    let planner = Planner::new(model, args.job.0, args.age.0, &options)?;
    // The grid rounds the job to steps; everything beside it has to be about the same job.
    let schedule = planner.schedule();
    let mut work: f64 = schedule.intervals.iter().sum();
    if (work - args.job.0).abs() < 1e-6 {
        // The last bits of a sum decide whether a job of 24 h fits into a life of 24 h.
        work = args.job.0;
    } else {
        context.output.say(&format!(
            "the job is rounded to {} steps of {}",
            (work / args.step.0).round(),
            args.step
        ));
    }
    let mut resume = Vec::new();
    let mut left = work;
    for interval in &schedule.intervals {
        resume.push((left, planner.resumed(left)?.intervals));
        left -= interval;
    }
    let plans = plans(args, model, work, &options, &planner, mttf)?;
    let shown = CheckpointView {
        args,
        given: &given,
        work,
        plans,
        resume,
        failure: failure_probability(model, args.age.0, work)?,
        mttf,
        estimate: args
            .simulate
            .map(|runs| planner.simulate(model, runs, args.seed)),
    };
    show(context, &shown)?;
    match &args.svg {
        Some(path) => charts::write(
            context,
            path,
            &checkpoint_chart::figure(model, args.age.0, args.cost.0, &shown.plans),
        ),
        None => Ok(()),
    }
}

/// The plan asked for, then what it can be compared with.
fn plans(
    args: &CheckpointArgs,
    model: &dyn Lifetime,
    work: f64,
    options: &CheckpointOptions,
    planner: &Planner,
    mttf: f64,
) -> Result<Vec<CheckpointPlan>, CliError> {
    let count = |intervals: &[f64]| intervals.len() - usize::from(args.no_final_checkpoint);
    let exact = |intervals: &[f64]| expected_makespan(model, intervals, args.age.0, options);
    let of_reading =
        |choice: ReadingChoice, planner: &Planner| -> Result<CheckpointPlan, CliError> {
            let schedule = planner.schedule();
            // The corrected plan is made anew after each failure, which no fixed schedule is.
            let (makespan, reckoned) = match choice {
                ReadingChoice::Corrected => (schedule.makespan, None),
                _ => (exact(&schedule.intervals)?, Some(schedule.makespan)),
            };
            Ok(CheckpointPlan {
                name: choice.name().to_owned(),
                checkpoints: count(&schedule.intervals),
                intervals: schedule.intervals,
                new_instances: schedule.new_instances,
                makespan,
                reckoned,
            })
        };
    let mut plans = vec![of_reading(args.reading, planner)?];
    for other in [ReadingChoice::Corrected, ReadingChoice::Paper] {
        if other == args.reading {
            continue;
        }
        let options = CheckpointOptions {
            reading: other.reading(),
            ..*options
        };
        match Planner::new(model, work, args.age.0, &options) {
            Ok(planner) => plans.push(of_reading(other, &planner)?),
            // The paper's reading has no plans for jobs that outlive their instance.
            Err(LifetimeError::Question { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Checkpoints that cost nothing are written all the time.
    if args.cost.0 > 0.0 {
        let intervals = young_daly(work, args.cost.0, mttf)?;
        plans.push(CheckpointPlan {
            name: "Young–Daly".to_owned(),
            checkpoints: count(&intervals),
            makespan: exact(&intervals)?,
            intervals,
            new_instances: Vec::new(),
            reckoned: None,
        });
    }
    plans.push(CheckpointPlan {
        name: "none".to_owned(),
        checkpoints: 0,
        makespan: without_checkpoints(model, work, args.age.0, options)?,
        intervals: vec![work],
        new_instances: Vec::new(),
        reckoned: None,
    });
    Ok(plans)
}

fn show(context: &mut Context, shown: &CheckpointView<'_>) -> Result<(), CliError> {
    match context.output.format() {
        Format::Json => context.output.json(&shown.json()),
        Format::Value => {
            let minutes = shown
                .plans
                .first()
                .map(|plan| hours::in_minutes(&plan.intervals));
            context.output.line(&minutes.unwrap_or_default().join(" "))
        }
        Format::Table | Format::Markdown => shown.table(context),
    }
}

impl CheckpointView<'_> {
    fn table(&self, context: &mut Context) -> Result<(), CliError> {
        let args = self.args;
        context
            .output
            .line(&format!("model: {}", self.given.words()))?;
        context.output.line(&format!(
            "job: {} from age {}; a checkpoint takes {}, a restart {}; the instance ends before the job with chance {:.1} %; Young and Daly are told an MTTF of {}",
            args.job,
            args.age,
            args.cost,
            args.restart,
            self.failure * 100.0,
            Hours(self.mttf)
        ))?;
        let columns = [
            text("plan", "Plan"),
            text("intervals", "Minutes of work before each checkpoint"),
            number("checkpoints", "Checkpoints"),
            text("makespan", "Expected time"),
            number("overhead", "Overhead"),
            number("reckoned", "as it reckons"),
        ];
        let work = self.work;
        let percent = |time: f64| {
            if time.is_finite() {
                format!("{:.2} %", (time / work - 1.0) * 100.0)
            } else {
                "-".to_owned()
            }
        };
        let rows: Vec<Vec<TableCell>> = self
            .plans
            .iter()
            .enumerate()
            .map(|(at, plan)| {
                let tone = if at == 0 { Tone::Strong } else { Tone::Plain };
                vec![
                    TableCell::new(&plan.name).tone(tone),
                    TableCell::new(plan.words()),
                    TableCell::new(plan.checkpoints),
                    TableCell::new(Hours(plan.makespan)),
                    TableCell::new(percent(plan.makespan)),
                    TableCell::new(plan.reckoned.map_or_else(|| "-".to_owned(), percent)),
                ]
            })
            .collect();
        context.output.table(&columns, &rows)?;
        if let (Some(estimate), Some(runs)) = (self.estimate, args.simulate) {
            context.output.line(&format!(
                "{runs} simulated runs: {:.2} ± {:.2} min (95 %), {:.2} min expected",
                estimate.mean * 60.0,
                estimate.standard_error * 1.96 * 60.0,
                self.reckoned() * 60.0
            ))?;
        }
        if let Some((plan, none)) = self.plans.first().zip(self.plans.last())
            && none.makespan < plan.makespan
        {
            context.output.line(if args.no_final_checkpoint {
                "Without checkpoints it is expected to end sooner."
            } else {
                "Without checkpoints it is expected to end sooner: a checkpoint at the end is part of the plan; --no-final-checkpoint leaves it out."
            })?;
        }
        Ok(())
    }

    /// What the plan that was asked for reckons.
    fn reckoned(&self) -> f64 {
        self.plans
            .first()
            .map_or(0.0, |plan| plan.reckoned.unwrap_or(plan.makespan))
    }

    fn json(&self) -> Json {
        let args = self.args;
        let work = self.work;
        let plans: Vec<Json> = self.plans.iter().map(|plan| plan.json(work)).collect();
        let resume = self.resume.iter().map(|(left, intervals)| {
            Json::object([("left_hours", Json::from(*left))])
                .with("intervals_minutes", minutes_json(intervals))
        });
        let estimate = match (self.estimate, args.simulate) {
            (Some(estimate), Some(runs)) => Json::object([("runs", Json::from(runs))])
                .with("seed", args.seed)
                .with("makespan_hours", estimate.mean)
                .with("standard_error_hours", estimate.standard_error)
                .with("expected_hours", self.reckoned()),
            _ => Json::Null,
        };
        Json::object([("job_hours", Json::from(work))])
            .with("age_hours", args.age.0)
            .with("cost_hours", args.cost.0)
            .with("restart_hours", args.restart.0)
            .with("step_hours", args.step.0)
            .with("model", self.given.json())
            .with("failure_probability", self.failure)
            .with("young_daly_mttf_hours", self.mttf)
            .with("schedule", plans.first().cloned().unwrap_or(Json::Null))
            .with("plans", Json::List(plans))
            .with("resume", Json::List(resume.collect()))
            .with("simulation", estimate)
    }
}

impl CheckpointPlan {
    /// The intervals for people, life by life.
    fn words(&self) -> String {
        let mut lives = Vec::new();
        let mut from = 0;
        for &until in self.new_instances.iter().chain([&self.intervals.len()]) {
            lives.push(hours::interval_list(
                self.intervals.get(from..until).unwrap_or_default(),
            ));
            from = until;
        }
        // Of a job of weeks all lives but the first and the last are alike.
        let lives = lives.chunk_by(|a, b| a == b).flat_map(|same| match same {
            [first, _, _, ..] => vec![format!("{} × ({first})", same.len())],
            few => few.to_vec(),
        });
        let lives: Vec<String> = lives.collect();
        lives.join(" new instance: ").trim_start().to_owned()
    }

    fn json(&self, work: f64) -> Json {
        let reckoned = self.reckoned.unwrap_or(self.makespan);
        let new_instances = self.new_instances.iter();
        let new_instances = new_instances.map(|at| Json::from(*at as u64));
        Json::object([("plan", Json::from(self.name.as_str()))])
            .with("intervals_minutes", minutes_json(&self.intervals))
            .with("new_instance_before", Json::List(new_instances.collect()))
            .with("checkpoints", self.checkpoints as u64)
            // Null if it never ends.
            .with("makespan_hours", self.makespan)
            .with("overhead", self.makespan / work - 1.0)
            .with("reckoned_makespan_hours", reckoned)
            .with("reckoned_overhead", reckoned / work - 1.0)
    }
}

fn minutes_json(intervals: &[f64]) -> Json {
    Json::List(
        intervals
            .iter()
            .map(|hours| Json::from(hours::minutes_of(*hours)))
            .collect(),
    )
}

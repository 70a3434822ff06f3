//! `ebbtide-lab simulate batch`: bags of equal jobs on a cluster of preemptible instances.

use crate::figure_rows::{FigureRows, FigureUnit};
use clap::{Args, ValueEnum};
use ebbtide_bag::read::price;
use ebbtide_lifetime::batch::{BatchComparison, BatchService, ReuseRule};
use ebbtide_model::Money;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::json::Json;
use ebbtide_shell::model::{ModelArgs, SourcedModel};
use ebbtide_shell::output::{Format, TableCell, text};

pub(super) const HELP: &str = "\
The batch service of Kadupitiya et al. (HPDC 2020), section 5, for its figure 9: a bag of equal jobs without
checkpoints runs on a cluster of preemptible instances. When an instance ends, its job begins anew, and a new
instance takes its place. A free instance gets the next job while the model says that a new one is not better
(--reuse model), or always. Instances that have nothing to do are released; those older than 3 h are kept for
--spare. It is compared with the same jobs on instances that never end and are released when no job waits.

Examples:
  ebbtide-lab simulate batch --job 14m --per-job 2 --model bathtub:A=0.69,tau1=0.76,tau2=1.28,b=25.67
  ebbtide-lab simulate batch --job 14m --bags 10 --on-demand 1.1344 --preemptible 0.24 --model model.json
  ebbtide-lab simulate batch --job 6h --instances 8 --jobs 30 --reuse always --model model.json -o json";

/// Which instance gets the next job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum BatchReuse {
    /// A free one, while a new one is not better for this job
    Model,
    /// Any free one
    Always,
}

/// Options of `simulate batch`.
#[derive(Debug, Clone, Args)]
pub struct BatchArgs {
    /// How long a job is
    #[arg(long, value_name = "TIME")]
    job: Hours,
    #[command(flatten)]
    model: ModelArgs,
    /// Jobs of a bag
    #[arg(long, value_name = "N", default_value_t = 100)]
    jobs: u32,
    /// Bags one after another on the same cluster
    #[arg(long, value_name = "N", default_value_t = 1)]
    bags: u32,
    /// The most instances at one time
    #[arg(long, value_name = "N", default_value_t = 32)]
    instances: u32,
    /// Instances of one job
    #[arg(long, value_name = "N", default_value_t = 1)]
    per_job: u32,
    /// From the launch of an instance to its first job
    #[arg(long, value_name = "TIME", default_value = "1m")]
    boot: Hours,
    /// How long instances older than 3 h are kept without work
    #[arg(long, value_name = "TIME", default_value = "1h")]
    spare: Hours,
    /// Which instance gets the next job
    #[arg(long, value_enum, default_value_t = BatchReuse::Model)]
    reuse: BatchReuse,
    /// What an instance costs for an hour on demand
    #[arg(long, value_name = "PRICE", value_parser = price, requires = "preemptible")]
    on_demand: Option<Money>,
    /// What a preemptible instance costs for an hour
    #[arg(long, value_name = "PRICE", value_parser = price, requires = "on_demand")]
    preemptible: Option<Money>,
    /// How often everything is played
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs: u32,
    /// The first seed
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
}

/// Plays and shows.
pub(super) fn run(context: &mut Context, args: &BatchArgs) -> Result<(), CliError> {
    let given = SourcedModel::read(&args.model)?;
    let service = BatchService {
        instances: args.instances,
        per_job: args.per_job,
        jobs: args.jobs,
        length: args.job.0,
        bags: args.bags,
        boot: args.boot.0,
        spare: args.spare.0,
        reuse: match args.reuse {
            BatchReuse::Model => ReuseRule::ByModel,
            BatchReuse::Always => ReuseRule::Always,
        },
    };
    let discount = match (args.on_demand, args.preemptible) {
        (Some(_), Some(price)) if price.micros() == 0 => {
            return Err(CliError::Usage(
                "--preemptible 0: a price is above zero".to_owned(),
            ));
        }
        (Some(on_demand), Some(preemptible)) => {
            Some(on_demand.micros() as f64 / preemptible.micros() as f64)
        }
        _ => None,
    };
    let compared = service.compare(given.model.as_ref(), args.runs, args.seed)?;
    let rows = rows(&compared);
    if context.output.format() == Format::Json {
        let cost = discount.map_or(Json::Null, |discount| {
            Json::object([("price_ratio", Json::from(discount))])
                .with("cost_ratio", compared.cost_ratio(discount))
        });
        let json = Json::object([("model", given.json())])
            .with("runs", compared.runs)
            .with("bag_hours", compared.hours)
            .with("bag_hours_on_demand", compared.on_demand_hours)
            .with("overhead", compared.overhead())
            .with("paid_hours", compared.paid)
            .with("paid_hours_on_demand", compared.on_demand_paid)
            .with("preemptions", compared.preemptions)
            .with("increase_per_preemption", compared.per_preemption)
            .with("cost", cost)
            .with("by_preemptions", rows.json());
        return context.output.json(&json);
    }
    if context.output.format() == Format::Value {
        let mut line = format!("{} {}", compared.overhead(), compared.per_preemption);
        if let Some(discount) = discount {
            line.push_str(&format!(" {}", compared.cost_ratio(discount)));
        }
        return context.output.line(&line);
    }
    context.output.line(&format!("model: {}", given.words()))?;
    summary(context, &compared, discount)?;
    rows.show(context, "By preemptions of a bag:", Vec::new())
}

fn summary(
    context: &mut Context,
    compared: &BatchComparison,
    discount: Option<f64>,
) -> Result<(), CliError> {
    let percent = |share: f64| format!("{:.2} %", share * 100.0);
    let mut lines = vec![
        ("time of a bag", Hours(compared.hours).to_string()),
        ("  on demand", Hours(compared.on_demand_hours).to_string()),
        ("  overhead", percent(compared.overhead())),
        (
            "preemptions of a bag",
            format!("{:.1}", compared.preemptions),
        ),
        ("  increase by each", percent(compared.per_preemption)),
        ("instance hours", format!("{:.1}", compared.paid)),
        ("  on demand", format!("{:.1}", compared.on_demand_paid)),
    ];
    if let Some(discount) = discount {
        lines.push(("price ratio", format!("{discount:.2}")));
        lines.push((
            "cost ratio",
            format!("{:.2}", compared.cost_ratio(discount)),
        ));
    }
    let columns = [text("what", "Mean"), text("value", "Value")];
    let rows: Vec<Vec<TableCell>> = lines
        .into_iter()
        .map(|(what, value)| vec![TableCell::new(what), TableCell::new(value)])
        .collect();
    context.output.table(&columns, &rows)
}

fn rows(compared: &BatchComparison) -> FigureRows {
    let rows = compared.rows.iter().map(|row| {
        let (preemptions, bags) = (f64::from(row.preemptions), f64::from(row.bags));
        vec![Some(preemptions), Some(bags), Some(row.increase)]
    });
    FigureRows {
        figure: "9b",
        columns: vec![
            ("preemptions", "Preemptions", FigureUnit::Count),
            ("bags", "Bags", FigureUnit::Count),
            ("increase", "Increase of the time", FigureUnit::Share),
        ],
        rows: rows.collect(),
    }
}

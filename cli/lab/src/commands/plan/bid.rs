//! `ebbtide-lab plan bid`: which bid, on which instance type.

use super::bid_methods::{
    BidMethod, MethodChoice, OnDemand, algorithm, expected, longest_fit, method, ours, printed,
};
use crate::commands::simulate::checkpointing::{Bids, CostArgs, HistoryArgs, read, seconds};
use clap::Args;
use ebbtide_checkpointing::{
    BidGoal, BidOffer, Candidate, CheckpointTerms, SchemeAdvice, SchemeKind, SchemeResult, Series,
    Starts, advise, choose, compare, offers,
};
use ebbtide_model::Money;
use ebbtide_shell::Context;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::json::Json;
use ebbtide_shell::output::{Format, TableCell, number, text};
use ebbtide_shell::render::Tone;
use std::str::FromStr;

pub(super) const HELP: &str = "\
Ours (--method equation, the default): for each instance type (series) and each of several bids the command
derives from the recorded prices how long instances live (the failure density), the expected execution time
without checkpoints (the paper's equation 8), the time from start to end (execution divided by the share of
time in which the price is within the bid) and the cost. It selects the best by --goal among those that keep
--deadline and --budget.

The ACC paper's Algorithm 1, to the letter (--method paper): one bid for all types, the lowest on-demand price
(A_bid = min C_i, equation 7, from --on-demand), and the type with the least expected execution time (equation 8),
whatever it costs. What ours would choose stands beside it, and the other way round where --on-demand is given.

What is expected is one thing, what would have happened another: offers are also played through the history
with a checkpoint scheme, and their mean cost and time stand beside the expected ones. Where prices stay high
for weeks, waiting is much longer than the share of time suggests: --method replay chooses by what was played.

Without --scheme the command also says which scheme is best for the chosen offer: the one with the least cost
times time over the history, and what such a choice was worth on prices that came after it. No scheme is best
in all markets.

Examples:
  ebbtide-lab plan bid --history prices.csv --job 500m
  ebbtide-lab plan bid --history prices.csv.zst --job 500m --goal cost --deadline 24h --series us-east-1.linux
  ebbtide-lab plan bid --history prices.csv --job 500m --budget 2.50 --speed m1.xlarge=1 --speed m2.2xlarge=1.6
  ebbtide-lab plan bid --history prices.csv --job 500m --method replay --scheme hour
  ebbtide-lab plan bid --history prices.csv --job 500m --method paper --on-demand xlarge=0.68 --on-demand small=0.085
  ebbtide-lab plan bid --history prices.csv --job 500m -o json | jq '.choice'";

/// A start every 25 hours, so that all times of the day occur: prices have days and nights.
const STARTS: Starts = Starts {
    every_seconds: 25 * 3600,
    tail_seconds: 41 * 86_400,
};

/// Options of `plan bid`.
#[derive(Debug, Clone, Args)]
pub struct BidArgs {
    #[command(flatten)]
    history: HistoryArgs,
    /// Length of the job without interruptions and checkpoints
    #[arg(long, value_name = "TIME")]
    pub(super) job: Hours,
    /// Objective: the least product of cost and time [default], the least cost, or the least time
    #[arg(long, value_name = "product|cost|time", value_parser = goal)]
    pub(super) goal: Option<BidGoal>,
    /// Choose by expected values, by what would have happened, or by the paper's Algorithm 1
    #[arg(long, value_name = "equation|replay|paper", default_value = "equation", value_parser = method)]
    pub(super) method: BidMethod,
    /// On-demand price in dollars per hour of types whose name contains NAME, for Algorithm 1; may
    /// be repeated
    #[arg(long, value_name = "NAME=DOLLARS")]
    pub(super) on_demand: Vec<OnDemand>,
    /// The job has to be done in this time
    #[arg(long, value_name = "TIME")]
    pub(super) deadline: Option<Hours>,
    /// The job may cost this, in dollars
    #[arg(long, value_name = "DOLLARS")]
    pub(super) budget: Option<Money>,
    /// How fast types are whose name contains NAME, against the machine of --job; may be repeated
    /// [default: 1]
    #[arg(long, value_name = "NAME=FACTOR")]
    pub(super) speed: Vec<TypeSpeed>,
    /// Bids in dollars for an hour: 0.401..0.441, or 0.41,0.42,0.5 [default: each series' 5 to 95 %
    /// band]
    #[arg(long, value_name = "BIDS")]
    pub(super) bids: Option<Bids>,
    /// How many bids a range or band is cut into
    #[arg(long, value_name = "N", default_value_t = 21, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(super) bid_count: u32,
    #[command(flatten)]
    costs: CostArgs,
    /// The scheme with which offers are played through the history [default: acc; for the chosen
    /// offer the best one is shown, too]
    #[arg(long, value_name = "SCHEME")]
    scheme: Option<SchemeKind>,
    /// How many offers are shown
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    top: u32,
}

/// How fast some types are.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TypeSpeed {
    name: String,
    factor: f64,
}

impl FromStr for TypeSpeed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no speed: NAME=FACTOR, for example m2.2xlarge=1.6");
        let (name, factor) = text.rsplit_once('=').ok_or_else(wrong)?;
        let factor: f64 = factor.parse().map_err(|_| wrong())?;
        if name.is_empty() || !factor.is_finite() || factor <= 0.0 {
            return Err(wrong());
        }
        let name = name.to_owned();
        Ok(Self { name, factor })
    }
}

fn goal(text: &str) -> Result<BidGoal, String> {
    match text {
        "product" => Ok(BidGoal::Product),
        "cost" => Ok(BidGoal::Cost),
        "time" => Ok(BidGoal::Time),
        _ => Err("product, cost or time".to_owned()),
    }
}

/// An offer with what would have happened.
#[derive(Debug)]
struct BidView<'a> {
    series: &'a Series,
    offer: &'a BidOffer,
    played: Option<SchemeResult>,
    starts: usize,
}

/// Chooses and shows.
pub(super) fn run(context: &mut Context, args: &BidArgs) -> Result<(), CliError> {
    let series = read(context, &args.history)?;
    let candidates: Vec<Candidate<'_>> = series
        .iter()
        .map(|one| Candidate {
            name: &one.name,
            history: &one.history,
            speed: speed_of(args, &one.name),
        })
        .collect();
    let terms = CheckpointTerms {
        checkpoint_seconds: seconds(args.costs.checkpoint),
        restart_seconds: seconds(args.costs.restart),
        terminate_seconds: seconds(args.costs.terminate),
        ..CheckpointTerms::default()
    };
    let paper = algorithm(args, &candidates, &terms)?;
    let searched = |candidate: &Candidate<'_>| match &args.bids {
        Some(bids) => bids.list(args.bid_count),
        None => Bids::band(candidate.history, args.bid_count),
    };
    let work = seconds(args.job);
    let offers = match (&paper, args.method) {
        (Some(paper), BidMethod::Paper) => offers(&candidates, |_| vec![paper.bid], work, &terms)?,
        _ => offers(&candidates, searched, work, &terms)?,
    };
    let best = best_of(args, &terms, &series, &offers)?;
    if best.is_empty() {
        return Err(none(args, &offers));
    }
    let other = match (&paper, args.method) {
        (Some(_), BidMethod::Paper) => Some(ours(args, &series, &candidates, &terms)),
        (Some(paper), _) => Some(printed(&series, paper)),
        (None, _) => None,
    };
    let advice = match (args.scheme, best.first()) {
        (None, Some(first)) => Some(advised(args, &terms, first)?),
        _ => None,
    };
    let result = BidPlan {
        all: offers.len(),
        shown: &best,
        other,
        advice,
    };
    show(context, args, &result)
}

impl BidArgs {
    fn played_scheme(&self) -> SchemeKind {
        self.scheme.unwrap_or(SchemeKind::Acc)
    }
}

/// The best scheme for an offer, by a backtest on its history. OPT is left out: it knows the
/// future.
fn advised(
    args: &BidArgs,
    terms: &CheckpointTerms,
    one: &BidView<'_>,
) -> Result<SchemeAdvice, CliError> {
    let kinds = SchemeKind::ALL.into_iter();
    let kinds: Vec<SchemeKind> = kinds.filter(|kind| *kind != SchemeKind::Opt).collect();
    let work = work_on(args, one);
    Ok(advise(
        &one.series.history,
        one.offer.bid,
        &kinds,
        terms,
        work,
        STARTS,
    )?)
}

/// The job on an offer's type, seconds.
fn work_on(args: &BidArgs, one: &BidView<'_>) -> i64 {
    seconds(Hours(args.job.0 / speed_of(args, &one.series.name))).max(1)
}

/// The advice in words.
fn advice_line(advice: &SchemeAdvice) -> String {
    let scheme = advice.scheme;
    let Some(next) = advice.next else {
        return format!("scheme {scheme}: no other one ends its jobs");
    };
    let worth = match advice.gain() {
        None => "the history is too short to say what that is worth on other prices".to_owned(),
        Some((mean, least, most)) => format!(
            "chosen so on earlier prices, cost × time was {} than with the one after it ({least:+.1} to {most:+.1} % in {} parts of the history)",
            below(mean),
            advice.gains_percent.len()
        ),
    };
    format!("scheme {scheme} before {next}: {worth}")
}

fn below(percent: f64) -> String {
    match percent < 0.0 {
        true => format!("{:.1} % more", -percent),
        false => format!("{percent:.1} % less"),
    }
}

/// All that is shown.
#[derive(Debug)]
struct BidPlan<'a> {
    all: usize,
    shown: &'a [BidView<'a>],
    other: Option<MethodChoice>,
    advice: Option<SchemeAdvice>,
}

/// Why there is no best offer.
fn none(args: &BidArgs, offers: &[BidOffer]) -> CliError {
    let count = offers.len();
    let endless = offers.iter().all(|offer| offer.hours.is_infinite());
    if args.method != BidMethod::Replay && endless {
        return CliError::Refused {
            problem: format!(
                "with none of {count} offers any instance lived as long as the job of {}: without checkpoints it would never end",
                args.job
            ),
            next: "bid higher, or judge by a scheme with checkpoints: --method replay".to_owned(),
        };
    }
    CliError::Refused {
        problem: format!("of {count} offers none ends the job within the deadline and the budget"),
        next: "allow more time or money, or higher bids".to_owned(),
    }
}

/// The best offers, best first.
fn best_of<'a>(
    args: &BidArgs,
    terms: &CheckpointTerms,
    series: &'a [Series],
    offers: &'a [BidOffer],
) -> Result<Vec<BidView<'a>>, CliError> {
    let mut all: Vec<BidView<'a>> = offers
        .iter()
        .filter_map(|offer| series.get(offer.candidate).map(|one| (one, offer)))
        .map(|(series, offer)| BidView {
            series,
            offer,
            played: None,
            starts: 0,
        })
        .collect();
    if args.method == BidMethod::Replay {
        all.iter_mut().try_for_each(|one| play(args, terms, one))?;
    }
    let mut judged: Vec<BidOffer> = all.iter().map(|one| judged(args.method, one)).collect();
    let deadline = args.deadline.map(|deadline| deadline.0);
    let goal = match args.method {
        BidMethod::Paper => BidGoal::Time,
        BidMethod::Equation | BidMethod::Replay => args.goal.unwrap_or_default(),
    };
    let mut best = Vec::new();
    while best.len() < usize::try_from(args.top).unwrap_or(usize::MAX) {
        let Some(place) = choose(&judged, goal, deadline, args.budget) else {
            break;
        };
        judged.swap_remove(place);
        let mut one = all.swap_remove(place);
        if one.played.is_none() {
            play(args, terms, &mut one)?;
        }
        best.push(one);
    }
    Ok(best)
}

/// The offer with the cost and the time by which it is judged. An offer that did not finish from
/// every start gets infinite values, because the time of its unfinished runs is unknown.
fn judged(method: BidMethod, one: &BidView<'_>) -> BidOffer {
    let mut offer = one.offer.clone();
    match method {
        BidMethod::Equation => {}
        BidMethod::Paper => offer.hours = offer.execution_hours,
        BidMethod::Replay => {
            let played = one.played.as_ref();
            let finished = played.filter(|played| played.finished == one.starts);
            (offer.hours, offer.cost) = finished.map_or((f64::INFINITY, f64::INFINITY), |played| {
                (played.hours, played.cost)
            });
        }
    }
    offer
}

fn speed_of(args: &BidArgs, name: &str) -> f64 {
    longest_fit(&args.speed, |speed| &speed.name, name).map_or(1.0, |speed| speed.factor)
}

/// Plays an offer through its history.
fn play(args: &BidArgs, terms: &CheckpointTerms, one: &mut BidView<'_>) -> Result<(), CliError> {
    let work = work_on(args, one);
    let kinds = [args.played_scheme()];
    let row = compare(
        &one.series.history,
        one.offer.bid,
        &kinds,
        terms,
        work,
        STARTS,
    )?;
    one.starts = row.starts;
    one.played = row.schemes.into_iter().next();
    Ok(())
}

fn show(context: &mut Context, args: &BidArgs, plan: &BidPlan<'_>) -> Result<(), CliError> {
    let BidPlan { all, shown, .. } = *plan;
    match context.output.format() {
        Format::Json => return context.output.json(&json(args, plan)),
        Format::Value => {
            return shown.iter().try_for_each(|one| {
                let line = format!("{} {}", one.series.name, one.offer.bid);
                context.output.line(&line)
            });
        }
        Format::Table | Format::Markdown => {}
    }
    let columns = [
        text("series", "Instance type"),
        number("bid", "Bid [$/h]"),
        number("available", "Available"),
        number("life", "Mean life"),
        number("execution", "Execution (eq. 8)"),
        number("hours", "Expected time"),
        number("cost", "Expected cost"),
        number("played_time", "Played: time"),
        number("played_cost", "Played: cost"),
        number("finished", "Played: done"),
    ];
    let rows = shown.iter().enumerate().map(|(i, one)| {
        let offer = one.offer;
        let tone = if i == 0 { Tone::Strong } else { Tone::Plain };
        let mut row = vec![
            TableCell::new(&one.series.name).tone(tone),
            TableCell::new(offer.bid).tone(tone),
            TableCell::new(format!("{:.1} %", 100.0 * offer.available)),
            TableCell::new(life(offer.life_hours)),
            TableCell::new(Hours(offer.execution_hours)),
            TableCell::new(Hours(offer.hours)),
            TableCell::new(format!("$ {:.2}", offer.cost)),
        ];
        match one.played.as_ref().filter(|played| played.finished > 0) {
            Some(played) => row.extend([
                TableCell::new(Hours(played.hours)),
                TableCell::new(format!("$ {:.2}", played.cost)),
                TableCell::new(format!("{} of {}", played.finished, one.starts)),
            ]),
            None => row.extend(["never ends", "-", "none"].map(TableCell::new)),
        }
        row
    });
    let rows: Vec<Vec<TableCell>> = rows.collect();
    context.output.table(&columns, &rows)?;
    if let Some(first) = shown.first() {
        let judged = judged(args.method, first);
        let (bid, name) = (first.offer.bid, &first.series.name);
        let (title, what) = (args.method.title(), expected(args.method));
        let (time, cost) = (Hours(judged.hours), judged.cost);
        let line = format!("{title}: bid {bid} on {name}: {what} {time} and $ {cost:.2}");
        context.output.line(&line)?;
    }
    if let Some(other) = &plan.other {
        context.output.line(&other.line())?;
    }
    if let Some(advice) = &plan.advice {
        context.output.line(&advice_line(advice))?;
    }
    let note = format!(
        "{all} offers; expected values are for a job without checkpoints, \"played\" is {} over the recorded prices",
        args.played_scheme()
    );
    context.output.say(&note);
    Ok(())
}

fn life(hours: f64) -> String {
    if hours.is_finite() {
        Hours(hours).to_string()
    } else {
        "no end seen".to_owned()
    }
}

fn json(args: &BidArgs, plan: &BidPlan<'_>) -> Json {
    let offers: Vec<Json> = plan.shown.iter().map(|one| offer(args, one)).collect();
    let choice = offers.first().cloned().unwrap_or(Json::Null);
    let advice = plan.advice.as_ref();
    Json::object([("offers_considered", Json::from(plan.all as u64))])
        .with("method", args.method.as_str())
        .with("choice", choice)
        .with(
            "beside",
            plan.other.as_ref().map_or(Json::Null, MethodChoice::json),
        )
        .with("advice", advice.map_or(Json::Null, advice_json))
        .with("offers", offers)
}

fn advice_json(advice: &SchemeAdvice) -> Json {
    let products = advice.products.iter().map(|(kind, product)| {
        let product = product.map_or(Json::Null, Json::from);
        Json::object([("scheme", Json::from(kind.as_str()))]).with("product", product)
    });
    let next = advice
        .next
        .map_or(Json::Null, |next| Json::from(next.as_str()));
    let gains = advice.gains_percent.iter().copied().map(Json::from);
    Json::object([("scheme", Json::from(advice.scheme.as_str()))])
        .with("next", next)
        .with("starts", advice.starts as u64)
        .with("gains_percent", gains.collect::<Vec<_>>())
        .with("products", products.collect::<Vec<_>>())
}

fn offer(args: &BidArgs, one: &BidView<'_>) -> Json {
    let played = one.played.as_ref().map_or(Json::Null, |played| {
        Json::object([("scheme", Json::from(args.played_scheme().as_str()))])
            .with("starts", one.starts as u64)
            .with("finished", played.finished as u64)
            .with("hours", played.hours)
            .with("cost", played.cost)
    });
    Json::object([("series", Json::from(one.series.name.as_str()))])
        .with("bid", one.offer.bid.to_string())
        .with("available", one.offer.available)
        .with("life_hours", one.offer.life_hours)
        .with("execution_hours", one.offer.execution_hours)
        .with("hours", one.offer.hours)
        .with("cost", one.offer.cost)
        .with("played", played)
}

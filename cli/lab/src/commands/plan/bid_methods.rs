//! The methods of `ebbtide-lab plan bid`: the ACC paper's Algorithm 1, and ours.

use super::bid::BidArgs;
use crate::commands::simulate::checkpointing::{Bids, seconds};
use ebbtide_checkpointing::{
    AlgorithmOne, BidGoal, BidOffer, BidType, Candidate, CheckpointTerms, Series, algorithm_one,
    choose, offers,
};
use ebbtide_model::Money;
use ebbtide_shell::errors::CliError;
use ebbtide_shell::hours::Hours;
use ebbtide_shell::json::Json;
use std::str::FromStr;

/// On-demand price of the types whose name contains a text.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct OnDemand {
    pub(super) name: String,
    pub(super) price: Money,
}

impl FromStr for OnDemand {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no price: NAME=DOLLARS, for example m1.xlarge=0.68");
        let (name, price) = text.rsplit_once('=').ok_or_else(wrong)?;
        let price: Money = price.parse().map_err(|_| wrong())?;
        if name.is_empty() || price <= Money::default() {
            return Err(wrong());
        }
        let name = name.to_owned();
        Ok(Self { name, price })
    }
}

/// How a bid and a type are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BidMethod {
    /// Ours: bids are searched, by expected time and cost from equation 8.
    Equation,
    /// Ours: bids are searched, by the recorded prices.
    Replay,
    /// Algorithm 1 as printed: one bid for all types, the least expected execution time.
    Paper,
}

impl BidMethod {
    /// What it is.
    pub(super) fn title(self) -> &'static str {
        match self {
            Self::Equation => "ours (bids searched, equation 8)",
            Self::Replay => "ours (bids searched, played)",
            Self::Paper => "Algorithm 1 (equations 7 and 8)",
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Equation => "equation",
            Self::Replay => "replay",
            Self::Paper => "paper",
        }
    }
}

pub(super) fn method(text: &str) -> Result<BidMethod, String> {
    match text {
        "equation" => Ok(BidMethod::Equation),
        "replay" => Ok(BidMethod::Replay),
        "paper" => Ok(BidMethod::Paper),
        _ => Err("equation, replay or paper".to_owned()),
    }
}

/// What Algorithm 1 finds; `None` if it is not asked for and no on-demand price is given.
pub(super) fn algorithm(
    args: &BidArgs,
    candidates: &[Candidate<'_>],
    terms: &CheckpointTerms,
) -> Result<Option<AlgorithmOne>, CliError> {
    let refused = |problem: String, next: &str| {
        let next = next.to_owned();
        Err(CliError::Refused { problem, next })
    };
    let asked = args.method == BidMethod::Paper;
    if !asked && args.on_demand.is_empty() {
        return Ok(None);
    }
    let searched = [
        ("--bids", args.bids.is_some()),
        ("--goal", args.goal.is_some()),
        ("--deadline", args.deadline.is_some()),
        ("--budget", args.budget.is_some()),
        ("--speed", !args.speed.is_empty()),
    ];
    let given = searched.iter().find(|(_, given)| *given);
    if let Some((option, _)) = given.filter(|_| asked) {
        let problem = format!("Algorithm 1 as printed has no place for {option}");
        let next = "leave it out, or use --method equation, which searches bids";
        return refused(problem, next);
    }
    let mut types = Vec::new();
    for candidate in candidates {
        match longest_fit(&args.on_demand, |one| &one.name, candidate.name) {
            Some(one) => types.push(BidType {
                history: candidate.history,
                on_demand: one.price,
            }),
            None => {
                let problem = format!("{} has no on-demand price", candidate.name);
                let next = "give one with --on-demand NAME=DOLLARS, or select types with --series";
                return refused(problem, next);
            }
        }
    }
    let found = algorithm_one(&types, seconds(args.job), terms.restart_seconds)?;
    Ok(Some(found))
}

/// The choice of the other method.
#[derive(Debug)]
pub(super) struct MethodChoice {
    method: BidMethod,
    bid: Money,
    /// Type and expected hours; `None` if no type ends the job.
    choice: Option<(String, f64)>,
}

/// Ours beside Algorithm 1: the least product over the bids of each type's own band.
pub(super) fn ours(
    args: &BidArgs,
    series: &[Series],
    candidates: &[Candidate<'_>],
    terms: &CheckpointTerms,
) -> MethodChoice {
    let bids = |candidate: &Candidate<'_>| Bids::band(candidate.history, args.bid_count);
    // Every type runs at some bid of its own band.
    let all = offers(candidates, bids, seconds(args.job), terms).unwrap_or_default();
    let best = choose(&all, BidGoal::Product, None, None).and_then(|place| all.get(place));
    let named = |offer: &BidOffer| {
        let one = series.get(offer.candidate)?;
        Some((one.name.clone(), offer.hours))
    };
    MethodChoice {
        method: BidMethod::Equation,
        bid: best.map_or_else(Money::default, |offer| offer.bid),
        choice: best.and_then(named),
    }
}

/// Algorithm 1 beside ours.
pub(super) fn printed(series: &[Series], paper: &AlgorithmOne) -> MethodChoice {
    let named = |place: usize| {
        let time = paper.execution.get(place).copied().flatten()?;
        Some((series.get(place)?.name.clone(), time / 3600.0))
    };
    MethodChoice {
        method: BidMethod::Paper,
        bid: paper.bid,
        choice: paper.chosen.and_then(named),
    }
}

impl MethodChoice {
    pub(super) fn line(&self) -> String {
        let title = self.method.title();
        match &self.choice {
            None => format!("{title}: bid {}, with which no type ends the job", self.bid),
            Some((name, hours)) => {
                let what = expected(self.method);
                format!(
                    "{title}: bid {} on {name}: {what} {}",
                    self.bid,
                    Hours(*hours)
                )
            }
        }
    }

    pub(super) fn json(&self) -> Json {
        let (name, hours) = match &self.choice {
            None => (Json::Null, Json::Null),
            Some((name, hours)) => (Json::from(name.as_str()), Json::from(*hours)),
        };
        Json::object([("method", Json::from(self.method.as_str()))])
            .with("bid", self.bid.to_string())
            .with("series", name)
            .with("hours", hours)
    }
}

/// What a time of a method is.
pub(super) fn expected(method: BidMethod) -> &'static str {
    match method {
        BidMethod::Equation => "expected",
        BidMethod::Paper => "expected execution",
        BidMethod::Replay => "played, on the average,",
    }
}

/// The setting whose name fits a type and is longest: it says most.
pub(super) fn longest_fit<'a, T>(
    settings: &'a [T],
    name: impl Fn(&T) -> &String,
    candidate: &str,
) -> Option<&'a T> {
    let fitting = settings.iter().filter(|one| candidate.contains(name(one)));
    fitting.max_by_key(|one| name(one).len())
}

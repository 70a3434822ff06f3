//! Bags of tasks and their prices: what is taken can be planned, and its deadline is met.

use ebbtide_bag::read::{FileOverrides, Format, bag, prices};
use ebbtide_bag::simulate::{Scenario, simulate};
use ebbtide_bag::{Bag, Effort, plan};
use ebbtide_model::Money;

/// Larger bags are read but not planned: a fuzzer wants many of them.
const MOST_TASKS: usize = 40;

/// The bag of which prices are read.
const SMALL: &str = include_str!("../../seeds/bag/small.toml");

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    check_prices(text);
    for format in [Format::Toml, Format::Json] {
        for smallest in [false, true] {
            let instead = FileOverrides {
                smallest,
                ..FileOverrides::default()
            };
            match bag(text, format, instead) {
                Err(error) => assert!(error.code().starts_with("EB-BAG-")),
                Ok(bag) => check(&bag),
            }
        }
    }
}

fn check(bag: &Bag) {
    if bag.tasks().len() > MOST_TASKS {
        return;
    }
    let plan = plan(bag, Effort::Greedy);
    assert_eq!(plan.flaw(bag), None);
    let run = simulate(bag, &plan, &Scenario::default()).expect("nothing happens in it");
    assert!(run.met, "{} {}", run.makespan, bag.rules().deadline);
}

/// Whatever prices do, the deadline is met.
fn check_prices(text: &str) {
    let bag = bag(SMALL, Format::Toml, FileOverrides::default()).expect("it is a bag");
    let Ok(prices) = prices(text, &bag) else {
        return;
    };
    let plan = plan(&bag, Effort::Greedy);
    let scenario = Scenario {
        outages: prices.outages(&plan, Money::from_micros(30_000)),
        prices,
        ..Scenario::default()
    };
    let run = simulate(&bag, &plan, &scenario).expect("outages of prices are in order");
    assert!(run.met, "{} {}", run.makespan, bag.rules().deadline);
}

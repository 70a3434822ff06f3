//! Price traces: CSV with the columns `seconds,type,price`, any order of types, times rising for
//! each.

use super::units::price;
use crate::error::BagError;
use crate::input::{Bag, LONGEST};
use crate::simulate::{PriceTrace, Prices};
use ebbtide_model::Money;
use std::collections::BTreeMap;

const HEAD: &str = "seconds,type,price";

/// Reads the traces of a bag's types. Types that the bag does not have are passed over.
///
/// # Errors
/// [`BagError::File`] with the line; [`BagError::Trace`] for times that do not rise.
pub fn prices(text: &str, bag: &Bag) -> Result<Prices, BagError> {
    let wrong = |problem: String| BagError::File(problem);
    let mut lines = text.lines().enumerate();
    if lines.next().map(|(_, head)| head.trim()) != Some(HEAD) {
        return Err(wrong(format!("line 1: it has to be {HEAD}")));
    }
    let mut points: BTreeMap<usize, Vec<(u64, Money)>> = BTreeMap::new();
    for (at, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
        let wrong = |problem: String| wrong(format!("line {}: {problem}", at + 1));
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let [seconds, of, hourly] = fields.as_slice() else {
            return Err(wrong(format!(
                "there are {} fields instead of 3",
                fields.len()
            )));
        };
        let seconds: u64 = seconds
            .parse()
            .ok()
            .filter(|&s| s <= LONGEST)
            .ok_or_else(|| wrong(format!("{seconds:?} is no time in whole seconds")))?;
        let hourly = price(hourly).map_err(wrong)?;
        if let Some(ty) = bag.types().iter().position(|ty| ty.name == *of) {
            points.entry(ty).or_default().push((seconds, hourly));
        }
    }
    if points.is_empty() {
        return Err(wrong("it has no price of any type of the bag".to_owned()));
    }
    let mut traces = BTreeMap::new();
    for (ty, points) in points {
        traces.insert(ty, PriceTrace::new(&bag.types()[ty].name, points)?);
    }
    Ok(Prices(traces))
}

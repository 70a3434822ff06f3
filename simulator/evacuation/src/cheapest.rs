//! The cheapest victims, found by trying everything: against that the engine's search is held
//! wherever it is small enough.

/// More candidates than that are not tried: a host of these worlds has room for fewer.
const MOST: usize = 14;
/// Costs are seconds, kept as floating-point numbers: this is less than any two of them differ by.
pub const EPSILON: f64 = 1e-6;

/// A possible victim.
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// The room that its end makes.
    pub frees: i64,
    /// What its loss costs, seconds.
    pub cost: f64,
}

/// What a victim costs that has run for so long: the used part of its started hour, the default of
/// the engine.
pub fn cost(age_millis: i64) -> f64 {
    (age_millis.max(0) as f64 / 1000.0) % 3600.0
}

/// The least that must be paid for so much room. `None`: it cannot be had, or there are too many to
/// try.
pub fn cheapest(candidates: &[Candidate], needed: i64) -> Option<f64> {
    if needed <= 0 {
        return Some(0.0);
    }
    if candidates.len() > MOST {
        return None;
    }
    let mut best: Option<f64> = None;
    for set in 1u32..(1 << candidates.len()) {
        let chosen = candidates
            .iter()
            .enumerate()
            .filter(|(n, _)| set & (1 << n) != 0);
        let (frees, cost) = chosen.fold((0, 0.0), |(frees, cost), (_, c)| {
            (frees + c.frees, cost + c.cost)
        });
        if frees >= needed && best.is_none_or(|best| cost < best) {
            best = Some(cost);
        }
    }
    best
}

/// The same for several newcomers of one size, each on any of these hosts: for every host what is
/// free and who could leave.
pub fn cheapest_of_all(hosts: &[(i64, Vec<Candidate>)], count: usize, size: i64) -> Option<f64> {
    let Some(((free, candidates), rest)) = hosts.split_first() else {
        return (count == 0).then_some(0.0);
    };
    (0..=count)
        .filter_map(|here| {
            // Who comes to a host at all has to fit there, however much is missing already.
            let needed = if here == 0 {
                0
            } else {
                size * i64::try_from(here).ok()? - free
            };
            let cost = cheapest(candidates, needed)?;
            Some(cost + cheapest_of_all(rest, count - here, size)?)
        })
        .min_by(f64::total_cmp)
}

//! Observations without a model: the share that was interrupted within some hours of some age, with
//! an interval.

use ebbtide_lifetime::Observations;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ObservedShare {
    /// The Kaplan-Meier estimate.
    pub share: f64,
    /// Its variance by Greenwood's formula; zero where no server or every server was interrupted.
    pub variance: f64,
    /// Effective sample size: the number of uncensored lives that would carry the same information.
    pub worth: f64,
}

/// The share of the servers alive at `age` that the provider ended within the next `within` hours.
/// `None` if no server was observed for that long, or none reached that age.
#[must_use]
pub fn interrupted(seen: &Observations, age: f64, within: f64) -> Option<ObservedShare> {
    let end = age + within;
    let all = seen.all();
    // The observations are sorted by hours: those that lived longer than the age come after this
    // place. At age 0 every server was alive.
    let first = all.partition_point(|one| one.hours < age || (one.hours == age && age > 0.0));
    let mut at_risk = (all.len() - first) as f64;
    let (mut alive, mut greenwood) = (1.0, 0.0);
    for one in &all[first..] {
        if one.hours > end {
            break;
        }
        if one.ended {
            if at_risk > 1.0 {
                greenwood += 1.0 / (at_risk * (at_risk - 1.0));
            }
            alive *= 1.0 - 1.0 / at_risk;
        }
        at_risk -= 1.0;
    }
    let started = (all.len() - first) as f64;
    if started == 0.0 || (alive > 0.0 && at_risk == 0.0) {
        return None;
    }
    let variance = alive * alive * greenwood;
    let worth = if alive >= 1.0 {
        at_risk
    } else if alive <= 0.0 {
        started
    } else {
        // Cutler and Ederer, "Maximum utilization of the life table method" (1958): size of the
        // binomial sample with the same variance.
        (alive * (1.0 - alive) / variance).min(started)
    };
    Some(ObservedShare {
        share: 1.0 - alive,
        variance,
        worth,
    })
}

impl ObservedShare {
    /// Wilson's interval (1927), `z` standard errors to each side. It stays within 0 to 1 and is
    /// meaningful at both ends.
    #[must_use]
    pub fn interval(&self, z: f64) -> (f64, f64) {
        let (p, n, z2) = (self.share, self.worth, z * z);
        let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
        let half = z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
        ((middle - half).max(0.0), (middle + half).min(1.0))
    }
}

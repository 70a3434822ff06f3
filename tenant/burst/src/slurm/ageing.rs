//! How priorities grow with the time that jobs wait, from `scontrol show config`.

use crate::error::BurstError;

/// Slurm's bounds of `nice` (slurm.h: NICE_OFFSET 0x80000000).
const MOST_NICE: i64 = 0x8000_0000 - 3;

/// The age factor of Slurm's multifactor priority.
///
/// Slurm lets it begin at zero again for a job that goes back into the queue, so that the job is
/// behind others that were submitted after it. With `priority/basic` a job keeps its priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ageing {
    /// PriorityWeightAge.
    pub weight: u64,
    /// PriorityMaxAge, seconds: the age from which on the priority grows no more.
    pub max_seconds: u64,
}

impl Ageing {
    /// Of a configuration; none where priorities do not depend on age.
    ///
    /// # Errors
    /// [`BurstError::Answer`] for values that Slurm 22.05 does not write.
    pub fn of(config: &str) -> Result<Option<Self>, BurstError> {
        let value = |key: &str| {
            let mut lines = config.lines().filter_map(|line| line.split_once('='));
            let found = lines.find(|(name, _)| name.trim() == key);
            found.map(|(_, value)| value.trim())
        };
        if value("PriorityType") != Some("priority/multifactor") {
            return Ok(None);
        }
        let wrong = |key: &str| BurstError::Answer {
            program: "scontrol show config".to_owned(),
            problem: format!("{key} is {:?}", value(key).unwrap_or("not there")),
        };
        let weight = value("PriorityWeightAge").and_then(|text| text.parse().ok());
        let max = value("PriorityMaxAge").and_then(seconds);
        Ok(Some(Self {
            weight: weight.ok_or_else(|| wrong("PriorityWeightAge"))?,
            max_seconds: max.ok_or_else(|| wrong("PriorityMaxAge"))?,
        }))
    }

    /// The `nice` with which a job that begins to age anew has the priority that it would have if
    /// it had waited since `since_ms`; one more, so that it is before those of the same priority.
    #[must_use]
    pub fn nice(&self, nice: i32, since_ms: i64, now_ms: i64) -> i32 {
        let aged_ms = u128::try_from(now_ms - since_ms).unwrap_or(0);
        let max_ms = u128::from(self.max_seconds.max(1)) * 1_000;
        let lost = u128::from(self.weight) * aged_ms.min(max_ms) / max_ms;
        let lost = i64::try_from(lost).unwrap_or(MOST_NICE);
        let nice = (i64::from(nice) - lost.min(2 * MOST_NICE) - 1).clamp(-MOST_NICE, MOST_NICE);
        i32::try_from(nice).unwrap_or(i32::MIN + 3)
    }
}

/// Seconds of `D-HH:MM:SS` or `HH:MM:SS`.
fn seconds(text: &str) -> Option<u64> {
    let (days, time) = text.split_once('-').unwrap_or(("0", text));
    let mut sum = days.parse::<u64>().ok()?.checked_mul(24)?;
    let mut parts = time.split(':');
    let [hours, minutes, seconds] = [parts.next()?, parts.next()?, parts.next()?];
    if parts.next().is_some() {
        return None;
    }
    sum = sum.checked_add(hours.parse().ok()?)?;
    for part in [minutes, seconds] {
        sum = sum.checked_mul(60)?.checked_add(part.parse().ok()?)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Of a cluster with Slurm 22.05.8.
    const CONFIG: &str = "PriorityFlags           = \n\
        PriorityMaxAge          = 1-00:00:00\n\
        PriorityType            = priority/multifactor\n\
        PriorityWeightAge       = 864000\n\
        PriorityWeightAssoc     = 0\n";

    #[test]
    fn the_age_factor_is_read_and_only_where_there_is_one() {
        let ageing = Ageing {
            weight: 864_000,
            max_seconds: 86_400,
        };
        assert_eq!(Ageing::of(CONFIG).unwrap(), Some(ageing));
        let basic = CONFIG.replace("multifactor", "basic");
        assert_eq!(Ageing::of(&basic).unwrap(), None);
        let short = CONFIG.replace("1-00:00:00", "02:00:03");
        assert_eq!(Ageing::of(&short).unwrap().unwrap().max_seconds, 7_203);
        let wrong = Ageing::of(&CONFIG.replace("1-00:00:00", "soon"));
        assert_eq!(wrong.unwrap_err().code(), "EB-BURST-001");
    }

    proptest! {
        #[test]
        fn a_job_is_before_all_that_came_later_as_if_it_had_never_run(
            weight in 0u64..5_000_000_000,
            max_seconds in 1u64..1_000_000,
            (first, after, ran, waited) in (0i64..1_000_000, 1i64..1_000_000, 0i64..1_000_000, 0i64..1_000_000),
            losses in 1usize..4,
        ) {
            let ageing = Ageing { weight, max_seconds };
            // Slurm's: weight times age over the greatest age.
            let factor = |age: i64| weight as f64 * (age as f64).min(max_seconds as f64) / max_seconds as f64;
            // Submitted at `first`, lost `losses` times after `ran` seconds of waiting and running
            // each; another job came later.
            let (mut nice, mut since) = (0, first);
            for _ in 0..losses {
                nice = ageing.nice(nice, since * 1_000, (since + ran) * 1_000);
                since += ran;
            }
            prop_assume!(i64::from(nice) > -MOST_NICE);
            let now = since + waited;
            let own = factor(waited) - f64::from(nice);
            let other = factor((now - first - after).max(0));
            prop_assert!(own > other - 1e-3, "{own} {other}");
        }
    }
}

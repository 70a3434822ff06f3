//! What was seen of lifetimes.

use crate::error::LifetimeError;

/// How far beyond the maximum lifetime a recorded one may be: providers take a while to end an
/// instance.
const LATE: f64 = 1.1;

/// One instance that is not there any more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// How long it lived, hours.
    pub hours: f64,
    /// Whether the provider ended it. If not, its user did, and all that is known is that it would
    /// have lived longer (right-censored).
    pub ended: bool,
}

/// Why an observation cannot be, if so; `maximum` in hours.
pub(crate) fn problem_of(seen: Observation, maximum: f64) -> Option<String> {
    if !seen.hours.is_finite() || seen.hours < 0.0 {
        Some("a lifetime is a finite number, not negative".to_owned())
    } else if seen.hours > maximum * LATE {
        Some(format!(
            "the maximum lifetime is {maximum} h: is this another unit?"
        ))
    } else {
        None
    }
}

/// Observations in order of their length.
#[derive(Debug, Clone, PartialEq)]
pub struct Observations {
    sorted: Vec<Observation>,
    maximum: f64,
    ended: usize,
}

impl Observations {
    /// Takes in observations; `maximum` is the provider's maximum lifetime in hours, infinite for
    /// none.
    ///
    /// # Errors
    /// [`LifetimeError::Observation`] for what is negative, no number, or more than a tenth beyond
    /// the maximum; [`LifetimeError::Parameter`] for a maximum that is not above zero.
    pub fn new(
        observations: impl IntoIterator<Item = Observation>,
        maximum: f64,
    ) -> Result<Self, LifetimeError> {
        crate::error::maximum_of("observed", maximum)?;
        let mut sorted: Vec<Observation> = observations.into_iter().collect();
        for (number, seen) in sorted.iter().enumerate() {
            let Some(problem) = problem_of(*seen, maximum) else {
                continue;
            };
            return Err(LifetimeError::Observation {
                number: number + 1,
                hours: seen.hours,
                problem,
            });
        }
        // Of two of the same length the ended one comes first: who was stopped at that moment was
        // still at risk.
        sorted.sort_by(|a, b| a.hours.total_cmp(&b.hours).then(b.ended.cmp(&a.ended)));
        let ended = sorted.iter().filter(|seen| seen.ended).count();
        Ok(Self {
            sorted,
            maximum,
            ended,
        })
    }

    /// All of them, shortest first.
    #[must_use]
    pub fn all(&self) -> &[Observation] {
        &self.sorted
    }

    /// The provider's maximum lifetime, hours; infinite for none.
    #[must_use]
    pub fn maximum(&self) -> f64 {
        self.maximum
    }

    /// How many the provider ended.
    #[must_use]
    pub fn ended(&self) -> usize {
        self.ended
    }

    /// How many their users stopped.
    #[must_use]
    pub fn censored(&self) -> usize {
        self.sorted.len() - self.ended
    }

    /// Refuses to go on with fewer than `needed` different ended lifetimes.
    ///
    /// # Errors
    /// [`LifetimeError::TooFew`].
    pub(crate) fn need(&self, needed: usize) -> Result<(), LifetimeError> {
        let mut ended: Vec<f64> = self
            .sorted
            .iter()
            .filter(|seen| seen.ended)
            .map(|seen| seen.hours)
            .collect();
        ended.dedup();
        if ended.len() >= needed {
            return Ok(());
        }
        Err(LifetimeError::TooFew {
            needed,
            found: ended.len(),
            censored: self.censored(),
        })
    }
}

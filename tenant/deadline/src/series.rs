//! Records of availability.

use crate::{DeadlineError, History};

/// Whether a preemptible server could be had, at equal steps of time. What holds at the start of a
/// step holds for the step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Series {
    name: String,
    step: u64,
    available: Vec<bool>,
}

impl Series {
    /// A series of steps of so many seconds.
    ///
    /// # Errors
    /// [`DeadlineError::Zero`] and [`DeadlineError::Empty`].
    pub fn new(name: &str, step: u64, available: Vec<bool>) -> Result<Self, DeadlineError> {
        if step == 0 {
            return Err(DeadlineError::Zero { what: "step" });
        }
        if available.is_empty() {
            return Err(DeadlineError::Empty);
        }
        Ok(Self {
            name: name.to_owned(),
            step,
            available,
        })
    }

    /// What the series is of.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Seconds of a step.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Each step.
    #[must_use]
    pub fn available(&self) -> &[bool] {
        &self.available
    }

    /// Part of the steps with a preemptible server.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        let there = self.available.iter().filter(|&&there| there).count();
        there as f64 / self.available.len() as f64
    }

    /// Starts, in steps, from which a job with this deadline is within the series.
    #[must_use]
    pub fn starts(&self, deadline: u64) -> usize {
        let needed = usize::try_from(deadline.div_ceil(self.step)).unwrap_or(usize::MAX);
        (self.available.len() + 1).saturating_sub(needed)
    }

    /// So many starts for jobs with this deadline, drawn with a seed; none if the series is too
    /// short.
    #[must_use]
    pub fn sampled_starts(&self, deadline: u64, count: usize, seed: u64) -> Vec<usize> {
        let starts = self.starts(deadline) as u64;
        if starts == 0 {
            return Vec::new();
        }
        // The name keeps traces of the same length from having the same starts.
        let mut state = self.name.bytes().fold(seed, |state, byte| {
            mixed(state.wrapping_add(u64::from(byte)))
        });
        let draw = |_| {
            state = state.wrapping_add(GOLDEN);
            let wide = u128::from(mixed(state)) * u128::from(starts);
            (wide >> 64) as usize
        };
        (0..count).map(draw).collect()
    }

    /// The steps of a job's life that starts at this step.
    ///
    /// # Errors
    /// [`DeadlineError::TooShort`].
    pub fn window(&self, start: usize, deadline: u64) -> Result<&[bool], DeadlineError> {
        if start >= self.starts(deadline) {
            let left = self.available.len().saturating_sub(start) as u64;
            return Err(DeadlineError::TooShort {
                series: self.name.clone(),
                seconds: left * self.step,
                deadline,
            });
        }
        let needed = usize::try_from(deadline.div_ceil(self.step)).unwrap_or(usize::MAX);
        Ok(&self.available[start..start + needed])
    }

    /// What a controller has seen before this step, as far back as so many seconds.
    #[must_use]
    pub fn history(&self, start: usize, back: u64) -> History {
        let start = start.min(self.available.len());
        let steps = usize::try_from(back / self.step).unwrap_or(usize::MAX);
        let from = start.saturating_sub(steps);
        let looks = self.available[from..start].iter().enumerate();
        let step = i64::try_from(self.step).unwrap_or(i64::MAX);
        let before = i64::try_from(start - from).unwrap_or(i64::MAX);
        History::new(looks.map(|(i, &there)| {
            let i = i64::try_from(i).unwrap_or(i64::MAX);
            ((i - before).saturating_mul(step), there)
        }))
    }
}

/// Increment and finaliser of SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom
/// number generators*, 2014).
const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

fn mixed(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

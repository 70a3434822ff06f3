//! A convex surcharge by count, and the lines that lie below it.

use crate::cost::EvictionCost;

/// Fractions of a count are in parts of this.
pub(crate) const ONE: u64 = 1 << 10;

/// What each further victim of a group costs more, and the sums of that.
#[derive(Debug, Default)]
pub(crate) struct StepCurve {
    declared: Vec<u64>,
    /// `step[n]` is what victim number `n + 1` costs more; `sum[n]` what `n` victims do.
    step: Vec<u64>,
    sum: Vec<u64>,
}

/// A line that lies nowhere above the surcharge.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SupportLine {
    /// The number of victims where it touches.
    pub(crate) touch: u32,
    /// Micro-units a victim: between the step to that number and the step behind it.
    pub(crate) slope: u64,
}

impl StepCurve {
    /// Takes over the steps, each held at `cap`, for up to `most` victims.
    pub(crate) fn load(&mut self, steps: &[EvictionCost], cap: u64, most: u32) {
        self.declared.clear();
        self.declared
            .extend(steps.iter().map(|step| step.micros().min(cap)));
        self.step.clear();
        self.sum.clear();
        self.reach(most);
    }

    /// Makes sure that sums and lines are known for up to `most` victims.
    pub(crate) fn reach(&mut self, most: u32) {
        while self.step.len() < most as usize + 2 {
            let n = self.step.len();
            let step = self
                .declared
                .get(n)
                .or_else(|| self.declared.last())
                .copied()
                .unwrap_or(0);
            let sum = match (self.sum.last(), self.step.last()) {
                (Some(sum), Some(step)) => sum + step,
                _ => 0,
            };
            self.step.push(step);
            self.sum.push(sum);
        }
    }

    /// True if no victim is ever charged a surcharge.
    pub(crate) fn are_zero(&self) -> bool {
        self.declared.iter().all(|&step| step == 0)
    }

    /// What victim number `before + 1` costs more.
    pub(crate) fn next(&self, before: u32) -> u64 {
        self.step[before as usize]
    }

    /// What so many victims cost more.
    pub(crate) fn total(&self, count: u32) -> u64 {
        self.sum[count as usize]
    }

    /// The line that touches at a mean of so many victims and `part` of [`ONE`]; it turns gradually
    /// from one step into the next.
    pub(crate) fn line(&self, mean: u64) -> SupportLine {
        let (whole, part) = ((mean / ONE) as u32, mean % ONE);
        let touch = whole + u32::from(part >= ONE / 2);
        let behind = self.step[touch as usize];
        let before = (touch as usize)
            .checked_sub(1)
            .map_or(behind, |before| self.step[before]);
        let turn = (part + ONE / 2) % ONE;
        let more = u128::from(behind - before) * u128::from(turn) / u128::from(ONE);
        SupportLine {
            touch,
            slope: before + more as u64,
        }
    }

    /// The line itself, or if it does not touch within the range the nearest one that does and is
    /// exact at two numbers.
    pub(crate) fn within(&self, line: SupportLine, low: u32, high: u32) -> SupportLine {
        let touch = line.touch.clamp(low, high);
        if touch == line.touch {
            return line;
        }
        let step = if touch == low { touch } else { touch - 1 };
        SupportLine {
            touch,
            slope: self.step[step as usize],
        }
    }

    /// Where a line begins: at or below zero.
    pub(crate) fn start(&self, line: SupportLine) -> i128 {
        i128::from(self.total(line.touch)) - i128::from(line.slope) * i128::from(line.touch)
    }

    /// What a line leaves out for `count` victims.
    pub(crate) fn error(&self, line: SupportLine, count: u32) -> u64 {
        let at = self.start(line) + i128::from(count) * i128::from(line.slope);
        u64::try_from(i128::from(self.total(count)) - at).unwrap_or(0)
    }
}

/// Moves a mean of counts towards what was seen in the step after so many, by ever less (the method
/// of Frank and Wolfe on the convex surcharge).
pub(crate) fn towards(mean: u64, count: u32, made: u64) -> u64 {
    let goal = u64::from(count) * ONE;
    let step = goal.abs_diff(mean) * 2 / (made + 3);
    if goal > mean {
        mean + step
    } else {
        mean - step
    }
}

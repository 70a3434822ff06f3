//! How long the members of a stage work: what the tenant said, and what finished members took.

use super::WorkBook;

/// How many finished members are needed before what they took counts more than what the tenant
/// said.
const ENOUGH: usize = 3;

/// How long a member works, milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthEstimate {
    /// In expectation.
    pub expected: i64,
    /// With a reserve: what deadlines are held by.
    pub safe: i64,
}

impl LengthEstimate {
    /// What is known of the members of a stage. Once some are done, the mean of what they took is
    /// expected. The reserve is added to the longest that was seen or that the tenant told: members
    /// of a sweep differ, and a deadline is not held by the short ones.
    #[must_use]
    pub fn of(book: &WorkBook, stage: usize, unknown: i64, reserve: f64) -> Self {
        let members = book.members[stage].iter();
        let took: Vec<i64> = members.filter_map(super::Member::length).collect();
        let told = book.work.stages[stage].length;
        let told = told.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX / 2_000) * 1_000);
        let with_reserve = |length: i64| (length as f64 * (1.0 + reserve)).ceil() as i64;
        let longest = took.iter().copied().max().unwrap_or(0);
        if took.len() >= ENOUGH || (told.is_none() && !took.is_empty()) {
            let expected = took.iter().sum::<i64>() / took.len() as i64;
            // With few of them, a member that is longer than all that were seen is no surprise.
            let few = if took.len() >= ENOUGH { 0 } else { unknown };
            let least = told.unwrap_or(few);
            return Self {
                expected: expected.max(1),
                safe: with_reserve(longest.max(least)).max(1),
            };
        }
        let expected = told.unwrap_or(unknown).max(1);
        Self {
            expected,
            safe: with_reserve(expected.max(longest)),
        }
    }

    /// What is left of it with so much work saved.
    #[must_use]
    pub fn after(self, saved: i64) -> Self {
        Self {
            expected: (self.expected - saved).max(1_000),
            safe: (self.safe - saved).max(1_000),
        }
    }
}

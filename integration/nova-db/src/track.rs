//! What was seen, and since when to look next.
//!
//! Rows are found by the time in them, which is their writer's: one of many conductors and
//! computes, each with its own clock, and each commits a little after it looked at it. So the next
//! look goes back by a slack behind the latest time seen, and what was seen already with the same
//! content is dropped. A writer whose clock runs ahead must not pull the look past the others:
//! times later than our own clock count as now.
//!
//! In a quiet cloud the latest row of a table may be that of a moment at which every compute wrote;
//! each look would read them all again. The same conductors write other tables, too, among them
//! heartbeats all the time. So a look begins a slack behind the latest row of any table that was
//! seen before the last look began ([`Tracker::saw`]). Without such rows it goes back from our own
//! clock by [`OWN_SLACK`] at most. A scheduler whose clock is further ahead takes every compute for
//! down, as Nova's does (`service_down_time`).
//!
//! Invariants (for clocks and transactions that differ by less than the slack):
//! - A row that was committed after one look is in the next one.
//! - No row is handed out twice with the same content.
//! - What is remembered is bounded by the rows of one slack.

use std::collections::HashMap;

/// A row as the tracker sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    /// Database id.
    pub id: i64,
    /// Latest of created, updated and deleted, microseconds since 1970.
    pub at: i64,
    /// Digest of the content.
    pub digest: u64,
}

/// Decides since when to look, and drops what was seen.
#[derive(Debug, Clone, Default)]
pub struct Tracker {
    slack: i64,
    latest: i64,
    seen: HashMap<i64, Mark>,
}

const SECOND: i64 = 1_000_000;
/// How far our own clock may be ahead of the writers', microseconds: Nova's `service_down_time`.
const OWN_SLACK: i64 = 60 * SECOND;

impl Tracker {
    /// With a slack in seconds.
    #[must_use]
    pub fn new(slack_seconds: u32) -> Self {
        Self {
            slack: i64::from(slack_seconds) * SECOND,
            ..Self::default()
        }
    }

    /// Since when to look: the beginning of a second. 0 before the first row.
    #[must_use]
    pub fn since(&self) -> i64 {
        (self.latest - self.slack).max(0).div_euclid(SECOND) * SECOND
    }

    /// True if this row is to be handed out: it is new, or not what it was.
    #[must_use]
    pub fn is_news(&self, mark: &Mark) -> bool {
        self.seen
            .get(&mark.id)
            .is_none_or(|seen| seen.digest != mark.digest)
    }

    /// The latest time of the rows seen, by their writers' clocks; microseconds since 1970.
    #[must_use]
    pub fn latest(&self) -> i64 {
        self.latest
    }

    /// Remembers all rows of one look, at our time `now` (microseconds since 1970), and forgets
    /// those that the next look will not see any more. `written`: the latest time of rows of any
    /// table of these writers that were seen before this look began. What they commit after the
    /// look is not more than the slack older.
    pub fn saw(&mut self, marks: impl IntoIterator<Item = Mark>, now: i64, written: i64) {
        for mark in marks {
            self.latest = self.latest.max(mark.at.min(now));
            self.seen.insert(mark.id, mark);
        }
        self.latest = self.latest.max(now - OWN_SLACK).max(written);
        let since = self.since();
        self.seen.retain(|_, mark| mark.at >= since);
    }

    /// After everything was read anew: forgets all, and looks from here on.
    pub fn restart(&mut self, marks: impl IntoIterator<Item = Mark>, now: i64) {
        self.seen.clear();
        self.latest = 0;
        let mut kept = Vec::new();
        for mark in marks {
            self.latest = self.latest.max(mark.at.min(now));
            kept.push(mark);
        }
        self.saw(kept, now, 0);
    }

    /// How many rows are remembered.
    #[must_use]
    pub fn remembered(&self) -> usize {
        self.seen.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn mark(id: i64, seconds: i64, digest: u64) -> Mark {
        Mark {
            id,
            at: seconds * SECOND,
            digest,
        }
    }

    #[test]
    fn the_next_look_goes_back_by_the_slack_to_the_beginning_of_a_second() {
        let mut tracker = Tracker::new(3);
        assert_eq!(tracker.since(), 0);
        let seen = Mark {
            at: 100 * SECOND + 7,
            ..mark(1, 100, 1)
        };
        tracker.saw([seen], 101 * SECOND, 0);
        assert_eq!(tracker.since(), 97 * SECOND);
    }

    #[test]
    fn rows_of_a_quiet_cloud_are_read_for_a_minute_and_then_forgotten() {
        let mut tracker = Tracker::new(3);
        let all = [1, 2, 3].map(|id| mark(id, 100, 1));
        tracker.saw(all, 160 * SECOND, 0);
        assert_eq!((tracker.since(), tracker.remembered()), (97 * SECOND, 3));
        tracker.saw(all, 164 * SECOND, 0);
        assert_eq!((tracker.since(), tracker.remembered()), (101 * SECOND, 0));
    }

    #[test]
    fn rows_of_another_table_say_that_time_goes_on() {
        let mut tracker = Tracker::new(3);
        let all = [1, 2, 3].map(|id| mark(id, 100, 1));
        tracker.saw(all, 101 * SECOND, 0);
        tracker.saw(all, 111 * SECOND, 110 * SECOND);
        assert_eq!((tracker.since(), tracker.remembered()), (107 * SECOND, 0));
        tracker.saw([], 112 * SECOND, 105 * SECOND);
        assert_eq!(tracker.latest(), 110 * SECOND);
    }

    #[test]
    fn a_row_is_news_once_for_each_content() {
        let mut tracker = Tracker::new(3);
        let row = mark(1, 100, 7);
        assert!(tracker.is_news(&row));
        tracker.saw([row], 101 * SECOND, 0);
        assert!(!tracker.is_news(&row));
        let changed_in_the_same_second = mark(1, 100, 8);
        assert!(tracker.is_news(&changed_in_the_same_second));
    }

    #[test]
    fn a_clock_that_runs_ahead_does_not_hide_the_others() {
        let mut tracker = Tracker::new(3);
        tracker.saw([mark(1, 5000, 1)], 100 * SECOND, 0);
        assert_eq!(tracker.since(), 97 * SECOND);
        assert!(!tracker.is_news(&mark(1, 5000, 1)));
    }

    proptest! {
        /// Writers with clocks within the slack, whole seconds in the rows, looks at any time:
        /// nothing is missed, nothing twice.
        #[test]
        fn every_change_is_handed_out_exactly_once(
            changes in proptest::collection::vec((0..5i64, 0..200i64, 0..3i64, any::<bool>()), 1..60)
        ) {
            let mut tracker = Tracker::new(4);
            // id -> (written time, content)
            let mut table: HashMap<i64, (i64, u64)> = HashMap::new();
            let mut handed: HashMap<i64, u64> = HashMap::new();
            let mut now = 1000;
            // The latest time in another table, which was seen before the present look.
            let mut written = 0;
            for (content, (id, step, behind, look)) in changes.into_iter().enumerate() {
                now += step;
                // A writer's clock is up to 3 s behind, and everybody looks at least at the times
                // of the others.
                table.insert(id, (now - behind, content as u64));
                if look {
                    let beat = (now - behind) * SECOND;
                    let marks: Vec<Mark> = table
                        .iter()
                        .filter(|(_, (at, _))| at * SECOND >= tracker.since())
                        .map(|(id, (at, digest))| mark(*id, *at, *digest))
                        .collect();
                    for mark in marks.iter().filter(|mark| tracker.is_news(mark)) {
                        prop_assert_ne!(handed.insert(mark.id, mark.digest), Some(mark.digest));
                    }
                    tracker.saw(marks, now * SECOND, written);
                    written = written.max(beat);
                    for (id, (_, content)) in &table {
                        prop_assert_eq!(handed.get(id), Some(content));
                    }
                }
            }
        }
    }
}

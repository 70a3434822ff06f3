//! How a plugin behaves.

use ebbtide_model::names::brief;
use std::sync::Mutex;

/// Failures in a row after which a plugin is left alone.
const PATIENCE: u32 = 5;
/// For so many calls the first time; twice as many each further time in a row.
const FIRST_REST: u64 = 16;
/// At most.
const LONGEST_REST: u64 = 4096;
/// For so many milliseconds the first time, where time counts; twice as many each further time in a
/// row.
const FIRST_PAUSE: u64 = 1000;
/// At most.
const LONGEST_PAUSE: u64 = 60_000;

/// Milliseconds since anything; they never go back.
pub type Milliseconds = fn() -> u64;

/// What a plugin was asked, and how it answered: the circuit breaker.
///
/// A component that fails is left alone for so many calls, and no clock is looked at: what is left
/// out does not depend on how fast the machine is. A service fails because of what happens
/// elsewhere, so it is left alone [for a time](Self::timed).
#[derive(Debug, Default)]
pub struct Health {
    counts: Mutex<Counts>,
    clock: Option<Milliseconds>,
}

#[derive(Debug, Default)]
struct Counts {
    report: HealthReport,
    in_a_row: u32,
    rests: u32,
    rest_left: u64,
    /// Until when, by the clock.
    rest_until: u64,
}

/// A look at it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HealthReport {
    /// How often it was called.
    pub calls: u64,
    /// How many calls failed.
    pub failures: u64,
    /// How often it was to be called and was not, because it had failed too often in a row.
    pub skipped: u64,
    /// A filter: about how many hosts it has answered.
    pub hosts: u64,
    /// A filter: how many of these it has refused.
    pub refused: u64,
    /// What the last failure was, in words.
    pub last_failure: Option<String>,
    /// True while it is left alone.
    pub resting: bool,
}

impl Health {
    /// Of a plugin that is left alone for a time.
    #[must_use]
    pub fn timed(clock: Milliseconds) -> Self {
        Self {
            counts: Mutex::default(),
            clock: Some(clock),
        }
    }

    fn with<T>(&self, work: impl FnOnce(&mut Counts) -> T) -> T {
        let mut counts = self
            .counts
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        work(&mut counts)
    }

    /// Whether the plugin may be called now. The error is the failure of this call.
    pub(crate) fn start_call(&self) -> Result<(), String> {
        let now = self.clock.map(|clock| clock());
        self.with(|counts| {
            let pause = now.map_or(0, |now| counts.rest_until.saturating_sub(now));
            if counts.rest_left == 0 && pause == 0 {
                counts.report.resting = false;
                counts.report.calls += 1;
                return Ok(());
            }
            let left = match now {
                Some(_) => format!("{pause} more milliseconds"),
                None => {
                    counts.rest_left -= 1;
                    format!("{} more calls", counts.rest_left)
                }
            };
            counts.report.skipped += 1;
            let last = counts.report.last_failure.as_deref().unwrap_or("?");
            Err(format!(
                "failed {} times in a row and is left alone for {left}; the last time it {last}",
                counts.in_a_row
            ))
        })
    }

    /// It answered well.
    pub(crate) fn succeeded(&self) {
        self.with(|counts| {
            counts.in_a_row = 0;
            counts.rests = 0;
        });
    }

    /// A filter has answered about so many hosts and has refused so many of them.
    pub(crate) fn answered(&self, hosts: usize, refused: usize) {
        let number = |count: usize| u64::try_from(count).unwrap_or(u64::MAX);
        self.with(|counts| {
            let report = &mut counts.report;
            report.hosts = report.hosts.saturating_add(number(hosts));
            report.refused = report.refused.saturating_add(number(refused));
        });
    }

    pub(crate) fn failed(&self, why: &str) {
        let now = self.clock.map(|clock| clock());
        self.with(|counts| {
            counts.report.failures += 1;
            counts.report.last_failure = Some(brief(why));
            counts.in_a_row = counts.in_a_row.saturating_add(1);
            if counts.in_a_row >= PATIENCE {
                let longer = 1 << counts.rests.min(16);
                match now {
                    Some(now) => {
                        let pause = FIRST_PAUSE.saturating_mul(longer).min(LONGEST_PAUSE);
                        counts.rest_until = now.saturating_add(pause);
                    }
                    None => {
                        counts.rest_left = FIRST_REST.saturating_mul(longer).min(LONGEST_REST);
                    }
                }
                counts.rests = counts.rests.saturating_add(1);
                counts.report.resting = true;
            }
        });
    }

    /// How it has behaved.
    #[must_use]
    pub fn report(&self) -> HealthReport {
        self.with(|counts| counts.report.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail_until_it_rests(health: &Health) {
        while health.start_call().is_ok() {
            health.failed("looped");
        }
    }

    #[test]
    fn after_five_failures_in_a_row_it_is_left_alone_and_then_asked_again() {
        let health = Health::default();
        fail_until_it_rests(&health);
        assert_eq!(health.report().calls, u64::from(PATIENCE));
        for _ in 0..FIRST_REST - 1 {
            let said = health.start_call().unwrap_err();
            assert!(
                said.contains("failed 5 times in a row") && said.contains("looped"),
                "{said}"
            );
        }
        assert!(health.report().resting);
        assert!(health.start_call().is_ok());
        health.succeeded();
        assert!(!health.report().resting);
    }

    #[test]
    fn who_fails_again_after_the_rest_rests_twice_as_long() {
        let health = Health::default();
        fail_until_it_rests(&health);
        while health.start_call().is_err() {}
        health.failed("looped");
        let mut skipped = 0;
        while health.start_call().is_err() {
            skipped += 1;
        }
        assert_eq!(skipped, 2 * FIRST_REST);
    }

    #[test]
    fn a_service_is_left_alone_for_a_second_and_then_for_two() {
        static NOW: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(10);
        use std::sync::atomic::Ordering::SeqCst;
        let health = Health::timed(|| NOW.load(SeqCst));
        fail_until_it_rests(&health);
        for (later, may) in [(999, false), (1000, true)] {
            NOW.store(10 + later, SeqCst);
            assert_eq!(health.start_call().is_ok(), may, "after {later} ms");
        }
        health.failed("could not be reached");
        NOW.store(10 + 1000 + 1999, SeqCst);
        let said = health.start_call().unwrap_err();
        assert!(
            said.contains("1 more milliseconds") && said.contains("reached"),
            "{said}"
        );
        NOW.store(10 + 1000 + 2000, SeqCst);
        assert!(health.start_call().is_ok());
        health.succeeded();
        assert!(health.start_call().is_ok());
    }

    #[test]
    fn single_failures_among_good_answers_never_lead_to_a_rest() {
        let health = Health::default();
        for _ in 0..100 {
            health.start_call().unwrap();
            health.failed("stumbled");
            health.start_call().unwrap();
            health.succeeded();
        }
        let report = health.report();
        assert_eq!(
            (report.calls, report.failures, report.skipped),
            (200, 100, 0)
        );
    }
}

//! What is learnt about the availability of preemptible servers.

/// What was seen of the market, oldest first: for each look its time in seconds and whether a
/// preemptible server could be had. Times before the start of the job's life are negative.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct History {
    looks: Vec<(i64, bool)>,
}

impl History {
    /// From looks; those that are not later than the one before are left out.
    #[must_use]
    pub fn new(looks: impl IntoIterator<Item = (i64, bool)>) -> Self {
        let mut kept: Vec<(i64, bool)> = Vec::new();
        for (time, available) in looks {
            if kept.last().is_none_or(|&(last, _)| last < time) {
                kept.push((time, available));
            }
        }
        Self { looks: kept }
    }

    #[must_use]
    pub fn looks(&self) -> &[(i64, bool)] {
        &self.looks
    }
}

/// Ages at which the next class begins, in seconds. A period of availability, and one without,
/// mostly goes on the longer it has lasted: a class of ages has one rate of ends.
pub(crate) const CLASS_STARTS: [u64; CLASSES] =
    [0, 600, 1_200, 2_400, 4_800, 9_600, 19_200, 40_000];
/// Classes of ages.
pub(crate) const CLASSES: usize = 8;

/// Periods of this many ends stand behind what is assumed before anything is seen.
const PRIOR_ENDS: f64 = 3.0;

/// Age in seconds of the period that the first look meets: it began some time before.
const FIRST_AGE: i64 = 3_600;

/// Rates at which periods end, by their kind and age.
#[derive(Debug, Clone)]
pub(crate) struct AvailabilityModel {
    /// Seconds seen, unavailable and available, by class of age.
    seen: [[f64; CLASSES]; 2],
    /// Ends seen.
    ends: [[f64; CLASSES]; 2],
    current: Option<CurrentPeriod>,
}

#[derive(Debug, Clone, Copy)]
struct CurrentPeriod {
    available: bool,
    since: i64,
    last: i64,
}

impl AvailabilityModel {
    pub(crate) fn new(history: &History) -> Self {
        let mut model = Self {
            seen: [[0.0; CLASSES]; 2],
            ends: [[0.0; CLASSES]; 2],
            current: None,
        };
        for &(time, available) in history.looks() {
            model.look(time, available);
        }
        model
    }

    /// Learns from one look. A look that is not later than the one before says nothing new.
    pub(crate) fn look(&mut self, time: i64, available: bool) {
        let Some(current) = &mut self.current else {
            self.current = Some(CurrentPeriod {
                available,
                since: time.saturating_sub(FIRST_AGE),
                last: time,
            });
            return;
        };
        if time <= current.last {
            return;
        }
        let kind = usize::from(current.available);
        let class = class_of(age(current.since, current.last));
        self.seen[kind][class] += time.saturating_sub(current.last) as f64;
        current.last = time;
        if available != current.available {
            self.ends[kind][class] += 1.0;
            current.available = available;
            current.since = time;
        }
    }

    /// Ends a second of periods of this kind in this class of age. Before anything is seen, a
    /// period is expected to last as long again as it has lasted already.
    pub(crate) fn rate(&self, available: bool, class: usize) -> f64 {
        let kind = usize::from(available);
        let assumed = 1.0 / (CLASS_STARTS[class] as f64).max(CLASS_STARTS[1] as f64);
        (self.ends[kind][class] + PRIOR_ENDS) / (self.seen[kind][class] + PRIOR_ENDS / assumed)
    }

    /// The class of age of the period that goes on now.
    pub(crate) fn class_now(&self) -> usize {
        self.current
            .map_or(0, |current| class_of(age(current.since, current.last)))
    }
}

fn age(since: i64, now: i64) -> u64 {
    u64::try_from(now.saturating_sub(since)).unwrap_or(0)
}

fn class_of(age: u64) -> usize {
    CLASS_STARTS.iter().filter(|&&start| start <= age).count() - 1
}

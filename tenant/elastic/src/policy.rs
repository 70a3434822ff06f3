//! How large the partition may be, and when it should be: the formulas of the paper's section 3.

use crate::error::ElasticError;

/// The price of a server and the limits on the number of servers. The constructor has checked all
/// values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ElasticPolicy {
    short_only: u32,
    ratio: f64,
    share: f64,
    threshold: f64,
    release_interval_us: u64,
    launch_timeout_us: u64,
}

/// The most servers that a cluster may have: more is a typing error.
pub const MOST_SERVERS: u32 = 1_000_000;
/// The dearest on-demand server, in preemptible ones.
const MOST_RATIO: f64 = 1_000.0;
/// The paper's threshold (section 4.1).
pub const THRESHOLD: f64 = 0.95;
/// The paper's provisioning delay (section 4.1), microseconds.
pub const PROVISIONING_US: u64 = 120_000_000;
/// No time is longer than ten years, microseconds.
pub const LONGEST_US: u64 = 10 * 366 * 86_400 * 1_000_000;
/// Products of doubles that should be whole are off by less than this.
const ROUNDING: f64 = 1e-9;

impl ElasticPolicy {
    /// A policy for a cluster that would have `short_only` (N) on-demand servers for short jobs
    /// alone. `ratio` (r) is the price of an on-demand server over that of a preemptible one,
    /// `share` (p) the part of the N servers that is given up for preemptible ones. The threshold
    /// is the paper's 0.95, one server is released at each report of the load, and a launch never
    /// times out.
    ///
    /// # Errors
    /// [`ElasticError::Setting`] unless N is 1 to a million, r is 1 to 1000 and p is 0 to 1.
    pub fn new(short_only: u32, ratio: f64, share: f64) -> Result<Self, ElasticError> {
        if !(1..=MOST_SERVERS).contains(&short_only) {
            let allowed = "1 to a million";
            return Err(ElasticError::setting(
                "the number of servers for short jobs only",
                short_only,
                allowed,
            ));
        }
        if !(1.0..=MOST_RATIO).contains(&ratio) {
            return Err(ElasticError::setting(
                "the price ratio r",
                ratio,
                "1 to 1000: on-demand over preemptible price",
            ));
        }
        if !(0.0..=1.0).contains(&share) {
            return Err(ElasticError::setting(
                "the share p of the short partition",
                share,
                "0 to 1",
            ));
        }
        let policy = Self {
            short_only,
            ratio,
            share,
            threshold: THRESHOLD,
            release_interval_us: 0,
            launch_timeout_us: LONGEST_US,
        };
        if policy.budget() > MOST_SERVERS {
            return Err(ElasticError::setting(
                "the number of preemptible servers K = rNp",
                policy.budget(),
                "at most a million",
            ));
        }
        Ok(policy)
    }

    /// The same with another threshold of the long-load ratio.
    ///
    /// # Errors
    /// [`ElasticError::Setting`] unless it is above 0 and at most 1.
    pub fn threshold(mut self, threshold: f64) -> Result<Self, ElasticError> {
        if !(threshold > 0.0 && threshold <= 1.0) {
            return Err(ElasticError::setting(
                "the threshold of the long-load ratio",
                threshold,
                "above 0 and at most 1",
            ));
        }
        self.threshold = threshold;
        Ok(self)
    }

    /// The same policy with at most one release in `interval_us`: slower than the paper, for loads
    /// that fall and rise again. With 0 the controller releases one server at each report of the
    /// load.
    ///
    /// # Errors
    /// [`ElasticError::Setting`] above ten years.
    pub fn release_interval(mut self, interval_us: u64) -> Result<Self, ElasticError> {
        self.release_interval_us = duration("the release interval", interval_us)?;
        Ok(self)
    }

    /// The same where a server that is not up after `timeout_us` is given up and replaced.
    ///
    /// # Errors
    /// [`ElasticError::Setting`] for zero and above ten years.
    pub fn launch_timeout(mut self, timeout_us: u64) -> Result<Self, ElasticError> {
        if timeout_us == 0 {
            let allowed = "above zero: no server is up at once";
            return Err(ElasticError::setting("the launch timeout", 0, allowed));
        }
        self.launch_timeout_us = duration("the launch timeout", timeout_us)?;
        Ok(self)
    }

    /// On-demand servers that are given up: ⌊Np⌋.
    #[must_use]
    pub fn given_up(&self) -> u32 {
        whole(f64::from(self.short_only) * self.share)
    }

    /// On-demand servers for short jobs that stay: N − ⌊Np⌋.
    #[must_use]
    pub fn on_demand(&self) -> u32 {
        self.short_only - self.given_up()
    }

    /// K, the most preemptible servers at a time: ⌊r⌊Np⌋⌋. With whole Np it is the paper's K = rNp;
    /// else the paper's would cost more than what was given up.
    #[must_use]
    pub fn budget(&self) -> u32 {
        whole(self.ratio * f64::from(self.given_up()))
    }

    /// T, the most servers for short jobs at a time: T = N((r−1)p+1), as N − ⌊Np⌋ + K.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.on_demand() + self.budget()
    }

    /// r, the price of an on-demand server over that of a preemptible one.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    /// p, the part of the on-demand servers for short jobs that is given up.
    #[must_use]
    pub fn share(&self) -> f64 {
        self.share
    }

    /// N, the servers for short jobs that the cluster would have without preemptible ones.
    #[must_use]
    pub fn short_only(&self) -> u32 {
        self.short_only
    }

    /// The long-load ratio above which servers are added.
    #[must_use]
    pub fn threshold_ratio(&self) -> f64 {
        self.threshold
    }

    /// Interval within which the controller releases at most one server, microseconds.
    #[must_use]
    pub fn release_interval_us(&self) -> u64 {
        self.release_interval_us
    }

    /// Time after which a launch is given up, microseconds.
    #[must_use]
    pub fn launch_timeout_us(&self) -> u64 {
        self.launch_timeout_us
    }

    /// How many preemptible servers there should be: the fewest with which `long` servers of
    /// `on_demand` plus these are not above the threshold, within the budget. `long` is N_long,
    /// `on_demand` all servers of the cluster that are not preemptible.
    #[must_use]
    pub fn target(&self, long: u32, on_demand: u32) -> u32 {
        let servers = f64::from(long) / self.threshold - f64::from(on_demand);
        // Negative numbers become zero, large ones the budget.
        ((servers - ROUNDING).ceil().max(0.0) as u32).min(self.budget())
    }
}

/// The long-load ratio l_r = N_long / N_total; 0 for a cluster without servers.
#[must_use]
pub fn long_load_ratio(long: u32, total: u32) -> f64 {
    if total == 0 {
        return 0.0;
    }
    f64::from(long) / f64::from(total)
}

fn whole(value: f64) -> u32 {
    (value + ROUNDING).floor() as u32
}

pub(crate) fn duration(what: &'static str, us: u64) -> Result<u64, ElasticError> {
    if us > LONGEST_US {
        let value = format!("{us} µs");
        return Err(ElasticError::setting(what, value, "at most ten years"));
    }
    Ok(us)
}

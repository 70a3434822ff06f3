//! The policies of a region, with defaults and limits.

use crate::RegionError;
use ebbtide_evacuation::{EvacuationPolicy, PolicyError};
use ebbtide_market::{MarketConfig, MarketError};
use ebbtide_model::Seconds;
use ebbtide_model::flavor::{MAX_GRACE, MAX_PROTECTED};
use serde::{Deserialize, Serialize};

/// Policies for servers, victims and agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegionConfig {
    /// Grace period of flavors that do not set one. 30 s, as with Google's and Azure's preemptible
    /// instances.
    pub default_grace_seconds: Seconds,
    /// Protection time after the launch for flavors that do not set one.
    pub default_protected_seconds: Seconds,
    /// Time without a heartbeat after which a host gets no new servers. Nova's `service_down_time`.
    pub host_down_seconds: Seconds,
    /// Time that an agent has to answer a notice before the scheduler sends it again.
    pub notice_timeout_seconds: Seconds,
    /// Number of notices after which an evacuation has failed.
    pub notice_attempts: u32,
    /// Time that the interruption itself may take after the grace period. Also the time that a
    /// claim waits for servers that are being deleted, before another host is tried.
    pub act_timeout_seconds: Seconds,
    /// Time that an agent has to start a server before another host is tried. Also the interval at
    /// which a deletion is requested again.
    pub start_timeout_seconds: Seconds,
    /// Number of hosts on which a server is tried before it is in error. Nova's `max_attempts`.
    pub max_attempts: u32,
    /// Time for which a server is not selected again after its evacuation has failed.
    pub failed_victim_rest_seconds: Seconds,
    /// Longest window of a disruption budget. Ended evacuations are kept for longer.
    pub longest_budget_window_seconds: Seconds,
    /// Resumption of servers that were evacuated and kept.
    pub comeback: ComebackConfig,
    /// Prices of preemptible instances.
    pub market: MarketConfig,
}

/// When servers that were stopped or hibernated for a preemptor are resumed automatically.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ComebackConfig {
    /// False: they stay as they are until their owners delete them.
    pub enabled: bool,
    /// Minimum time before a server is resumed after its eviction, and after a failed attempt. It
    /// doubles each further time.
    pub first_seconds: Seconds,
    /// Limit of that time.
    pub max_seconds: Seconds,
    /// A server that has run for this long starts with `first_seconds` again. Resumptions of a
    /// project within this time count in the fair order.
    pub window_seconds: Seconds,
    /// Percentage of each resource class of a host that must stay free for the next request after a
    /// resumption, rounded down. Not applied to a host without other servers.
    pub reserve_percent: u32,
    /// In every second period of this length, the first server in a host's queue reserves the free
    /// capacity for itself. In the other periods smaller servers may overtake it.
    pub hold_seconds: Seconds,
    /// Number of servers that may be resumed on a host at the same time.
    pub at_once: u32,
}

impl Default for ComebackConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            // A grace period: a preemptor whose request is withdrawn may give the capacity back at
            // once.
            first_seconds: Seconds(30),
            max_seconds: Seconds(3600),
            window_seconds: Seconds(3600),
            // One processor of 20 and 5 GiB of 100: enough for a small request, and nothing on
            // hosts with few processors.
            reserve_percent: 5,
            hold_seconds: Seconds(600),
            // Their memory is read from one disk.
            at_once: 4,
        }
    }
}

impl Default for RegionConfig {
    fn default() -> Self {
        let evacuation = EvacuationPolicy::default();
        Self {
            default_grace_seconds: Seconds(30),
            default_protected_seconds: Seconds(0),
            host_down_seconds: Seconds(60),
            notice_timeout_seconds: evacuation.notice_timeout,
            notice_attempts: evacuation.notice_attempts,
            act_timeout_seconds: evacuation.act_timeout,
            start_timeout_seconds: Seconds(600),
            max_attempts: 3,
            failed_victim_rest_seconds: evacuation.failed_rest,
            comeback: ComebackConfig::default(),
            market: MarketConfig::default(),
            longest_budget_window_seconds: Seconds(30 * 24 * 3600),
        }
    }
}

impl RegionConfig {
    /// The settings of the protocol of one victim.
    #[must_use]
    pub fn evacuation(&self) -> EvacuationPolicy {
        EvacuationPolicy {
            notice_timeout: self.notice_timeout_seconds,
            notice_attempts: self.notice_attempts,
            act_timeout: self.act_timeout_seconds,
            failed_rest: self.failed_victim_rest_seconds,
        }
    }

    /// The error of a setting of [`Self::evacuation`], with its key.
    fn evacuation_error(error: PolicyError) -> RegionError {
        let key = match error.setting {
            "notice_timeout" => "notice_timeout_seconds",
            "act_timeout" => "act_timeout_seconds",
            "failed_rest" => "failed_victim_rest_seconds",
            setting => setting,
        };
        let PolicyError {
            value, low, high, ..
        } = error;
        RegionError::Config(format!("region.{key} = {value}: use {low} to {high}"))
    }

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`RegionError::Config`] with the key.
    pub fn check(&self) -> Result<(), RegionError> {
        let within = |key: &str, value: u32, low: u32, high: u32| {
            if (low..=high).contains(&value) {
                Ok(())
            } else {
                Err(RegionError::Config(format!(
                    "region.{key} = {value}: use {low} to {high}"
                )))
            }
        };
        let day = 24 * 3600;
        within(
            "default_grace_seconds",
            self.default_grace_seconds.0,
            0,
            MAX_GRACE.0,
        )?;
        within(
            "default_protected_seconds",
            self.default_protected_seconds.0,
            0,
            MAX_PROTECTED.0,
        )?;
        within("host_down_seconds", self.host_down_seconds.0, 1, day)?;
        self.evacuation().check().map_err(Self::evacuation_error)?;
        within(
            "start_timeout_seconds",
            self.start_timeout_seconds.0,
            1,
            day,
        )?;
        within("max_attempts", self.max_attempts, 1, 100)?;
        // A restarted scheduler reads the evacuations of the last 31 days.
        within(
            "longest_budget_window_seconds",
            self.longest_budget_window_seconds.0,
            0,
            30 * day,
        )?;
        let back = &self.comeback;
        within(
            "comeback.first_seconds",
            back.first_seconds.0,
            1,
            back.max_seconds.0,
        )?;
        within("comeback.max_seconds", back.max_seconds.0, 1, 7 * day)?;
        within("comeback.window_seconds", back.window_seconds.0, 1, 7 * day)?;
        within("comeback.reserve_percent", back.reserve_percent, 0, 90)?;
        within("comeback.hold_seconds", back.hold_seconds.0, 1, day)?;
        within("comeback.at_once", back.at_once, 1, 1000)?;
        self.market.check().map_err(Self::market_error)
    }

    pub(crate) fn market_error(error: MarketError) -> RegionError {
        RegionError::Config(format!("region.{error}"))
    }
}

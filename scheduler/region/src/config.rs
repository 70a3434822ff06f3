//! The policies of a region, with their defaults and limits.

use crate::RegionError;
use ebbtide_market::{MarketConfig, MarketError};
use ebbtide_model::Seconds;
use ebbtide_model::flavor::{MAX_GRACE, MAX_PROTECTED};
use serde::{Deserialize, Serialize};

/// How a region treats servers, victims and agents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RegionConfig {
    /// Grace period of flavors that name none. 30 s as with Google's and Azure's preemptible instances.
    pub default_grace_seconds: Seconds,
    /// Protection after launch of flavors that name none.
    pub default_protected_seconds: Seconds,
    /// A host whose agent has been silent for longer gets no new servers. Nova's `service_down_time`.
    pub host_down_seconds: Seconds,
    /// How long an agent may take to answer a notice before it is sent again.
    pub notice_timeout_seconds: Seconds,
    /// How often a notice is sent before the evacuation has failed.
    pub notice_attempts: u32,
    /// How long the interruption itself may take after the grace period; also, how long a claim waits for servers that are being deleted
    /// before another host is tried.
    pub act_timeout_seconds: Seconds,
    /// How long an agent may take to start a server before another host is tried; also, how often it is asked for a deletion.
    pub start_timeout_seconds: Seconds,
    /// On how many hosts in all a server is tried before it is in error. Nova's `max_attempts`.
    pub max_attempts: u32,
    /// How long a server whose evacuation has failed is not chosen again.
    pub failed_victim_rest_seconds: Seconds,
    /// How far a disruption budget may look back at most. What has ended is kept for longer.
    pub longest_budget_window_seconds: Seconds,
    /// How servers come back that were evacuated and kept.
    pub comeback: ComebackConfig,
    /// Prices of preemptible instances.
    pub market: MarketConfig,
}

/// When servers that were stopped or hibernated for others go on by themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ComebackConfig {
    /// False: they stay as they are until their owners delete them.
    pub enabled: bool,
    /// How long a server stays away at least after it had to leave, and after an attempt that failed. Twice as long each further time.
    pub first_seconds: Seconds,
    /// It never stays away for longer than this if there is room.
    pub max_seconds: Seconds,
    /// Whoever has run for so long begins with `first_seconds` again; a project's comebacks within this time count for its turn.
    pub window_seconds: Seconds,
    /// How much of each resource class of a host has to stay free for the next request when a server comes back, in percent of what the
    /// host has, rounded down. Not looked at where nobody else is.
    pub reserve_percent: u32,
    /// Every other such period of its wait, the first in the queue of a host keeps what is free for itself; in the others smaller ones may
    /// go before it.
    pub hold_seconds: Seconds,
    /// So many may be on their way back on a host at the same time.
    pub at_once: u32,
}

impl Default for ComebackConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            // A grace period: what took the room may give it back at once if its request is withdrawn.
            first_seconds: Seconds(30),
            max_seconds: Seconds(3600),
            window_seconds: Seconds(3600),
            // One processor of 20 and 5 GiB of 100: enough for a small request, and nothing on hosts of a few processors.
            reserve_percent: 5,
            hold_seconds: Seconds(600),
            // Memory is read from one disk.
            at_once: 4,
        }
    }
}

impl Default for RegionConfig {
    fn default() -> Self {
        Self {
            default_grace_seconds: Seconds(30),
            default_protected_seconds: Seconds(0),
            host_down_seconds: Seconds(60),
            notice_timeout_seconds: Seconds(10),
            notice_attempts: 3,
            act_timeout_seconds: Seconds(60),
            start_timeout_seconds: Seconds(600),
            max_attempts: 3,
            failed_victim_rest_seconds: Seconds(300),
            comeback: ComebackConfig::default(),
            market: MarketConfig::default(),
            longest_budget_window_seconds: Seconds(30 * 24 * 3600),
        }
    }
}

impl RegionConfig {
    /// Checks the ranges.
    ///
    /// # Errors
    /// [`RegionError::Config`] that names the key.
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
        within(
            "notice_timeout_seconds",
            self.notice_timeout_seconds.0,
            1,
            3600,
        )?;
        within("notice_attempts", self.notice_attempts, 1, 100)?;
        within("act_timeout_seconds", self.act_timeout_seconds.0, 1, day)?;
        within(
            "start_timeout_seconds",
            self.start_timeout_seconds.0,
            1,
            day,
        )?;
        within("max_attempts", self.max_attempts, 1, 100)?;
        within(
            "failed_victim_rest_seconds",
            self.failed_victim_rest_seconds.0,
            0,
            day,
        )?;
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

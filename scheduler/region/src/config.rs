//! The policies of a region, with their defaults and limits.

use crate::RegionError;
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
        )
    }
}

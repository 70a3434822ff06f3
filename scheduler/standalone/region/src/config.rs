//! The policies of a region, with defaults and limits.

use crate::RegionError;
use ebbtide_evacuation::{ComebackConfig, EvacuationPolicy};
use ebbtide_market::{MarketConfig, MarketError};
use ebbtide_model::Seconds;
use ebbtide_model::flavor::{DEFAULT_GRACE, MAX_GRACE, MAX_PROTECTED};
use ebbtide_model::settings::{OutOfRange, check_ranges};
use serde::{Deserialize, Serialize};

/// In seconds.
const DAY: u32 = 24 * 3600;

ebbtide_model::settings! {
    /// Policies for servers, victims and agents.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct RegionConfig: Default {
        /// Time between notice and end of a victim whose flavor says nothing.
        // 30 s, as with Google's and Azure's preemptible instances.
        pub default_grace_seconds: Seconds = DEFAULT_GRACE => key("120").range(0..=MAX_GRACE.0);
        /// How long after its launch a preemptible server whose flavor says nothing cannot be
        /// chosen as a victim.
        pub default_protected_seconds: Seconds = Seconds(0)
            => key("600").range(0..=MAX_PROTECTED.0);
        /// A host whose agent has been silent for longer gets no new servers. Nova's
        /// `service_down_time`. At least three times the agents' `agent.heartbeat_seconds`.
        pub host_down_seconds: Seconds = Seconds(60) => key("30").range(1..=DAY);
        /// How long an agent may take to answer a notice before it is sent again.
        pub notice_timeout_seconds: Seconds = EvacuationPolicy::DEFAULT.notice_timeout
            => key("5").range(EvacuationPolicy::NOTICE_TIMEOUT);
        /// How often a notice is sent before the evacuation has failed.
        pub notice_attempts: u32 = EvacuationPolicy::DEFAULT.notice_attempts
            => key("5").range(EvacuationPolicy::NOTICE_ATTEMPTS);
        /// How long the interruption itself may take after the grace period; also how long a claim
        /// waits for servers that are being deleted before another host is tried.
        pub act_timeout_seconds: Seconds = EvacuationPolicy::DEFAULT.act_timeout
            => key("120").range(EvacuationPolicy::ACT_TIMEOUT);
        /// How long an agent may take to start a server before another host is tried; also how
        /// often it is asked for a deletion.
        pub start_timeout_seconds: Seconds = Seconds(600) => key("300").range(1..=DAY);
        /// On how many hosts in all a server is tried before it is in error. Nova's `max_attempts`.
        pub max_attempts: u32 = 3 => key("5").range(1..=100);
        /// How long a server whose evacuation has failed is not chosen again.
        pub failed_victim_rest_seconds: Seconds = EvacuationPolicy::DEFAULT.failed_rest
            => key("0").range(EvacuationPolicy::FAILED_REST);
        /// How far a disruption budget may look back at most. What has ended has to be kept for
        /// longer (`database.keep_days`).
        // A restarted scheduler reads the evacuations of the last 31 days.
        pub longest_budget_window_seconds: Seconds = Seconds(30 * DAY)
            => key("604800").range(0..=30 * DAY);
        /// Resumption of servers that were evacuated and kept.
        pub comeback: ComebackConfig = ComebackConfig::default();
        /// Prices of preemptible instances.
        pub market: MarketConfig = MarketConfig::default();
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

    /// Checks the ranges.
    ///
    /// # Errors
    /// [`RegionError::Config`] with the key.
    pub fn check(&self) -> Result<(), RegionError> {
        check_ranges(self).map_err(Self::out_of_range)?;
        let back = &self.comeback;
        if back.first_seconds > back.max_seconds {
            return Err(Self::out_of_range(OutOfRange {
                key: "comeback.first_seconds".to_owned(),
                value: f64::from(back.first_seconds.0),
                least: 1.0,
                most: f64::from(back.max_seconds.0),
            }));
        }
        self.market.check().map_err(Self::market_error)
    }

    pub(crate) fn market_error(error: MarketError) -> RegionError {
        RegionError::Config(format!("region.{error}"))
    }

    fn out_of_range(range: OutOfRange) -> RegionError {
        RegionError::Config(range.within("region").to_string())
    }
}

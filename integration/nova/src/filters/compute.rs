//! ComputeFilter: the host's service is enabled and up (`compute_filter.py`,
//! `nova/servicegroup/drivers/db.py`).

use super::contract::{Context, Filter};
use crate::fault::NovaException;
use crate::model::{HostState, Options, RequestSpec};

/// Enabled and up: the last heartbeat, or else the making of the service, is at most
/// `service_down_time` away, in the past or in the future.
pub struct Compute;

impl Filter for Compute {
    fn name(&self) -> &'static str {
        "ComputeFilter"
    }

    fn once_per_request(&self) -> bool {
        true
    }

    fn starts(&self, options: &Options) -> Result<(), NovaException> {
        options.service_down_time.map(drop).ok_or_else(|| {
            NovaException::new("TypeError", "service_down_time or report_interval is null")
        })
    }

    fn passes(
        &self,
        host: &HostState,
        _: &RequestSpec,
        context: &Context<'_>,
    ) -> Result<bool, NovaException> {
        let service = &host.service;
        if service.disabled {
            return Ok(false);
        }
        if service.forced_down {
            return Ok(false);
        }
        if context.options.servicegroup_memcached {
            return Err(NovaException::new(
                "AttributeError",
                "the heartbeats are in memcached, and there is none",
            ));
        }
        let heartbeat = service.last_seen_up.or(service.created_at).ok_or_else(|| {
            NovaException::new(
                "AttributeError",
                format!("the service of {} was never seen", host.host),
            )
        })?;
        let elapsed = i128::from(context.now) - i128::from(heartbeat);
        Ok(elapsed.abs() <= i128::from(context.options.service_down_time.unwrap_or(0)) * 1_000_000)
    }
}

//! One process for many hosts: one list of servers and one of hosts for all of them.

use super::NovaDriver;
use super::cloud::NovaCloud;
use super::settings::{NovaSettings, seconds};
use crate::clock::Clock;
use crate::driver::registry::Fleet;
use crate::driver::{Driver, DriverError};
use crate::error::AgentError;
use async_trait::async_trait;
use ebbtide_runtime::login::Renewal;
use ebbtide_service_manager::reload::Refusal;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug)]
pub(super) struct NovaFleet {
    cloud: Arc<NovaCloud>,
}

impl NovaFleet {
    pub(super) fn new(settings: NovaSettings, clock: Arc<dyn Clock>) -> Result<Self, AgentError> {
        let cloud = Arc::new(NovaCloud::new(settings, None, clock)?);
        Ok(Self { cloud })
    }
}

#[async_trait]
impl Fleet for NovaFleet {
    async fn hosts(&self) -> Result<BTreeSet<String>, DriverError> {
        let settings = self.cloud.settings();
        if !settings.all_hosts() {
            return Ok(settings.hosts.iter().cloned().collect());
        }
        let known = self.cloud.hosts().await?;
        let (good, bad): (BTreeSet<_>, BTreeSet<_>) = known
            .into_iter()
            .partition(|host| ebbtide_model::names::check_host_name(host).is_ok());
        for host in bad {
            tracing::error!(
                host,
                "no queue can be made for this host: letters, digits, '.', '-' and '_' are allowed"
            );
        }
        Ok(good)
    }

    fn driver(&self, host: &str, state_dir: &Path) -> Result<Arc<dyn Driver>, AgentError> {
        Ok(Arc::new(NovaDriver::open(
            host,
            state_dir,
            Arc::clone(&self.cloud),
        )?))
    }

    async fn renew_login(&self, settings: &toml::Table) -> Result<Renewal, Refusal> {
        self.cloud.renew_login(settings).await
    }

    fn interval(&self) -> Duration {
        seconds(self.cloud.settings().hosts_seconds)
    }
}

//! The nova driver: evacuates through Nova's API, beside nova-compute or for many hosts at once.
//!
//! Notices are server metadata (`openstack server show`, and the metadata service inside the
//! guest). Servers end by `DELETE`, `os-stop`, `shelve` and `shelveOffload`, or `os-migrateLive`;
//! each call returns when Nova shows the effect. The driver chooses each next step from what Nova
//! shows at that time (`judge.rs`), so a call that is repeated, or whose answer was lost, continues
//! from the current state. While Nova's API is unavailable a call waits, until the agent's time
//! limit.
//!
//! The driver never touches a server that Nova shows on another host.

mod cloud;
mod deletion_retry;
mod facts;
mod fleet;
mod judge;
mod notice;
mod servers;
mod settings;
mod termination;
mod usage;

pub use settings::NovaSettings;

use super::registry::{DriverContext, Fleet};
use super::{
    Driver, DriverCall, DriverError, GuestNotice, HostFacts, HypervisorPermit, NoticeOutcome,
    Occupancy, ServerView,
};
use crate::clock::Clock;
use crate::error::AgentError;
use async_trait::async_trait;
use cloud::NovaCloud;
use deletion_retry::DeletionRetries;
use ebbtide_model::message::{EvacuationEnd, HostedState, Start};
use ebbtide_model::{EvacuationId, InterruptionBehaviour, Seconds, ServerId, Timestamp};
use ebbtide_openstack::OpenStackError;
use ebbtide_openstack::compute::Server;
use ebbtide_runtime::login::Renewal;
use ebbtide_service_manager::reload::Refusal;
use judge::EndGoal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use usage::UsageLog;

/// Its name in the registry.
const NAME: &str = "nova";

/// One host of an OpenStack.
#[derive(Debug)]
pub struct NovaDriver {
    host: String,
    cloud: Arc<NovaCloud>,
    usage: Arc<UsageLog>,
    clock: Arc<dyn Clock>,
    deletion_retries: DeletionRetries,
}

pub(super) fn build(context: &DriverContext) -> Result<Arc<dyn Driver>, AgentError> {
    let settings = NovaSettings::from_table(&context.settings)?;
    let only = Some(context.host.clone());
    let cloud = NovaCloud::new(settings, only, Arc::clone(&context.clock))?;
    let driver = NovaDriver::open(&context.host, &context.state_dir, Arc::new(cloud))?;
    Ok(Arc::new(driver))
}

pub(super) fn check_settings(settings: &toml::Table) -> Result<(), AgentError> {
    NovaSettings::from_table(settings).map(drop)
}

pub(super) fn fleet(context: &DriverContext) -> Result<Option<Arc<dyn Fleet>>, AgentError> {
    let settings = NovaSettings::from_table(&context.settings)?;
    if settings.hosts.is_empty() {
        return Ok(None);
    }
    let fleet = fleet::NovaFleet::new(settings, Arc::clone(&context.clock))?;
    Ok(Some(Arc::new(fleet)))
}

impl NovaDriver {
    fn open(host: &str, state_dir: &Path, cloud: Arc<NovaCloud>) -> Result<Self, AgentError> {
        let usage = Arc::new(UsageLog::open(state_dir)?);
        let (host, clock) = (host.to_owned(), cloud.clock());
        Ok(Self {
            host,
            cloud,
            usage,
            clock,
            deletion_retries: DeletionRetries::default(),
        })
    }

    /// The server if it is on this host.
    async fn here(&self, server_id: ServerId, what: &'static str) -> Result<Server, DriverError> {
        let server = self.cloud.server(server_id, what).await?;
        if judge::is_on(&server, &self.host) {
            Ok(server)
        } else {
            Err(DriverError::NotFound { server_id })
        }
    }

    /// Sets metadata for the tenant to see. If Nova refuses (a quota, a state that forbids it), the
    /// evacuation goes on all the same; otherwise a tenant could prevent it.
    async fn notify(
        &self,
        server: &Server,
        pairs: notice::MetadataPairs,
        what: &'static str,
    ) -> Result<(), DriverError> {
        match self.cloud.compute().set_metadata(server.id, &pairs).await {
            Ok(()) => Ok(()),
            Err(OpenStackError::NotFound { .. }) => Err(DriverError::NotFound {
                server_id: ServerId(server.id),
            }),
            Err(error) if error.is_passing() => Err(cloud::failed(what, &error)),
            Err(error) => {
                tracing::warn!(
                    server_id = %server.id, status = server.status, code = error.code(),
                    "Nova does not take metadata, the tenant is not told: {error}"
                );
                Ok(())
            }
        }
    }

    /// Removes what a notice has written, the evacuation last, so that a repeated call finds the
    /// rest.
    async fn untell(&self, server: &Server, what: &'static str) -> Result<(), DriverError> {
        for key in notice::keys_to_remove(&server.metadata) {
            match self.cloud.compute().delete_metadata(server.id, key).await {
                Ok(_) => {}
                Err(error) if error.is_passing() => return Err(cloud::failed(what, &error)),
                Err(error) => {
                    tracing::warn!(server_id = %server.id, key, "a notice stays in the metadata: {error}")
                }
            }
        }
        Ok(())
    }

    /// Writes metadata that shows the owner of a kept server what happened.
    async fn mark(&self, server: &Server, how: &str) -> Result<(), DriverError> {
        let what = "tell the tenant what happened";
        self.notify(server, notice::evacuated(how, self.clock.now()), what)
            .await?;
        self.untell(server, what).await
    }

    async fn end(
        &self,
        server_id: ServerId,
        goal: EndGoal,
        how: EvacuationEnd,
    ) -> Result<(), DriverError> {
        let reached = self.reach(server_id, goal, how).await;
        match &reached {
            Ok(server) => self.cloud.believe(server.clone(), server_id),
            // It may be on another host by now.
            Err(_) => self.cloud.look_again(server_id).await,
        }
        match reached {
            Ok(server) => {
                self.usage.ended(server_id, how, self.clock.now()).await?;
                match (server, goal) {
                    (Some(server), EndGoal::Stopped) => self.mark(&server, "stopped").await,
                    (Some(server), EndGoal::Elsewhere) => self.mark(&server, "migrated").await,
                    _ => Ok(()),
                }
            }
            Err(error @ DriverError::NotFound { .. }) => {
                // The driver most probably ended it before a restart: then its usage record was
                // begun and not finished.
                self.usage.ended(server_id, how, self.clock.now()).await?;
                Err(error)
            }
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl Driver for NovaDriver {
    fn name(&self) -> &'static str {
        NAME
    }

    async fn renew_login(&self, settings: &toml::Table) -> Result<Renewal, Refusal> {
        self.cloud.renew_login(settings).await
    }

    async fn health(&self) -> Result<(), DriverError> {
        self.cloud.health().await
    }

    async fn inventory(&self) -> Result<HostFacts, DriverError> {
        self.cloud.facts(&self.host).await
    }

    async fn list(&self) -> Result<Vec<ServerView>, DriverError> {
        let views = self.cloud.views_of(&self.host).await?;
        self.retry_deletions().await;
        Ok(views)
    }

    async fn occupancy(&self, server_id: ServerId) -> Result<Occupancy, DriverError> {
        if self.cloud.was_deleted_recently(server_id) {
            return Ok(Occupancy::Absent);
        }
        match self
            .cloud
            .server(server_id, "tell what the server holds")
            .await
        {
            Ok(server) => Ok(facts::occupancy(&server, &self.host)),
            Err(DriverError::NotFound { .. }) => Ok(Occupancy::Absent),
            Err(error) => Err(error),
        }
    }

    async fn permit(&self, what: &DriverCall) -> HypervisorPermit {
        self.cloud.permit(what).await
    }

    fn notice_takes(&self) -> Duration {
        self.cloud.notice_takes()
    }

    async fn start(&self, start: &Start) -> Result<Timestamp, DriverError> {
        Err(DriverError::Unsupported {
            driver: NAME,
            what: "start a server",
            detail: format!(
                "server {}: Nova's own services start servers, ask its API",
                start.server_id
            ),
        })
    }

    async fn give_notice(
        &self,
        server_id: ServerId,
        notice: &GuestNotice,
    ) -> Result<NoticeOutcome, DriverError> {
        let what = "give the guest its notice";
        let began = self.clock.now();
        let mut server = self.here(server_id, what).await?;
        self.usage
            .handle_notice_result(&server, &self.host, notice.evacuation_id, self.clock.now())
            .await?;
        if facts::state(&server) != HostedState::Running {
            return Ok(NoticeOutcome::NotRunning);
        }
        if notice::evacuation_in(&server.metadata) != Some(notice.evacuation_id) {
            if server.metadata.contains_key(notice::RELEASE) {
                // The guest's answer to an earlier notice.
                let removed = self
                    .cloud
                    .compute()
                    .delete_metadata(server.id, notice::RELEASE)
                    .await;
                removed.map_err(|error| cloud::failed(what, &error))?;
            }
            let pairs = notice::pairs(notice, &self.cloud.settings().notice_reason);
            self.notify(&server, pairs.clone(), what).await?;
            self.cloud.notice_took(began);
            server.metadata.remove(notice::RELEASE);
            server.metadata.extend(pairs);
        }
        self.cloud.believe(Some(server), server_id);
        Ok(NoticeOutcome::Delivered)
    }

    async fn withdraw_notice(
        &self,
        server_id: ServerId,
        evacuation_id: EvacuationId,
    ) -> Result<(), DriverError> {
        let what = "tell the guest that it may stay";
        let server = self.cloud.server(server_id, what).await?;
        if notice::evacuation_in(&server.metadata) == Some(evacuation_id) {
            self.untell(&server, what).await?;
        }
        self.cloud.look_again(server_id).await;
        Ok(())
    }

    async fn terminate(&self, server_id: ServerId) -> Result<(), DriverError> {
        self.end(server_id, EndGoal::Gone, EvacuationEnd::Terminated)
            .await
    }

    async fn stop(&self, server_id: ServerId) -> Result<(), DriverError> {
        self.end(server_id, EndGoal::Stopped, EvacuationEnd::Stopped)
            .await
    }

    async fn hibernate(&self, server_id: ServerId) -> Result<(), DriverError> {
        self.end(server_id, EndGoal::Shelved, EvacuationEnd::Hibernated)
            .await
    }

    async fn live_migrate(&self, server_id: ServerId) -> Result<(), DriverError> {
        self.end(server_id, EndGoal::Elsewhere, EvacuationEnd::Migrated)
            .await
    }

    async fn unbilled(&self, server_id: ServerId) -> Option<Seconds> {
        self.usage.unbilled(server_id)
    }

    async fn delete(&self, server_id: ServerId) -> Result<(), DriverError> {
        self.end(server_id, EndGoal::Gone, EvacuationEnd::Terminated)
            .await
    }
}

/// The name of a behaviour in a notice.
fn behaviour_word(behaviour: InterruptionBehaviour) -> &'static str {
    match behaviour {
        // The term that Nova's users know.
        InterruptionBehaviour::Hibernate => "shelve",
        other => other.as_str(),
    }
}

#[cfg(test)]
mod tests;

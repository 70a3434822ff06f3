//! Drivers: how the agent talks to a hypervisor.
//!
//! The contract that every driver keeps, and that [`conformance`] checks:
//!
//! **State.** The hypervisor, not the driver, knows which servers exist; a driver that is opened
//! again (the agent restarted) sees the same servers. A server is [running, stopped or
//! hibernated](ebbtide_model::message::HostedState). A running server holds all its resources,
//! another one at most its disk.
//!
//! **Idempotent.** The agent may repeat every call, because an answer may have been lost. Starting
//! a running server changes nothing and returns its start time; stopping a stopped one changes
//! nothing. A call for a server that does not exist returns [`DriverError::NotFound`], which the
//! agent treats as an answer, not as a failure.
//!
//! **Complete.** A call returns `Ok` when its effect is complete, not when it was requested: after
//! [`Driver::terminate`] has returned, [`Driver::occupancy`] says that the server holds nothing (a
//! hypervisor that frees memory later says so there). A call that returns an error other than
//! [`DriverError::TimedOut`] has had no effect, as far as the driver can know.
//!
//! **Cancellable.** The agent drops the future of a call that takes too long. The call may then
//! take effect or not, but repeating it must work.
//!
//! **Concurrent.** Calls about different servers run at the same time. The agent never makes two
//! concurrent calls about one server, except for [`Driver::list`] and [`Driver::inventory`], which
//! may come at any time and must not block for long.
//!
//! **Physical.** A driver gives only free capacity: [`Driver::start`] returns
//! [`DriverError::NoRoom`] rather than overcommitting beyond the inventory that it reports, and
//! leaves nothing behind.
//!
//! A new driver is one module, an entry in [`registry`], and a test that runs it through
//! [`conformance`]; `docs/development/checklists/driver.md` has all of it.

pub mod conformance;
pub mod libvirt;
pub mod nova;
pub mod registry;
pub mod simulated;
pub mod storage;

pub use ebbtide_agent_protocol::{
    DriverCall, DriverError, GuestNotice, HostFacts, NoticeOutcome, Occupancy, ServerView,
};

use async_trait::async_trait;
use ebbtide_model::message::Start;
use ebbtide_model::{EvacuationId, Seconds, ServerId, Timestamp};
use ebbtide_runtime::login::Renewal;
use ebbtide_service_manager::reload::Refusal;
use std::fmt::Debug;
use std::time::Duration;

/// The permit for one hypervisor call, until it is dropped. The default is unlimited.
#[derive(Debug, Default)]
pub struct HypervisorPermit {
    _permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl HypervisorPermit {
    /// One of a limited number of permits.
    #[must_use]
    pub fn of(permit: tokio::sync::OwnedSemaphorePermit) -> Self {
        Self {
            _permit: Some(permit),
        }
    }
}

/// A hypervisor. The contract is in the module's text.
#[async_trait]
pub trait Driver: Send + Sync + Debug {
    /// Its name in the registry.
    fn name(&self) -> &'static str;

    /// Whether the hypervisor answers at all. While it does not, the agent sends no heartbeats, so
    /// that the scheduler places nothing new on the host.
    ///
    /// # Errors
    /// [`DriverError::Failed`] with what is wrong and what to look at.
    async fn health(&self) -> Result<(), DriverError>;

    /// Tests the credentials of settings that were read again, and uses them from now on. A driver
    /// without credentials has nothing to do.
    ///
    /// # Errors
    /// [`Refusal`]: the old ones stay.
    async fn renew_login(&self, _settings: &toml::Table) -> Result<Renewal, Refusal> {
        Ok(Renewal::Unchanged)
    }

    /// The properties of the host.
    ///
    /// # Errors
    /// [`DriverError::Failed`].
    async fn inventory(&self) -> Result<HostFacts, DriverError>;

    /// Every server that the hypervisor has, by identifier.
    ///
    /// # Errors
    /// [`DriverError::Failed`].
    async fn list(&self) -> Result<Vec<ServerView>, DriverError>;

    /// What one server still holds. [`Occupancy::Absent`] if the server does not exist.
    ///
    /// # Errors
    /// [`DriverError::Failed`].
    async fn occupancy(&self, server_id: ServerId) -> Result<Occupancy, DriverError>;

    /// Waits until the hypervisor can take another call. The agent's time limit for a call begins
    /// then, so that a waiting call does not time out. Dropping the returned permit ends the turn.
    async fn permit(&self, _for: &DriverCall) -> HypervisorPermit {
        HypervisorPermit::default()
    }

    /// The recent duration of giving a notice. The agent does not begin a notice with less time
    /// left.
    fn notice_takes(&self) -> Duration {
        Duration::ZERO
    }

    /// Starts a server, or resumes a stopped or hibernated one. Returns its start time. A server to
    /// be resumed ([`Start::resume`]) that does not exist is not created again: its owner would
    /// find an empty machine under its name. A server that is kept on shared storage
    /// ([`Start::storage`]) resumes once this host has taken its token, whichever host released it;
    /// if the start fails, the driver releases the token before it returns.
    ///
    /// # Errors
    /// [`DriverError::NotFound`] only for a server to be resumed, [`DriverError::HeldElsewhere`],
    /// [`DriverError::NoRoom`], [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn start(&self, start: &Start) -> Result<Timestamp, DriverError>;

    /// Gives the guest its notice (by ACPI, guest agent, metadata, or whatever the guest supports).
    /// Repeating it for the same evacuation changes nothing.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn give_notice(
        &self,
        server_id: ServerId,
        notice: &GuestNotice,
    ) -> Result<NoticeOutcome, DriverError>;

    /// Withdraws the guest's notice. Without effect if it has no notice of this evacuation.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn withdraw_notice(
        &self,
        server_id: ServerId,
        evacuation_id: EvacuationId,
    ) -> Result<(), DriverError>;

    /// Ends the server and removes its local disk.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Failed`].
    async fn terminate(&self, server_id: ServerId) -> Result<(), DriverError>;

    /// Shuts the server down; its disk stays.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn stop(&self, server_id: ServerId) -> Result<(), DriverError>;

    /// Writes the server's memory to disk and frees the rest. A stopped server stays stopped.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn hibernate(&self, server_id: ServerId) -> Result<(), DriverError>;

    /// Moves the running server to another host with enough free capacity, which the hypervisor
    /// chooses; without effect if the server is not here any more. A driver that cannot, or finds
    /// no host, returns an error, and the agent ends the server otherwise.
    ///
    /// # Errors
    /// [`DriverError::NotFound`] if it is nowhere, [`DriverError::NoRoom`],
    /// [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn live_migrate(&self, server_id: ServerId) -> Result<(), DriverError> {
        Err(DriverError::Unsupported {
            driver: self.name(),
            what: "move a server to another host",
            detail: format!("server {server_id} has to end otherwise"),
        })
    }

    /// The part of a server's running time that is not to be billed because this driver ended it in
    /// the middle of an hour. `None` if the driver does not know, or if the server ended otherwise.
    async fn unbilled(&self, _server_id: ServerId) -> Option<Seconds> {
        None
    }

    /// The shared storage in which a server that does not run is kept; any host of the storage can
    /// resume it. `None` for a server that only this host can resume.
    async fn saved_storage(&self, _server_id: ServerId) -> Option<String> {
        None
    }

    /// Like [`Self::delete`], and also removes what any host has kept of the server on this
    /// storage.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::HeldElsewhere`], [`DriverError::Failed`].
    async fn delete_saved(&self, server_id: ServerId, _storage: &str) -> Result<(), DriverError> {
        self.delete(server_id).await
    }

    /// Removes the server with everything that it has, in any state. What another host has kept on
    /// shared storage stays: this call may be about the rest of an attempt that was given up here.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Failed`].
    async fn delete(&self, server_id: ServerId) -> Result<(), DriverError>;
}

//! Drivers: how the agent talks to a hypervisor.
//!
//! The contract that every driver keeps, and that [`conformance`] checks:
//!
//! **State.** The hypervisor, not the driver, knows which servers exist; a driver that is opened anew (the agent restarted)
//! sees the same servers. A server is [running, stopped or hibernated](ebbtide_model::message::HostedState). A running
//! server holds all its resources, another one at most its disk.
//!
//! **Idempotent.** Every call may be repeated, because an answer may have got lost. Starting a server that runs changes
//! nothing and tells since when it runs; stopping one that is stopped changes nothing. Acting on a server that is not
//! there is [`DriverError::NotFound`], which the agent takes for an answer, not for a failure.
//!
//! **Complete.** A call returns `Ok` when its effect is there, not when it was asked for: after [`Driver::terminate`] has
//! returned, [`Driver::occupancy`] says that nothing is held (a hypervisor that frees memory later says so there).
//! A call that returns an error other than [`DriverError::TimedOut`] has had no effect, as far as the driver can know.
//!
//! **Cancellable.** The agent drops the future of a call that takes too long. The call may then take effect or not, but
//! repeating it must work.
//!
//! **Concurrent.** Calls about different servers run at the same time; the agent never makes two at a time about one server,
//! except for [`Driver::list`] and [`Driver::inventory`], which may come at any time and must not block for long.
//!
//! **Physical.** What is not free cannot be given: [`Driver::start`] answers [`DriverError::NoRoom`] rather than
//! overcommitting beyond the inventory that it reports, and leaves nothing behind.
//!
//! A new driver is one module, one line in [`registry`], and a test that runs it through [`conformance`].

pub mod conformance;
pub mod libvirt;
pub mod nova;
pub mod registry;
pub mod simulated;
pub mod storage;

pub use ebbtide_agent_protocol::{
    Action, DriverError, GuestNotice, HostFacts, NoticeOutcome, Occupancy, ServerView,
};

use async_trait::async_trait;
use ebbtide_model::message::Start;
use ebbtide_model::{EvacuationId, Seconds, ServerId, Timestamp};
use std::fmt::Debug;
use std::time::Duration;

/// The right to ask a hypervisor for one thing, until it is dropped. The default is for hypervisors that take whatever comes.
#[derive(Debug, Default)]
pub struct HypervisorPermit {
    _permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl HypervisorPermit {
    /// One of a limited number.
    #[must_use]
    pub fn of(permit: tokio::sync::OwnedSemaphorePermit) -> Self {
        Self {
            _permit: Some(permit),
        }
    }
}

/// A hypervisor, as the agent needs it. The contract is in the module's text.
#[async_trait]
pub trait Driver: Send + Sync + Debug {
    /// Its name in the registry.
    fn name(&self) -> &'static str;

    /// Whether the hypervisor answers at all. While it does not, the agent sends no heartbeats, so that nothing new is
    /// placed on the host.
    ///
    /// # Errors
    /// [`DriverError::Failed`] with what is wrong and what to look at.
    async fn health(&self) -> Result<(), DriverError>;

    /// What the host has and is.
    ///
    /// # Errors
    /// [`DriverError::Failed`].
    async fn inventory(&self) -> Result<HostFacts, DriverError>;

    /// Every server that the hypervisor has, by identifier.
    ///
    /// # Errors
    /// [`DriverError::Failed`].
    async fn list(&self) -> Result<Vec<ServerView>, DriverError>;

    /// What one server still holds. [`Occupancy::Absent`] if it is not there.
    ///
    /// # Errors
    /// [`DriverError::Failed`].
    async fn occupancy(&self, server_id: ServerId) -> Result<Occupancy, DriverError>;

    /// Waits until the hypervisor can be asked for one thing more. The agent's time limit for a call begins then, so that calls
    /// which stand in line behind others do not fail for that. The turn ends when what is returned is dropped.
    async fn permit(&self, _for: &Action) -> HypervisorPermit {
        HypervisorPermit::default()
    }

    /// How long it has lately taken to give a notice. One for which less time is left is not begun.
    fn notice_takes(&self) -> Duration {
        Duration::ZERO
    }

    /// Starts a server, or lets a stopped or hibernated one go on. Returns since when it runs. One that is to go on
    /// ([`Start::resume`]) and is not there is not made anew: its owner would find an empty machine under its name. One that is kept on shared
    /// storage ([`Start::storage`]) goes on once its token is taken, whichever host has put it there; if the start fails, the token is
    /// put down before that is said.
    ///
    /// # Errors
    /// [`DriverError::NotFound`] only for one that is to go on, [`DriverError::HeldElsewhere`], [`DriverError::NoRoom`], [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn start(&self, start: &Start) -> Result<Timestamp, DriverError>;

    /// Tells the guest that its end is near (ACPI, guest agent, metadata: whatever reaches it). Telling it again about the
    /// same evacuation changes nothing.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn give_notice(
        &self,
        server_id: ServerId,
        notice: &GuestNotice,
    ) -> Result<NoticeOutcome, DriverError>;

    /// Tells the guest that it may stay. Without effect if it has no notice of this evacuation.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn withdraw_notice(
        &self,
        server_id: ServerId,
        evacuation_id: EvacuationId,
    ) -> Result<(), DriverError>;

    /// Ends the server; its local disk is gone.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Failed`].
    async fn terminate(&self, server_id: ServerId) -> Result<(), DriverError>;

    /// Shuts the server down; its disk stays.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn stop(&self, server_id: ServerId) -> Result<(), DriverError>;

    /// Writes the server's memory to disk and frees the rest. A server that is stopped stays stopped.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Unsupported`], [`DriverError::Failed`].
    async fn hibernate(&self, server_id: ServerId) -> Result<(), DriverError>;

    /// Moves the server, running, to another host that has room, of the hypervisor's own choice; without effect if it is not here
    /// any more. A driver that cannot, or finds no room, says so, and the server ends otherwise.
    ///
    /// # Errors
    /// [`DriverError::NotFound`] if it is nowhere, [`DriverError::NoRoom`], [`DriverError::Unsupported`],
    /// [`DriverError::Failed`].
    async fn live_migrate(&self, server_id: ServerId) -> Result<(), DriverError> {
        Err(DriverError::Unsupported {
            driver: self.name(),
            what: "move a server to another host",
            detail: format!("server {server_id} has to end otherwise"),
        })
    }

    /// The part of a server's running time that is not to be billed because this driver ended it in the middle of an hour. `None`
    /// if it does not know, or if the server ended otherwise.
    async fn unbilled(&self, _server_id: ServerId) -> Option<Seconds> {
        None
    }

    /// The storage in which a server is kept that does not run, if several hosts share it: any of them can let it go on. `None` for a server that
    /// can only go on here.
    async fn kept_in(&self, _server_id: ServerId) -> Option<String> {
        None
    }

    /// Like [`Self::delete`], and what is kept of the server on this storage goes, too, whichever host has put it there.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::HeldElsewhere`], [`DriverError::Failed`].
    async fn delete_kept(&self, server_id: ServerId, _storage: &str) -> Result<(), DriverError> {
        self.delete(server_id).await
    }

    /// Removes the server with all it has, whatever it is doing. What another host has put down on shared storage stays: this may be about
    /// the rest of an attempt that was given up here.
    ///
    /// # Errors
    /// [`DriverError::NotFound`], [`DriverError::Failed`].
    async fn delete(&self, server_id: ServerId) -> Result<(), DriverError>;
}

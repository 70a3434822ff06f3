//! Why a scheduler does not start or has to stop. A caller gets Nova's own exceptions instead.

use ebbtide_bus::BusError;
use ebbtide_live_plugins::LivePluginError;
use ebbtide_model::Timestamp;
use ebbtide_nova_cloud::CloudError;
use ebbtide_nova_db::NovaDbError;
use ebbtide_openstack::OpenStackError;
use ebbtide_plugins::PluginError;
use ebbtide_runtime::task;
use ebbtide_store::ledger::LedgerError;
use oslo_messaging::MessagingError;
use thiserror::Error;

/// All tasks of a running scheduler.
pub(crate) type Tasks = task::Tasks<LedgerError>;

/// Stops the scheduler because of an error that it cannot recover from.
pub(crate) fn fail(tasks: &Tasks, error: LedgerError) {
    tracing::error!(code = error.code(), "{error}; the scheduler ends");
    tasks.stop_with(error);
}

/// An error of the Nova service.
#[derive(Debug, Error)]
pub enum NovaServiceError {
    /// nova.conf is invalid.
    #[error("{0}")]
    Config(String),
    /// One of Nova's databases.
    #[error(transparent)]
    Database(#[from] NovaDbError),
    /// Keystone or Placement.
    #[error(transparent)]
    OpenStack(#[from] OpenStackError),
    /// The data of the services above are not acceptable to the cloud in memory.
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// Nova's message bus.
    #[error(transparent)]
    Messaging(#[from] MessagingError),
    /// The operator's plugins.
    #[error(transparent)]
    Plugin(#[from] PluginError),
    /// The plugins that operators change while schedulers run.
    #[error(transparent)]
    LivePlugins(#[from] LivePluginError),
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The ledger is configured and was not open yet.
    #[error("{0}; ask again in a moment")]
    LedgerAway(String),
    /// The ledger was restored from a backup: no server is preempted until it is reconciled.
    #[error(
        "the ledger was restored from a backup (marked at {at}) and is not reconciled; no server is preempted until `ebbtide-manage reconcile --config-file NOVA_CONF --apply`"
    )]
    LedgerHeld { at: Timestamp },
    /// A restored ledger cannot be reconciled now.
    #[error("the ledger cannot be reconciled now: {0}")]
    NotReconcilable(String),
    /// The bus to the agents.
    #[error(transparent)]
    Bus(#[from] BusError),
}

impl NovaServiceError {
    /// The stable code, as in `docs/reference/errors.md`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Config(_) => "EB-DOOR-001",
            Self::Database(error) => error.code(),
            Self::OpenStack(error) => error.code(),
            Self::Cloud(error) => error.code(),
            Self::Messaging(error) => error.code(),
            Self::Plugin(error) => error.code(),
            Self::LivePlugins(error) => error.code(),
            Self::Ledger(error) => error.code(),
            Self::LedgerAway(_) => "EB-DOOR-005",
            Self::LedgerHeld { .. } => "EB-DOOR-006",
            Self::NotReconcilable(_) => "EB-DOOR-007",
            Self::Bus(error) => error.code(),
        }
    }

    /// True if a retry with the same configuration may succeed.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Config(_) | Self::Cloud(_) | Self::Plugin(_) => false,
            Self::LedgerAway(_) | Self::LedgerHeld { .. } | Self::NotReconcilable(_) => true,
            Self::LivePlugins(error) => error.is_passing(),
            Self::Database(error) => error.is_retryable(),
            Self::OpenStack(error) => error.is_passing(),
            Self::Messaging(error) => error.is_transient(),
            Self::Ledger(error) => error.is_retryable(),
            Self::Bus(error) => error.is_transient(),
        }
    }
}

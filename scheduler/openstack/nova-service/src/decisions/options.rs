//! What the operator says about recorded decisions.

use crate::configure;
use crate::error::NovaServiceError;
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_store::StoreConfig;
use std::time::Duration;

/// Connections of the recorder: one that writes, one that purges, two for readers.
const CONNECTIONS: u32 = 4;
/// A database that does not answer for so long counts as away.
const PATIENCE: Duration = Duration::from_secs(10);
const DAY: u64 = 24 * 3600;

/// How decisions are recorded.
#[derive(Debug, Clone)]
pub(crate) struct DecisionOptions {
    /// The database.
    pub(crate) store: StoreConfig,
    /// This scheduler's name.
    pub(crate) scheduler: String,
    /// How long a decision is kept; `None`: for ever.
    pub(crate) keep: Option<Duration>,
    /// Most records that wait for the database.
    pub(crate) queue: usize,
}

impl DecisionOptions {
    /// The options; `None` if no decision is recorded: switched off, or without a database.
    ///
    /// # Errors
    /// [`NovaServiceError::Config`]: the URL names no database that can be used.
    pub(crate) fn read(conf: &NovaConf) -> Result<Option<Self>, NovaServiceError> {
        let ours = &conf.ebbtide;
        let Some(url) = ours.connection.as_ref().filter(|_| ours.decisions) else {
            tracing::info!("decisions are not recorded ([ebbtide] decisions, connection)");
            return Ok(None);
        };
        let mut store = configure::ledger(url)?;
        store.max_connections = CONNECTIONS;
        store.operation_timeout = PATIENCE;
        let days = u64::try_from(ours.decisions_keep).unwrap_or(0);
        Ok(Some(Self {
            store,
            scheduler: ours.name.as_ref().unwrap_or(&conf.general.host).clone(),
            keep: (days > 0).then(|| Duration::from_secs(days.saturating_mul(DAY))),
            queue: usize::try_from(ours.decisions_queue).unwrap_or(1).max(1),
        }))
    }
}

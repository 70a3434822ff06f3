//! How the pools of the control plane test the connections to a server.

use crate::hosts::{Hosts, Writable};
use sea_orm::sqlx::pool::{PoolConnectionMetadata, PoolOptions};
use sea_orm::sqlx::{Connection as _, Error};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A connection that was idle for this long is tested before it is used. A busy connection is not:
/// its next statement shows whether it works.
pub(crate) const TEST_AFTER_IDLE: Duration = Duration::from_secs(1);
/// How long a connection may take to answer a test after its server had stopped answering.
const SILENCE_TEST: Duration = Duration::from_secs(1);

/// The bounds of a pool.
#[derive(Debug, Clone, Copy)]
pub struct PoolLimits {
    /// Most connections; at least one.
    pub max_connections: u32,
    /// How long a caller waits for a connection.
    pub acquire_timeout: Duration,
    /// A connection of this age is closed, so that changed addresses and rights are noticed.
    pub max_lifetime: Duration,
}

/// Options of a pool to a server. `silent`: true after an operation was given up for want of an
/// answer; the pool then tests the connections that come back.
pub fn server_pool<D: Writable>(
    limits: PoolLimits,
    silent: &Arc<AtomicBool>,
    hosts: &Arc<Hosts<D>>,
) -> PoolOptions<D> {
    let (silent, hosts) = (Arc::clone(silent), Arc::clone(hosts));
    PoolOptions::new()
        .max_connections(limits.max_connections.max(1))
        .acquire_timeout(limits.acquire_timeout)
        .max_lifetime(limits.max_lifetime)
        .test_before_acquire(false)
        .before_acquire(
            move |connection: &mut D::Connection, meta: PoolConnectionMetadata| {
                let outdated = hosts.is_outdated(meta.age);
                Box::pin(async move {
                    if outdated {
                        return Ok(false);
                    }
                    if meta.idle_for >= TEST_AFTER_IDLE {
                        connection.ping().await?;
                    }
                    Ok(true)
                })
            },
        )
        // The driver tests connections that come back, for as long as it takes. After an operation
        // was given up that may be until the system's TCP gives up as well, a quarter of an hour,
        // in which the pool would have one connection less.
        .after_release(move |connection: &mut D::Connection, _| {
            let silent = Arc::clone(&silent);
            Box::pin(async move {
                if silent.load(Ordering::Relaxed) {
                    tokio::time::timeout(SILENCE_TEST, connection.ping())
                        .await
                        .map_err(|_| Error::PoolTimedOut)??;
                    silent.store(false, Ordering::Relaxed);
                }
                Ok(true)
            })
        })
}

//! Pools of connections.

use std::time::Duration;

/// How hard a database is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolOptions {
    /// Most connections to each database. Default 5, as `[database] max_pool_size`.
    pub max_connections: u32,
    /// How long a connection may take. Default 10 s.
    pub connect_timeout: Duration,
    /// After this time an operation is given up as `Unavailable`. Default 60 s, as Nova's cell timeout.
    pub operation_timeout: Duration,
    /// Connections are renewed after this time. Default one hour, as `[database] connection_recycle_time`.
    pub max_lifetime: Duration,
}

impl Default for PoolOptions {
    fn default() -> Self {
        Self {
            max_connections: 5,
            connect_timeout: Duration::from_secs(10),
            operation_timeout: Duration::from_secs(60),
            max_lifetime: Duration::from_secs(3600),
        }
    }
}

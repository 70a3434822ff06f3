//! A row of `services` (`nova/objects/service.py`).

use ebbtide_nova::model::Service;

/// A service record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NovaService {
    /// Database id.
    pub id: i64,
    /// UUID.
    pub uuid: Option<String>,
    /// Host.
    pub host: String,
    /// For example `nova-compute`.
    pub binary: String,
    /// Service version.
    pub version: i64,
    /// What filters look at: disabled, forced down, last seen up.
    pub service: Service,
    /// Microseconds since 1970, UTC.
    pub updated_at: Option<i64>,
    /// Deleted by an operator; only changes report such rows.
    pub deleted: bool,
}

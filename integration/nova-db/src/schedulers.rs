//! The records of all schedulers of a cloud, Nova's and ours: they share one name.

use crate::api::NovaDb;
use crate::dialect::RowReader;
use crate::error::NovaDbError;
use sea_orm::DbErr;

/// A row `nova-scheduler` of `services`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchedulerRecord {
    pub host: String,
    /// Service version.
    pub version: i64,
    /// Last heartbeat, in microseconds since 1970, UTC; `None`: there was none yet.
    pub last_seen_up: Option<i64>,
}

impl NovaDb {
    /// All records of schedulers in the schedulers' own database (`[database] connection`), by
    /// host.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn schedulers(&self) -> Result<Vec<SchedulerRecord>, NovaDbError> {
        let pool = self.main();
        let dialect = pool.dialect();
        let sql = format!(
            "SELECT s.host, {}, {} FROM services s \
             WHERE s.deleted = 0 AND s.{} = 'nova-scheduler' ORDER BY s.host",
            dialect.int("s.version"),
            dialect.moment("s.last_seen_up"),
            dialect.quoted("binary")
        );
        let rows = pool
            .rows("read the schedulers' records", &sql, Vec::new())
            .await?;
        rows.iter()
            .map(|row| {
                let mut columns = RowReader::new(row);
                let mut read = || {
                    Ok(SchedulerRecord {
                        host: columns.text()?.unwrap_or_default(),
                        version: columns.int()?.unwrap_or_default(),
                        last_seen_up: columns.moment()?,
                    })
                };
                read().map_err(|error: DbErr| pool.unreadable("services", &error))
            })
            .collect()
    }
}

//! The scheduler's own row in `services` (`nova/service.py`, `nova/servicegroup/drivers/db.py`), and the check of the computes'
//! versions (`nova/utils.py`, `raise_if_old_compute`).

use crate::api::NovaDb;
use crate::clock;
use crate::dialect::{Columns, moment};
use crate::error::NovaDbError;
use crate::ids;
use crate::pool::{Pool, is_duplicate};
use sea_orm::{DbErr, Value};

/// `SERVICE_VERSION` of Nova 26 (Zed), the oldest release that we take the place of.
const OLDEST_VERSION: i64 = 64;

/// What a release of Nova writes and demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Release {
    /// `SERVICE_VERSION` that goes into the record.
    pub service_version: i64,
    /// Computes older than this are refused at start.
    pub oldest_compute: i64,
}

/// Nova's major version by the highest `SERVICE_VERSION` that it knows (`SERVICE_VERSION_ALIASES`). 66 is the one of Antelope, Bobcat and
/// Caracal; it is taken for the last of them.
const MAJORS: [(i64, u32); 6] = [(65, 26), (66, 29), (67, 30), (68, 31), (70, 32), (72, 33)];
/// The major version of all that are newer: the newest that is known.
const NEWEST_MAJOR: u32 = 34;

impl Release {
    /// Nova's major version: 26 is Zed.
    #[must_use]
    pub fn major(&self) -> u32 {
        let known = MAJORS
            .iter()
            .find(|(version, _)| self.service_version <= *version);
        known.map_or(NEWEST_MAJOR, |(_, major)| *major)
    }

    /// The release of a cloud whose newest service has this version: with more in the record, the cloud's own nova-scheduler would
    /// refuse to start when it takes over again (`ServiceTooOld`); with less, `nova-status upgrade check` would complain.
    #[must_use]
    pub fn of_version(newest: i64) -> Self {
        let service_version = newest.max(OLDEST_VERSION);
        // OLDEST_SUPPORTED_SERVICE_VERSION of the releases. Version 66 was the one of three of them; the first is the most lenient.
        let oldest_compute = match service_version {
            ..=66 => 61,
            67 | 68 => 66,
            69..=72 => 68,
            _ => 72,
        };
        Self {
            service_version,
            oldest_compute,
        }
    }
}

/// What to do about computes that are too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TooOld {
    /// Refuse to start.
    Refuse,
    /// Log it (`[workarounds] disable_compute_service_check_for_ffu`).
    Warn,
}

/// What the record says of us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnState {
    /// Database id.
    pub id: i64,
    /// UUID.
    pub uuid: Option<String>,
    /// Heartbeats so far.
    pub report_count: i64,
    /// Disabled by an operator. nova-scheduler goes on working; so do we, and show it.
    pub disabled: bool,
    /// Service version in the record.
    pub version: i64,
}

/// The record. It lives in the database of `[database] connection`.
#[derive(Debug, Clone)]
pub struct OwnService {
    pool: Pool,
    host: String,
    id: i64,
}

impl NovaDb {
    /// The lowest version of a nova-compute that is not forced down, over all cells, cell0 and disabled ones included; 0: there
    /// is none. Cells that do not answer are left out, as Nova does (`get_minimum_version_all_cells`).
    ///
    /// # Errors
    /// Those of the API database.
    pub async fn min_compute_version(&self) -> Result<i64, NovaDbError> {
        self.cells().await?;
        let mut lowest: Option<i64> = None;
        for cell in self.cells_where(|_| true) {
            let dialect = cell.pool.dialect();
            let sql = format!(
                "SELECT {} FROM services s WHERE s.{} = 'nova-compute' AND s.deleted = 0 AND {}",
                dialect.int("MIN(s.version)"),
                dialect.quoted("binary"),
                dialect.is_false("s.forced_down")
            );
            match number(&cell.pool, &sql).await {
                // Services without a version do not count.
                Ok(Some(version)) if version > 0 => {
                    lowest = Some(lowest.map_or(version, |lowest| lowest.min(version)));
                }
                Ok(_) => {}
                Err(error) => {
                    tracing::warn!(code = error.code(), %error, "a cell did not say how old its computes are");
                }
            }
        }
        Ok(lowest.unwrap_or(0))
    }

    /// The release that the cloud runs, by the highest version of any service in the cells and in our own database.
    ///
    /// # Errors
    /// Those of the API database; a cell that does not answer is left out.
    pub async fn release(&self) -> Result<Release, NovaDbError> {
        let mut highest = 0;
        let cells = self.cells_where(|_| true);
        for pool in cells.iter().map(|cell| &cell.pool).chain([self.main()]) {
            let dialect = pool.dialect();
            let sql = format!(
                "SELECT {} FROM services s WHERE s.deleted = 0 AND s.{} <> 'nova-scheduler'",
                dialect.int("MAX(s.version)"),
                dialect.quoted("binary"),
            );
            match number(pool, &sql).await {
                Ok(version) => highest = highest.max(version.unwrap_or(0)),
                Err(error) => {
                    tracing::warn!(code = error.code(), %error, "a cell did not say how new its services are");
                }
            }
        }
        Ok(Release::of_version(highest))
    }
}

async fn number(pool: &Pool, sql: &str) -> Result<Option<i64>, NovaDbError> {
    let rows = pool.rows("read service versions", sql, Vec::new()).await?;
    match rows.first() {
        None => Ok(None),
        Some(row) => row
            .try_get_by_index(0)
            .map_err(|error| pool.unreadable("services", &error)),
    }
}

impl OwnService {
    /// Finds the record of `nova-scheduler` on `host`, or makes it, and writes our version into it.
    ///
    /// # Errors
    /// `TooOldCompute`; those of the database.
    pub async fn start(
        db: &NovaDb,
        host: &str,
        release: Release,
        too_old: TooOld,
    ) -> Result<Self, NovaDbError> {
        let found = db.min_compute_version().await?;
        // 0 is a cloud whose computes are yet to come.
        if found != 0 && found < release.oldest_compute {
            let error = NovaDbError::TooOldCompute {
                found,
                needed: release.oldest_compute,
            };
            match too_old {
                TooOld::Refuse => return Err(error),
                TooOld::Warn => tracing::warn!(code = error.code(), %error, "started nevertheless"),
            }
        }
        let pool = db.main().clone();
        let state = match find(&pool, host).await? {
            Some(state) => state,
            None => {
                match insert(&pool, host, release.service_version).await {
                    // Another worker on the same host was faster.
                    Err(error) if is_duplicate(&error) => {}
                    other => other?,
                }
                let made = find(&pool, host).await?;
                made.ok_or_else(|| NovaDbError::RecordGone {
                    host: host.to_owned(),
                })?
            }
        };
        if state.version != release.service_version {
            tracing::info!(
                from = state.version,
                to = release.service_version,
                "the version in our services record changes"
            );
            let sql = format!(
                "UPDATE services SET version = ?, updated_at = {} WHERE id = ? AND deleted = 0",
                pool.dialect().at()
            );
            let values = vec![
                release.service_version.into(),
                moment(clock::now_micros()).into(),
                state.id.into(),
            ];
            pool.execute("write our services record", &sql, values)
                .await?;
        }
        Ok(Self {
            pool,
            host: host.to_owned(),
            id: state.id,
        })
    }

    /// One heartbeat, to be called every `report_interval`.
    ///
    /// # Errors
    /// `RecordGone`; those of the database. Nova logs them and beats on.
    pub async fn beat(&self) -> Result<OwnState, NovaDbError> {
        let at = self.pool.dialect().at();
        let now = Value::from(moment(clock::now_micros()));
        let sql = format!(
            "UPDATE services SET updated_at = {at}, last_seen_up = {at}, report_count = report_count + 1 \
             WHERE id = ? AND deleted = 0"
        );
        let values = vec![now.clone(), now, self.id.into()];
        let touched = self
            .pool
            .execute("write our services record", &sql, values)
            .await?;
        let state = match touched {
            0 => None,
            _ => find(&self.pool, &self.host).await?,
        };
        state
            .filter(|state| state.id == self.id)
            .ok_or_else(|| NovaDbError::RecordGone {
                host: self.host.clone(),
            })
    }
}

async fn find(pool: &Pool, host: &str) -> Result<Option<OwnState>, NovaDbError> {
    let dialect = pool.dialect();
    let sql = format!(
        "SELECT {}, s.uuid, {}, {}, {} FROM services s \
         WHERE s.deleted = 0 AND s.host = ? AND s.{} = 'nova-scheduler' ORDER BY s.id",
        dialect.int("s.id"),
        dialect.int("s.report_count"),
        dialect.truth("s.disabled"),
        dialect.int("s.version"),
        dialect.quoted("binary")
    );
    let rows = pool
        .rows("read our services record", &sql, vec![host.into()])
        .await?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let mut columns = Columns::new(row);
    let mut read = || {
        Ok(OwnState {
            id: columns.int()?.unwrap_or_default(),
            uuid: columns.text()?,
            report_count: columns.int()?.unwrap_or_default(),
            disabled: columns.truth()?,
            version: columns.int()?.unwrap_or_default(),
        })
    };
    read()
        .map(Some)
        .map_err(|error: DbErr| pool.unreadable("services", &error))
}

async fn insert(pool: &Pool, host: &str, version: i64) -> Result<(), NovaDbError> {
    let dialect = pool.dialect();
    let no = match dialect.0 {
        crate::Backend::Postgres => "FALSE",
        crate::Backend::MySql | crate::Backend::Sqlite => "0",
    };
    let sql = format!(
        "INSERT INTO services (created_at, deleted, uuid, host, {}, topic, report_count, disabled, forced_down, version) \
         VALUES ({}, 0, ?, ?, 'nova-scheduler', 'scheduler', 0, {no}, {no}, ?)",
        dialect.quoted("binary"),
        dialect.at(),
    );
    let values = vec![
        moment(clock::now_micros()).into(),
        ids::fresh().into(),
        host.into(),
        version.into(),
    ];
    pool.execute("write our services record", &sql, values)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::Release;

    #[test]
    fn a_release_is_known_by_its_services_and_refuses_what_it_refuses() {
        for (newest, version, oldest) in [
            (0, 64, 61),
            (64, 64, 61),
            (66, 66, 61),
            (68, 68, 66),
            (74, 74, 72),
            (80, 80, 72),
        ] {
            let release = Release::of_version(newest);
            assert_eq!(
                (release.service_version, release.oldest_compute),
                (version, oldest)
            );
        }
    }
}

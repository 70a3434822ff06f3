//! The scheduler's own row in `services` (`nova/service.py`, `nova/servicegroup/drivers/db.py`),
//! and the check of the computes' versions (`nova/utils.py`, `raise_if_old_compute`).

use crate::api::NovaDb;
use crate::dialect::{RowReader, moment};
use crate::error::NovaDbError;
use crate::pool::{DatabasePool, is_duplicate};
use ebbtide_runtime::clock;
use ebbtide_runtime::ids;
use sea_orm::{DbErr, Value};

/// `SERVICE_VERSION` of Nova 26 (Zed), the oldest release that we take the place of.
const OLDEST_VERSION: i64 = 64;

/// What a release of Nova writes and demands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NovaRelease {
    /// `SERVICE_VERSION` that goes into the record.
    pub service_version: i64,
    /// Computes older than this are refused at start.
    pub oldest_compute: i64,
}

/// Nova's major version by the highest `SERVICE_VERSION` that its services write. It is the
/// constant of `nova/objects/service.py`, not `SERVICE_VERSION_ALIASES`: the latter gives 66 to
/// Caracal (29), whose services write 67. 66 is the one of Antelope and Bobcat, 67 the one of
/// Caracal and Dalmatian; each is taken for the later one. Schedulers of the last two decide the
/// same.
const MAJORS: [(i64, u32); 6] = [(65, 26), (66, 28), (67, 30), (68, 31), (70, 32), (72, 33)];
/// The newest major version that is known, and its `SERVICE_VERSION`. All that are newer count as
/// this one.
const NEWEST: (i64, u32) = (74, 34);

impl NovaRelease {
    /// Nova's major version: 26 is Zed.
    #[must_use]
    pub fn major(&self) -> u32 {
        let known = MAJORS
            .iter()
            .find(|(version, _)| self.service_version <= *version);
        known.map_or(NEWEST.1, |(_, major)| *major)
    }

    /// The release of a major version, for an operator who names it. One that is older or newer
    /// than what is known is the nearest known one.
    #[must_use]
    pub fn of_major(major: u32) -> Self {
        let known = MAJORS.iter().find(|(_, known)| major <= *known);
        let version = known.map_or(NEWEST.0, |(version, _)| *version);
        // Zed is 64; 65 came after it, in the making of Antelope.
        Self::of_version(if major <= MAJORS[0].1 {
            OLDEST_VERSION
        } else {
            version
        })
    }

    /// What an operator should know who leaves it to us to tell the release: that its version is
    /// the one of several, or of none that is known.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        let version = self.service_version;
        match version {
            66 => Some(format!(
                "services of version {version} are those of Antelope (27) or Bobcat (28), and are taken for Bobcat"
            )),
            version if version > NEWEST.0 => Some(format!(
                "services of version {version} are newer than those of Nova {}, the newest that is known here, and are taken for it",
                NEWEST.1
            )),
            _ => None,
        }
    }

    /// The release of a cloud whose newest service has this version: with more in the record, the
    /// cloud's own nova-scheduler would refuse to start when it takes over again (`ServiceTooOld`);
    /// with less, `nova-status upgrade check` would complain.
    #[must_use]
    pub fn of_version(newest: i64) -> Self {
        let service_version = newest.max(OLDEST_VERSION);
        // OLDEST_SUPPORTED_SERVICE_VERSION of the releases. Version 66 was the one of two of them;
        // the first is the more lenient.
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

/// What the records of Nova's other services show of the cloud's release.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReleaseEvidence {
    /// The highest version of any service that is no scheduler; `None`: there is no such record
    /// yet, for example in a cloud that is being built.
    pub newest: Option<i64>,
    /// Whether every database has answered.
    pub complete: bool,
}

impl ReleaseEvidence {
    /// The release by this and by what was known before. A newer one than seen now stays as long as
    /// a database that is silent may have it.
    #[must_use]
    pub fn after(self, known: Option<NovaRelease>) -> Option<NovaRelease> {
        let Some(newest) = self.newest else {
            return known;
        };
        let seen = NovaRelease::of_version(newest);
        match known {
            Some(known) if !self.complete && known.service_version > seen.service_version => {
                Some(known)
            }
            _ => Some(seen),
        }
    }
}

/// What to do about computes that are too old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OldComputePolicy {
    Refuse,
    /// Log it (`[workarounds] disable_compute_service_check_for_ffu`).
    Warn,
}

/// What the record says of us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnState {
    /// Database id.
    pub id: i64,
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
    pool: DatabasePool,
    host: String,
    id: i64,
}

impl NovaDb {
    /// The lowest version of a nova-compute that is not forced down, over all cells, cell0 and
    /// disabled ones included; 0: there is none. Cells that do not answer are left out, as Nova
    /// does (`get_minimum_version_all_cells`).
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

    /// What the cloud shows of its release: the highest version of any service in the cells and in
    /// our own database. Schedulers do not count, because our own record is one of them.
    ///
    /// # Errors
    /// Those of the API database; a cell that does not answer is left out.
    pub async fn shown_release(&self) -> Result<ReleaseEvidence, NovaDbError> {
        let mut shown = ReleaseEvidence {
            newest: None,
            complete: true,
        };
        let cells = self.cells_where(|_| true);
        for pool in cells.iter().map(|cell| &cell.pool).chain([self.main()]) {
            let dialect = pool.dialect();
            let sql = format!(
                "SELECT {} FROM services s WHERE s.deleted = 0 AND s.{} <> 'nova-scheduler'",
                dialect.int("MAX(s.version)"),
                dialect.quoted("binary"),
            );
            match number(pool, &sql).await {
                // A record without a version tells nothing.
                Ok(version) => shown.newest = shown.newest.max(version.filter(|v| *v > 0)),
                Err(error) => {
                    shown.complete = false;
                    tracing::warn!(code = error.code(), %error, "a cell did not say how new its services are");
                }
            }
        }
        Ok(shown)
    }
}

async fn number(pool: &DatabasePool, sql: &str) -> Result<Option<i64>, NovaDbError> {
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
        release: NovaRelease,
        too_old: OldComputePolicy,
    ) -> Result<Self, NovaDbError> {
        let found = db.min_compute_version().await?;
        // 0 is a cloud whose computes are yet to come.
        if found != 0 && found < release.oldest_compute {
            let error = NovaDbError::TooOldCompute {
                found,
                needed: release.oldest_compute,
            };
            match too_old {
                OldComputePolicy::Refuse => return Err(error),
                OldComputePolicy::Warn => {
                    tracing::warn!(code = error.code(), %error, "started nevertheless")
                }
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
        let own = Self {
            pool,
            host: host.to_owned(),
            id: state.id,
        };
        own.write_version(state.version, release).await?;
        Ok(own)
    }

    /// Writes another release into the record: the cloud shows another one than at the start.
    ///
    /// # Errors
    /// `RecordGone`; those of the database.
    pub async fn set_release(&self, release: NovaRelease) -> Result<(), NovaDbError> {
        let state = find(&self.pool, &self.host).await?;
        let state = state.filter(|state| state.id == self.id);
        let state = state.ok_or_else(|| NovaDbError::RecordGone {
            host: self.host.clone(),
        })?;
        self.write_version(state.version, release).await
    }

    async fn write_version(&self, from: i64, release: NovaRelease) -> Result<(), NovaDbError> {
        let to = release.service_version;
        if from == to {
            return Ok(());
        }
        tracing::info!(from, to, "the version in our services record changes");
        let sql = format!(
            "UPDATE services SET version = ?, updated_at = {} WHERE id = ? AND deleted = 0",
            self.pool.dialect().at()
        );
        let values = vec![
            to.into(),
            moment(clock::unix_micros()).into(),
            self.id.into(),
        ];
        self.pool
            .execute("write our services record", &sql, values)
            .await
            .map(drop)
    }

    /// One heartbeat, to be called every `report_interval`.
    ///
    /// # Errors
    /// `RecordGone`; those of the database. Nova logs them and beats on.
    pub async fn beat(&self) -> Result<OwnState, NovaDbError> {
        let at = self.pool.dialect().at();
        let now = Value::from(moment(clock::unix_micros()));
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

async fn find(pool: &DatabasePool, host: &str) -> Result<Option<OwnState>, NovaDbError> {
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
    let mut columns = RowReader::new(row);
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

async fn insert(pool: &DatabasePool, host: &str, version: i64) -> Result<(), NovaDbError> {
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
        moment(clock::unix_micros()).into(),
        ids::random().to_string().into(),
        host.into(),
        version.into(),
    ];
    pool.execute("write our services record", &sql, values)
        .await
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::{NovaRelease, ReleaseEvidence};

    fn shown(newest: Option<i64>, complete: bool) -> ReleaseEvidence {
        ReleaseEvidence { newest, complete }
    }

    #[test]
    fn a_cloud_without_services_shows_no_release_and_what_comes_later_is_followed() {
        assert_eq!(shown(None, true).after(None), None);
        let zed = shown(Some(64), true).after(None);
        assert_eq!(zed.map(|release| release.major()), Some(26));
        // It is upgraded, and the upgrade is taken back.
        let newest = shown(Some(74), true).after(zed);
        assert_eq!(newest.map(|release| release.major()), Some(34));
        assert_eq!(shown(Some(64), true).after(newest), zed);
        // Where a database is silent less is seen than there is.
        assert_eq!(shown(Some(64), false).after(newest), newest);
        assert_eq!(shown(Some(74), false).after(zed), newest);
        assert_eq!(shown(None, false).after(newest), newest);
    }

    #[test]
    fn an_operators_release_has_the_version_that_its_services_write() {
        for (major, version) in [
            (20, 64),
            (26, 64),
            (27, 66),
            (28, 66),
            (29, 67),
            (30, 67),
            (31, 68),
            (32, 70),
            (33, 72),
            (34, 74),
            (40, 74),
        ] {
            let release = NovaRelease::of_major(major);
            assert_eq!(release.service_version, version, "{major}");
            let doubtful = release.doubt().is_some();
            assert_eq!(doubtful, version == 66, "{major}");
            // Two releases write 66, and two write 67.
            let shown = match major.clamp(26, 34) {
                27 => 28,
                29 => 30,
                other => other,
            };
            assert_eq!(release.major(), shown, "{major}");
        }
        let words = NovaRelease::of_version(80).doubt().unwrap();
        assert!(words.contains("80") && words.contains("Nova 34"), "{words}");
    }

    #[test]
    fn a_release_is_known_by_its_services_and_refuses_what_it_refuses() {
        for (newest, version, oldest) in [
            (0, 64, 61),
            (64, 64, 61),
            (66, 66, 61),
            (67, 67, 66),
            (68, 68, 66),
            (74, 74, 72),
            (80, 80, 72),
        ] {
            let release = NovaRelease::of_version(newest);
            assert_eq!(
                (release.service_version, release.oldest_compute),
                (version, oldest)
            );
        }
    }
}

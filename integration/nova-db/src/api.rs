//! The API database, and from there the cells.

use crate::cell::CellDb;
use crate::cells::{CellMapping, Secret};
use crate::dialect::RowReader;
use crate::error::NovaDbError;
use crate::pool::{DatabasePool, PoolOptions};
use crate::template::format_url;
use crate::url::DatabaseUrl;
use ebbtide_nova::hosts::Ratios;
use ebbtide_runtime::login::Renewal;
use sea_orm::DbErr;
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// What of nova.conf says where the databases are.
#[derive(Debug, Clone)]
pub struct NovaDbConfig {
    /// `[api_database] connection`.
    pub api_url: Secret,
    /// `[database] connection`: where the scheduler's own record lives, and what cells' templates
    /// take their parts from.
    pub main_url: Secret,
    /// `[DEFAULT] transport_url`, for cells' templates.
    pub transport_url: Option<Secret>,
    /// Allocation ratios of nodes that have none of their own.
    pub ratios: Ratios,
    /// How hard each database is used.
    pub pool: PoolOptions,
}

/// Nova's databases. Cheap to clone; clones share connections and what is known of the cells.
#[derive(Debug, Clone)]
pub struct NovaDb {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    config: NovaDbConfig,
    api: DatabasePool,
    main: DatabasePool,
    /// From where cells' templates take their parts. A reload replaces it.
    main_url: RwLock<Secret>,
    known: RwLock<KnownCells>,
}

/// The cells as last read.
#[derive(Debug, Default)]
struct KnownCells {
    mappings: Vec<CellMapping>,
    /// By UUID: the URL that the handle was made from, and the handle or why there is none.
    handles: HashMap<String, (Secret, Result<CellDb, NovaDbError>)>,
}

fn parsed(label: &str, url: &Secret) -> Result<DatabaseUrl, NovaDbError> {
    DatabaseUrl::parse(url.expose()).map_err(|reason| NovaDbError::BadUrl {
        database: label.to_owned(),
        // Not even a part of what could not be understood is safe to show.
        url: "***".to_owned(),
        reason,
    })
}

impl NovaDb {
    /// Takes the URLs, connects to the API database and reads the cells. It connects to the
    /// database of a cell at the first use, so a cell that is down does not prevent the start.
    ///
    /// # Errors
    /// `BadUrl`, `Unavailable`, `LoginRefused`; `Refused` if it is not an API database of Nova.
    pub async fn connect(config: &NovaDbConfig) -> Result<Self, NovaDbError> {
        let pool = |label: &str, url: &Secret| {
            Ok::<_, NovaDbError>(DatabasePool::new(label, &parsed(label, url)?, &config.pool))
        };
        let db = Self {
            inner: Arc::new(Inner {
                api: pool("the API", &config.api_url)?,
                main: pool("this service", &config.main_url)?,
                main_url: RwLock::new(config.main_url.clone()),
                config: config.clone(),
                known: RwLock::default(),
            }),
        };
        db.cells().await?;
        Ok(db)
    }

    /// Tests a new login of `[api_database] connection`. Connections that are opened from now on
    /// use it. Older ones are renewed when they are used next.
    ///
    /// # Errors
    /// `BadUrl`; `LoginRefused`. The old login stays.
    pub async fn renew_api_login(&self, url: &Secret) -> Result<Renewal, NovaDbError> {
        self.api().renew_login(&parsed("the API", url)?).await
    }

    /// The same of `[database] connection`. Cells whose URLs are templates have the new login when
    /// [`Self::cells`] has read them again.
    ///
    /// # Errors
    /// As [`Self::renew_api_login`].
    pub async fn renew_main_login(&self, url: &Secret) -> Result<Renewal, NovaDbError> {
        let renewal = self
            .main()
            .renew_login(&parsed("this service", url)?)
            .await?;
        if matches!(renewal, Renewal::Accepted | Renewal::Untested(_)) {
            let main_url = self.inner.main_url.write();
            *main_url.unwrap_or_else(PoisonError::into_inner) = url.clone();
        }
        Ok(renewal)
    }

    pub(crate) fn api(&self) -> &DatabasePool {
        &self.inner.api
    }

    pub(crate) fn main(&self) -> &DatabasePool {
        &self.inner.main
    }

    /// Reads the cells again (at start, on SIGHUP) and keeps the connections of those whose URL is
    /// the same. All cells, in the order of their ids: cell0 and disabled ones, too.
    ///
    /// # Errors
    /// Those of the database. A cell with an unusable URL is not an error here, but of
    /// [`Self::cell`].
    pub async fn cells(&self) -> Result<Vec<CellMapping>, NovaDbError> {
        let api = self.api();
        let dialect = api.dialect();
        let sql = format!(
            "SELECT {}, uuid, name, transport_url, database_connection, {}, {}, {} FROM cell_mappings ORDER BY id",
            dialect.int("id"),
            dialect.truth("disabled"),
            dialect.moment("created_at"),
            dialect.moment("updated_at"),
        );
        let rows = api.rows("read the cells", &sql, Vec::new()).await?;
        let config = &self.inner.config;
        let main_url = self.inner.main_url.read();
        let main_url = main_url.unwrap_or_else(PoisonError::into_inner).clone();
        let mut mappings = Vec::with_capacity(rows.len());
        for row in &rows {
            let read = |columns: &mut RowReader<'_>| {
                let id = columns.int()?.unwrap_or_default();
                let uuid = columns.text()?.unwrap_or_default();
                let name = columns.text()?;
                let transport_url = columns.text()?.unwrap_or_default();
                let database = columns.text()?.unwrap_or_default();
                let transport_url = match &config.transport_url {
                    Some(default) => format_url(&transport_url, default.expose()),
                    None => transport_url,
                };
                Ok(CellMapping {
                    id,
                    uuid,
                    name,
                    transport_url: Secret::new(transport_url),
                    database_connection: Secret::new(format_url(&database, main_url.expose())),
                    disabled: columns.truth()?,
                    created_at: columns.moment()?,
                    updated_at: columns.moment()?,
                })
            };
            let mapping = read(&mut RowReader::new(row))
                .map_err(|error: DbErr| api.unreadable("cell_mappings", &error))?;
            mappings.push(mapping);
        }
        let dropped = self.learn(&mappings);
        for pool in dropped {
            // Operations under way on the old connections come to their end first.
            pool.close().await;
        }
        Ok(mappings)
    }

    /// Takes over the cell mappings that were read. Returns the pools that are no longer needed.
    fn learn(&self, mappings: &[CellMapping]) -> Vec<DatabasePool> {
        let mut known = self
            .inner
            .known
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let mut old = std::mem::take(&mut known.handles);
        for mapping in mappings {
            let handle = match old.remove(&mapping.uuid) {
                Some((url, Ok(handle)))
                    if url == mapping.database_connection && handle.label() == mapping.label() =>
                {
                    Ok(handle)
                }
                other => {
                    if let Some((_, Ok(handle))) = other {
                        old.insert(
                            format!("{} before", mapping.uuid),
                            (Secret::default(), Ok(handle)),
                        );
                    }
                    self.handle(mapping)
                }
            };
            if let Err(error) = &handle {
                tracing::error!(code = error.code(), %error, "a cell cannot be used");
            }
            known.handles.insert(
                mapping.uuid.clone(),
                (mapping.database_connection.clone(), handle),
            );
        }
        known.mappings = mappings.to_vec();
        old.into_values()
            .filter_map(|(_, handle)| handle.ok().map(|handle| handle.pool))
            .collect()
    }

    fn handle(&self, mapping: &CellMapping) -> Result<CellDb, NovaDbError> {
        let label = mapping.label();
        let url = parsed(&label, &mapping.database_connection)?;
        let config = &self.inner.config;
        let pool = DatabasePool::new(&label, &url, &config.pool);
        Ok(CellDb::new(
            &mapping.uuid,
            pool,
            self.api().clone(),
            config.ratios,
        ))
    }

    /// The cells as last read.
    #[must_use]
    pub fn known_cells(&self) -> Vec<CellMapping> {
        self.known().mappings.clone()
    }

    fn known(&self) -> RwLockReadGuard<'_, KnownCells> {
        self.inner
            .known
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// One cell's database, as last read.
    ///
    /// # Errors
    /// `NoSuchCell`; `BadUrl`.
    pub fn cell(&self, uuid: &str) -> Result<CellDb, NovaDbError> {
        match self.known().handles.get(uuid) {
            Some((_, handle)) => handle.clone(),
            None => Err(NovaDbError::NoSuchCell {
                cell: uuid.to_owned(),
            }),
        }
    }

    /// The cells that hosts are looked for in: not cell0, not disabled. Those with an unusable URL
    /// are left out; reading them logged it.
    #[must_use]
    pub fn enabled_cells(&self) -> Vec<CellDb> {
        self.cells_where(|mapping| !mapping.is_cell0() && !mapping.disabled)
    }

    pub(crate) fn cells_where(&self, wanted: impl Fn(&CellMapping) -> bool) -> Vec<CellDb> {
        let known = self.known();
        let wanted = known.mappings.iter().filter(|mapping| wanted(mapping));
        wanted
            .filter_map(|mapping| known.handles.get(&mapping.uuid)?.1.clone().ok())
            .collect()
    }

    /// Closes all connections of all clones.
    pub async fn close(&self) {
        let handles = self.cells_where(|_| true);
        for handle in handles {
            handle.pool.close().await;
        }
        self.api().close().await;
        self.main().close().await;
    }
}

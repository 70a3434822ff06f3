//! Plugins that operators have added and changed. Few rows that are written by hand: no part of
//! commits, and followed by looking now and then. Both clouds use them.

use crate::row;
use crate::store::{Store, TransactionFuture, statement};
use crate::tables::Table;
use crate::{StoreConfig, StoreError};
use sea_orm::{ConnectionTrait, Value};
use std::sync::Arc;

/// Not written by commits, and therefore not in [`TABLES`](crate::tables::TABLES).
static PLUGINS: Table = Table {
    index: usize::MAX,
    name: "plugins",
    key: &["name"],
    columns: &["name", "record", "digest", "component"],
};

/// One row, without the component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginRow {
    pub name: String,
    /// What is kept of it, as JSON.
    pub record: String,
    /// SHA-256 of the component in hexadecimal digits; empty if there is none.
    pub digest: String,
}

/// The plugins in a database. Cheap to clone; all clones share the connections.
#[derive(Debug, Clone)]
pub struct PluginStore {
    store: Store,
}

impl Store {
    /// The plugins in this database.
    #[must_use]
    pub fn plugins(&self) -> PluginStore {
        PluginStore {
            store: self.clone(),
        }
    }
}

impl PluginStore {
    /// Connects, and brings the database to this program's schema, as [`Store::open`] does.
    ///
    /// # Errors
    /// Those of [`Store::open`].
    pub async fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        Ok(Store::open(config).await?.plugins())
    }

    /// Closes the connections, for every clone.
    pub async fn close(&self) {
        self.store.close().await;
    }

    /// All rows, by name.
    ///
    /// # Errors
    /// What the database says.
    pub async fn rows(&self) -> Result<Vec<PluginRow>, StoreError> {
        let sql = "SELECT name, record, digest FROM plugins ORDER BY name";
        let rows = self.store.query("reading the plugins", sql, []).await?;
        let read = |row: sea_orm::QueryResult| {
            Ok(PluginRow {
                name: row.try_get("", "name")?,
                record: row.try_get("", "record")?,
                digest: row.try_get("", "digest")?,
            })
        };
        let rows: Result<Vec<PluginRow>, sea_orm::DbErr> = rows.into_iter().map(read).collect();
        rows.map_err(|error| self.store.classify("reading the plugins", error))
    }

    /// A component; `None` if there is none under this name.
    ///
    /// # Errors
    /// What the database says.
    pub async fn component(&self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT component FROM plugins WHERE name = ?";
        let rows = self
            .store
            .query("reading a plugin", sql, [name.into()])
            .await?;
        let Some(row) = rows.into_iter().next() else {
            return Ok(None);
        };
        row.try_get("", "component")
            .map_err(|error| self.store.classify("reading a plugin", error))
    }

    /// Writes a row, instead of the one that there is. The component, if there is one, goes with
    /// it.
    ///
    /// # Errors
    /// `Unstorable` for a name that is empty or longer than 255 characters; `TooLarge` for a
    /// component that the database does not take; what the database says.
    pub async fn put(
        &self,
        plugin: &PluginRow,
        component: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        row::check_key(&PLUGINS, "name", &plugin.name)?;
        if let Some(component) = component {
            let encoder = &self.store.inner.encoder;
            encoder.fits(&PLUGINS, &plugin.name, component.len())?;
        }
        let plugin = Arc::new(plugin.clone());
        let component: Option<Arc<[u8]>> = component.map(Arc::from);
        self.store
            .write("writing a plugin", move |transaction| {
                let (plugin, component) = (Arc::clone(&plugin), component.clone());
                let work: TransactionFuture<'_, ()> = Box::pin(async move {
                    let backend = transaction.get_database_backend();
                    let delete = "DELETE FROM plugins WHERE name = ?";
                    let name: Value = plugin.name.as_str().into();
                    transaction
                        .execute_raw(statement(backend, delete, [name.clone()]))
                        .await?;
                    let insert =
                        "INSERT INTO plugins (name, record, digest, component) VALUES (?, ?, ?, ?)";
                    let bytes: Option<Vec<u8>> = component.map(|bytes| bytes.to_vec());
                    let values = [
                        name,
                        plugin.record.as_str().into(),
                        plugin.digest.as_str().into(),
                        bytes.into(),
                    ];
                    transaction
                        .execute_raw(statement(backend, insert, values))
                        .await?;
                    Ok(())
                });
                work
            })
            .await
    }

    /// Deletes a row. That there is none is no error.
    ///
    /// # Errors
    /// What the database says.
    pub async fn delete(&self, name: &str) -> Result<(), StoreError> {
        let name: Arc<str> = name.into();
        self.store
            .write("deleting a plugin", move |transaction| {
                let name = Arc::clone(&name);
                let work: TransactionFuture<'_, ()> = Box::pin(async move {
                    let backend = transaction.get_database_backend();
                    let sql = "DELETE FROM plugins WHERE name = ?";
                    transaction
                        .execute_raw(statement(backend, sql, [name.as_ref().into()]))
                        .await?;
                    Ok(())
                });
                work
            })
            .await
    }
}

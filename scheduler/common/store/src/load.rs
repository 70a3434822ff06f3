//! Reading everything that a restarted region needs.

use crate::StoreError;
use crate::store::{Store, statement};
use crate::tables::{
    AGGREGATES, BUDGETS, EVACUATIONS, FLAVORS, GROUPS, HOSTS, OUTBOX, PRICES, RESTORE_MARKS,
    SERVERS, Table,
};
use ebbtide_model::record::{OutboxMessage, REMEMBER_GONE, Snapshot};
use ebbtide_model::{Evacuation, EvacuationId, MessageId, ServerId, Timestamp};
use sea_orm::{
    AccessMode, ConnectionTrait, DatabaseTransaction, DbBackend, IsolationLevel, QueryResult,
    TransactionOptions, TransactionTrait, TryGetable, Value,
};
use serde::de::DeserializeOwned;

/// The last price of each flavor.
const LAST_PRICES: &str = "WHERE created_at = (SELECT MAX(later.created_at) FROM prices AS later \
     WHERE later.flavor_id = prices.flavor_id) ORDER BY id";

impl Store {
    /// Everything that a region needs to go on after a restart, as of one moment: hosts in the
    /// order of their registration (then by name), servers that are not gone and those that went
    /// lately, evacuations that are not final or were claimed at `since` or later, and the outbox
    /// in the order of writing.
    ///
    /// # Errors
    /// `Corrupt` for the first row that cannot be read, with table and key; those of the database.
    pub async fn load(&self, since: Timestamp) -> Result<Snapshot, StoreError> {
        self.load_with_head(since)
            .await
            .map(|(snapshot, _)| snapshot)
    }

    /// The same with the number of the last commit that it contains.
    pub(crate) async fn load_with_head(
        &self,
        since: Timestamp,
    ) -> Result<(Snapshot, i64), StoreError> {
        let failed = |error| self.classify("loading", error);
        // SQLite's readers always see one moment.
        let options = match self.database() {
            DbBackend::Sqlite => TransactionOptions::default(),
            _ => TransactionOptions {
                isolation_level: Some(IsolationLevel::RepeatableRead),
                access_mode: Some(AccessMode::ReadOnly),
                sqlite_transaction_mode: None,
            },
        };
        let reader = self.inner.database.connections.reader();
        let transaction = reader.begin_with_options(options).await.map_err(failed)?;
        let all = Loader {
            store: self,
            transaction: &transaction,
        };
        let head = all.head().await?;
        let snapshot = Snapshot {
            hosts: all.records(&HOSTS, "ORDER BY created_at, name", []).await?,
            aggregates: all.records(&AGGREGATES, "ORDER BY id", []).await?,
            flavors: all.records(&FLAVORS, "ORDER BY id", []).await?,
            groups: all.records(&GROUPS, "ORDER BY id", []).await?,
            budgets: all.records(&BUDGETS, "ORDER BY scope", []).await?,
            servers: all
                .records(
                    &SERVERS,
                    "WHERE gone_at IS NULL ORDER BY created_at, id",
                    [],
                )
                .await?,
            gone: all.deleted_servers().await?,
            evacuations: all.evacuations(since).await?,
            prices: all.records(&PRICES, LAST_PRICES, []).await?,
            outbox: all.outbox().await?,
            restored: all.records(&RESTORE_MARKS, "", []).await?.pop(),
        };
        transaction.rollback().await.map_err(failed)?;
        Ok((snapshot, head))
    }
}

struct Loader<'s> {
    store: &'s Store,
    transaction: &'s DatabaseTransaction,
}

impl Loader<'_> {
    async fn rows(
        &self,
        sql: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<QueryResult>, StoreError> {
        let statement = statement(self.store.database(), sql, values);
        let rows = self.transaction.query_all_raw(statement);
        let rows = self.store.in_time(rows).await?;
        rows.map_err(|error| self.store.classify("loading", error))
    }

    async fn records<T: DeserializeOwned>(
        &self,
        table: &'static Table,
        rest: &str,
        values: impl IntoIterator<Item = Value>,
    ) -> Result<Vec<T>, StoreError> {
        let (name, key) = (table.name, table.key[0]);
        let sql = format!("SELECT {key}, record FROM {name} {rest}");
        let rows = self.rows(&sql, values).await?;
        rows.iter().map(|row| record(table, row)).collect()
    }

    async fn head(&self) -> Result<i64, StoreError> {
        let rows = self
            .rows("SELECT commits FROM lease WHERE id = 1", [])
            .await?;
        let corrupt = |reason: &str| StoreError::Corrupt {
            table: "lease".to_owned(),
            key: "1".to_owned(),
            reason: reason.to_owned(),
        };
        let row = rows
            .first()
            .ok_or_else(|| corrupt("the row is missing; insert (1, '', 0, 0, 0)"))?;
        row.try_get_by_index(0)
            .map_err(|_| corrupt("commits is no number"))
    }

    /// In two parts, each of which is one piece of an index, and the second of which goes on in
    /// time where the first ends.
    async fn evacuations(&self, since: Timestamp) -> Result<Vec<Evacuation>, StoreError> {
        let since = Value::from(since.as_millis());
        let older = "WHERE final_at IS NULL AND created_at < ? ORDER BY created_at, id";
        let newer = "WHERE created_at >= ? ORDER BY created_at, id";
        let mut all = self.records(&EVACUATIONS, older, [since.clone()]).await?;
        all.extend(self.records(&EVACUATIONS, newer, [since]).await?);
        Ok(all)
    }

    /// Servers that went recently, counted back from the last one and not from now: while the
    /// scheduler was down, no client could repeat a request.
    async fn deleted_servers(&self) -> Result<Vec<(ServerId, Timestamp)>, StoreError> {
        let last = self.rows("SELECT MAX(gone_at) FROM servers", []).await?;
        let Some(last) = last.first() else {
            return Ok(Vec::new());
        };
        let last: Option<i64> = column(&SERVERS, "?", last, 0)?;
        let Some(last) = last else {
            return Ok(Vec::new());
        };
        let since = Timestamp::from_millis(last).minus(REMEMBER_GONE);
        let sql = "SELECT id, gone_at FROM servers WHERE gone_at >= ? ORDER BY gone_at, id";
        let rows = self.rows(sql, [Value::from(since.as_millis())]).await?;
        rows.iter()
            .map(|row| {
                let key: String = column(&SERVERS, "?", row, 0)?;
                let at: i64 = column(&SERVERS, &key, row, 1)?;
                let id = key.parse().map_err(|error| {
                    corrupt(&SERVERS, &key, format!("it is no identifier: {error}"))
                })?;
                Ok((id, Timestamp::from_millis(at)))
            })
            .collect()
    }

    async fn outbox(&self) -> Result<Vec<OutboxMessage>, StoreError> {
        let sql = "SELECT id, host, evacuation_id, created_at, body FROM outbox ORDER BY seq";
        let rows = self.rows(sql, []).await?;
        rows.iter().map(message).collect()
    }
}

/// Reads the record of a row whose first two columns are its key and its record.
pub(crate) fn record<T: DeserializeOwned>(
    table: &'static Table,
    row: &QueryResult,
) -> Result<T, StoreError> {
    let key: String = column(table, "?", row, 0)?;
    let json: String = column(table, &key, row, 1)?;
    serde_json::from_str(&json).map_err(|error| corrupt(table, &key, error.to_string()))
}

fn message(row: &QueryResult) -> Result<OutboxMessage, StoreError> {
    let table = &OUTBOX;
    let key: String = column(table, "?", row, 0)?;
    let id = |text: &str| {
        text.parse()
            .map_err(|error| corrupt(table, &key, format!("{text:?} is no identifier: {error}")))
    };
    let evacuation_id: Option<String> = column(table, &key, row, 2)?;
    Ok(OutboxMessage {
        id: MessageId(id(&key)?),
        host: column(table, &key, row, 1)?,
        evacuation_id: evacuation_id
            .as_deref()
            .map(id)
            .transpose()?
            .map(EvacuationId),
        created_at: Timestamp::from_millis(column(table, &key, row, 3)?),
        body: column(table, &key, row, 4)?,
    })
}

fn column<T: TryGetable>(
    table: &'static Table,
    key: &str,
    row: &QueryResult,
    index: usize,
) -> Result<T, StoreError> {
    row.try_get_by_index(index)
        .map_err(|error| corrupt(table, key, error.to_string()))
}

fn corrupt(table: &'static Table, key: &str, reason: String) -> StoreError {
    StoreError::Corrupt {
        table: table.name.to_owned(),
        key: key.to_owned(),
        reason,
    }
}

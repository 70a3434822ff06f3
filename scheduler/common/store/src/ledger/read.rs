//! How rows are read.

use super::{CHUNK, Ledger, LedgerError, LedgerRow, Owner, column, corrupt, id, places, text};
use sea_orm::{QueryResult, Value};
use std::collections::HashMap;
use uuid::Uuid;

const ROWS: &str = "nova_preemptions";
const COLUMNS: &str = "p.id, p.request_id, p.state, p.owner, p.owner_epoch, p.version, p.created_at, p.updated_at, \
                       p.finished_at, p.document";

/// Where a page of finished rows ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FinishedMark {
    at: i64,
    id: Uuid,
}

impl Ledger {
    /// One row.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn row(&self, id: Uuid) -> Result<Option<LedgerRow>, LedgerError> {
        let sql = format!("SELECT {COLUMNS} FROM nova_preemptions p WHERE p.id = ?");
        Ok(self.rows(&sql, vec![text(id)]).await?.into_iter().next())
    }

    /// Several rows by their names; those that are not there are left out.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn rows_named(&self, ids: &[Uuid]) -> Result<Vec<LedgerRow>, LedgerError> {
        let mut rows = Vec::with_capacity(ids.len());
        for ids in ids.chunks(CHUNK) {
            let sql = format!(
                "SELECT {COLUMNS} FROM nova_preemptions p WHERE p.id IN ({})",
                places(ids.len())
            );
            let values = ids.iter().copied().map(text).collect();
            rows.extend(self.rows(&sql, values).await?);
        }
        Ok(rows)
    }

    /// All rows that are not finished, oldest first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn open_rows(&self) -> Result<Vec<LedgerRow>, LedgerError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM nova_preemptions p WHERE p.finished_at IS NULL ORDER BY p.created_at, p.id"
        );
        self.rows(&sql, Vec::new()).await
    }

    /// All rows that are not finished or were finished in the last so many milliseconds, oldest
    /// first.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn rows_of_late(&self, millis: i64) -> Result<Vec<LedgerRow>, LedgerError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM nova_preemptions p WHERE p.finished_at IS NULL OR p.finished_at > {} - ? \
             ORDER BY p.created_at, p.id",
            self.now()
        );
        self.rows(&sql, vec![millis.into()]).await
    }

    /// A page of the rows that were finished in the last so many milliseconds, the last finished
    /// first: at most `limit`, and only those after `after`, the mark of the page before. The mark
    /// of this page is `None` if it is the last one.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn finished_rows(
        &self,
        millis: i64,
        after: Option<FinishedMark>,
        limit: u32,
    ) -> Result<(Vec<LedgerRow>, Option<FinishedMark>), LedgerError> {
        let mut sql = format!(
            "SELECT id, finished_at FROM nova_preemptions WHERE finished_at > {} - ?",
            self.now()
        );
        let mut values: Vec<Value> = vec![millis.into()];
        if let Some(FinishedMark { at, id }) = after {
            sql.push_str(" AND (finished_at < ? OR (finished_at = ? AND id < ?))");
            values.extend([at.into(), at.into(), text(id)]);
        }
        sql.push_str(&format!(
            " ORDER BY finished_at DESC, id DESC LIMIT {limit}"
        ));
        let marks = self.query("the preemptions", &sql, values).await?;
        let marks = marks.iter().map(|row| {
            let key: String = column(row, ROWS, 0)?;
            Ok(FinishedMark {
                id: id(&key, ROWS)?,
                at: column(row, ROWS, 1)?,
            })
        });
        let marks: Vec<FinishedMark> = marks.collect::<Result<_, LedgerError>>()?;
        let full = u32::try_from(marks.len()).is_ok_and(|count| count >= limit);
        let ids: Vec<Uuid> = marks.iter().map(|mark| mark.id).collect();
        let next = marks.last().copied().filter(|_| full);
        Ok((self.rows_named(&ids).await?, next))
    }

    /// The greatest request key that begins with `prefix`, of open rows and of finished ones that
    /// answer their requests. `prefix` has no wildcards of LIKE.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn last_request_key(&self, prefix: &str) -> Result<Option<String>, LedgerError> {
        let sql = "SELECT MAX(request_key) FROM nova_preemption_requests WHERE request_key LIKE ?";
        let values = vec![format!("{prefix}%").into()];
        let rows = self.query("the request keys", sql, values).await?;
        rows.first()
            .map_or(Ok(None), |row| column(row, "nova_preemption_requests", 0))
    }

    /// Rows in which an instance is a newcomer, newest first, finished ones included.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn by_instance(&self, instance: Uuid) -> Result<Vec<LedgerRow>, LedgerError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM nova_preemption_instances i JOIN nova_preemptions p ON p.id = i.preemption_id \
             WHERE i.instance_uuid = ? ORDER BY p.created_at DESC, p.id DESC"
        );
        self.rows(&sql, vec![text(instance)]).await
    }

    /// All victims of open rows, each with its row. The scheduler must not plan with these servers.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn victims_of_open_rows(&self) -> Result<Vec<(Uuid, Uuid)>, LedgerError> {
        const TABLE: &str = "nova_preemption_victims";
        let sql =
            "SELECT victim_uuid, preemption_id FROM nova_preemption_victims ORDER BY victim_uuid";
        let rows = self.query("the victims", sql, Vec::new()).await?;
        rows.iter()
            .map(|row| {
                let (victim, by): (String, String) =
                    (column(row, TABLE, 0)?, column(row, TABLE, 1)?);
                Ok((id(&victim, TABLE)?, id(&by, TABLE)?))
            })
            .collect()
    }

    /// The open row of which a server is a victim.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn open_row_of_victim(&self, victim: Uuid) -> Result<Option<LedgerRow>, LedgerError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM nova_preemption_victims v JOIN nova_preemptions p ON p.id = v.preemption_id \
             WHERE v.victim_uuid = ?"
        );
        Ok(self.rows(&sql, vec![text(victim)]).await?.pop())
    }

    async fn rows(&self, sql: &str, values: Vec<Value>) -> Result<Vec<LedgerRow>, LedgerError> {
        let found = self.query("the preemptions", sql, values).await?;
        let mut rows: Vec<LedgerRow> = found.iter().map(read).collect::<Result<_, _>>()?;
        for rows in rows.chunks_mut(CHUNK) {
            let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
            let mut victims = self
                .links("nova_preemption_victims", "victim_uuid", &ids)
                .await?;
            let mut newcomers = self
                .links("nova_preemption_instances", "instance_uuid", &ids)
                .await?;
            for row in rows {
                row.victims = victims.remove(&row.id).unwrap_or_default();
                row.newcomers = newcomers.remove(&row.id).unwrap_or_default();
            }
        }
        Ok(rows)
    }

    async fn links(
        &self,
        table: &'static str,
        instance: &str,
        ids: &[Uuid],
    ) -> Result<HashMap<Uuid, Vec<Uuid>>, LedgerError> {
        let sql = format!(
            "SELECT preemption_id, {instance} FROM {table} WHERE preemption_id IN ({}) ORDER BY {instance}",
            places(ids.len())
        );
        let rows = self
            .query(
                "the preemptions",
                &sql,
                ids.iter().copied().map(text).collect(),
            )
            .await?;
        let mut links: HashMap<Uuid, Vec<Uuid>> = HashMap::new();
        for row in &rows {
            let (of, instance): (String, String) = (column(row, table, 0)?, column(row, table, 1)?);
            links
                .entry(id(&of, table)?)
                .or_default()
                .push(id(&instance, table)?);
        }
        Ok(links)
    }
}

fn read(row: &QueryResult) -> Result<LedgerRow, LedgerError> {
    let key: String = column(row, ROWS, 0)?;
    let document: String = column(row, ROWS, 9)?;
    Ok(LedgerRow {
        id: id(&key, ROWS)?,
        request_id: column(row, ROWS, 1)?,
        state: column(row, ROWS, 2)?,
        owner: Owner {
            name: column(row, ROWS, 3)?,
            epoch: column(row, ROWS, 4)?,
        },
        version: column(row, ROWS, 5)?,
        created_at: column(row, ROWS, 6)?,
        updated_at: column(row, ROWS, 7)?,
        finished: column::<Option<i64>>(row, ROWS, 8)?.is_some(),
        newcomers: Vec::new(),
        victims: Vec::new(),
        document: serde_json::from_str(&document)
            .map_err(|error| corrupt(ROWS, &key, &format!("its document is no JSON: {error}")))?,
    })
}

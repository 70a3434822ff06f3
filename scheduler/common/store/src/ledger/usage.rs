//! What is not to be billed: the last, unfinished period of every victim.

use super::{Ledger, LedgerError, MAX_NAME_CHARS, Stop, column, id, row, text};
use crate::database::{TransactionFuture, statement};
use sea_orm::{ConnectionTrait, Value};
use uuid::Uuid;

/// A record to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewUsage {
    /// The evacuation that ended it. One record each: writing it again changes nothing.
    pub evacuation_id: Uuid,
    pub server_id: Uuid,
    pub project_id: String,
    /// Flavor, by its name.
    pub flavor: String,
    /// Milliseconds since 1970; `None` if it never came up.
    pub launched_at: Option<i64>,
    /// Milliseconds since 1970.
    pub ended_at: i64,
    /// Seconds that are not to be billed.
    pub unbilled_seconds: i64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRecord {
    /// What was written.
    pub usage: NewUsage,
    /// When, milliseconds since 1970 by the database's clock.
    pub created_at: i64,
}

/// Which records.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageFilter {
    /// Only of this project.
    pub project_id: Option<String>,
    /// Only those that ended at or after, milliseconds since 1970.
    pub ended_from: Option<i64>,
    /// Only those that ended before, milliseconds since 1970.
    pub ended_before: Option<i64>,
    /// At most so many, oldest first; 0: 10,000.
    pub limit: u32,
}

/// Most records in one answer if the request sets no limit.
const MOST: u32 = 10_000;
const TABLE: &str = "nova_usage_records";

impl Ledger {
    /// Writes a record. True if it is new, false if the evacuation has one already.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn record_usage(&self, usage: &NewUsage) -> Result<bool, LedgerError> {
        row::check("project", &usage.project_id, MAX_NAME_CHARS)?;
        row::check("flavor", &usage.flavor, MAX_NAME_CHARS)?;
        let sql = format!(
            "INSERT INTO nova_usage_records \
             (evacuation_id, server_id, project_id, flavor, launched_at, ended_at, unbilled_seconds, created_at) \
             VALUES (?, ?, ?, ?, ?, ?, ?, {})",
            self.now()
        );
        let sql = sql.as_str();
        let done = self
            .database()
            .write(
                "a usage record",
                move |transaction| -> TransactionFuture<'_, (), Stop> {
                    let values: [Value; 7] = [
                        text(usage.evacuation_id),
                        text(usage.server_id),
                        usage.project_id.as_str().into(),
                        usage.flavor.as_str().into(),
                        usage.launched_at.into(),
                        usage.ended_at.into(),
                        usage.unbilled_seconds.into(),
                    ];
                    let insert = statement(transaction.get_database_backend(), sql, values);
                    Box::pin(async move { row::unique(transaction, insert).await })
                },
            )
            .await;
        match done {
            Ok(()) => Ok(true),
            Err(Stop::Duplicate) => Ok(false),
            Err(stop) => Err(stop.into()),
        }
    }

    /// Lists records by the end of their servers.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn usage(&self, filter: &UsageFilter) -> Result<Vec<UsageRecord>, LedgerError> {
        let mut sql = "SELECT evacuation_id, server_id, project_id, flavor, launched_at, ended_at, unbilled_seconds, created_at \
                       FROM nova_usage_records WHERE 1 = 1"
            .to_owned();
        let mut values: Vec<Value> = Vec::new();
        if let Some(project) = &filter.project_id {
            sql.push_str(" AND project_id = ?");
            values.push(project.as_str().into());
        }
        if let Some(from) = filter.ended_from {
            sql.push_str(" AND ended_at >= ?");
            values.push(from.into());
        }
        if let Some(before) = filter.ended_before {
            sql.push_str(" AND ended_at < ?");
            values.push(before.into());
        }
        let limit = match filter.limit {
            0 => MOST,
            limit => limit.min(MOST),
        };
        sql.push_str(&format!(" ORDER BY ended_at, evacuation_id LIMIT {limit}"));
        let rows = self.query("the usage records", &sql, values).await?;
        rows.iter()
            .map(|row| {
                let uuid = |place| {
                    let text: String = column(row, TABLE, place)?;
                    id(&text, TABLE)
                };
                Ok(UsageRecord {
                    usage: NewUsage {
                        evacuation_id: uuid(0)?,
                        server_id: uuid(1)?,
                        project_id: column(row, TABLE, 2)?,
                        flavor: column(row, TABLE, 3)?,
                        launched_at: column(row, TABLE, 4)?,
                        ended_at: column(row, TABLE, 5)?,
                        unbilled_seconds: column(row, TABLE, 6)?,
                    },
                    created_at: column(row, TABLE, 7)?,
                })
            })
            .collect()
    }
}

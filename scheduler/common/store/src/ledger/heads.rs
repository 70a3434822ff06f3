//! What every request reads of the ledger, with one query.

use super::{Ledger, LedgerError, Owner, column, id};
use uuid::Uuid;

/// Of an open preemption what is looked at again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerHead {
    pub id: Uuid,
    /// The scheduler that drives it.
    pub owner: Owner,
    /// One more with each write.
    pub version: i64,
}

/// What is looked at again and again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LedgerHeads {
    /// The open preemptions, by id.
    pub open: Vec<LedgerHead>,
    /// There are disruption budgets: read them before a preemption is planned.
    pub has_budgets: bool,
    /// Another scheduler is registered and has written a heartbeat of late.
    pub has_other_schedulers: bool,
}

impl Ledger {
    /// What is read for each request, with one query. `own`: the name of the scheduler that reads;
    /// another one counts until it has been silent for `gone_millis`.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn heads(&self, own: &str, gone_millis: i64) -> Result<LedgerHeads, LedgerError> {
        const TABLE: &str = "nova_preemptions";
        // The row without an id says whether there are other schedulers and budgets.
        let sql = format!(
            "SELECT id, owner, owner_epoch, version FROM nova_preemptions WHERE finished_at IS NULL \
             UNION ALL SELECT '', '', \
             (SELECT COUNT(*) FROM nova_schedulers WHERE name <> ? AND last_seen > {} - ?), \
             CASE WHEN EXISTS (SELECT 1 FROM nova_budgets) THEN 1 ELSE 0 END \
             ORDER BY 1",
            self.now()
        );
        let values = vec![own.into(), gone_millis.into()];
        let rows = self.query("the preemptions", &sql, values).await?;
        let mut heads = LedgerHeads::default();
        for row in &rows {
            let row_id: String = column(row, TABLE, 0)?;
            let version = column(row, TABLE, 3)?;
            if row_id.is_empty() {
                heads.has_budgets = version > 0;
                heads.has_other_schedulers = column::<i64>(row, TABLE, 2)? > 0;
                continue;
            }
            heads.open.push(LedgerHead {
                id: id(&row_id, TABLE)?,
                owner: Owner {
                    name: column(row, TABLE, 1)?,
                    epoch: column(row, TABLE, 2)?,
                },
                version,
            });
        }
        Ok(heads)
    }
}

//! The rows: one preemption each, and how they are written.

use super::budgets::{in_order, take_turns};
use super::{
    BudgetTurn, CHUNK, Ledger, LedgerError, MAX_NAME_CHARS, MAX_STATE_CHARS, Owner, Stop, column,
    id, is_duplicate, pairs, places, sorted, text,
};
use crate::StoreError;
use crate::database::{TransactionFailure, TransactionFuture, statement};
use ebbtide_runtime::ids;
use sea_orm::{ConnectionTrait, DatabaseTransaction, Statement, Value};
use serde_json::Value as Json;
use std::time::Duration;
use uuid::Uuid;

/// A preemption to be written down.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRow {
    pub id: Uuid,
    /// Nova's request id (`req-…`).
    pub request_id: String,
    /// What tells the request from every other one, if anything does: no other row that answers it
    /// may exist.
    pub request_key: Option<String>,
    /// State, in the caller's words; at most 32 characters.
    pub state: String,
    /// Whose it is.
    pub owner: Owner,
    /// Instances that get the room.
    pub newcomers: Vec<Uuid>,
    /// Instances that give it. None of them may be a victim of another open row.
    pub victims: Vec<Uuid>,
    /// Everything else, for the caller alone.
    pub document: Json,
}

/// A preemption as it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct LedgerRow {
    pub id: Uuid,
    /// Nova's request id.
    pub request_id: String,
    pub state: String,
    /// Whose it is.
    pub owner: Owner,
    /// One more with every update.
    pub version: i64,
    /// Over: nothing will happen to it any more.
    pub finished: bool,
    /// Instances that get the room.
    pub newcomers: Vec<Uuid>,
    /// Instances that give it; empty once finished.
    pub victims: Vec<Uuid>,
    /// Milliseconds since 1970 by the database's clock.
    pub created_at: i64,
    /// Milliseconds since 1970 by the database's clock.
    pub updated_at: i64,
    /// The caller's.
    pub document: Json,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowEnd {
    /// Its request is answered from it, now and when it comes again.
    Answers,
    /// It came to nothing: its request can have another row.
    Nothing,
}

/// What became of an update.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum UpdateResult {
    /// It is written; the row has this version now.
    Updated(i64),
    /// The row has another version: another scheduler has changed it, and this one must not touch
    /// it any more.
    Lost,
}

/// How often the ledger tries again when victims were taken, but are free when it looks up which
/// row has them.
const TRIES: u32 = 9;
/// The longest pause after the first such attempt. It doubles after each attempt, to a quarter of a
/// second before the last one: half a second in total.
const TAKEN_PAUSE: Duration = Duration::from_millis(2);

/// The pause after so many attempts. Writers that compete for the same victims must not retry in
/// step, or each would find them taken again. A writer's id is random, so it spreads the pauses.
fn taken_pause(writer: Uuid, tries: u32) -> Duration {
    let longest = TAKEN_PAUSE * 2_u32.saturating_pow(tries - 1);
    let share = u32::from(writer.as_bytes()[15]);
    longest / 2 + longest * share / 512
}

/// What happens to a row beside its version.
#[derive(Clone, Copy)]
enum RowChange<'a> {
    Move(&'a str, &'a Json),
    Replan(&'a str, &'a Json),
    Finish(&'a str, &'a Json, RowEnd),
    Adopt(&'a Owner, &'a Json),
}

impl Ledger {
    /// Writes a new row, at version 1.
    ///
    /// # Errors
    /// `VictimTaken`, `RequestTaken`, `Exists`; those of the database.
    pub async fn insert(&self, row: &NewRow) -> Result<(), LedgerError> {
        self.insert_within(row, &[]).await
    }

    /// The same for a row that budgets limit, if none of them has changed since its turn was read,
    /// and no other row was written within it.
    ///
    /// # Errors
    /// `BudgetMoved`; those of [`Self::insert`].
    pub async fn insert_within(
        &self,
        row: &NewRow,
        budgets: &[BudgetTurn],
    ) -> Result<(), LedgerError> {
        check("state", &row.state, MAX_STATE_CHARS)?;
        check("request id", &row.request_id, MAX_NAME_CHARS)?;
        check("owner", &row.owner.name, MAX_NAME_CHARS)?;
        if let Some(key) = &row.request_key {
            check("request key", key, MAX_NAME_CHARS)?;
        }
        let document = self.document(row.id, &row.document)?;
        let victims = sorted(&row.victims);
        let newcomers = sorted(&row.newcomers);
        let budgets = in_order(budgets);
        let writer = ids::random();
        let mut tries = 1;
        loop {
            match self
                .insert_once(row, &document, &newcomers, &victims, &budgets, writer)
                .await
            {
                Ok(()) => return Ok(()),
                Err(Stop::Duplicate) => {}
                Err(stop) => return Err(stop.into()),
            }
            // Which key it was is looked up afterwards: PostgreSQL answers nothing more in a
            // transaction that failed.
            let sql = "SELECT writer FROM nova_preemptions WHERE id = ?";
            let found = self.query("an insert", sql, vec![text(row.id)]).await?;
            if let Some(found) = found.first() {
                let theirs: String = column(found, "nova_preemptions", 0)?;
                // Our own first try, whose answer was lost.
                if theirs == writer.to_string() {
                    return Ok(());
                }
                return Err(LedgerError::Exists { id: row.id });
            }
            self.refuse_answered(row.request_key.as_deref()).await?;
            self.refuse_taken(&victims, row.id, writer, tries).await?;
            tries += 1;
        }
    }

    async fn insert_once(
        &self,
        row: &NewRow,
        document: &str,
        newcomers: &[Uuid],
        victims: &[Uuid],
        budgets: &[BudgetTurn],
        writer: Uuid,
    ) -> Result<(), Stop> {
        let sql = format!(
            "INSERT INTO nova_preemptions (id, request_id, state, owner, owner_epoch, version, writer, created_at, updated_at, document) \
             VALUES (?, ?, ?, ?, ?, 1, ?, {now}, {now}, ?)",
            now = self.now()
        );
        let sql = sql.as_str();
        self.database()
            .write("an insert", move |transaction| -> TransactionFuture<'_, (), Stop> {
                let values: [Value; 7] = [
                    text(row.id),
                    row.request_id.as_str().into(),
                    row.state.as_str().into(),
                    row.owner.name.as_str().into(),
                    row.owner.epoch.into(),
                    text(writer),
                    document.into(),
                ];
                let insert = statement(transaction.get_database_backend(), sql, values);
                // Owned, because the transaction may outlive a borrow as far as the compiler can
                // see.
                let (victims, newcomers, id) = (victims.to_vec(), newcomers.to_vec(), row.id);
                let budgets = budgets.to_vec();
                let answers = row.request_key.as_deref().map(|key| {
                    statement(
                        transaction.get_database_backend(),
                        "INSERT INTO nova_preemption_requests (request_key, preemption_id) VALUES (?, ?)",
                        [key.into(), text(row.id)],
                    )
                });
                Box::pin(async move {
                    unique(transaction, insert).await?;
                    if let Some(answers) = answers {
                        unique(transaction, answers).await?;
                    }
                    link(transaction, VICTIMS, &victims, id).await?;
                    link(transaction, INSTANCES, &newcomers, id).await?;
                    // Last: a row that is written again after its answer was lost is found by its
                    // key before its own turns are in the way.
                    take_turns(transaction, &budgets).await
                })
            })
            .await
    }

    /// Says which row answers the request, if one still does.
    async fn refuse_answered(&self, key: Option<&str>) -> Result<(), LedgerError> {
        const TABLE: &str = "nova_preemption_requests";
        let Some(key) = key else { return Ok(()) };
        let sql = "SELECT preemption_id FROM nova_preemption_requests WHERE request_key = ?";
        let found = self.query("an insert", sql, vec![key.into()]).await?;
        let Some(found) = found.first() else {
            return Ok(());
        };
        let by: String = column(found, TABLE, 0)?;
        Err(LedgerError::RequestTaken {
            request: key.to_owned(),
            by: id(&by, TABLE)?,
        })
    }

    /// Fails with the victim that is taken and the row that has it. If no victim is taken any more,
    /// the other row has just finished; then this waits for a pause, and the caller tries again.
    async fn refuse_taken(
        &self,
        victims: &[Uuid],
        but: Uuid,
        writer: Uuid,
        tries: u32,
    ) -> Result<(), LedgerError> {
        for victims in victims.chunks(CHUNK) {
            let sql = format!(
                "SELECT victim_uuid, preemption_id FROM nova_preemption_victims \
                 WHERE victim_uuid IN ({}) AND preemption_id <> ? ORDER BY victim_uuid",
                places(victims.len())
            );
            let values = victims.iter().copied().chain([but]).map(text).collect();
            let rows = self.query("the victims", &sql, values).await?;
            if let Some(row) = rows.first() {
                let uuid = |place| {
                    let text: String = column(row, "nova_preemption_victims", place)?;
                    id(&text, "nova_preemption_victims")
                };
                return Err(LedgerError::VictimTaken {
                    victim: uuid(0)?,
                    by: uuid(1)?,
                });
            }
        }
        if tries < TRIES {
            tokio::time::sleep(taken_pause(writer, tries)).await;
            return Ok(());
        }
        Err(LedgerError::Store(StoreError::Locked {
            url: self.database().connections.url().to_string(),
            reason: "the victims of a preemption are taken and given back too quickly".to_owned(),
        }))
    }

    /// Moves a row on, if it is still at `expected_version`.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn update(
        &self,
        id: Uuid,
        expected_version: i64,
        state: &str,
        document: &Json,
    ) -> Result<UpdateResult, LedgerError> {
        self.step(id, expected_version, RowChange::Move(state, document), &[])
            .await
    }

    /// As [`Self::update`], with other victims: after a conflict another set was planned.
    ///
    /// # Errors
    /// `VictimTaken`; those of the database.
    pub async fn replan(
        &self,
        id: Uuid,
        expected_version: i64,
        state: &str,
        victims: &[Uuid],
        document: &Json,
    ) -> Result<UpdateResult, LedgerError> {
        let victims = sorted(victims);
        self.step(
            id,
            expected_version,
            RowChange::Replan(state, document),
            &victims,
        )
        .await
    }

    /// Ends a row: its victims can be planned with again, and if it came to nothing, so can its
    /// request.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn finish(
        &self,
        id: Uuid,
        expected_version: i64,
        state: &str,
        document: &Json,
        ending: RowEnd,
    ) -> Result<UpdateResult, LedgerError> {
        let step = RowChange::Finish(state, document, ending);
        self.step(id, expected_version, step, &[]).await
    }

    /// Takes a row over, if it is still at `expected_version`, and changes its document in the same
    /// write.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn adopt(
        &self,
        id: Uuid,
        expected_version: i64,
        owner: &Owner,
        document: &Json,
    ) -> Result<UpdateResult, LedgerError> {
        self.step(id, expected_version, RowChange::Adopt(owner, document), &[])
            .await
    }

    async fn step(
        &self,
        id: Uuid,
        expected_version: i64,
        step: RowChange<'_>,
        victims: &[Uuid],
    ) -> Result<UpdateResult, LedgerError> {
        let writer = ids::random();
        let (set, mut values): (&str, Vec<Value>) = match step {
            RowChange::Move(state, document)
            | RowChange::Replan(state, document)
            | RowChange::Finish(state, document, _) => {
                check("state", state, MAX_STATE_CHARS)?;
                let document = self.document(id, document)?;
                (
                    "state = ?, document = ?",
                    vec![state.into(), document.into()],
                )
            }
            RowChange::Adopt(owner, document) => {
                check("owner", &owner.name, MAX_NAME_CHARS)?;
                let document = self.document(id, document)?;
                let name = owner.name.as_str().into();
                let values = vec![name, owner.epoch.into(), document.into()];
                ("owner = ?, owner_epoch = ?, document = ?", values)
            }
        };
        let now = self.now();
        let end = match step {
            RowChange::Finish(..) => format!(", finished_at = {now}"),
            _ => String::new(),
        };
        let sql = format!(
            "UPDATE nova_preemptions SET {set}, version = version + 1, writer = ?, updated_at = {now}{end} \
             WHERE id = ? AND version = ? AND finished_at IS NULL"
        );
        values.extend([text(writer), text(id), expected_version.into()]);
        let mut tries = 1;
        loop {
            match self.step_once(id, step, &sql, &values, victims).await {
                Ok(true) => return Ok(UpdateResult::Updated(expected_version + 1)),
                Ok(false) => return self.perhaps_ours(id, expected_version + 1, writer).await,
                Err(Stop::Duplicate) => self.refuse_taken(victims, id, writer, tries).await?,
                Err(stop) => return Err(stop.into()),
            }
            tries += 1;
        }
    }

    async fn step_once(
        &self,
        id: Uuid,
        step: RowChange<'_>,
        sql: &str,
        values: &[Value],
        victims: &[Uuid],
    ) -> Result<bool, Stop> {
        if matches!(step, RowChange::Move(..) | RowChange::Adopt(..)) {
            let database = self.database();
            let changed = database.write_statement("an update", sql, values).await?;
            return Ok(changed > 0);
        }
        self.database()
            .write(
                "an update",
                move |transaction| -> TransactionFuture<'_, bool, Stop> {
                    let backend = transaction.get_database_backend();
                    let update = statement(backend, sql, values.iter().cloned());
                    let release = statement(
                        backend,
                        "DELETE FROM nova_preemption_victims WHERE preemption_id = ?",
                        [text(id)],
                    );
                    let reopen =
                        matches!(step, RowChange::Finish(_, _, RowEnd::Nothing)).then(|| {
                            statement(
                                backend,
                                "DELETE FROM nova_preemption_requests WHERE preemption_id = ?",
                                [text(id)],
                            )
                        });
                    let changes_victims =
                        matches!(step, RowChange::Replan(..) | RowChange::Finish(..));
                    let victims = victims.to_vec();
                    Box::pin(async move {
                        if transaction.execute_raw(update).await?.rows_affected() == 0 {
                            return Ok(false);
                        }
                        if changes_victims {
                            transaction.execute_raw(release).await?;
                            link(transaction, VICTIMS, &victims, id).await?;
                        }
                        if let Some(reopen) = reopen {
                            transaction.execute_raw(reopen).await?;
                        }
                        Ok(true)
                    })
                },
            )
            .await
    }

    /// A write that is repeated after its answer was lost finds its own version there.
    async fn perhaps_ours(
        &self,
        id: Uuid,
        version: i64,
        writer: Uuid,
    ) -> Result<UpdateResult, LedgerError> {
        let sql = "SELECT version, writer FROM nova_preemptions WHERE id = ?";
        let rows = self.query("an update", sql, vec![text(id)]).await?;
        let Some(row) = rows.first() else {
            return Ok(UpdateResult::Lost);
        };
        let found: i64 = column(row, "nova_preemptions", 0)?;
        let theirs: String = column(row, "nova_preemptions", 1)?;
        Ok(if found == version && theirs == writer.to_string() {
            UpdateResult::Updated(version)
        } else {
            UpdateResult::Lost
        })
    }

    /// Deletes finished rows whose last change is this old, and schedulers without a sign of life
    /// for this long that own no open row. Returns the number of deleted rows.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn purge(&self, older_than_millis: i64) -> Result<u64, LedgerError> {
        let now = self.now();
        let select = format!(
            "SELECT id FROM nova_preemptions WHERE finished_at < {now} - ? ORDER BY finished_at, created_at, id LIMIT {CHUNK}"
        );
        let mut gone = 0;
        loop {
            let rows = self
                .query("the purge", &select, vec![older_than_millis.into()])
                .await?;
            let found: Vec<String> = rows
                .iter()
                .map(|row| column(row, "nova_preemptions", 0))
                .collect::<Result<_, _>>()?;
            if found.is_empty() {
                break;
            }
            // The links first: what is cut off between is continued by the next purge.
            let places = places(found.len());
            let values = || {
                found
                    .iter()
                    .map(|id| id.as_str().into())
                    .collect::<Vec<Value>>()
            };
            for links in ["nova_preemption_instances", "nova_preemption_requests"] {
                let links = format!("DELETE FROM {links} WHERE preemption_id IN ({places})");
                self.execute("the purge", &links, values()).await?;
            }
            let rows = format!("DELETE FROM nova_preemptions WHERE id IN ({places})");
            gone += self.execute("the purge", &rows, values()).await?;
        }
        let schedulers = format!(
            "DELETE FROM nova_schedulers WHERE last_seen < {now} - ? AND name NOT IN \
             (SELECT owner FROM nova_preemptions WHERE finished_at IS NULL)"
        );
        self.execute("the purge", &schedulers, vec![older_than_millis.into()])
            .await?;
        Ok(gone)
    }

    /// One statement in a transaction of its own.
    pub(super) async fn execute(
        &self,
        operation: &'static str,
        sql: &str,
        values: Vec<Value>,
    ) -> Result<u64, LedgerError> {
        let database = self.database();
        Ok(database.write_statement(operation, sql, &values).await?)
    }

    pub(super) fn document(&self, id: Uuid, document: &Json) -> Result<String, LedgerError> {
        let text = document.to_string();
        let limit = self.database().connections.max_record_bytes();
        if text.len() > limit {
            return Err(LedgerError::Store(StoreError::TooLarge {
                table: "nova_preemptions",
                key: id.to_string(),
                bytes: text.len(),
                limit,
            }));
        }
        Ok(text)
    }
}

pub(super) const VICTIMS: (&str, &str) = ("nova_preemption_victims", "victim_uuid");
pub(super) const INSTANCES: (&str, &str) = ("nova_preemption_instances", "instance_uuid");

/// Links instances with a row.
async fn link(
    transaction: &DatabaseTransaction,
    (table, column): (&str, &str),
    uuids: &[Uuid],
    row: Uuid,
) -> Result<(), TransactionFailure<Stop>> {
    for uuids in uuids.chunks(CHUNK) {
        let sql = format!(
            "INSERT INTO {table} ({column}, preemption_id) VALUES {}",
            pairs(uuids.len())
        );
        let values = uuids.iter().flat_map(|uuid| [text(*uuid), text(row)]);
        let insert = statement(transaction.get_database_backend(), &sql, values);
        unique(transaction, insert).await?;
    }
    Ok(())
}

pub(super) async fn unique(
    transaction: &DatabaseTransaction,
    insert: Statement,
) -> Result<(), TransactionFailure<Stop>> {
    match transaction.execute_raw(insert).await {
        Err(error) if is_duplicate(&error) => Err(TransactionFailure::Refused(Stop::Duplicate)),
        other => Ok(other.map(drop)?),
    }
}

/// Refuses texts that do not fit into their column.
pub(super) fn check(what: &str, text: &str, most: usize) -> Result<(), LedgerError> {
    if !text.is_empty() && text.chars().count() <= most && !text.contains('\0') {
        return Ok(());
    }
    Err(LedgerError::Store(StoreError::Unstorable {
        table: "nova_preemptions",
        key: text.chars().take(most).collect(),
        reason: format!("a {what} has to have 1 to {most} characters and no NUL"),
    }))
}

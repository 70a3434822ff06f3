//! The commit log: what each commit has changed, for schedulers that follow.

use crate::StoreError;
use crate::store::statement;
use crate::tables::MAX_RECORD_BYTES;
use ebbtide_model::record::Change;
use ebbtide_model::{DecisionId, Timestamp};
use sea_orm::{DbBackend, QueryResult, Statement};
use uuid::Uuid;

const TABLE: &str = "commit_log";

pub(crate) const SELECT_ALL: &str =
    "SELECT number, part, record FROM commit_log WHERE number > ? ORDER BY number, part";
pub(crate) const SELECT_UPTO: &str = "SELECT number, part, record FROM commit_log \
     WHERE number > ? AND number <= ? ORDER BY number, part";
pub(crate) const SELECT_TOKEN: &str = "SELECT token FROM commit_log WHERE number = ? AND part = 0";
pub(crate) const TRIM: &str = "DELETE FROM commit_log WHERE written_at < ?";
const INSERT: &str =
    "INSERT INTO commit_log (number, part, token, written_at, record) VALUES (?, ?, ?, ?, ?)";

/// A part is cut as soon as it is longer than this, so that any number of changes fits into the
/// packets of a MariaDB server.
const PART_BYTES: usize = 1 << 20;

/// What a commit has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct CommitChanges {
    /// The commit's number.
    pub number: i64,
    /// What it wrote, except for decisions.
    pub changes: Vec<Change>,
    /// The decisions that it wrote.
    pub decisions: Vec<DecisionId>,
}

/// The same on its way into the log.
pub(crate) struct LogEntry<'c> {
    changes: Vec<&'c Change>,
    decisions: Vec<DecisionId>,
}

#[derive(serde::Deserialize)]
struct ReadPart {
    changes: Vec<Change>,
    decisions: Vec<DecisionId>,
}

impl<'c> LogEntry<'c> {
    /// Decisions can be large, and only people read them: the log names them.
    pub(crate) fn of(changes: &'c [Change]) -> Self {
        let (mut kept, mut decisions) = (Vec::with_capacity(changes.len()), Vec::new());
        for change in changes {
            match change {
                Change::PutDecision(decision) => decisions.push(decision.id),
                other => kept.push(other),
            }
        }
        Self {
            changes: kept,
            decisions,
        }
    }

    /// The statements that write it: one a part.
    pub(crate) fn statements(
        &self,
        backend: DbBackend,
        number: i64,
        at: Timestamp,
        token: Uuid,
    ) -> Result<Vec<Statement>, StoreError> {
        let mut statements = Vec::new();
        for (part, record) in self.parts(number)?.into_iter().enumerate() {
            let values = [
                number.into(),
                i64::try_from(part).unwrap_or(i64::MAX).into(),
                token.to_string().into(),
                at.as_millis().into(),
                record.into(),
            ];
            statements.push(statement(backend, INSERT, values));
        }
        Ok(statements)
    }

    fn parts(&self, number: i64) -> Result<Vec<String>, StoreError> {
        let mut parts = Vec::new();
        let mut text = String::new();
        let close = |text: &mut String, decisions: &str| {
            let changes = std::mem::take(text);
            format!("{{\"changes\":[{changes}],\"decisions\":{decisions}}}")
        };
        for change in &self.changes {
            let json = encode(number, change)?;
            if !text.is_empty() {
                if text.len() + json.len() > PART_BYTES {
                    parts.push(close(&mut text, "[]"));
                } else {
                    text.push(',');
                }
            }
            text.push_str(&json);
        }
        let decisions = encode(number, &self.decisions)?;
        parts.push(close(&mut text, &decisions));
        Ok(parts)
    }
}

fn encode<T: serde::Serialize>(number: i64, what: &T) -> Result<String, StoreError> {
    let json = serde_json::to_string(what).map_err(|error| StoreError::Unstorable {
        table: TABLE,
        key: number.to_string(),
        reason: error.to_string(),
    })?;
    if json.len() > MAX_RECORD_BYTES {
        return Err(StoreError::TooLarge {
            table: TABLE,
            key: number.to_string(),
            bytes: json.len(),
            limit: MAX_RECORD_BYTES,
        });
    }
    Ok(json)
}

/// Reads rows of the log (number, part, record), in their order.
pub(crate) fn decode(rows: &[QueryResult]) -> Result<Vec<CommitChanges>, StoreError> {
    let mut all: Vec<CommitChanges> = Vec::new();
    for row in rows {
        let corrupt = |reason: String| StoreError::Corrupt {
            table: TABLE.to_owned(),
            key: row
                .try_get_by_index::<i64>(0)
                .unwrap_or_default()
                .to_string(),
            reason,
        };
        let number: i64 = row
            .try_get_by_index(0)
            .map_err(|e| corrupt(format!("{e:?}")))?;
        let record: String = row
            .try_get_by_index(2)
            .map_err(|e| corrupt(format!("{e:?}")))?;
        let part: ReadPart = serde_json::from_str(&record).map_err(|e| corrupt(e.to_string()))?;
        match all.last_mut().filter(|last| last.number == number) {
            Some(last) => {
                last.changes.extend(part.changes);
                last.decisions.extend(part.decisions);
            }
            None => all.push(CommitChanges {
                number,
                changes: part.changes,
                decisions: part.decisions,
            }),
        }
    }
    Ok(all)
}

//! Disruption budgets of all schedulers of the ledger.
//!
//! Each budget has a *turn*, which grows with every preemption that the budget limits and with
//! every change of the budget. A scheduler reads the turns, then counts what each budget has left,
//! and names these turns when it writes a preemption ([`Ledger::insert_within`]). If one of them
//! has moved on, another preemption may have used what was left: nothing is written, and the
//! scheduler counts again. The row of the budget is the lock.

use super::{Ledger, LedgerError, Stop, column, corrupt};
use crate::database::{TransactionFailure, TransactionFuture, statement};
use crate::row::check;
use crate::tables::{BUDGETS, MAX_SCOPE_CHARS, scope};
use ebbtide_model::{BudgetScope, DisruptionBudget};
use sea_orm::{ConnectionTrait, DatabaseTransaction};

const TABLE: &str = "nova_budgets";
/// Two that set the same new budget at the same moment: the second finds it.
const TRIES: u32 = 4;

/// A budget, and how far its turn is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerBudget {
    pub budget: DisruptionBudget,
    pub turn: i64,
}

/// A budget that a new preemption keeps to, as it was counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetTurn {
    /// The budget's scope.
    pub scope: BudgetScope,
    /// Its turn before it was counted.
    pub turn: i64,
}

impl Ledger {
    /// All budgets, by scope.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn budgets(&self) -> Result<Vec<LedgerBudget>, LedgerError> {
        let sql = "SELECT scope, record, turn FROM nova_budgets ORDER BY scope";
        let rows = self.query("the budgets", sql, Vec::new()).await?;
        rows.iter()
            .map(|row| {
                let key: String = column(row, TABLE, 0)?;
                let record: String = column(row, TABLE, 1)?;
                let budget = serde_json::from_str(&record)
                    .map_err(|error| corrupt(TABLE, &key, &error.to_string()))?;
                let turn = column(row, TABLE, 2)?;
                Ok(LedgerBudget { budget, turn })
            })
            .collect()
    }

    /// Creates or replaces the budget of a scope.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn put_budget(&self, budget: &DisruptionBudget) -> Result<(), LedgerError> {
        let key = scope(&budget.scope);
        check(&BUDGETS, &key, &key, MAX_SCOPE_CHARS)?;
        let record = serde_json::to_string(budget)
            .map_err(|error| corrupt(TABLE, &key, &error.to_string()))?;
        let mut tries = 1;
        loop {
            match self.put_once(&key, &record).await {
                Ok(()) => return Ok(()),
                Err(Stop::Duplicate) if tries < TRIES => tries += 1,
                Err(stop) => return Err(stop.into()),
            }
        }
    }

    async fn put_once(&self, key: &str, record: &str) -> Result<(), Stop> {
        // A budget that is deleted and set again begins beyond its earlier turns: they grow by less
        // than one in a millisecond.
        let insert = format!(
            "INSERT INTO nova_budgets (scope, record, turn) VALUES (?, ?, {})",
            self.now()
        );
        let insert = insert.as_str();
        self.database()
            .write(
                "a budget",
                move |transaction| -> TransactionFuture<'_, (), Stop> {
                    let backend = transaction.get_database_backend();
                    let update = statement(
                        backend,
                        "UPDATE nova_budgets SET record = ?, turn = turn + 1 WHERE scope = ?",
                        [record.into(), key.into()],
                    );
                    let insert = statement(backend, insert, [key.into(), record.into()]);
                    Box::pin(async move {
                        if transaction.execute_raw(update).await?.rows_affected() == 0 {
                            super::row::unique(transaction, insert).await?;
                        }
                        Ok(())
                    })
                },
            )
            .await
    }

    /// Deletes the budget of a scope. False if there is none.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn delete_budget(&self, of: &BudgetScope) -> Result<bool, LedgerError> {
        let sql = "DELETE FROM nova_budgets WHERE scope = ?";
        let gone = self
            .execute("a budget", sql, vec![scope(of).into()])
            .await?;
        Ok(gone > 0)
    }
}

/// Moves the turns of budgets on, in the order of their scopes, so that of two preemptions none
/// waits for the other in a circle.
pub(super) async fn take_turns(
    transaction: &DatabaseTransaction,
    turns: &[BudgetTurn],
) -> Result<(), TransactionFailure<Stop>> {
    for turn in turns {
        let sql = "UPDATE nova_budgets SET turn = turn + 1 WHERE scope = ? AND turn = ?";
        let values = [scope(&turn.scope).into(), turn.turn.into()];
        let update = statement(transaction.get_database_backend(), sql, values);
        if transaction.execute_raw(update).await?.rows_affected() == 0 {
            let stop = Stop::BudgetMoved(turn.scope.clone());
            return Err(TransactionFailure::Refused(stop));
        }
    }
    Ok(())
}

/// The turns by scope, each once.
pub(super) fn in_order(turns: &[BudgetTurn]) -> Vec<BudgetTurn> {
    let mut turns = turns.to_vec();
    turns.sort_by_key(|turn| scope(&turn.scope));
    turns.dedup();
    turns
}

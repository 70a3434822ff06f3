//! The schedulers that share the ledger.

use super::{Ledger, LedgerError, Stop, column, is_duplicate, row};
use crate::database::{TransactionFailure, TransactionFuture, statement};
use sea_orm::{ConnectionTrait, Value};

/// A scheduler that registered: its name and which of its lives this is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// Name, unique among the schedulers.
    pub name: String,
    /// One more with every registration.
    pub epoch: i64,
}

impl Owner {
    /// Whether `other` registered under this one's name after it: then that one has its rows, and
    /// this one has to end.
    #[must_use]
    pub fn is_superseded_by(&self, other: &Self) -> bool {
        self.name == other.name && self.epoch < other.epoch
    }
}

/// A scheduler as the others see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnerObservation {
    /// Name and epoch.
    pub owner: Owner,
    /// Milliseconds since its last heartbeat, by the database's clock.
    pub silent_millis: i64,
}

/// How often a registration is tried when others register under the same name at the same time.
const TRIES: u32 = 5;

impl Ledger {
    /// Registers a scheduler: gives its name a new epoch. Rows of earlier epochs are orphans, to be
    /// adopted.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn register(&self, name: &str) -> Result<Owner, LedgerError> {
        row::check("name", name, super::MAX_NAME_CHARS)?;
        let mut tries = 1;
        loop {
            match self.register_once(name).await {
                Ok(epoch) => {
                    return Ok(Owner {
                        name: name.to_owned(),
                        epoch,
                    });
                }
                Err(Stop::Duplicate) if tries < TRIES => tries += 1,
                Err(Stop::Duplicate) => {
                    return Err(LedgerError::Superseded {
                        name: name.to_owned(),
                        epoch: 0,
                    });
                }
                Err(stop) => return Err(stop.into()),
            }
        }
    }

    async fn register_once(&self, name: &str) -> Result<i64, Stop> {
        let now = self.now();
        let (update, insert) = (
            format!(
                "UPDATE nova_schedulers SET epoch = epoch + 1, last_seen = {now} WHERE name = ?"
            ),
            format!("INSERT INTO nova_schedulers (name, epoch, last_seen) VALUES (?, 1, {now})"),
        );
        let (update, insert) = (update.as_str(), insert.as_str());
        self.database()
            .write(
                "a registration",
                move |transaction| -> TransactionFuture<'_, i64, Stop> {
                    let backend = transaction.get_database_backend();
                    let make = |sql: &str| statement(backend, sql, [Value::from(name)]);
                    let (update, insert) = (make(update), make(insert));
                    let select = make("SELECT epoch FROM nova_schedulers WHERE name = ?");
                    Box::pin(async move {
                        if transaction.execute_raw(update).await?.rows_affected() == 0 {
                            match transaction.execute_raw(insert).await {
                                Err(error) if is_duplicate(&error) => {
                                    return Err(TransactionFailure::Refused(Stop::Duplicate));
                                }
                                other => other?,
                            };
                        }
                        let row = transaction.query_one_raw(select).await?;
                        match row {
                            Some(row) => Ok(row.try_get_by_index(0)?),
                            None => Err(TransactionFailure::Refused(Stop::Duplicate)),
                        }
                    })
                },
            )
            .await
    }

    /// One heartbeat.
    ///
    /// # Errors
    /// `Superseded`; those of the database.
    pub async fn beat(&self, owner: &Owner) -> Result<(), LedgerError> {
        let sql = format!(
            "UPDATE nova_schedulers SET last_seen = {} WHERE name = ? AND epoch = ?",
            self.now()
        );
        let values = vec![owner.name.as_str().into(), owner.epoch.into()];
        match self.execute("a heartbeat", &sql, values).await? {
            0 => Err(LedgerError::Superseded {
                name: owner.name.clone(),
                epoch: owner.epoch,
            }),
            _ => Ok(()),
        }
    }

    /// All schedulers that ever registered and were not forgotten.
    ///
    /// # Errors
    /// Those of the database.
    pub async fn owners(&self) -> Result<Vec<OwnerObservation>, LedgerError> {
        const TABLE: &str = "nova_schedulers";
        let sql = format!(
            "SELECT name, epoch, {} - last_seen FROM nova_schedulers ORDER BY name",
            self.now()
        );
        let rows = self.query("the schedulers", &sql, Vec::new()).await?;
        rows.iter()
            .map(|row| {
                Ok(OwnerObservation {
                    owner: Owner {
                        name: column(row, TABLE, 0)?,
                        epoch: column(row, TABLE, 1)?,
                    },
                    // The clock of a server can be set back.
                    silent_millis: column::<i64>(row, TABLE, 2)?.max(0),
                })
            })
            .collect()
    }
}

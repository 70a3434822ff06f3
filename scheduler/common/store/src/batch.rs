//! From a list of changes to the rows to write and the keys to delete, table by table.
//!
//! Of several changes of one record only the last counts: each sets the record as a whole. What
//! remains touches every row at most once, as upserts of many rows demand, and can be written in
//! any order within a table.

use crate::StoreError;
use crate::row::{Encoder, Row};
use crate::tables::{
    AGGREGATES, BUDGETS, DECISION_SERVERS, DECISIONS, EVACUATIONS, FLAVORS, GROUPS, HOSTS,
    IDLE_HOURS, LIVES, OUTBOX, PRICES, RESTORE_MARK, RESTORE_MARKS, SERVERS, TABLES, Table, scope,
};
use ebbtide_model::record::Change;
use ebbtide_model::{Decision, IdleHour, PastLife, PricePoint};
use std::collections::HashMap;

/// What happens to one row in the end.
enum Fate {
    Put(Row),
    Delete,
}

/// The changes of one table, each with its key, in the order in which the keys first came up.
#[derive(Default)]
struct Changes {
    fates: Vec<(String, Fate)>,
    places: HashMap<String, usize>,
}

impl Changes {
    fn set(&mut self, key: String, fate: Fate) {
        match self.places.get(&key) {
            Some(&place) => self.fates[place].1 = fate,
            None => {
                self.places.insert(key.clone(), self.fates.len());
                self.fates.push((key, fate));
            }
        }
    }
}

pub(crate) struct TableBatch {
    pub(crate) table: &'static Table,
    /// To be inserted or overwritten, in this order.
    pub(crate) puts: Vec<Row>,
    /// Keys of the rows to be deleted.
    pub(crate) deletes: Vec<String>,
}

/// All that one commit writes: tables that others refer to first.
pub(crate) struct Batch {
    pub(crate) tables: Vec<TableBatch>,
}

impl Batch {
    /// Encodes the changes.
    ///
    /// # Errors
    /// `TooLarge` or `Unstorable` for the first record that cannot be written.
    pub(crate) fn new(changes: &[Change], encoder: &Encoder) -> Result<Self, StoreError> {
        let mut tables: Vec<Changes> = TABLES.iter().map(|_| Changes::default()).collect();
        for change in changes {
            let mut set = |table: &Table, key: String, fate| tables[table.index].set(key, fate);
            match change {
                Change::PutHost(host) => {
                    set(&HOSTS, host.name.clone(), Fate::Put(encoder.host(host)?));
                }
                Change::DeleteHost(name) => set(&HOSTS, name.clone(), Fate::Delete),
                Change::PutAggregate(aggregate) => {
                    let row = encoder.aggregate(aggregate)?;
                    set(&AGGREGATES, aggregate.id.to_string(), Fate::Put(row));
                }
                Change::DeleteAggregate(id) => set(&AGGREGATES, id.to_string(), Fate::Delete),
                Change::PutFlavor(flavor) => {
                    let row = encoder.flavor(flavor)?;
                    set(&FLAVORS, flavor.id.to_string(), Fate::Put(row));
                }
                Change::DeleteFlavor(id) => set(&FLAVORS, id.to_string(), Fate::Delete),
                Change::PutGroup(group) => {
                    let row = encoder.group(group)?;
                    set(&GROUPS, group.id.to_string(), Fate::Put(row));
                }
                Change::DeleteGroup(id) => set(&GROUPS, id.to_string(), Fate::Delete),
                Change::PutBudget(budget) => {
                    let row = encoder.budget(budget)?;
                    set(&BUDGETS, scope(&budget.scope), Fate::Put(row));
                }
                Change::DeleteBudget(of) => set(&BUDGETS, scope(of), Fate::Delete),
                Change::PutServer(server) => {
                    let row = encoder.server(server)?;
                    set(&SERVERS, server.id.to_string(), Fate::Put(row));
                }
                Change::PutEvacuation(evacuation) => {
                    let row = encoder.evacuation(evacuation)?;
                    set(&EVACUATIONS, evacuation.id.to_string(), Fate::Put(row));
                }
                Change::PutDecision(decision) => {
                    put_decision(&mut tables, decision, encoder)?;
                }
                Change::PutPrice(point) => {
                    set(&PRICES, point.key(), Fate::Put(encoder.price(point)?));
                }
                Change::PutLife(life) => {
                    set(&LIVES, life.key(), Fate::Put(encoder.life(life)?));
                }
                Change::Enqueue(message) => {
                    let row = encoder.message(message)?;
                    set(&OUTBOX, message.id.to_string(), Fate::Put(row));
                }
                Change::Dequeue(id) => set(&OUTBOX, id.to_string(), Fate::Delete),
                Change::PutRestoreMark(mark) => {
                    let row = encoder.restore_mark(mark)?;
                    set(&RESTORE_MARKS, RESTORE_MARK.to_owned(), Fate::Put(row));
                }
                Change::DeleteRestoreMark => {
                    set(&RESTORE_MARKS, RESTORE_MARK.to_owned(), Fate::Delete);
                }
            }
        }
        Ok(Self::of_tables(tables))
    }

    /// Encodes decisions. Those that cannot be written are left out; the errors say why.
    pub(crate) fn of_decisions(
        decisions: &[Decision],
        encoder: &Encoder,
    ) -> (Self, Vec<StoreError>) {
        let mut tables: Vec<Changes> = TABLES.iter().map(|_| Changes::default()).collect();
        let mut refused = Vec::new();
        for decision in decisions {
            if let Err(error) = put_decision(&mut tables, decision, encoder) {
                refused.push(error);
            }
        }
        (Self::of_tables(tables), refused)
    }

    /// Encodes what lay idle.
    ///
    /// # Errors
    /// `TooLarge` or `Unstorable` for the first hour that cannot be written.
    pub(crate) fn of_idle_hours(hours: &[IdleHour], encoder: &Encoder) -> Result<Self, StoreError> {
        let mut tables: Vec<Changes> = TABLES.iter().map(|_| Changes::default()).collect();
        for hour in hours {
            let row = encoder.idle_hour(hour)?;
            tables[IDLE_HOURS.index].set(hour.key(), Fate::Put(row));
        }
        Ok(Self::of_tables(tables))
    }

    /// Encodes prices.
    ///
    /// # Errors
    /// `Unstorable` for the first that no database gives back.
    pub(crate) fn of_prices<'p>(
        points: impl Iterator<Item = &'p PricePoint>,
        encoder: &Encoder,
    ) -> Result<Self, StoreError> {
        let mut tables: Vec<Changes> = TABLES.iter().map(|_| Changes::default()).collect();
        for point in points {
            tables[PRICES.index].set(point.key(), Fate::Put(encoder.price(point)?));
        }
        Ok(Self::of_tables(tables))
    }

    /// Encodes past lives. Those that cannot be written are left out; the errors say why.
    pub(crate) fn of_lives(lives: &[&PastLife], encoder: &Encoder) -> (Self, Vec<StoreError>) {
        let mut tables: Vec<Changes> = TABLES.iter().map(|_| Changes::default()).collect();
        let mut refused = Vec::new();
        for life in lives {
            match encoder.life(life) {
                Ok(row) => tables[LIVES.index].set(life.key(), Fate::Put(row)),
                Err(error) => refused.push(error),
            }
        }
        (Self::of_tables(tables), refused)
    }

    fn of_tables(tables: Vec<Changes>) -> Self {
        let tables = TABLES
            .iter()
            .zip(tables)
            .filter(|(_, changes)| !changes.fates.is_empty())
            .map(|(table, changes)| {
                let mut batch = TableBatch {
                    table,
                    puts: Vec::new(),
                    deletes: Vec::new(),
                };
                for (key, fate) in changes.fates {
                    match fate {
                        Fate::Put(row) => batch.puts.push(row),
                        Fate::Delete => batch.deletes.push(key),
                    }
                }
                batch
            })
            .collect();
        Self { tables }
    }
}

fn put_decision(
    tables: &mut [Changes],
    decision: &Decision,
    encoder: &Encoder,
) -> Result<(), StoreError> {
    let row = encoder.decision(decision)?;
    tables[DECISIONS.index].set(decision.id.to_string(), Fate::Put(row));
    for (key, row) in Encoder::decision_servers(decision) {
        tables[DECISION_SERVERS.index].set(key, Fate::Put(row));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::MAX_RECORD_BYTES;
    use ebbtide_model::record::OutboxMessage;
    use ebbtide_model::{MessageId, Timestamp};
    use uuid::Uuid;

    fn message(n: u128, body: &[u8]) -> Change {
        Change::Enqueue(OutboxMessage {
            id: MessageId(Uuid::from_u128(n)),
            host: "host-1".to_owned(),
            body: body.to_vec(),
            evacuation_id: None,
            created_at: Timestamp::from_millis(7),
        })
    }

    fn dequeue(n: u128) -> Change {
        Change::Dequeue(MessageId(Uuid::from_u128(n)))
    }

    fn batch(changes: &[Change]) -> Result<Batch, StoreError> {
        Batch::new(
            changes,
            &Encoder {
                max_record_bytes: MAX_RECORD_BYTES,
            },
        )
    }

    #[test]
    fn of_several_changes_of_a_record_the_last_one_counts() {
        let batch = batch(&[
            message(1, b"a"),
            message(2, b"b"),
            message(1, b"c"),
            dequeue(2),
        ]);
        let batch = batch.unwrap();
        assert_eq!(batch.tables.len(), 1);
        let outbox = &batch.tables[0];
        assert_eq!(outbox.deletes, [Uuid::from_u128(2).to_string()]);
        assert_eq!(outbox.puts.len(), 1);
        assert_eq!(
            outbox.puts[0].values.last(),
            Some(&sea_orm::Value::Bytes(Some(b"c".to_vec())))
        );
    }

    #[test]
    fn a_message_that_is_too_large_is_named() {
        let error = batch(&[message(9, &vec![0; MAX_RECORD_BYTES + 1])])
            .err()
            .unwrap();
        assert_eq!(error.code(), "EB-STORE-009");
        assert!(
            error.to_string().contains(&Uuid::from_u128(9).to_string()),
            "{error}"
        );
    }
}

use crate::books::{HostBook, HostEntry};
use ebbtide_model::message::Heartbeat;
use ebbtide_model::{Host, HostHealth, ServerId, Timestamp};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

const DOWN_AFTER: i64 = 30_000;

#[derive(Debug, Clone)]
enum Operation {
    /// A heartbeat of a host: session, storage.
    Heard(u8, u8, Option<u8>),
    /// The record of another scheduler.
    Record(u8, Option<u8>),
    Remove(u8),
    Disable(u8, bool),
    Missing(u8, u8),
    /// Time passes, in seconds.
    Later(i64),
}

fn name(n: u8) -> String {
    format!("host-{n}")
}

fn storage(n: Option<u8>) -> Option<String> {
    n.map(|n| format!("storage-{n}"))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn host(n: u8, on: Option<u8>, seen: i64) -> Host {
    Host {
        name: name(n),
        inventory: BTreeMap::new(),
        traits: BTreeSet::new(),
        disabled_reason: None,
        reclaim: None,
        agent_session: None,
        removed_at: None,
        last_seen: Some(at(seen)),
        storage: storage(on),
        created_at: at(0),
    }
}

fn operation() -> impl Strategy<Value = Operation> {
    let on = || proptest::option::of(0u8..2);
    prop_oneof![
        4 => (0u8..4, 0u8..3, on()).prop_map(|(n, s, on)| Operation::Heard(n, s, on)),
        2 => (0u8..4, on()).prop_map(|(n, on)| Operation::Record(n, on)),
        1 => (0u8..4).prop_map(Operation::Remove),
        1 => (0u8..4, any::<bool>()).prop_map(|(n, off)| Operation::Disable(n, off)),
        1 => (0u8..4, 0u8..3).prop_map(|(n, m)| Operation::Missing(n, m)),
        2 => (1i64..50).prop_map(Operation::Later),
    ]
}

proptest! {
    #[test]
    fn the_indexes_of_hosts_follow_from_the_records(
        operations in proptest::collection::vec(operation(), 0..60),
    ) {
        let mut book = HostBook::default();
        let mut records: BTreeMap<String, HostEntry> = BTreeMap::new();
        let (mut now, mut sequence) = (100, 0);
        for operation in operations {
            match operation {
                Operation::Heard(n, session, on) => {
                    sequence += 1;
                    let session = Uuid::from_u128(u128::from(session));
                    let beat = Heartbeat {
                        host: name(n),
                        session,
                        sequence,
                        inventory: BTreeMap::new(),
                        traits: BTreeSet::new(),
                        servers: Vec::new(),
                        storage: storage(on),
                    };
                    let host = Host { agent_session: Some(session), ..host(n, on, now) };
                    let before = book.get(&beat.host);
                    let heard = HostEntry::heard(before, host, &beat, at(now), at(now), DOWN_AFTER);
                    records.insert(beat.host, heard.entry.clone());
                    book.put(heard.entry);
                }
                Operation::Record(n, on) => {
                    let entry = match book.get(&name(n)) {
                        Some(known) => known.with_record(host(n, on, now)),
                        None => HostEntry::restored(host(n, on, now), at(now)),
                    };
                    records.insert(name(n), entry.clone());
                    book.put(entry);
                }
                Operation::Remove(n) => {
                    records.remove(&name(n));
                    book.remove(&name(n));
                }
                Operation::Disable(n, off) => {
                    let reason = off.then(|| "repair".to_owned());
                    let done = book.set_disabled(&name(n), reason, at(now), DOWN_AFTER);
                    prop_assert_eq!(done.is_some(), records.contains_key(&name(n)));
                    let disabled = done.is_some_and(|(_, h)| h == HostHealth::Disabled);
                    prop_assert!(off || !disabled);
                    if let Some(known) = book.get(&name(n)) {
                        records.insert(name(n), known.clone());
                    }
                }
                Operation::Missing(n, server) => {
                    let server = ServerId(Uuid::from_u128(u128::from(server)));
                    book.set_missing(&name(n), BTreeSet::from([server]));
                    let taken = book.take_missing(&name(n));
                    prop_assert_eq!(!taken.is_empty(), records.contains_key(&name(n)));
                }
                Operation::Later(seconds) => {
                    now += seconds;
                    book.update_contested(at(now));
                    let changed = book.update_health(at(now), DOWN_AFTER);
                    let due = records.iter().filter(|(_, e)| {
                        e.health != e.health_at(at(now), DOWN_AFTER)
                    });
                    let due: Vec<String> = due.map(|(name, _)| name.clone()).collect();
                    prop_assert_eq!(changed, due);
                    for (name, entry) in book.iter() {
                        records.insert(name.to_owned(), entry.clone());
                    }
                }
            }
            prop_assert_eq!(book.audit(), Ok(()));
            prop_assert_eq!(book.len(), records.len());
            prop_assert!(book.keys().eq(records.keys()));
            for n in 0..2 {
                let shared = storage(Some(n));
                let there = records.iter().filter(|(_, e)| e.host.storage == shared);
                let names = book.sharing(shared.as_deref().unwrap_or_default());
                prop_assert!(names.map(|(name, _)| name).eq(there.map(|(name, _)| name)));
            }
        }
    }
}

//! What is committed, and what is loaded again.

use crate::databases::{TestDb, at};
use crate::records::*;
use ebbtide_model::record::{Change, Snapshot};
use ebbtide_model::{BudgetScope, Server, ServerStatus, Timestamp};
use ebbtide_store::{DecisionFilter, StoreError};

on_every_database![
    what_is_committed_is_loaded_again,
    a_restart_sees_what_was_committed_before,
    servers_that_went_lately_are_remembered,
    a_record_that_is_put_again_is_overwritten,
    what_is_deleted_is_gone,
    the_last_change_of_a_record_wins_within_a_commit,
    applying_the_same_changes_twice_is_the_same_as_once,
    a_commit_is_all_or_nothing,
    the_outbox_keeps_the_order_of_writing,
    only_what_can_still_change_is_loaded,
    hosts_come_in_the_order_of_their_registration,
    a_commit_of_any_size_is_written_completely,
    a_commit_of_nothing_is_nothing,
];

async fn what_is_committed_is_loaded_again(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    store.commit(&lease, &everything()).await.unwrap();
    let loaded = store.load(at(0)).await.unwrap();
    let expected = Snapshot {
        prices: vec![price(1, 7)],
        hosts: vec![host(1), host(2)],
        aggregates: vec![aggregate(1)],
        flavors: vec![flavor(1)],
        groups: vec![group(1)],
        budgets: vec![
            budget(BudgetScope::Group(id(5, 1))),
            budget(BudgetScope::Project("project-1".to_owned())),
        ],
        servers: vec![server(1)],
        gone: Vec::new(),
        evacuations: vec![evacuation(1)],
        outbox: vec![message(2), message(1)],
        restored: None,
    };
    assert_eq!(loaded, expected);
    let read = store.decision(decision_id(1)).await.unwrap();
    assert_eq!(read, Some(decision(1, &[server_id(1)], 3)));
}

async fn servers_that_went_lately_are_remembered(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let went = |n: u64, at: Timestamp| Server {
        status: ServerStatus::Deleted,
        ended_at: Some(at),
        ..server(n)
    };
    let (long_ago, lately, last) = (at(1_000), at(10_000_000), at(10_000_001));
    let changes = [went(1, last), went(2, long_ago), went(3, lately), server(4)];
    let changes: Vec<Change> = changes
        .into_iter()
        .map(|server| Change::PutServer(Box::new(server)))
        .collect();
    store.commit(&lease, &changes).await.unwrap();
    let loaded = store.load(at(0)).await.unwrap();
    assert_eq!(loaded.servers, [server(4)]);
    assert_eq!(
        loaded.gone,
        [(server_id(3), lately), (server_id(1), last)],
        "the earliest first"
    );
}

async fn a_restart_sees_what_was_committed_before(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    store.commit(&lease, &everything()).await.unwrap();
    let before = store.load(at(0)).await.unwrap();
    store.close().await;
    let gone = store.ping().await.unwrap_err();
    assert_eq!(gone.code(), "EB-STORE-001", "{gone}");
    let after = db.open().await.load(at(0)).await.unwrap();
    assert_eq!(after, before);
}

async fn a_record_that_is_put_again_is_overwritten(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    store.commit(&lease, &everything()).await.unwrap();
    let moved = Server {
        host: None,
        status: ServerStatus::Waiting,
        name: "renamed".to_owned(),
        ..server(1)
    };
    let changes = [put_server(moved.clone())];
    store.commit(&lease, &changes).await.unwrap();
    assert_eq!(store.load(at(0)).await.unwrap().servers, [moved]);
}

async fn what_is_deleted_is_gone(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    store.commit(&lease, &everything()).await.unwrap();
    let changes = [
        Change::DeleteHost("host-1".to_owned()),
        Change::DeleteHost("host-2".to_owned()),
        Change::DeleteHost("never-was".to_owned()),
        Change::DeleteAggregate(aggregate(1).id),
        Change::DeleteFlavor(flavor(1).id),
        Change::DeleteGroup(group(1).id),
        Change::DeleteBudget(BudgetScope::Project("project-1".to_owned())),
        Change::Dequeue(message(2).id),
    ];
    store.commit(&lease, &changes).await.unwrap();
    let expected = Snapshot {
        budgets: vec![budget(BudgetScope::Group(id(5, 1)))],
        servers: vec![server(1)],
        evacuations: vec![evacuation(1)],
        prices: vec![price(1, 7)],
        outbox: vec![message(1)],
        ..Snapshot::default()
    };
    assert_eq!(store.load(at(0)).await.unwrap(), expected);
}

async fn the_last_change_of_a_record_wins_within_a_commit(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let changes = [
        Change::DeleteHost("host-1".to_owned()),
        put_host(host(1)),
        put_host(host(2)),
        Change::DeleteHost("host-2".to_owned()),
        Change::Enqueue(message(1)),
        Change::Dequeue(message(1).id),
        put_server(gone(1, 9)),
        put_server(server(1)),
    ];
    store.commit(&lease, &changes).await.unwrap();
    let loaded = store.load(at(0)).await.unwrap();
    assert_eq!(loaded.hosts, [host(1)]);
    assert_eq!(loaded.outbox, []);
    assert_eq!(loaded.servers, [server(1)]);
}

async fn applying_the_same_changes_twice_is_the_same_as_once(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let mut changes = everything();
    changes.push(put_decision(refusal(2, &[server_id(1), server_id(2)])));
    changes.push(Change::DeleteHost("host-1".to_owned()));
    store.commit(&lease, &changes).await.unwrap();
    let once = store.load(at(0)).await.unwrap();
    let decisions = store.decisions(&DecisionFilter::default()).await.unwrap();
    store.commit(&lease, &changes).await.unwrap();
    assert_eq!(store.load(at(0)).await.unwrap(), once);
    let again = store.decisions(&DecisionFilter::default()).await.unwrap();
    assert_eq!(again, decisions);
    assert_eq!(again.len(), 2);
}

async fn a_commit_is_all_or_nothing(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    // The evacuations are written after hosts, servers and decisions, and now cannot be.
    db.sql("ALTER TABLE evacuations RENAME TO evacuations_away")
        .await;
    let error = store.commit(&lease, &everything()).await.unwrap_err();
    assert_eq!(error.code(), "EB-STORE-013", "{error}");
    assert!(!error.is_retryable());
    db.sql("ALTER TABLE evacuations_away RENAME TO evacuations")
        .await;
    assert_eq!(store.load(at(0)).await.unwrap(), Snapshot::default());
    assert_eq!(store.decision(decision_id(1)).await.unwrap(), None);
    // A record that cannot be stored stops the others as well, wherever it stands.
    let mut bad = evacuation(2);
    bad.cost = f64::NAN;
    let mut changes = everything();
    changes.push(put_evacuation(bad));
    let error = store.commit(&lease, &changes).await.unwrap_err();
    assert!(matches!(error, StoreError::Unstorable { .. }), "{error}");
    assert_eq!(store.load(at(0)).await.unwrap(), Snapshot::default());
    // And the store goes on.
    store.commit(&lease, &everything()).await.unwrap();
    assert_eq!(store.load(at(0)).await.unwrap().servers, [server(1)]);
}

async fn the_outbox_keeps_the_order_of_writing(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    // 200 in one commit are several statements; identifiers fall while the order rises.
    let first: Vec<u64> = (1..=200).rev().collect();
    let second: Vec<u64> = (201..=300).rev().collect();
    let enqueue =
        |ns: &[u64]| -> Vec<Change> { ns.iter().map(|&n| Change::Enqueue(message(n))).collect() };
    store.commit(&lease, &enqueue(&first)).await.unwrap();
    store.commit(&lease, &enqueue(&second)).await.unwrap();
    // Written again, a message keeps its place.
    store.commit(&lease, &enqueue(&[150])).await.unwrap();
    let removed: Vec<Change> = first
        .iter()
        .filter(|n| n.is_multiple_of(2))
        .map(|&n| Change::Dequeue(message(n).id))
        .collect();
    store.commit(&lease, &removed).await.unwrap();
    let expected: Vec<_> = first
        .iter()
        .filter(|n| !n.is_multiple_of(2))
        .chain(&second)
        .map(|&n| message(n))
        .collect();
    assert_eq!(store.load(at(0)).await.unwrap().outbox, expected);
}

async fn only_what_can_still_change_is_loaded(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let mut old_but_active = evacuation(1);
    old_but_active.claimed_at = at(-1000);
    let changes = [
        put_server(gone(1, 50)),
        put_server(server(2)),
        put_evacuation(old_but_active.clone()),
        put_evacuation(finished(9, 60)),
        put_evacuation(finished(10, 60)),
        put_evacuation(finished(11, 60)),
    ];
    store.commit(&lease, &changes).await.unwrap();
    let loaded = store.load(at(10)).await.unwrap();
    assert_eq!(loaded.servers, [server(2)]);
    let expected = [old_but_active, finished(10, 60), finished(11, 60)];
    assert_eq!(loaded.evacuations, expected);
}

async fn hosts_come_in_the_order_of_their_registration(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let named = |name: &str, registered: i64| {
        let mut host = host(1);
        host.name = name.to_owned();
        host.created_at = at(registered);
        host
    };
    // With the same time the name decides, byte by byte: upper case first, and '-' is a character.
    let expected = [
        named("zz", 1),
        named("B", 2),
        named("a-c", 2),
        named("aB", 2),
        named("ab", 2),
        named("A", 3),
    ];
    let changes: Vec<Change> = expected.iter().rev().cloned().map(put_host).collect();
    store.commit(&lease, &changes).await.unwrap();
    assert_eq!(store.load(at(0)).await.unwrap().hosts, expected);
}

async fn a_commit_of_any_size_is_written_completely(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let mut next = 0;
    for size in [1, 2, 3, 63, 64, 65, 127, 200] {
        let changes: Vec<Change> = (next..next + size).map(|n| put_server(server(n))).collect();
        store.commit(&lease, &changes).await.unwrap();
        next += size;
        let mut loaded = store.load(at(0)).await.unwrap().servers;
        loaded.sort_by_key(|server| server.id);
        let expected: Vec<Server> = (0..next).map(server).collect();
        assert_eq!(loaded, expected);
    }
}

async fn a_commit_of_nothing_is_nothing(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    store.commit(&lease, &[]).await.unwrap();
    assert_eq!(store.load(at(0)).await.unwrap(), Snapshot::default());
}

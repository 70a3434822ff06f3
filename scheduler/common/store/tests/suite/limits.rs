//! The largest and the strangest records.

use crate::databases::{TestDb, at};
use crate::records::*;
use ebbtide_model::decision::Weight;
use ebbtide_model::record::{Change, OutboxMessage};
use ebbtide_model::{BudgetScope, Decision, Server};
use ebbtide_store::StoreError;

on_every_database![
    the_longest_names_fit,
    names_that_databases_treat_differently_are_refused,
    a_decision_of_nearly_16_mb_is_stored,
    a_record_above_16_mb_is_refused_by_name,
    large_records_together_are_stored,
    numbers_come_back_bit_for_bit,
    numbers_that_json_cannot_hold_are_refused,
    a_decision_about_a_thousand_servers_is_stored,
];

/// A decision whose record has a few bytes more or less than `bytes`.
fn decision_of(n: u64, bytes: usize) -> Decision {
    let mut decision = decision(n, &[server_id(n)], 2);
    let rest = serde_json::to_string(&decision).unwrap().len();
    // Two bytes a character, to be sure that bytes are counted and not characters.
    decision.explanation.warnings = vec!["ü".repeat(bytes.saturating_sub(rest) / 2)];
    decision
}

async fn the_longest_names_fit(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    // 255 characters of four bytes each are more than the model allows: what the columns hold.
    let longest = "🦀".repeat(255);
    let server = Server {
        name: longest.clone(),
        project_id: longest.clone(),
        host: Some(longest.clone()),
        ..server(1)
    };
    let mut evacuation = evacuation(1);
    evacuation.victim_project_id = longest.clone();
    evacuation.host = longest.clone();
    let mut host = host(1);
    host.name = longest.clone();
    let budget = budget(BudgetScope::Project(longest.clone()));
    let changes = [
        put_server(server.clone()),
        put_evacuation(evacuation.clone()),
        put_host(host.clone()),
        Change::PutBudget(budget.clone()),
    ];
    store.commit(&lease, &changes).await.unwrap();
    let loaded = store.load(at(0)).await.unwrap();
    assert_eq!(loaded.servers, [server]);
    assert_eq!(loaded.evacuations, [evacuation]);
    assert_eq!(loaded.hosts, [host]);
    assert_eq!(loaded.budgets, [budget]);
}

async fn names_that_databases_treat_differently_are_refused(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    for bad in [&"x".repeat(256), "nul\0", "blank "] {
        let server = Server {
            name: bad.to_owned(),
            ..server(1)
        };
        let error = store
            .commit(&lease, &[put_server(server)])
            .await
            .unwrap_err();
        assert_eq!(error.code(), "EB-STORE-010", "{error}");
        assert!(
            error.to_string().contains(&server_id(1).to_string()),
            "{error}"
        );
    }
    // Where no column is concerned, anything goes.
    let odd = Server {
        ignore_hosts: vec!["nul\0 \u{feff}\u{10ffff} ".to_owned()],
        ..server(1)
    };
    store
        .commit(&lease, &[put_server(odd.clone())])
        .await
        .unwrap();
    assert_eq!(store.server(server_id(1)).await.unwrap(), Some(odd));
}

async fn a_decision_of_nearly_16_mb_is_stored(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let large = decision_of(1, 16_000_000 - 100);
    store
        .commit(&lease, &[put_decision(large.clone())])
        .await
        .unwrap();
    // Overwriting is another path in some databases.
    store
        .commit(&lease, &[put_decision(large.clone())])
        .await
        .unwrap();
    let read = store.decision(decision_id(1)).await.unwrap().unwrap();
    assert!(read == large, "the decision came back changed");
    let body: Vec<u8> = (0..16_000_000_u32).map(|n| (n % 251) as u8).collect();
    let message = OutboxMessage { body, ..message(1) };
    store
        .commit(&lease, &[Change::Enqueue(message.clone())])
        .await
        .unwrap();
    assert!(store.load(at(0)).await.unwrap().outbox == [message]);
}

async fn a_record_above_16_mb_is_refused_by_name(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let changes = [
        put_server(server(1)),
        put_decision(decision_of(1, 16_000_100)),
    ];
    let error = store.commit(&lease, &changes).await.unwrap_err();
    match &error {
        StoreError::TooLarge {
            table, key, limit, ..
        } => {
            assert_eq!((*table, *limit), ("decisions", 16_000_000));
            assert_eq!(*key, decision_id(1).to_string());
        }
        other => panic!("expected TooLarge, got {other:?}"),
    }
    assert_eq!(store.server(server_id(1)).await.unwrap(), None);
}

async fn large_records_together_are_stored(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    // 40 MB in one commit: more than one packet of MariaDB takes.
    let decisions: Vec<Decision> = (0..20).map(|n| decision_of(n, 2_000_000)).collect();
    let changes: Vec<Change> = decisions.iter().cloned().map(put_decision).collect();
    store.commit(&lease, &changes).await.unwrap();
    for decision in decisions {
        let read = store.decision(decision.id).await.unwrap();
        assert!(read == Some(decision), "a decision came back changed");
    }
}

async fn numbers_come_back_bit_for_bit(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let numbers = [
        0.1 + 0.2,
        -0.0,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        f64::MIN,
        1.0 / 3.0,
        9_007_199_254_740_993.0,
        1e23,
    ];
    let mut decision = decision(1, &[server_id(1)], 1);
    decision.explanation.instances[0].ranking[0].weights = numbers
        .iter()
        .map(|&raw| Weight {
            weigher: "w".to_owned(),
            raw,
            normalised: raw,
            multiplier: raw,
        })
        .collect();
    store
        .commit(&lease, &[put_decision(decision)])
        .await
        .unwrap();
    let read = store.decision(decision_id(1)).await.unwrap().unwrap();
    let weights = &read.explanation.instances[0].ranking[0].weights;
    let read: Vec<u64> = weights.iter().map(|weight| weight.raw.to_bits()).collect();
    assert_eq!(read, numbers.map(f64::to_bits));
}

async fn numbers_that_json_cannot_hold_are_refused(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut decisions = vec![decision(1, &[server_id(1)], 1); 4];
        decisions[0].explanation.gap = bad;
        decisions[1].explanation.instances[0].ranking[0].weights[0].normalised = bad;
        decisions[2].explanation.instances[0].ranking[0].eviction_cost = Some(bad);
        decisions[3].explanation.instances[0].ranking[0].victims[0].cost = bad;
        for decision in decisions {
            let error = store
                .commit(&lease, &[put_decision(decision)])
                .await
                .unwrap_err();
            assert_eq!(error.code(), "EB-STORE-010", "{error}");
        }
    }
    assert_eq!(store.decision(decision_id(1)).await.unwrap(), None);
}

async fn a_decision_about_a_thousand_servers_is_stored(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let servers: Vec<_> = (0..1000).map(server_id).collect();
    let decision = decision(1, &servers, 5);
    let mut changes: Vec<Change> = (0..1000).map(|n| put_server(server(n))).collect();
    changes.push(put_decision(decision.clone()));
    store.commit(&lease, &changes).await.unwrap();
    for n in [0, 500, 999] {
        let read = store.decision_for_server(server_id(n)).await.unwrap();
        assert_eq!(read.map(|decision| decision.id), Some(decision.id));
    }
    assert_eq!(store.load(at(0)).await.unwrap().servers.len(), 1000);
}

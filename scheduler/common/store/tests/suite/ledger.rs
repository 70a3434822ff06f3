//! The ledger that several schedulers share.

use crate::databases::TestDb;
use ebbtide_store::ledger::{
    Ledger, LedgerError, LedgerHead, LedgerRow, NewRow, NewUsage, Owner, RowEnd, UpdateResult,
    UsageFilter,
};
use ebbtide_store::{SchemaState, Store};
use serde_json::json;
use std::collections::BTreeSet;
use tokio::task::JoinSet;
use uuid::Uuid;

pub(crate) fn uuid(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

pub(crate) fn row(id: u128, owner: &Owner, victims: &[u128]) -> NewRow {
    NewRow {
        id: uuid(id),
        request_id: format!("req-{id}"),
        request_key: None,
        state: "planned".to_owned(),
        owner: owner.clone(),
        newcomers: vec![uuid(id * 1000), uuid(id * 1000 + 1)],
        victims: victims.iter().map(|n| uuid(*n)).collect(),
        document: json!({"host": "compute1", "text": "ü\u{0}✓", "number": 0.1}),
    }
}

async fn open(db: &TestDb) -> Ledger {
    Ledger::open(&db.config()).await.unwrap()
}

pub(crate) async fn one(ledger: &Ledger, id: u128) -> LedgerRow {
    ledger.row(uuid(id)).await.unwrap().unwrap()
}

async fn how_the_tables_stand_is_seen_without_changing_them(db: TestDb) {
    let state = async || Ledger::schema_state(&db.config()).await.unwrap();
    assert_eq!(state().await, SchemaState::Empty);
    assert_eq!(state().await, SchemaState::Empty, "looking makes no table");
    open(&db).await.close().await;
    assert_eq!(state().await, SchemaState::Current);
    db.sql("DELETE FROM nova_ledger_migrations WHERE version LIKE '%requests'")
        .await;
    assert_eq!(state().await, SchemaState::Older { pending: 1 });
    db.sql("INSERT INTO nova_ledger_migrations (version, applied_at) VALUES ('m29990101_x', 1)")
        .await;
    let found = "m29990101_x".to_owned();
    assert_eq!(state().await, SchemaState::Newer { found });
}

async fn a_row_comes_back_as_it_went_in(db: TestDb) {
    let ledger = open(&db).await;
    let owner = ledger.register("a").await.unwrap();
    let new = row(1, &owner, &[7, 5, 7]);
    ledger.insert(&new).await.unwrap();
    let found = one(&ledger, 1).await;
    assert_eq!(found.request_id, new.request_id);
    assert_eq!((found.state.as_str(), found.version), ("planned", 1));
    assert_eq!((&found.owner, found.finished), (&owner, false));
    assert_eq!(found.newcomers, new.newcomers);
    assert_eq!(found.victims, [uuid(5), uuid(7)]);
    assert_eq!(found.document, new.document);
    assert!(found.created_at > 1_600_000_000_000, "{}", found.created_at);
    assert!(
        found.created_at < 100_000_000_000_000,
        "{}",
        found.created_at
    );
    assert_eq!(
        ledger.open_rows().await.unwrap(),
        std::slice::from_ref(&found)
    );
    assert_eq!(ledger.by_instance(uuid(1001)).await.unwrap(), [found]);
    assert_eq!(ledger.by_instance(uuid(7)).await.unwrap(), []);
    assert_eq!(ledger.row(uuid(2)).await.unwrap(), None);
    let again = ledger.insert(&row(1, &owner, &[])).await.unwrap_err();
    assert_eq!(again, LedgerError::Exists { id: uuid(1) });
}

async fn rows_of_late_are_those_that_are_open_and_those_that_ended_just_now(db: TestDb) {
    let ledger = open(&db).await;
    let owner = ledger.register("a").await.unwrap();
    for id in 1..=3 {
        ledger.insert(&row(id, &owner, &[id])).await.unwrap();
    }
    for id in [1, 2] {
        let document = json!({"ended": true});
        let ended = ledger.finish(uuid(id), 1, "done", &document, RowEnd::Answers);
        assert_eq!(ended.await.unwrap(), UpdateResult::Updated(2));
    }
    let of_late = async |millis| {
        let rows = ledger.rows_of_late(millis).await.unwrap();
        rows.iter()
            .map(|row| (row.id, row.finished))
            .collect::<Vec<_>>()
    };
    let all = [(uuid(1), true), (uuid(2), true), (uuid(3), false)];
    assert_eq!(of_late(3_600_000).await, all);
    // Nothing ends in the future.
    assert_eq!(of_late(-3_600_000).await, all[2..]);
    let open = ledger.rows_of_late(-1).await.unwrap();
    assert_eq!(
        open.last().unwrap().newcomers,
        row(3, &owner, &[]).newcomers
    );
}

async fn pages_of_finished_rows_put_together_are_all_of_them_without_the_open_ones(db: TestDb) {
    let ledger = open(&db).await;
    let owner = ledger.register("a").await.unwrap();
    for id in 1..=8 {
        ledger.insert(&row(id, &owner, &[id])).await.unwrap();
    }
    let document = json!({"ended": true});
    for id in [5, 1, 2, 7, 4, 3, 8] {
        let ended = ledger.finish(uuid(id), 1, "done", &document, RowEnd::Answers);
        assert_eq!(ended.await.unwrap(), UpdateResult::Updated(2));
    }
    for limit in 1..=9 {
        let (mut found, mut mark) = (BTreeSet::new(), None);
        loop {
            let (rows, next) = ledger.finished_rows(3_600_000, mark, limit).await.unwrap();
            assert!(rows.len() <= limit as usize && rows.iter().all(|row| row.finished));
            for row in rows {
                assert!(found.insert(row.id), "{} is on two pages", row.id);
            }
            mark = next;
            if mark.is_none() {
                break;
            }
        }
        assert_eq!(found, [1, 2, 3, 4, 5, 7, 8].map(uuid).into(), "{limit}");
    }
    // Nothing ends in the future.
    let none = ledger.finished_rows(-3_600_000, None, 9).await.unwrap();
    assert_eq!(none, (Vec::new(), None));
}

async fn an_update_at_an_old_version_changes_nothing(db: TestDb) {
    let ledger = open(&db).await;
    let owner = ledger.register("a").await.unwrap();
    ledger.insert(&row(1, &owner, &[77])).await.unwrap();
    let id = uuid(1);
    let doc = json!({"step": 2});
    assert_eq!(
        ledger.update(id, 1, "claimed", &doc).await.unwrap(),
        UpdateResult::Updated(2)
    );
    assert_eq!(
        ledger.update(id, 1, "noticed", &json!(3)).await.unwrap(),
        UpdateResult::Lost
    );
    assert_eq!(
        ledger
            .finish(id, 1, "failed", &json!(3), RowEnd::Answers)
            .await
            .unwrap(),
        UpdateResult::Lost
    );
    let other = ledger.register("b").await.unwrap();
    let theirs = json!({"answerer": "b"});
    assert_eq!(
        ledger.adopt(id, 1, &other, &theirs).await.unwrap(),
        UpdateResult::Lost
    );
    assert_eq!(
        ledger.update(uuid(9), 1, "x", &doc).await.unwrap(),
        UpdateResult::Lost
    );
    let found = one(&ledger, 1).await;
    assert_eq!(
        (found.state.as_str(), &found.document, found.version),
        ("claimed", &doc, 2)
    );
    assert_eq!(
        ledger.adopt(id, 2, &other, &theirs).await.unwrap(),
        UpdateResult::Updated(3)
    );
    let adopted = one(&ledger, 1).await;
    assert_eq!((&adopted.owner, &adopted.document), (&other, &theirs));
    let heads = ledger.heads("scheduler1", 60_000).await.unwrap().open;
    assert_eq!(
        heads,
        [LedgerHead {
            id,
            owner: other,
            version: 3
        }]
    );
    let of_victim = ledger.open_row_of_victim(uuid(77)).await.unwrap();
    assert_eq!(of_victim, Some(adopted));
    assert_eq!(ledger.open_row_of_victim(uuid(9)).await.unwrap(), None);
    assert_eq!(
        ledger.update(id, 2, "noticed", &doc).await.unwrap(),
        UpdateResult::Lost
    );
}

async fn no_server_is_a_victim_of_two_open_rows(db: TestDb) {
    let ledger = open(&db).await;
    let owner = ledger.register("a").await.unwrap();
    ledger.insert(&row(1, &owner, &[10, 11])).await.unwrap();
    let taken = ledger.insert(&row(2, &owner, &[11, 12])).await.unwrap_err();
    assert_eq!(
        taken,
        LedgerError::VictimTaken {
            victim: uuid(11),
            by: uuid(1)
        }
    );
    assert_eq!(taken.code(), "EB-LEDGER-001");
    assert_eq!(
        ledger.row(uuid(2)).await.unwrap(),
        None,
        "half a row was left"
    );
    ledger.insert(&row(2, &owner, &[12])).await.unwrap();
    let taken = ledger
        .replan(uuid(2), 1, "planned", &[uuid(12), uuid(10)], &json!(1))
        .await
        .unwrap_err();
    assert_eq!(
        taken,
        LedgerError::VictimTaken {
            victim: uuid(10),
            by: uuid(1)
        }
    );
    assert_eq!(one(&ledger, 2).await.version, 1);
    let replanned = ledger
        .replan(uuid(2), 1, "planned", &[uuid(13), uuid(12)], &json!(1))
        .await
        .unwrap();
    assert_eq!(replanned, UpdateResult::Updated(2));
    let all = [
        (uuid(10), uuid(1)),
        (uuid(11), uuid(1)),
        (uuid(12), uuid(2)),
        (uuid(13), uuid(2)),
    ];
    assert_eq!(ledger.victims_of_open_rows().await.unwrap(), all);
    assert_eq!(
        ledger
            .finish(uuid(1), 1, "done", &json!(null), RowEnd::Answers)
            .await
            .unwrap(),
        UpdateResult::Updated(2)
    );
    assert_eq!(ledger.victims_of_open_rows().await.unwrap(), all[2..]);
    ledger.insert(&row(3, &owner, &[10, 11])).await.unwrap();
    let done = one(&ledger, 1).await;
    assert!(done.finished && done.victims.is_empty() && done.newcomers.len() == 2);
    let open: Vec<Uuid> = ledger
        .open_rows()
        .await
        .unwrap()
        .iter()
        .map(|r| r.id)
        .collect();
    assert_eq!(open, [uuid(2), uuid(3)]);
    assert_eq!(
        ledger.update(uuid(1), 2, "again", &json!(1)).await.unwrap(),
        UpdateResult::Lost
    );
}

async fn a_request_is_answered_from_one_row_only(db: TestDb) {
    let ledger = open(&db).await;
    let owner = ledger.register("a").await.unwrap();
    let asked = |id: u128, key: &str| NewRow {
        request_key: Some(key.to_owned()),
        ..row(id, &owner, &[id])
    };
    let taken = |by: u128| LedgerError::RequestTaken {
        request: "one".to_owned(),
        by: uuid(by),
    };
    ledger.insert(&asked(1, "one")).await.unwrap();
    // However late another scheduler writes it down, and whichever victims it wants.
    let late = ledger.insert(&asked(2, "one")).await.unwrap_err();
    assert_eq!((&late, late.code()), (&taken(1), "EB-LEDGER-004"));
    assert_eq!(
        ledger.row(uuid(2)).await.unwrap(),
        None,
        "half a row was left"
    );
    ledger.insert(&asked(3, "another")).await.unwrap();
    // What came to nothing can be planned again.
    let nothing = ledger
        .finish(uuid(1), 1, "withdrawn", &json!(1), RowEnd::Nothing)
        .await;
    assert_eq!(nothing.unwrap(), UpdateResult::Updated(2));
    ledger.insert(&asked(4, "one")).await.unwrap();
    let done = ledger
        .finish(uuid(4), 1, "done", &json!(1), RowEnd::Answers)
        .await;
    assert_eq!(done.unwrap(), UpdateResult::Updated(2));
    // What was answered is answered for good, until it is purged.
    let late = ledger.insert(&asked(5, "one")).await.unwrap_err();
    assert_eq!(late, taken(4));
    assert_eq!(ledger.purge(-3_600_000).await.unwrap(), 2);
    ledger.insert(&asked(5, "one")).await.unwrap();
    let too_long = NewRow {
        request_key: Some("x".repeat(256)),
        ..row(6, &owner, &[])
    };
    assert_eq!(
        ledger.insert(&too_long).await.unwrap_err().code(),
        "EB-STORE-010"
    );
}

async fn schedulers_know_of_each_other_and_of_their_own_earlier_lives(db: TestDb) {
    let ledger = open(&db).await;
    let first = ledger.register("a").await.unwrap();
    let other = ledger.register("b").await.unwrap();
    ledger.beat(&first).await.unwrap();
    let second = ledger.register("a").await.unwrap();
    assert_eq!((first.epoch, second.epoch, other.epoch), (1, 2, 1));
    assert!(first.is_superseded_by(&second) && !second.is_superseded_by(&first));
    assert!(!first.is_superseded_by(&other) && !first.is_superseded_by(&first));
    let error = ledger.beat(&first).await.unwrap_err();
    assert_eq!(
        error,
        LedgerError::Superseded {
            name: "a".to_owned(),
            epoch: 1
        }
    );
    ledger.beat(&second).await.unwrap();
    let owners = ledger.owners().await.unwrap();
    let seen: Vec<&Owner> = owners.iter().map(|seen| &seen.owner).collect();
    assert_eq!(seen, [&second, &other]);
    assert!(
        owners
            .iter()
            .all(|seen| (0..120_000).contains(&seen.silent_millis)),
        "{owners:?}"
    );
}

async fn two_that_register_under_one_name_get_different_epochs(db: TestDb) {
    let mut tasks = JoinSet::new();
    for _ in 0..6 {
        let ledger = open(&db).await;
        tasks.spawn(async move { ledger.register("same").await.unwrap().epoch });
    }
    let epochs: BTreeSet<i64> = tasks.join_all().await.into_iter().collect();
    assert_eq!(epochs, (1..=6).collect());
}

/// Schedulers that all want the same few victims, in any order, with rows that end at once.
async fn schedulers_that_race_never_share_a_victim(db: TestDb) {
    let mut tasks = JoinSet::new();
    for scheduler in 0..4u128 {
        let ledger = open(&db).await;
        tasks.spawn(async move {
            let owner = ledger.register(&format!("s{scheduler}")).await.unwrap();
            let (mut won, mut taken) = (0, 0);
            for round in 0..25u128 {
                let id = scheduler * 1000 + round + 1;
                // Overlapping pairs, some of them the other way round.
                let victims = [
                    1 + (scheduler + round) % 5,
                    1 + (scheduler * 3 + round * 2) % 5,
                ];
                match ledger.insert(&row(id, &owner, &victims)).await {
                    Ok(()) => {
                        let mine: BTreeSet<Uuid> = victims.iter().map(|n| uuid(*n)).collect();
                        let all = ledger.victims_of_open_rows().await.unwrap();
                        let held: BTreeSet<Uuid> = all
                            .iter()
                            .filter(|(_, by)| *by == uuid(id))
                            .map(|(v, _)| *v)
                            .collect();
                        assert_eq!(held, mine, "another row holds a victim of {id}");
                        let ended = ledger
                            .finish(uuid(id), 1, "done", &json!(round as u64), RowEnd::Answers)
                            .await;
                        assert_eq!(ended.unwrap(), UpdateResult::Updated(2));
                        won += 1;
                    }
                    Err(LedgerError::VictimTaken { victim, by }) => {
                        assert!(victims.contains(&victim.as_u128()) && by != uuid(id));
                        taken += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            (won, taken)
        });
    }
    let counts = tasks.join_all().await;
    assert!(counts.iter().all(|(won, _)| *won > 0), "{counts:?}");
    assert_eq!(
        counts.iter().map(|(won, taken)| won + taken).sum::<u32>(),
        100
    );
    let ledger = open(&db).await;
    assert_eq!(ledger.victims_of_open_rows().await.unwrap(), []);
    assert_eq!(ledger.open_rows().await.unwrap(), []);
}

async fn of_all_who_adopt_a_row_one_gets_it(db: TestDb) {
    let ledger = open(&db).await;
    let dead = ledger.register("dead").await.unwrap();
    for n in 1..=10 {
        ledger.insert(&row(n, &dead, &[n + 100])).await.unwrap();
    }
    let mut tasks = JoinSet::new();
    for n in 0..4 {
        let ledger = open(&db).await;
        tasks.spawn(async move {
            let me = ledger.register(&format!("survivor{n}")).await.unwrap();
            let mut adopted = 0;
            for row in ledger.open_rows().await.unwrap() {
                if row.owner.name == "dead"
                    && ledger
                        .adopt(row.id, row.version, &me, &row.document)
                        .await
                        .unwrap()
                        != UpdateResult::Lost
                {
                    adopted += 1;
                }
            }
            (me, adopted)
        });
    }
    let counts = tasks.join_all().await;
    assert_eq!(counts.iter().map(|(_, adopted)| adopted).sum::<usize>(), 10);
    let rows = ledger.open_rows().await.unwrap();
    for (owner, adopted) in counts {
        assert_eq!(
            rows.iter().filter(|row| row.owner == owner).count(),
            adopted
        );
    }
    assert!(
        rows.iter()
            .all(|row| row.version == 2 && row.victims.len() == 1)
    );
}

async fn the_unbilled_rest_is_recorded_once_for_each_evacuation(db: TestDb) {
    let ledger = open(&db).await;
    let usage = |n: u128, project: &str, ended_at| NewUsage {
        evacuation_id: uuid(n),
        server_id: uuid(n + 100),
        project_id: project.to_owned(),
        flavor: "m1.small".to_owned(),
        launched_at: (n != 2).then_some(1_700_000_000_000),
        ended_at,
        unbilled_seconds: 1799,
    };
    let all = [usage(1, "p", 300), usage(2, "p", 100), usage(3, "q", 200)];
    for usage in &all {
        assert!(ledger.record_usage(usage).await.unwrap());
        assert!(!ledger.record_usage(usage).await.unwrap());
    }
    let listed = async |filter: UsageFilter| -> Vec<NewUsage> {
        let records = ledger.usage(&filter).await.unwrap();
        assert!(records.iter().all(|r| r.created_at > 1_600_000_000_000));
        records.into_iter().map(|record| record.usage).collect()
    };
    let [one, two, three] = all;
    assert_eq!(
        listed(UsageFilter::default()).await,
        [two.clone(), three.clone(), one.clone()]
    );
    let of_p = UsageFilter {
        project_id: Some("p".to_owned()),
        ..UsageFilter::default()
    };
    assert_eq!(listed(of_p).await, [two.clone(), one]);
    let between = UsageFilter {
        ended_from: Some(100),
        ended_before: Some(300),
        ..UsageFilter::default()
    };
    assert_eq!(listed(between).await, [two.clone(), three]);
    assert_eq!(
        listed(UsageFilter {
            limit: 1,
            ..UsageFilter::default()
        })
        .await,
        [two]
    );
}

async fn what_is_over_is_purged_and_nothing_else(db: TestDb) {
    let ledger = open(&db).await;
    let owner = ledger.register("a").await.unwrap();
    ledger.register("idle").await.unwrap();
    for n in 1..=3 {
        ledger.insert(&row(n, &owner, &[n + 100])).await.unwrap();
    }
    for n in 1..=2 {
        assert_eq!(
            ledger
                .finish(uuid(n), 1, "done", &json!(1), RowEnd::Answers)
                .await
                .unwrap(),
            UpdateResult::Updated(2)
        );
    }
    assert_eq!(ledger.purge(3_600_000).await.unwrap(), 0);
    // Older than an hour from now: everything that is over.
    assert_eq!(ledger.purge(-3_600_000).await.unwrap(), 2);
    assert_eq!(ledger.row(uuid(1)).await.unwrap(), None);
    assert_eq!(ledger.by_instance(uuid(1000)).await.unwrap(), []);
    assert_eq!(one(&ledger, 3).await.victims, [uuid(103)]);
    let names: Vec<String> = ledger
        .owners()
        .await
        .unwrap()
        .into_iter()
        .map(|s| s.owner.name)
        .collect();
    assert_eq!(names, ["a"]);
}

async fn it_lives_beside_a_store_and_is_opened_again(db: TestDb) {
    let config = db.config();
    // One after the other: an SQLite file has one writer, and creating tables is a write. The
    // second opener at the same time would get an error.
    let ledger = Ledger::open(&config).await.unwrap();
    let store = Store::open(&config).await.unwrap();
    let owner = ledger.register("a").await.unwrap();
    ledger.insert(&row(1, &owner, &[1])).await.unwrap();
    store.ping().await.unwrap();
    ledger.close().await;
    assert_eq!(ledger.ping().await.unwrap_err().code(), "EB-STORE-001");
    let again = open(&db).await;
    assert_eq!(one(&again, 1).await.victims, [uuid(1)]);
}

async fn what_does_not_fit_is_refused_before_it_is_written(db: TestDb) {
    let ledger = open(&db).await;
    let owner = ledger.register("a").await.unwrap();
    let good = row(1, &owner, &[]);
    for bad in [
        NewRow {
            state: "x".repeat(33),
            ..good.clone()
        },
        NewRow {
            state: String::new(),
            ..good.clone()
        },
        NewRow {
            request_id: "x".repeat(256),
            ..good.clone()
        },
        NewRow {
            request_id: "a\0b".to_owned(),
            ..good.clone()
        },
        NewRow {
            document: json!("x".repeat(16_000_000)),
            ..good.clone()
        },
    ] {
        let code = ledger.insert(&bad).await.unwrap_err().code();
        assert!(["EB-STORE-009", "EB-STORE-010"].contains(&code), "{code}");
    }
    assert_eq!(ledger.open_rows().await.unwrap(), []);
    assert!(ledger.register("").await.is_err());
}

on_every_database!(
    how_the_tables_stand_is_seen_without_changing_them,
    a_row_comes_back_as_it_went_in,
    rows_of_late_are_those_that_are_open_and_those_that_ended_just_now,
    pages_of_finished_rows_put_together_are_all_of_them_without_the_open_ones,
    an_update_at_an_old_version_changes_nothing,
    no_server_is_a_victim_of_two_open_rows,
    a_request_is_answered_from_one_row_only,
    schedulers_know_of_each_other_and_of_their_own_earlier_lives,
    two_that_register_under_one_name_get_different_epochs,
    schedulers_that_race_never_share_a_victim,
    of_all_who_adopt_a_row_one_gets_it,
    the_unbilled_rest_is_recorded_once_for_each_evacuation,
    what_is_over_is_purged_and_nothing_else,
    it_lives_beside_a_store_and_is_opened_again,
    what_does_not_fit_is_refused_before_it_is_written,
);

//! One scheduler at a time.

use crate::databases::{TestDb, at};
use crate::records::*;
use ebbtide_model::Seconds;
use ebbtide_store::StoreError;

on_every_database![
    a_second_scheduler_is_refused_and_told_who_and_until_when,
    an_expired_lease_is_taken_over_and_the_old_holder_is_fenced,
    a_renewed_lease_lasts_longer,
    a_released_lease_is_free_at_once,
    a_restarted_scheduler_gets_its_lease_back_at_once,
    of_many_that_want_the_lease_one_gets_it,
    every_lease_has_a_higher_epoch,
    a_holder_without_a_name_is_refused,
    a_lease_that_is_not_renewed_is_taken_over_whatever_its_end_says,
    a_renewal_is_no_commit_that_others_would_look_for,
];

const TTL: Seconds = Seconds(10);

async fn a_second_scheduler_is_refused_and_told_who_and_until_when(db: TestDb) {
    let first = db.open().await;
    first
        .acquire_lease("scheduler-a", at(0), TTL)
        .await
        .unwrap();
    let second = db.open().await;
    let refused = second.acquire_lease("scheduler-b", at(9), TTL).await;
    let refused = refused.unwrap_err();
    match &refused {
        StoreError::LeaseHeld { holder, until, .. } => {
            assert_eq!((holder.as_str(), *until), ("scheduler-a", at(10)));
        }
        other => panic!("expected LeaseHeld, got {other:?}"),
    }
    let said = refused.to_string();
    assert!(said.contains("scheduler-a"), "{said}");
    assert!(said.contains(&at(10).to_string()), "{said}");
}

async fn an_expired_lease_is_taken_over_and_the_old_holder_is_fenced(db: TestDb) {
    let first = db.open().await;
    let old = first
        .acquire_lease("scheduler-a", at(0), TTL)
        .await
        .unwrap();
    first.commit(&old, &[put_server(server(1))]).await.unwrap();
    let second = db.open().await;
    let new = second
        .acquire_lease("scheduler-b", at(10), TTL)
        .await
        .unwrap();
    let fenced = first
        .commit(&old, &[put_server(server(2))])
        .await
        .unwrap_err();
    assert_eq!(fenced.code(), "EB-STORE-004");
    assert!(fenced.to_string().contains("scheduler-b"), "{fenced}");
    let fenced = first.renew_lease(&old, at(10), TTL).await.unwrap_err();
    assert!(matches!(fenced, StoreError::Fenced { .. }), "{fenced}");
    // Also when it has nothing to write.
    let (_, seen) = first.load_all(at(0)).await.unwrap();
    let turn = first.begin_write(seen, Some(&old)).await.unwrap();
    match first.is_shared() {
        true => {
            assert!(!turn.on_duty());
            turn.confirm().await.unwrap();
        }
        false => {
            let fenced = turn.confirm().await.unwrap_err();
            assert!(matches!(fenced, StoreError::Fenced { .. }), "{fenced}");
        }
    }
    // What is fenced cannot give away what it no longer has.
    first.release_lease(&old).await.unwrap();
    second.commit(&new, &[put_server(server(3))]).await.unwrap();
    let servers = second.load(at(0)).await.unwrap().servers;
    assert_eq!(servers, [server(1), server(3)]);
}

async fn a_renewed_lease_lasts_longer(db: TestDb) {
    let first = db.open().await;
    let lease = first
        .acquire_lease("scheduler-a", at(0), TTL)
        .await
        .unwrap();
    let renewed = first.renew_lease(&lease, at(5), TTL).await.unwrap();
    assert_eq!(renewed.epoch(), lease.epoch());
    assert_eq!(renewed.expires_at(), at(15));
    let second = db.open().await;
    let refused = second.acquire_lease("scheduler-b", at(14), TTL).await;
    assert_eq!(refused.unwrap_err().code(), "EB-STORE-005");
    // A late renewal succeeds as long as no other scheduler has taken the lease.
    first.renew_lease(&renewed, at(40), TTL).await.unwrap();
    let refused = second.acquire_lease("scheduler-b", at(49), TTL).await;
    assert_eq!(refused.unwrap_err().code(), "EB-STORE-005");
    first
        .commit(&lease, &[put_server(server(1))])
        .await
        .unwrap();
}

async fn a_released_lease_is_free_at_once(db: TestDb) {
    let first = db.open().await;
    let lease = first
        .acquire_lease("scheduler-a", at(0), TTL)
        .await
        .unwrap();
    first.release_lease(&lease).await.unwrap();
    first.release_lease(&lease).await.unwrap();
    let fenced = first.commit(&lease, &[put_server(server(1))]).await;
    assert_eq!(fenced.unwrap_err().code(), "EB-STORE-004");
    let second = db.open().await;
    second
        .acquire_lease("scheduler-b", at(1), TTL)
        .await
        .unwrap();
}

async fn a_restarted_scheduler_gets_its_lease_back_at_once(db: TestDb) {
    let crashed = db.open().await;
    let old = crashed
        .acquire_lease("scheduler-a", at(0), TTL)
        .await
        .unwrap();
    let restarted = db.open().await;
    let new = restarted
        .acquire_lease("scheduler-a", at(1), TTL)
        .await
        .unwrap();
    restarted
        .commit(&new, &[put_server(server(1))])
        .await
        .unwrap();
    // Should the old one not be dead after all, it is fenced like any other.
    let fenced = crashed.commit(&old, &[put_server(server(2))]).await;
    assert_eq!(fenced.unwrap_err().code(), "EB-STORE-004");
}

async fn of_many_that_want_the_lease_one_gets_it(db: TestDb) {
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..6 {
        let store = db.open().await;
        tasks.spawn(async move {
            store
                .acquire_lease(&format!("scheduler-{n}"), at(0), TTL)
                .await
        });
    }
    let results = tasks.join_all().await;
    let won = results.iter().filter(|result| result.is_ok()).count();
    assert_eq!(won, 1, "{results:?}");
    for lost in results.into_iter().filter_map(Result::err) {
        assert_eq!(lost.code(), "EB-STORE-005", "{lost}");
    }
}

async fn every_lease_has_a_higher_epoch(db: TestDb) {
    let store = db.open().await;
    let mut last = 0;
    for round in 0..5 {
        let holder = format!("scheduler-{round}");
        let lease = store.acquire_lease(&holder, at(round * 100), TTL).await;
        let lease = lease.unwrap();
        assert_eq!(lease.holder(), holder);
        assert!(lease.epoch() > last, "{} after {last}", lease.epoch());
        last = lease.epoch();
        if round == 2 {
            store.release_lease(&lease).await.unwrap();
        }
    }
}

async fn a_holder_without_a_name_is_refused(db: TestDb) {
    let store = db.open().await;
    for holder in ["", &"x".repeat(256)] {
        let refused = store.acquire_lease(holder, at(0), TTL).await.unwrap_err();
        assert_eq!(refused.code(), "EB-STORE-010", "{refused}");
    }
}

async fn a_lease_that_is_not_renewed_is_taken_over_whatever_its_end_says(db: TestDb) {
    let first = db.open().await;
    // Its clock is an hour ahead.
    let lease = first
        .acquire_lease("scheduler-a", at(3600), TTL)
        .await
        .unwrap();
    let second = db.open().await;
    let seen = ("scheduler-a", lease.expires_at());
    // The holder renewed at the last moment, so the watching scheduler has to start again.
    let renewed = first.renew_lease(&lease, at(3601), TTL).await.unwrap();
    let refused = second
        .take_over_lease("scheduler-b", seen, at(20), TTL)
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::LeaseHeld { .. }), "{refused}");
    let seen = ("scheduler-a", renewed.expires_at());
    let taken = second
        .take_over_lease("scheduler-b", seen, at(20), TTL)
        .await
        .unwrap();
    assert_eq!(taken.expires_at(), at(30));
    let fenced = first
        .renew_lease(&renewed, at(3602), TTL)
        .await
        .unwrap_err();
    assert!(matches!(fenced, StoreError::Fenced { .. }), "{fenced}");
}

async fn a_renewal_is_no_commit_that_others_would_look_for(db: TestDb) {
    let store = db.open().await;
    let lease = store
        .acquire_lease("scheduler-a", at(0), TTL)
        .await
        .unwrap();
    let (_, seen) = store.load_all(at(0)).await.unwrap();
    let lease = store.renew_lease(&lease, at(1), TTL).await.unwrap();
    let turn = store.begin_write(seen, Some(&lease)).await.unwrap();
    assert!(turn.news().is_empty());
    assert_eq!(turn.head(), seen);
    turn.give_back().await;
    store.release_lease(&lease).await.unwrap();
    let turn = store.begin_write(seen, None).await.unwrap();
    assert_eq!(turn.head(), seen);
    turn.give_back().await;
}

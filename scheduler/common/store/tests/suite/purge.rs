//! Forgetting what is long over, and nothing else.

use crate::databases::{TestDb, at};
use crate::records::*;
use ebbtide_model::record::Change;
use ebbtide_store::{
    DecisionFilter, EvacuationFilter, LifeFilter, PriceFilter, PurgeCounts, PurgeKind, ServerFilter,
};
use sea_orm::{ConnectionTrait, Statement};

on_every_database![
    only_what_was_over_before_is_purged,
    a_purge_stops_at_its_limit_and_takes_the_oldest_first,
    a_purge_of_more_than_one_batch_is_complete,
    a_decision_stays_as_long_as_one_of_its_servers_does,
    what_is_archived_is_read_and_then_forgotten_unless_it_has_changed,
];

async fn a_decision_stays_as_long_as_one_of_its_servers_does(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let changes = [
        put_server(server(1)),
        put_server(gone(2, 10)),
        put_decision(decision(5, &[server_id(1), server_id(2)], 1)),
    ];
    store.commit(&lease, &changes).await.unwrap();
    assert_eq!(
        store
            .purge_some(PurgeKind::Decisions, at(50), 9)
            .await
            .unwrap(),
        0
    );
    store
        .commit(&lease, &[put_server(gone(1, 20))])
        .await
        .unwrap();
    assert_eq!(
        store
            .purge_some(PurgeKind::Decisions, at(50), 9)
            .await
            .unwrap(),
        1
    );
}

async fn what_is_archived_is_read_and_then_forgotten_unless_it_has_changed(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let changes = [put_server(gone(1, 10)), put_server(gone(2, 20))];
    store.commit(&lease, &changes).await.unwrap();
    let old = store.old(PurgeKind::Servers, at(50), 9).await.unwrap();
    let read: Vec<ebbtide_model::Server> = old
        .iter()
        .map(|record| serde_json::from_str(&record.json).unwrap())
        .collect();
    assert_eq!(read, [gone(1, 10), gone(2, 20)]);
    let ids: Vec<String> = old.into_iter().map(|record| record.id).collect();
    // The same place was asked for again meanwhile.
    store
        .commit(&lease, &[put_server(server(1))])
        .await
        .unwrap();
    assert_eq!(
        store
            .forget(PurgeKind::Servers, &ids, at(50))
            .await
            .unwrap(),
        1
    );
    assert_eq!(store.load(at(0)).await.unwrap().servers, [server(1)]);
}

async fn only_what_was_over_before_is_purged(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let mut changes = vec![
        put_server(server(1)),
        put_server(gone(2, 49)),
        put_server(gone(3, 50)),
        put_evacuation(evacuation(1)),
        put_evacuation(finished(2, 49)),
        put_evacuation(finished(3, 50)),
        put_decision(decision(49, &[server_id(2)], 1)),
        put_decision(decision(50, &[server_id(1)], 1)),
        put_life(life(2, 49)),
        put_life(life(3, 50)),
        Change::PutPrice(price(1, 20)),
        Change::PutPrice(price(1, 40)),
        Change::PutPrice(price(1, 60)),
        Change::PutPrice(price(2, 10)),
    ];
    changes.extend([put_host(host(1)), Change::Enqueue(message(1))]);
    store.commit(&lease, &changes).await.unwrap();
    let purged = store.purge(at(50), 1000).await.unwrap();
    let one = PurgeCounts {
        servers: 1,
        evacuations: 1,
        decisions: 1,
        lives: 1,
        prices: 1,
    };
    assert_eq!(purged, one);
    assert_eq!(purged.total(), 5);
    // The one from 40 counted until 60, and the one of the other flavor counts still.
    let prices = store.prices(&PriceFilter::default()).await.unwrap();
    assert_eq!(prices, [price(1, 60), price(1, 40), price(2, 10)]);
    let lives = store.lives(&LifeFilter::default()).await.unwrap();
    assert_eq!(lives, [life(3, 50)]);
    let everything = ServerFilter {
        include_gone: true,
        ..ServerFilter::default()
    };
    let servers = store.servers(&everything).await.unwrap();
    assert_eq!(servers, [gone(3, 50), server(1)]);
    let evacuations = store
        .evacuations(&EvacuationFilter::default())
        .await
        .unwrap();
    assert_eq!(evacuations, [finished(3, 50), evacuation(1)]);
    let decisions = store.decisions(&DecisionFilter::default()).await.unwrap();
    assert_eq!(decisions, [decision(50, &[server_id(1)], 1)]);
    // What was known about the servers of a decision went with it.
    assert_eq!(store.decision_for_server(server_id(2)).await.unwrap(), None);
    let raw = db.raw().await;
    let count = "SELECT COUNT(*) AS n FROM decision_servers";
    let count = Statement::from_string(raw.get_database_backend(), count);
    let row = raw.query_one_raw(count).await.unwrap().unwrap();
    assert_eq!(row.try_get::<i64>("", "n").unwrap(), 1);
    assert_eq!(store.load(at(0)).await.unwrap().outbox, [message(1)]);
    assert_eq!(store.purge(at(50), 1000).await.unwrap().total(), 0);
}

async fn a_purge_stops_at_its_limit_and_takes_the_oldest_first(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let changes: Vec<Change> = (1..=9)
        .map(|n| put_server(gone(n, 20 - n as i64)))
        .collect();
    store.commit(&lease, &changes).await.unwrap();
    let purged = store.purge(at(1000), 4).await.unwrap();
    assert_eq!(purged.servers, 4);
    let left = ServerFilter {
        include_gone: true,
        ..ServerFilter::default()
    };
    let left = store.servers(&left).await.unwrap();
    // Server 9 ended first.
    let left: Vec<_> = left.iter().map(|server| server.id).collect();
    assert_eq!(left, [5, 4, 3, 2, 1].map(server_id));
}

async fn a_purge_of_more_than_one_batch_is_complete(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    for chunk in [0..300_u64, 300..600] {
        let changes: Vec<Change> = chunk.map(|n| put_server(gone(n, 5))).collect();
        store.commit(&lease, &changes).await.unwrap();
    }
    store
        .commit(&lease, &[put_server(server(1000))])
        .await
        .unwrap();
    assert_eq!(store.purge(at(6), u64::MAX).await.unwrap().servers, 600);
    let left = ServerFilter {
        include_gone: true,
        ..ServerFilter::default()
    };
    assert_eq!(store.servers(&left).await.unwrap(), [server(1000)]);
}

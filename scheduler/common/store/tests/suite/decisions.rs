//! Decisions alone: what OpenStack mode writes, finds and forgets, without a lease.

use crate::databases::{TestDb, at};
use crate::records::*;
use ebbtide_model::{Decision, DecisionId, DecisionOutcome, IdleHour, LifeEnd, PastLife};
use ebbtide_store::{Backend, DecisionFilter, DecisionStore, LifeFilter, StoreError};
use sea_orm::{ConnectionTrait, QueryResult, Statement, TransactionTrait};
use std::time::Duration;

on_every_database![
    decisions_are_filtered_by_everything_that_is_set,
    pages_put_together_are_the_whole_list_while_new_decisions_come,
    every_way_to_a_list_of_decisions_is_an_index,
    several_schedulers_write_and_purge_at_the_same_time,
    hours_of_idle_capacity_are_replaced_read_in_pages_and_purged,
    a_decision_that_no_database_takes_keeps_no_other_from_being_written,
    decisions_of_an_older_schema_stay_readable,
    an_end_by_the_provider_replaces_what_nova_shows_of_a_life_and_never_the_other_way_round,
    a_database_that_is_locked_fails_in_time_and_takes_the_same_decisions_later,
];

async fn an_end_by_the_provider_replaces_what_nova_shows_of_a_life_and_never_the_other_way_round(
    db: TestDb,
) {
    use LifeEnd::{Deleted, MaxLifetime, Preempted, Stopped};
    let lives = open(&db).await.lives();
    let ended = |n: u64, end: LifeEnd| PastLife {
        end,
        ..life(n, 20 + n as i64)
    };
    let read = async || {
        let all = lives.lives(&LifeFilter::default()).await.unwrap();
        let mut ends: Vec<_> = all.iter().map(|life| (life.starts, life.end)).collect();
        ends.sort_unstable_by_key(|(n, _)| *n);
        ends
    };
    // Both ends of one life in one list, in either order; the same list once more changes nothing.
    let first = [
        ended(1, Deleted),
        ended(1, Preempted),
        ended(2, MaxLifetime),
        ended(2, Stopped),
        ended(3, Deleted),
        ended(3, Stopped),
    ];
    let expected = [(1, Preempted), (2, MaxLifetime), (3, Deleted)];
    for _ in 0..2 {
        assert_eq!(lives.record(&first).await.unwrap(), []);
        assert_eq!(read().await, expected);
    }
    // Another scheduler has seen the deletion only, and later the ledger.
    lives
        .record(&[ended(1, Deleted), ended(4, Deleted)])
        .await
        .unwrap();
    lives.record(&[ended(3, Preempted)]).await.unwrap();
    let expected = [
        (1, Preempted),
        (2, MaxLifetime),
        (3, Preempted),
        (4, Deleted),
    ];
    assert_eq!(read().await, expected);
    // One that no database takes keeps no other one from being written.
    let too_long = PastLife {
        project_id: "p".repeat(300),
        ..ended(5, Deleted)
    };
    let refused = lives.record(&[too_long, ended(6, Deleted)]).await.unwrap();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert_eq!(read().await.last(), Some(&(6, Deleted)));
    // Lives 1 and 2 ended before 23.
    assert_eq!(lives.purge(at(23), 100).await.unwrap(), 2);
    assert_eq!(read().await.first(), Some(&(3, Preempted)));
}

async fn open(db: &TestDb) -> DecisionStore {
    DecisionStore::open(&db.config()).await.unwrap()
}

fn ids(decisions: &[Decision]) -> Vec<DecisionId> {
    decisions.iter().map(|decision| decision.id).collect()
}

fn any(n: u64) -> Decision {
    let servers = [server_id(n), server_id(n + 1)];
    match n % 4 {
        0 => refusal(n, &servers),
        _ => decision(n, &servers, 1),
    }
}

async fn hours_of_idle_capacity_are_replaced_read_in_pages_and_purged(db: TestDb) {
    let store = open(&db).await;
    let hour = |n: i64, flavor: &str, fit: u64| {
        let mut hour = IdleHour::new(at(n), flavor);
        hour.add(fit, None);
        hour
    };
    // More than a page, and two flavors an hour.
    let flavors = ["m1.small", "größer"];
    let all: Vec<IdleHour> = (0..700)
        .flat_map(|n| flavors.map(|flavor| hour(n, flavor, n.unsigned_abs())))
        .collect();
    store.put_idle_hours(&all).await.unwrap();
    let again = hour(3, "m1.small", 99);
    store
        .put_idle_hours(std::slice::from_ref(&again))
        .await
        .unwrap();
    let read = store.idle_hours(at(0), at(1000)).await.unwrap();
    assert_eq!(read.len(), 1400);
    assert!(read.is_sorted_by_key(|hour| hour.hour));
    let mut expected: Vec<&IdleHour> = all.iter().filter(|one| one.key() != again.key()).collect();
    expected.push(&again);
    expected.sort_by_key(|hour| (hour.hour, hour.key()));
    assert_eq!(read.iter().collect::<Vec<_>>(), expected);
    assert_eq!(store.idle_hours(at(5), at(7)).await.unwrap().len(), 4);
    store.purge(at(690), u64::MAX).await.unwrap();
    assert_eq!(store.idle_hours(at(0), at(1000)).await.unwrap().len(), 20);
}

async fn decisions_are_filtered_by_everything_that_is_set(db: TestDb) {
    let store = open(&db).await;
    let all: Vec<Decision> = (0..24).map(any).collect();
    assert!(store.put(&all).await.unwrap().is_empty());
    // Written again, as after a lost answer.
    assert!(store.put(&all[3..7]).await.unwrap().is_empty());
    let mut seen = 0;
    for project in [None, Some("project-1"), Some("unknown")] {
        for request in [None, Some("req-4"), Some("REQ-4"), Some("req-5")] {
            for server in [None, Some(server_id(9)), Some(server_id(500))] {
                for (from, before) in [
                    (None, None),
                    (Some(at(8)), None),
                    (Some(at(2)), Some(at(9))),
                ] {
                    for refused_only in [false, true] {
                        let filter = DecisionFilter {
                            project_id: project.map(str::to_owned),
                            request_id: request.map(str::to_owned),
                            server_id: server,
                            from,
                            before,
                            refused_only,
                            ..DecisionFilter::default()
                        };
                        let refused =
                            |d: &Decision| matches!(d.outcome, DecisionOutcome::NoValidHost(_));
                        let expected: Vec<DecisionId> = all
                            .iter()
                            .rev()
                            .filter(|d| project.is_none_or(|p| d.request.project_id == p))
                            .filter(|d| request.is_none_or(|r| d.trace.request_id == r))
                            .filter(|d| server.is_none_or(|s| d.request.server_ids.contains(&s)))
                            .filter(|d| from.is_none_or(|from| d.at >= from))
                            .filter(|d| before.is_none_or(|before| d.at < before))
                            .filter(|d| !refused_only || refused(d))
                            .map(|d| d.id)
                            .collect();
                        let found = store.decisions(&filter).await.unwrap();
                        assert_eq!(ids(&found), expected, "{filter:?}");
                        seen += expected.len();
                    }
                }
            }
        }
    }
    assert!(seen > 100, "the filters hardly found anything: {seen}");
    assert_eq!(store.decision(decision_id(5)).await.unwrap(), Some(any(5)));
    let latest = store.decision_for_server(server_id(5)).await.unwrap();
    assert_eq!(latest, Some(any(5)));
}

async fn pages_put_together_are_the_whole_list_while_new_decisions_come(db: TestDb) {
    let store = open(&db).await;
    // Many at the same moment: the identifier decides among them.
    let of = |n: u64| Decision {
        at: at(n as i64 / 50),
        ..any(n)
    };
    let all: Vec<Decision> = (0..600).map(of).collect();
    for chunk in all.chunks(64) {
        store.put(chunk).await.unwrap();
    }
    for limit in [1, 7, 250, 1000] {
        let mut pages: Vec<Decision> = Vec::new();
        for turn in 0.. {
            let filter = DecisionFilter {
                limit,
                refused_only: true,
                marker: pages.last().map(|last| last.id),
                ..DecisionFilter::default()
            };
            let page = store.decisions(&filter).await.unwrap();
            if page.is_empty() {
                break;
            }
            assert!(page.len() <= limit as usize);
            pages.extend(page);
            if turn == 0 {
                let newer = Decision {
                    at: at(1000 + i64::from(limit)),
                    ..any(10_000 + u64::from(limit) * 4)
                };
                store.put(&[newer]).await.unwrap();
            }
        }
        let old: Vec<DecisionId> = ids(&pages.split_off(pages.len() - 150));
        let refused = |d: &&Decision| matches!(d.outcome, DecisionOutcome::NoValidHost(_));
        let mut expected: Vec<&Decision> = all.iter().filter(refused).collect();
        expected.sort_by_key(|d| std::cmp::Reverse((d.at, d.id)));
        let expected: Vec<DecisionId> = expected.into_iter().map(|d| d.id).collect();
        assert_eq!(old, expected, "pages of {limit}");
    }
}

/// What `EXPLAIN` says of the list with this filter, as the store writes it.
async fn plan(db: &TestDb, backend: Backend, filter: &str) -> String {
    let raw = db.raw().await;
    let list = format!(
        "SELECT id, record FROM decisions WHERE {filter} ORDER BY created_at DESC, id DESC LIMIT 100"
    );
    let explain = match backend {
        Backend::Sqlite => format!("EXPLAIN QUERY PLAN {list}"),
        _ => format!("EXPLAIN {list}"),
    };
    let statement = Statement::from_string(raw.get_database_backend(), explain);
    let rows = raw.query_all_raw(statement).await.unwrap();
    let text = |row: &QueryResult| match backend {
        Backend::Sqlite => row.try_get::<String>("", "detail").unwrap(),
        Backend::Postgres => row.try_get_by_index::<String>(0).unwrap(),
        Backend::MySql => {
            let of = |column: &str| row.try_get::<Option<String>>("", column).unwrap();
            format!("{:?} key={:?} {:?}", of("table"), of("key"), of("Extra"))
        }
    };
    let text: Vec<String> = rows.iter().map(text).collect();
    raw.close().await.unwrap();
    text.join("\n")
}

async fn every_way_to_a_list_of_decisions_is_an_index(db: TestDb) {
    let store = open(&db).await;
    for chunk in 0..40 {
        let some: Vec<Decision> = (chunk * 50..chunk * 50 + 50).map(any).collect();
        store.put(&some).await.unwrap();
    }
    match store.backend() {
        Backend::MySql => db.sql("ANALYZE TABLE decisions, decision_servers").await,
        _ => db.sql("ANALYZE").await,
    }
    let time = at(1000).as_millis();
    let page = format!("created_at <= {time} AND (created_at < {time} OR id < '7')");
    let server = server_id(700).to_string();
    for (filter, index) in [
        (page.clone(), "decisions_by_time"),
        (format!("created_at >= {time}"), "decisions_by_time"),
        (
            format!("outcome = 'no_valid_host' AND {page}"),
            "decisions_by_outcome",
        ),
        ("request_id = 'req-7'".to_owned(), "decisions_by_request"),
        (
            format!(
                "id IN (SELECT decision_id FROM decision_servers WHERE server_id = '{server}')"
            ),
            "decision_servers",
        ),
    ] {
        let plan = plan(&db, store.backend(), &filter).await;
        let used = match (store.backend(), index) {
            // The name of a primary key is the database's own.
            (Backend::Sqlite, "decision_servers") => "sqlite_autoindex_decision_servers_1",
            (Backend::Postgres, "decision_servers") => "decision_servers_pkey",
            (Backend::MySql, "decision_servers") => "PRIMARY",
            (_, index) => index,
        };
        assert!(plan.contains(used), "{filter}: {used} is not in\n{plan}");
        for scan in ["Seq Scan", "SCAN decisions\n", "key=None"] {
            assert!(!plan.contains(scan), "{filter}: {scan} in\n{plan}");
        }
    }
}

async fn several_schedulers_write_and_purge_at_the_same_time(db: TestDb) {
    let first = open(&db).await;
    let second = open(&db).await;
    let old: Vec<Decision> = (0..600).map(any).collect();
    for chunk in old.chunks(64) {
        first.put(chunk).await.unwrap();
    }
    let write = |store: DecisionStore, from: u64| async move {
        for n in from..from + 20 {
            store.put(&[any(n), any(n + 500)]).await.unwrap();
        }
    };
    let (a, b, (), ()) = tokio::join!(
        first.purge(at(600), u64::MAX),
        second.purge(at(600), u64::MAX),
        write(first.clone(), 1000),
        write(second.clone(), 3000),
    );
    assert_eq!(a.unwrap() + b.unwrap(), 600, "each was deleted once");
    let left = first.decisions(&DecisionFilter::default()).await.unwrap();
    assert_eq!(left.len(), 80);
    assert!(left.iter().all(|decision| decision.at >= at(1000)));
}

async fn a_decision_that_no_database_takes_keeps_no_other_from_being_written(db: TestDb) {
    let store = open(&db).await;
    let mut infinite = any(1);
    infinite.explanation.instances[0].ranking[0].weight = f64::INFINITY;
    let mut long = any(2);
    long.trace.request_id = "r".repeat(256);
    let refused = store.put(&[infinite, any(3), long, any(5)]).await.unwrap();
    assert_eq!(refused.len(), 2, "{refused:?}");
    let unstorable = |error: &StoreError| matches!(error, StoreError::Unstorable { .. });
    assert!(refused.iter().all(unstorable), "{refused:?}");
    let left = store.decisions(&DecisionFilter::default()).await.unwrap();
    assert_eq!(left, [any(5), any(3)]);
}

async fn decisions_of_an_older_schema_stay_readable(db: TestDb) {
    let store = open(&db).await;
    let mut old = any(3);
    old.trace = ebbtide_model::RequestTrace::default();
    store.put(std::slice::from_ref(&old)).await.unwrap();
    let on = match store.backend() {
        Backend::MySql => " ON decisions",
        _ => "",
    };
    store.close().await;
    for index in ["decisions_by_request", "decisions_by_outcome"] {
        db.sql(&format!("DROP INDEX {index}{on}")).await;
    }
    db.sql("ALTER TABLE decisions DROP COLUMN request_id").await;
    db.sql("DELETE FROM seaql_migrations WHERE version LIKE '%_decision_requests'")
        .await;
    let store = open(&db).await;
    store.put(&[any(4)]).await.unwrap();
    let all = store.decisions(&DecisionFilter::default()).await.unwrap();
    assert_eq!(all, [any(4), old]);
}

async fn a_database_that_is_locked_fails_in_time_and_takes_the_same_decisions_later(db: TestDb) {
    let store = open(&db).await;
    store.put(&[any(1)]).await.unwrap();
    store.close().await;
    let mut config = db.config();
    // MariaDB counts in seconds.
    config.lock_timeout = Duration::from_secs(1);
    let store = DecisionStore::open(&config).await.unwrap();
    let raw = db.raw().await;
    let held = raw.begin().await.unwrap();
    held.execute_unprepared("UPDATE decisions SET project_id = 'x'")
        .await
        .unwrap();
    let error = store.put(&[any(1), any(2)]).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    held.rollback().await.unwrap();
    assert!(store.put(&[any(1), any(2)]).await.unwrap().is_empty());
    let all = store.decisions(&DecisionFilter::default()).await.unwrap();
    assert_eq!(all, [any(2), any(1)]);
}

#[tokio::test]
async fn a_full_database_refuses_decisions_until_old_ones_are_purged() {
    let db = TestDb::sqlite().await;
    let mut config = db.config();
    config.sqlite_max_pages = Some(150);
    let store = DecisionStore::open(&config).await.unwrap();
    let mut written = 0;
    let error = loop {
        match store.put(&[any(written)]).await {
            Ok(_) => written += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, StoreError::DiskFull { .. }), "{error}");
    assert!(written > 10, "{written}");
    let half = i64::try_from(written / 2).unwrap();
    assert!(store.purge(at(half), u64::MAX).await.unwrap() > 0);
    store.put(&[any(written)]).await.unwrap();
    let latest = store.decision(decision_id(written)).await.unwrap();
    assert_eq!(latest, Some(any(written)));
}

/// A million decisions, made by the database from one that the store has written.
async fn a_million(db: &TestDb, backend: Backend) {
    let template = decision_id(1).to_string();
    let (numbers, pad) = match backend {
        Backend::MySql => (
            "(SELECT seq AS n FROM seq_1_to_1000000) s",
            "LPAD(n, 12, '0')",
        ),
        Backend::Postgres => (
            "(SELECT generate_series(1, 1000000) AS n) s",
            "LPAD(CAST(n AS text), 12, '0')",
        ),
        Backend::Sqlite => (
            "(WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s LIMIT 1000000) \
             SELECT n FROM s) s",
            "printf('%012d', n)",
        ),
    };
    let join = |parts: [&str; 2]| match backend {
        Backend::MySql => format!("CONCAT({}, {})", parts[0], parts[1]),
        _ => format!("{} || {}", parts[0], parts[1]),
    };
    let id = join(["'00000000-0000-4000-8000-'", pad]);
    let request = join(["'req-'", pad]);
    let first = at(0).as_millis();
    db.sql(&format!(
        "INSERT INTO decisions (id, project_id, request_id, outcome, created_at, record) \
         SELECT {id}, CASE WHEN n % 1000 = 0 THEN 'rare' ELSE 'common' END, {request}, \
         CASE WHEN n % 100 = 0 THEN 'no_valid_host' ELSE 'placed' END, {first} + n, \
         REPLACE(t.record, '{template}', {id}) \
         FROM {numbers} CROSS JOIN decisions t WHERE t.id = '{template}'"
    ))
    .await;
    match backend {
        Backend::MySql => db.sql("ANALYZE TABLE decisions").await,
        _ => db.sql("ANALYZE").await,
    }
}

/// How long pages of a million decisions take: from the newest, from the middle, and by filters of
/// which little or nothing is found.
async fn pages_of_a_million(db: TestDb) {
    let store = open(&db).await;
    store.put(&[any(1)]).await.unwrap();
    let backend = store.backend();
    a_million(&db, backend).await;
    let id = |n: u32| format!("00000000-0000-4000-8000-{n:012}").parse().unwrap();
    let page = |change: fn(&mut DecisionFilter)| {
        let mut filter = DecisionFilter {
            limit: 100,
            ..DecisionFilter::default()
        };
        change(&mut filter);
        filter
    };
    let middle = DecisionFilter {
        marker: Some(DecisionId(id(500_000))),
        ..page(|_| {})
    };
    let refused_middle = DecisionFilter {
        refused_only: true,
        ..middle.clone()
    };
    for (what, filter, found) in [
        ("the newest", page(|_| {}), 100),
        ("behind 500,000 others", middle, 100),
        ("refused, behind 500,000 others", refused_middle, 100),
        (
            "of a rare project",
            page(|f| f.project_id = Some("rare".to_owned())),
            100,
        ),
        (
            "of a request",
            page(|f| f.request_id = Some("req-000000123456".to_owned())),
            1,
        ),
        ("of an hour long ago", page(|f| f.before = Some(at(1))), 100),
        ("of a server", page(|f| f.server_id = Some(server_id(2))), 1),
    ] {
        let watch = ebbtide_runtime::clock::Stopwatch::start();
        let seen = store.decisions(&filter).await.unwrap();
        let millis = watch.elapsed().as_secs_f64() * 1000.0;
        println!("{backend:?}: 100 decisions {what}: {millis:.1} ms");
        assert_eq!(seen.len(), found, "{what}");
    }
}

macro_rules! a_minute_each {
    ($($name:ident: $db:ident),*) => { $(
        #[tokio::test]
        #[ignore = "a minute each: cargo test -p ebbtide-store million -- --ignored --nocapture"]
        async fn $name() {
            pages_of_a_million(TestDb::$db().await).await;
        }
    )* };
}

a_minute_each![
    a_million_decisions_are_paged_on_sqlite: sqlite,
    a_million_decisions_are_paged_on_mariadb: mariadb,
    a_million_decisions_are_paged_on_postgres: postgres
];

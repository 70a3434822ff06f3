//! Reads for the API.

use crate::databases::{TestDb, at};
use crate::records::*;
use ebbtide_model::record::Change;
use ebbtide_model::{Evacuation, EvacuationState, Server, ServerId, ServerStatus};
use ebbtide_store::{
    DecisionFilter, EvacuationFilter, LifeFilter, MAX_PAGE, PriceFilter, ServerFilter,
};

on_every_database![
    a_record_is_found_by_its_id_whether_gone_or_not,
    servers_are_filtered_by_everything_that_is_set,
    pages_put_together_are_the_whole_list,
    pages_do_not_shift_when_new_records_come,
    a_page_after_an_unknown_record_is_refused,
    evacuations_are_filtered_by_everything_that_is_set,
    decisions_are_listed_newest_first,
    the_latest_decision_about_a_server_is_found,
    names_that_look_alike_are_different,
    lives_are_filtered_by_everything_that_is_set_and_written_once,
    prices_are_listed_the_latest_first_and_the_last_of_each_flavor_is_loaded,
];

fn ids(servers: &[Server]) -> Vec<ServerId> {
    servers.iter().map(|server| server.id).collect()
}

fn all(servers: impl IntoIterator<Item = Server>) -> Vec<Change> {
    servers.into_iter().map(put_server).collect()
}

async fn a_record_is_found_by_its_id_whether_gone_or_not(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let mut changes = everything();
    changes.push(put_server(gone(7, 9)));
    changes.push(put_evacuation(finished(7, 9)));
    store.commit(&lease, &changes).await.unwrap();
    assert_eq!(store.server(server_id(7)).await.unwrap(), Some(gone(7, 9)));
    assert_eq!(store.server(server_id(8)).await.unwrap(), None);
    let found = store.evacuation(evacuation_id(7)).await.unwrap();
    assert_eq!(found, Some(finished(7, 9)));
    assert_eq!(store.evacuation(evacuation_id(8)).await.unwrap(), None);
    assert_eq!(store.decision(decision_id(8)).await.unwrap(), None);
}

async fn servers_are_filtered_by_everything_that_is_set(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let mut servers: Vec<Server> = (0..24).map(server).collect();
    for (n, server) in servers.iter_mut().enumerate() {
        server.status = ServerStatus::ALL[n % ServerStatus::ALL.len()];
        if n % 5 == 0 {
            server.host = None;
        }
        if n == 6 {
            server.name = "web-7".to_owned();
        }
    }
    store.commit(&lease, &all(servers.clone())).await.unwrap();
    servers.reverse();
    let mut seen = 0;
    for project in [None, Some("project-1"), Some("unknown-project")] {
        for status in [
            None,
            Some(ServerStatus::Active),
            Some(ServerStatus::Deleted),
        ] {
            for host in [None, Some("host-2")] {
                for name in [None, Some("web-7")] {
                    for include_gone in [false, true] {
                        let filter = ServerFilter {
                            project_id: project.map(str::to_owned),
                            status,
                            host: host.map(str::to_owned),
                            name: name.map(str::to_owned),
                            include_gone,
                            limit: 0,
                            marker: None,
                        };
                        let with_gone = include_gone || status == Some(ServerStatus::Deleted);
                        let expected: Vec<ServerId> = servers
                            .iter()
                            .filter(|s| project.is_none_or(|p| s.project_id == p))
                            .filter(|s| status.is_none_or(|w| s.status == w))
                            .filter(|s| host.is_none_or(|h| s.host.as_deref() == Some(h)))
                            .filter(|s| name.is_none_or(|n| s.name == n))
                            .filter(|s| with_gone || !s.status.is_gone())
                            .map(|s| s.id)
                            .collect();
                        let found = store.servers(&filter).await.unwrap();
                        assert_eq!(ids(&found), expected, "{filter:?}");
                        seen += expected.len();
                    }
                }
            }
        }
    }
    assert!(seen > 50, "the filters hardly found anything: {seen}");
}

async fn pages_put_together_are_the_whole_list(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    // Many at the same moment: the identifier decides among them.
    let servers = (0..97).map(|n| Server {
        created_at: at(n as i64 / 10),
        ..server(n)
    });
    store.commit(&lease, &all(servers)).await.unwrap();
    let whole = store.servers(&ServerFilter::default()).await.unwrap();
    assert_eq!(whole.len(), 97);
    assert!(whole.is_sorted_by(|a, b| (a.created_at, a.id) > (b.created_at, b.id)));
    for limit in [1, 7, 50, 97, 98] {
        let mut pages = Vec::new();
        let mut marker = None;
        loop {
            let filter = ServerFilter {
                limit,
                marker,
                ..ServerFilter::default()
            };
            let page = store.servers(&filter).await.unwrap();
            let Some(last) = page.last() else { break };
            assert!(page.len() <= limit as usize);
            marker = Some(last.id);
            pages.extend(page);
        }
        assert_eq!(ids(&pages), ids(&whole), "pages of {limit}");
    }
    let filter = ServerFilter {
        limit: MAX_PAGE + 5,
        ..ServerFilter::default()
    };
    assert_eq!(store.servers(&filter).await.unwrap().len(), 97);
}

async fn pages_do_not_shift_when_new_records_come(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    store
        .commit(&lease, &all((0..10).map(server)))
        .await
        .unwrap();
    let first = ServerFilter {
        limit: 4,
        ..ServerFilter::default()
    };
    let first = store.servers(&first).await.unwrap();
    store
        .commit(&lease, &all((10..20).map(server)))
        .await
        .unwrap();
    // The marker itself may be gone by now, but not purged.
    store
        .commit(&lease, &[put_server(gone(6, 50))])
        .await
        .unwrap();
    let second = ServerFilter {
        limit: 4,
        marker: first.last().map(|server| server.id),
        ..ServerFilter::default()
    };
    let second = store.servers(&second).await.unwrap();
    assert_eq!(ids(&second), [5, 4, 3, 2].map(server_id));
}

async fn a_page_after_an_unknown_record_is_refused(db: TestDb) {
    let (store, _) = db.open_with_lease().await;
    let filter = ServerFilter {
        marker: Some(server_id(1)),
        ..ServerFilter::default()
    };
    let error = store.servers(&filter).await.unwrap_err();
    assert_eq!(error.code(), "EB-STORE-011");
    assert!(
        error.to_string().contains(&server_id(1).to_string()),
        "{error}"
    );
}

async fn evacuations_are_filtered_by_everything_that_is_set(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let mut evacuations: Vec<Evacuation> = (0..24).map(evacuation).collect();
    for (n, evacuation) in evacuations.iter_mut().enumerate() {
        evacuation.state = EvacuationState::ALL[n % EvacuationState::ALL.len()];
        evacuation.preemptor_id = Some(server_id(n as u64 / 2));
    }
    let changes: Vec<Change> = evacuations.iter().cloned().map(put_evacuation).collect();
    store.commit(&lease, &changes).await.unwrap();
    evacuations.reverse();
    let mut seen = 0;
    for host in [None, Some("host-1")] {
        for project in [None, Some("project-2")] {
            for state in [
                None,
                Some(EvacuationState::Draining),
                Some(EvacuationState::Failed),
            ] {
                for server in [None, Some(server_id(5))] {
                    for active_only in [false, true] {
                        let filter = EvacuationFilter {
                            host: host.map(str::to_owned),
                            project_id: project.map(str::to_owned),
                            state,
                            server_id: server,
                            active_only,
                            limit: 0,
                            marker: None,
                        };
                        let expected: Vec<&Evacuation> = evacuations
                            .iter()
                            .filter(|e| host.is_none_or(|h| e.host == h))
                            .filter(|e| project.is_none_or(|p| e.victim_project_id == p))
                            .filter(|e| state.is_none_or(|s| e.state == s))
                            .filter(|e| {
                                server.is_none_or(|s| e.victim_id == s || e.preemptor_id == Some(s))
                            })
                            .filter(|e| !active_only || !e.state.is_final())
                            .collect();
                        let found = store.evacuations(&filter).await.unwrap();
                        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
                        seen += expected.len();
                    }
                }
            }
        }
    }
    assert!(seen > 50, "the filters hardly found anything: {seen}");
    let filter = EvacuationFilter {
        limit: 3,
        marker: Some(evacuation_id(20)),
        ..EvacuationFilter::default()
    };
    let page = store.evacuations(&filter).await.unwrap();
    let page: Vec<_> = page.iter().map(|e| e.id).collect();
    assert_eq!(page, [19, 18, 17].map(evacuation_id));
}

async fn decisions_are_listed_newest_first(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let changes: Vec<Change> = (0..9)
        .map(|n| match n % 2 {
            0 => put_decision(decision(n, &[server_id(n)], 2)),
            _ => put_decision(refusal(n, &[server_id(n)])),
        })
        .collect();
    store.commit(&lease, &changes).await.unwrap();
    let list = async |filter: DecisionFilter| -> Vec<_> {
        let list = store.decisions(&filter).await.unwrap();
        list.iter().map(|decision| decision.id).collect()
    };
    let expected: Vec<_> = (0..9).rev().map(decision_id).collect();
    assert_eq!(list(DecisionFilter::default()).await, expected);
    let refused = DecisionFilter {
        refused_only: true,
        ..DecisionFilter::default()
    };
    assert_eq!(list(refused).await, [7, 5, 3, 1].map(decision_id));
    let project = DecisionFilter {
        project_id: Some("project-1".to_owned()),
        limit: 2,
        marker: Some(decision_id(7)),
        ..DecisionFilter::default()
    };
    assert_eq!(list(project).await, [4, 1].map(decision_id));
}

async fn the_latest_decision_about_a_server_is_found(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let (a, b) = (server_id(1), server_id(2));
    let changes = [
        put_decision(refusal(5, &[a, b])),
        put_decision(decision(3, &[a], 1)),
        put_decision(decision(4, &[b], 1)),
    ];
    store.commit(&lease, &changes).await.unwrap();
    let found = store.decision_for_server(a).await.unwrap();
    assert_eq!(found, Some(refusal(5, &[a, b])));
    store
        .commit(&lease, &[put_decision(decision(9, &[a], 1))])
        .await
        .unwrap();
    let found = store.decision_for_server(a).await.unwrap();
    assert_eq!(found.map(|d| d.id), Some(decision_id(9)));
    let found = store.decision_for_server(b).await.unwrap();
    assert_eq!(found.map(|d| d.id), Some(decision_id(5)));
    assert_eq!(store.decision_for_server(server_id(3)).await.unwrap(), None);
}

async fn names_that_look_alike_are_different(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    // Collations of languages hold some of these for equal, and utf8mb3 knows no emoji.
    let names = [
        "web",
        "WEB",
        "wéb",
        "we\u{301}b",
        "🦀",
        "🦑",
        "straße",
        "strasse",
        "名前",
        "' OR 1=1 --",
        "?",
    ];
    let servers = names.iter().zip(0..).map(|(name, n)| Server {
        name: (*name).to_owned(),
        project_id: (*name).to_owned(),
        ..server(n)
    });
    store.commit(&lease, &all(servers)).await.unwrap();
    for (name, n) in names.iter().zip(0..) {
        let by_name = ServerFilter {
            name: Some((*name).to_owned()),
            ..ServerFilter::default()
        };
        let found = store.servers(&by_name).await.unwrap();
        assert_eq!(ids(&found), [server_id(n)], "{name:?}");
        assert_eq!(found[0].name, *name);
        let by_project = ServerFilter {
            project_id: Some((*name).to_owned()),
            ..ServerFilter::default()
        };
        assert_eq!(
            ids(&store.servers(&by_project).await.unwrap()),
            [server_id(n)],
            "{name:?}"
        );
    }
    // Hosts whose names differ in nothing but case are two hosts.
    let mut upper = host(1);
    upper.name = "HOST-1".to_owned();
    store
        .commit(&lease, &[put_host(host(1)), put_host(upper)])
        .await
        .unwrap();
    assert_eq!(store.load(at(0)).await.unwrap().hosts.len(), 2);
}

async fn lives_are_filtered_by_everything_that_is_set_and_written_once(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let mut lives: Vec<_> = (1..=9).map(|n| life(n, 20 + n as i64)).collect();
    lives[4].flavor = "large".to_owned();
    store
        .commit(
            &lease,
            &lives.iter().cloned().map(put_life).collect::<Vec<_>>(),
        )
        .await
        .unwrap();
    // It was found to run after all, and ended later.
    lives[8].ended_at = at(90);
    let again = [put_life(lives[8].clone())];
    store.commit(&lease, &again).await.unwrap();
    lives.reverse();
    let read = |filter: LifeFilter| {
        let store = store.clone();
        async move { store.lives(&filter).await.unwrap() }
    };
    assert_eq!(read(LifeFilter::default()).await, lives);
    let mut seen = 0;
    for project in [None, Some("project-1")] {
        for flavor in [None, Some("large")] {
            for from in [None, Some(at(25))] {
                for before in [None, Some(at(7))] {
                    let expected: Vec<_> = lives
                        .iter()
                        .filter(|l| project.is_none_or(|p| l.project_id == p))
                        .filter(|l| flavor.is_none_or(|f| l.flavor == f))
                        .filter(|l| from.is_none_or(|from| l.ended_at >= from))
                        .filter(|l| before.is_none_or(|before| l.launched_at < before))
                        .cloned()
                        .collect();
                    seen += expected.len();
                    let filter = LifeFilter {
                        project_id: project.map(str::to_owned),
                        flavor: flavor.map(str::to_owned),
                        ended_from: from,
                        launched_before: before,
                        ..LifeFilter::default()
                    };
                    assert_eq!(read(filter).await, expected);
                }
            }
        }
    }
    assert!(seen > 30, "{seen}");
    let after = LifeFilter {
        limit: 2,
        marker: Some(lives[3].key()),
        ..LifeFilter::default()
    };
    assert_eq!(read(after).await, lives[4..6]);
}

async fn prices_are_listed_the_latest_first_and_the_last_of_each_flavor_is_loaded(db: TestDb) {
    let (store, lease) = db.open_with_lease().await;
    let all = [
        price(1, 10),
        price(2, 20),
        price(1, 30),
        price(1, 40),
        price(2, 15),
    ];
    let changes: Vec<Change> = all.iter().cloned().map(Change::PutPrice).collect();
    store.commit(&lease, &changes).await.unwrap();
    let read = |filter: PriceFilter| {
        let store = store.clone();
        async move { store.prices(&filter).await.unwrap() }
    };
    let by_time = [
        price(1, 40),
        price(1, 30),
        price(2, 20),
        price(2, 15),
        price(1, 10),
    ];
    assert_eq!(read(PriceFilter::default()).await, by_time);
    let some = PriceFilter {
        flavor: Some(flavor(1).name),
        from: Some(at(10)),
        before: Some(at(40)),
        limit: 1,
        marker: Some(price(1, 30).key()),
    };
    assert_eq!(read(some).await, [price(1, 10)]);
    let loaded = store.load(at(0)).await.unwrap();
    assert_eq!(loaded.prices, [price(1, 40), price(2, 20)]);
}

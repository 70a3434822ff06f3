//! The ordinary life of a region.

use super::kit::{
    create, evacuations, fill, flavor, nothing_is_overcommitted, preemptible, request, server,
    until, until_evacuation,
};
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::v1;
use tokio_stream::StreamExt;

#[tokio::test]
async fn a_normal_request_gets_the_room_of_the_cheapest_victims() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    let cattle = fill(&region, 1).await;
    let (servers, decision) = create(&region, "urgent", request("half", 1)).await;
    assert_eq!(servers[0].status, "waiting");
    let victims = &decision.placements[0].victims;
    assert_eq!(victims.len(), 1, "one of the two on a host is enough");
    assert!(cattle.values().any(|id| *id == victims[0].server_id));
    let urgent = until(&region, &servers[0].id, "active").await;
    assert_eq!(urgent.host, decision.placements[0].host);
    let victim = server(&region, &victims[0].server_id).await;
    assert_eq!(victim.status, "preempted");
    assert_eq!(victim.fault_code, "EB-FAULT-003");
    let told = evacuations(&region).await;
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].state, "evacuated");
    nothing_is_overcommitted(&region).await;
}

#[tokio::test]
async fn what_if_decides_the_same_and_changes_nothing() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 1).await;
    let mut scheduler = region.scheduler().await.unwrap();
    let what_if = v1::WhatIfRequest {
        request: Some(request("half", 1)),
        ..Default::default()
    };
    let would = scheduler
        .what_if(what_if)
        .await
        .unwrap()
        .into_inner()
        .decision
        .unwrap();
    assert_eq!(would.placements[0].victims.len(), 1);
    assert!(
        evacuations(&region).await.is_empty(),
        "what-if has evicted a server"
    );
    let (_, does) = create(&region, "urgent", request("half", 1)).await;
    assert_eq!(does.placements[0].host, would.placements[0].host);
    assert_eq!(
        does.placements[0].victims[0].server_id,
        would.placements[0].victims[0].server_id
    );
}

#[tokio::test]
async fn the_victims_of_a_deleted_request_are_spared() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 60).await;
    let (servers, decision) = create(&region, "urgent", request("half", 1)).await;
    let victim = decision.placements[0].victims[0].server_id.clone();
    until_evacuation(&region, &victim, "draining").await;
    let delete = v1::DeleteServerRequest {
        id: servers[0].id.clone(),
    };
    region
        .servers()
        .await
        .unwrap()
        .delete_server(delete)
        .await
        .unwrap();
    until_evacuation(&region, &victim, "spared").await;
    assert_eq!(until(&region, &victim, "active").await.status, "active");
    assert_eq!(server(&region, &servers[0].id).await.status, "deleted");
}

#[tokio::test]
async fn an_early_release_shortens_the_grace_period() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 600).await;
    let (servers, decision) = create(&region, "urgent", request("half", 1)).await;
    let victim = decision.placements[0].victims[0].server_id.clone();
    until_evacuation(&region, &victim, "draining").await;
    let release = v1::ReleaseServerRequest { id: victim.clone() };
    region
        .servers()
        .await
        .unwrap()
        .release_server(release)
        .await
        .unwrap();
    until(&region, &servers[0].id, "active").await;
    assert_eq!(server(&region, &victim).await.status, "preempted");
}

#[tokio::test]
async fn stopped_and_hibernated_victims_keep_their_names() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    let specs = |behaviour| {
        [
            ("ebbtide:preemptible", "true"),
            ("ebbtide:grace_seconds", "0"),
            ("ebbtide:interruption", behaviour),
        ]
    };
    flavor(&region, "p.stop", 8, &specs("stop")).await;
    flavor(&region, "p.sleep", 8, &specs("hibernate")).await;
    flavor(&region, "whole", 8, &[]).await;
    let (stops, _) = create(&region, "stops", request("p.stop", 2)).await;
    let (sleeps, _) = create(&region, "sleeps", request("p.sleep", 2)).await;
    for s in stops.iter().chain(&sleeps) {
        until(&region, &s.id, "active").await;
    }
    let (urgent, _) = create(&region, "urgent", request("whole", 4)).await;
    for s in &urgent {
        until(&region, &s.id, "active").await;
    }
    for s in &stops {
        until(&region, &s.id, "stopped").await;
    }
    for s in &sleeps {
        until(&region, &s.id, "hibernated").await;
    }
}

#[tokio::test]
async fn select_destinations_answers_when_the_room_is_free() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 1).await;
    let select = v1::SelectDestinationsRequest {
        request: Some(v1::PlacementRequest {
            alternates: 2,
            ..request("half", 1)
        }),
        wait_for_room: true,
    };
    let answer = region
        .scheduler()
        .await
        .unwrap()
        .select_destinations(select)
        .await
        .unwrap()
        .into_inner();
    assert_eq!(answer.servers[0].status, "reserved");
    let victim = &answer.decision.unwrap().placements[0].victims[0].server_id;
    assert_eq!(server(&region, victim).await.status, "preempted");
}

#[tokio::test]
async fn several_instances_are_placed_all_or_nothing() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    flavor(&region, "whole", 8, &[]).await;
    let (servers, decision) = create(&region, "five", request("whole", 5)).await;
    let none = decision.no_valid_host.unwrap();
    assert!(
        none.dropped
            .iter()
            .any(|f| f.filter == "capacity" && f.dropped > 0),
        "{none:?}"
    );
    assert!(
        servers
            .iter()
            .all(|s| s.status == "error" && s.host.is_empty()),
        "{servers:?}"
    );
    let (servers, _) = create(&region, "four", request("whole", 4)).await;
    for s in &servers {
        until(&region, &s.id, "active").await;
    }
}

#[tokio::test]
async fn a_repeated_request_gets_the_same_servers() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    flavor(&region, "small", 1, &[]).await;
    let ids = vec![uuid::Uuid::from_u128(7).to_string()];
    let once = v1::PlacementRequest {
        server_ids: ids,
        ..request("small", 1)
    };
    let (first, one) = create(&region, "twice", once.clone()).await;
    until(&region, &first[0].id, "active").await;
    let (second, two) = create(&region, "twice", once).await;
    assert_eq!(first[0].id, second[0].id);
    assert_eq!(one.id, two.id);
    let list = region
        .servers()
        .await
        .unwrap()
        .list_servers(v1::ListServersRequest::default())
        .await;
    assert_eq!(list.unwrap().into_inner().servers.len(), 1);
}

#[tokio::test]
async fn a_disabled_host_gets_nothing_new() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    flavor(&region, "whole", 8, &[]).await;
    let disable = v1::DisableHostRequest {
        name: "host-A".to_owned(),
        reason: "new fans".to_owned(),
    };
    region
        .admin()
        .await
        .unwrap()
        .disable_host(disable)
        .await
        .unwrap();
    let (_, decision) = create(&region, "all", request("whole", 4)).await;
    assert!(decision.no_valid_host.is_some());
    let enable = v1::EnableHostRequest {
        name: "host-A".to_owned(),
    };
    region
        .admin()
        .await
        .unwrap()
        .enable_host(enable)
        .await
        .unwrap();
    let (_, decision) = create(&region, "all", request("whole", 4)).await;
    assert!(decision.no_valid_host.is_none());
}

#[tokio::test]
async fn watchers_hear_everything_in_order() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    preemptible(&region, "p.whole", 8, 0).await;
    flavor(&region, "whole", 8, &[]).await;
    let (cattle, _) = create(&region, "cattle", request("p.whole", 4)).await;
    for s in &cattle {
        until(&region, &s.id, "active").await;
    }
    let mut events = region
        .scheduler()
        .await
        .unwrap()
        .watch(v1::WatchRequest::default())
        .await
        .unwrap()
        .into_inner();
    let (servers, _) = create(&region, "urgent", request("whole", 1)).await;
    let (mut states, mut last) = (Vec::new(), 0);
    loop {
        let event = events.next().await.unwrap().unwrap();
        assert!(event.sequence > last, "events out of order");
        last = event.sequence;
        match event.event.unwrap() {
            v1::watch_event::Event::Evacuation(e) if states.last() != Some(&e.state) => {
                states.push(e.state)
            }
            v1::watch_event::Event::Server(s) if s.id == servers[0].id && s.status == "active" => {
                break;
            }
            _ => {}
        }
    }
    assert_eq!(states.first().map(String::as_str), Some("claimed"));
    assert_eq!(states.last().map(String::as_str), Some("evacuated"));
}

#[tokio::test]
async fn a_tenant_sees_no_other_tenant_in_the_reasons() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 1).await;
    let mine = v1::PlacementRequest {
        project_id: "science".to_owned(),
        ..request("half", 1)
    };
    let (servers, _) = create(&region, "urgent", mine).await;
    let mut scheduler = region.scheduler().await.unwrap();
    let explain = |project: &str| v1::ExplainRequest {
        id: servers[0].id.clone(),
        as_project: project.to_owned(),
    };
    let full = scheduler
        .explain(explain(""))
        .await
        .unwrap()
        .into_inner()
        .decision
        .unwrap();
    assert!(full.placements[0].victims[0].name.starts_with("cattle"));
    let seen = scheduler
        .explain(explain("science"))
        .await
        .unwrap()
        .into_inner()
        .decision
        .unwrap();
    let text = format!("{seen:?}");
    assert!(
        !text.contains("cattle") && !text.contains("\"tests\""),
        "{text}"
    );
    let refused = scheduler.explain(explain("others")).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::NotFound);
}

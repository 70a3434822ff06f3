//! Two tenants in one region: neither sees nor touches what is the other's.

use super::kit::{Tokens, refusal, with_token};
use ebbtide_access::Role;
use ebbtide_client::Region as Clients;
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::v1;
use tokio_stream::StreamExt as _;
use tonic::Code;

struct Two {
    region: Region,
    science: Clients,
    art: Clients,
    operator: Clients,
}

async fn two() -> Two {
    let mut tokens = Tokens::new();
    let operator = tokens.make(Role::Operator, &[]);
    let science = tokens.make(Role::Tenant, &["science"]);
    let art = tokens.make(Role::Tenant, &["art"]);
    let region = Region::start(RegionOptions {
        hosts: vec!["host-A".to_owned()],
        sections: tokens.auth(),
        credentials: with_token(&operator),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    crate::kit::flavor(&region, "small", 1, &[]).await;
    let spot = [
        ("ebbtide:preemptible", "true"),
        ("ebbtide:grace_seconds", "1"),
    ];
    crate::kit::flavor(&region, "spot", 8, &spot).await;
    Two {
        science: region.clients(&with_token(&science)).await.unwrap(),
        art: region.clients(&with_token(&art)).await.unwrap(),
        operator: region.clients(&with_token(&operator)).await.unwrap(),
        region,
    }
}

fn create(name: &str, flavor: &str, project: &str) -> v1::CreateServersRequest {
    v1::CreateServersRequest {
        max_price: String::new(),
        name: name.to_owned(),
        request: Some(v1::PlacementRequest {
            flavor: flavor.to_owned(),
            project_id: project.to_owned(),
            ..Default::default()
        }),
    }
}

#[tokio::test]
async fn a_tenant_sees_and_changes_its_own_only() {
    let Two {
        region: _region,
        mut science,
        mut art,
        mut operator,
    } = two().await;
    let missing = |code: &str| (Code::NotFound, code.to_owned());
    // Both call their server `web`. Who names no project means its own.
    let mine = science
        .servers
        .create_servers(create("web", "small", ""))
        .await
        .unwrap();
    let mine = mine.into_inner().servers.remove(0);
    assert_eq!(mine.project_id, "science");
    let theirs = art
        .servers
        .create_servers(create("web", "small", "art"))
        .await
        .unwrap();
    let theirs = theirs.into_inner().servers.remove(0);
    let other = science
        .servers
        .create_servers(create("x", "small", "art"))
        .await;
    assert_eq!(
        refusal(other),
        (Code::PermissionDenied, "EB-ACCESS-005".to_owned())
    );

    let get = |id: &str| v1::GetServerRequest { id: id.to_owned() };
    let by_name = science.servers.get_server(get("web")).await.unwrap();
    assert_eq!(by_name.into_inner().server.unwrap().id, mine.id);
    let by_id = science.servers.get_server(get(&theirs.id)).await;
    assert_eq!(refusal(by_id), missing("EB-SERVICE-001"));
    let list = v1::ListServersRequest::default();
    let listed = science
        .servers
        .list_servers(list.clone())
        .await
        .unwrap()
        .into_inner()
        .servers;
    assert!(
        listed.iter().all(|s| s.project_id == "science") && listed.len() == 1,
        "{listed:?}"
    );
    let of_art = v1::ListServersRequest {
        project_id: "art".to_owned(),
        ..list.clone()
    };
    assert_eq!(
        refusal(science.servers.list_servers(of_art).await).1,
        "EB-ACCESS-005"
    );
    let all = operator
        .servers
        .list_servers(list)
        .await
        .unwrap()
        .into_inner()
        .servers;
    assert_eq!(all.len(), 2);

    let delete = |id: &str| v1::DeleteServerRequest { id: id.to_owned() };
    let gone = science.servers.delete_server(delete(&theirs.id)).await;
    assert_eq!(refusal(gone), missing("EB-SERVICE-001"));
    let release = v1::ReleaseServerRequest {
        id: theirs.id.clone(),
    };
    assert_eq!(
        refusal(science.servers.release_server(release).await),
        missing("EB-SERVICE-001")
    );
    // Repeating another tenant's request with its ids would be answered with its servers.
    let mut stolen = create("y", "small", "");
    stolen.request.as_mut().unwrap().server_ids = vec![theirs.id.clone()];
    let refused = science.servers.create_servers(stolen).await;
    assert_eq!(
        refusal(refused),
        (Code::AlreadyExists, "EB-REGION-003".to_owned())
    );

    // Decisions, by id, by server and by name.
    let explain = |id: &str, project: &str| v1::ExplainRequest {
        id: id.to_owned(),
        as_project: project.to_owned(),
    };
    for id in [&theirs.id, &theirs.decision_id] {
        let refused = science.scheduler.explain(explain(id, "")).await;
        assert_eq!(refusal(refused), missing("EB-SERVICE-001"));
        let refused = science.scheduler.explain(explain(id, "art")).await;
        assert_eq!(refusal(refused).1, "EB-ACCESS-005");
    }
    let mine_too = science
        .scheduler
        .explain(explain("web", ""))
        .await
        .unwrap()
        .into_inner();
    assert_eq!(mine_too.decision.unwrap().id, mine.decision_id);
    let decisions = science
        .scheduler
        .list_decisions(v1::ListDecisionsRequest::default())
        .await;
    let decisions = decisions.unwrap().into_inner().decisions;
    assert!(!decisions.is_empty() && decisions.iter().all(|d| d.project_id == "science"));

    // Server groups.
    let group = |project: &str| v1::CreateServerGroupRequest {
        group: Some(v1::ServerGroup {
            name: "pair".to_owned(),
            policy: "anti-affinity".to_owned(),
            project_id: project.to_owned(),
            ..Default::default()
        }),
    };
    art.servers.create_server_group(group("art")).await.unwrap();
    assert_eq!(
        refusal(science.servers.create_server_group(group("art")).await).1,
        "EB-ACCESS-005"
    );
    let groups = science
        .servers
        .list_server_groups(v1::ListServerGroupsRequest::default())
        .await;
    assert!(groups.unwrap().into_inner().groups.is_empty());
    let delete_group = v1::DeleteServerGroupRequest {
        id: "pair".to_owned(),
    };
    assert_eq!(
        refusal(science.servers.delete_server_group(delete_group).await).0,
        Code::NotFound
    );

    // What is for operators.
    let hosts = science.admin.list_hosts(v1::ListHostsRequest {}).await;
    assert_eq!(refusal(hosts).1, "EB-ACCESS-004");
    let summary = science
        .scheduler
        .region_summary(v1::RegionSummaryRequest {})
        .await;
    assert_eq!(refusal(summary).1, "EB-ACCESS-004");
    let mut forced = create("z", "small", "");
    forced.request.as_mut().unwrap().force_hosts = vec!["host-A".to_owned()];
    assert_eq!(
        refusal(science.servers.create_servers(forced).await).1,
        "EB-ACCESS-006"
    );
    assert_eq!(
        science
            .admin
            .list_flavors(v1::ListFlavorsRequest {})
            .await
            .unwrap()
            .into_inner()
            .flavors
            .len(),
        2
    );
}

#[tokio::test]
async fn a_preemptor_hears_nothing_about_its_victim_and_the_victim_nothing_about_the_preemptor() {
    let Two {
        region,
        mut science,
        mut art,
        mut operator,
    } = two().await;
    let mut events = art
        .scheduler
        .watch(v1::WatchRequest::default())
        .await
        .unwrap()
        .into_inner();
    let mut news = science
        .scheduler
        .watch(v1::WatchRequest::default())
        .await
        .unwrap()
        .into_inner();
    let victim = art
        .servers
        .create_servers(create("victim", "spot", ""))
        .await
        .unwrap();
    let victim = victim.into_inner().servers.remove(0);
    crate::kit::until(&region, &victim.id, "active").await;
    let made = science
        .servers
        .create_servers(create("urgent", "small", ""))
        .await
        .unwrap()
        .into_inner();
    let preemptor = &made.servers[0];
    let shown = format!("{made:?}");
    assert!(
        !shown.contains(&victim.id) && !shown.contains("\"art\"") && !shown.contains("\"victim\""),
        "{shown}"
    );
    let evacuations = v1::ListEvacuationsRequest::default();
    let whole = operator
        .servers
        .list_evacuations(evacuations.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(whole.evacuations[0].preemptor_id, preemptor.id);
    let seen = art
        .servers
        .list_evacuations(evacuations.clone())
        .await
        .unwrap()
        .into_inner();
    assert_eq!(seen.evacuations[0].victim_id, victim.id);
    assert!(!format!("{seen:?}").contains(&preemptor.id), "{seen:?}");
    let none = science
        .servers
        .list_evacuations(evacuations)
        .await
        .unwrap()
        .into_inner();
    assert!(none.evacuations.is_empty(), "{none:?}");
    let one = v1::GetEvacuationRequest {
        id: whole.evacuations[0].id.clone(),
    };
    assert_eq!(
        refusal(science.servers.get_evacuation(one.clone()).await).0,
        Code::NotFound
    );
    let own = art.servers.get_evacuation(one).await.unwrap().into_inner();
    assert!(!format!("{own:?}").contains(&preemptor.id), "{own:?}");

    // The same in the events, until the preemptor runs.
    crate::kit::until(&region, &preemptor.id, "active").await;
    let mut heard = 0;
    while let Some(event) = events.next().await {
        let event = event.unwrap();
        assert!(!format!("{event:?}").contains(&preemptor.id), "{event:?}");
        heard += 1;
        if matches!(&event.event, Some(v1::watch_event::Event::Server(s)) if s.status == "preempted")
        {
            break;
        }
    }
    assert!(heard > 2);
    while let Some(event) = news.next().await {
        let event = event.unwrap();
        assert!(!format!("{event:?}").contains(&victim.id), "{event:?}");
        if matches!(&event.event, Some(v1::watch_event::Event::Server(s)) if s.status == "active") {
            break;
        }
    }
}

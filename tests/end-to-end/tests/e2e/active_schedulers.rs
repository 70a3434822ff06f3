//! Several schedulers that are active at once on one database and one broker.

use super::kit::{
    create, evacuations, fill, flavor, nothing_is_overcommitted, preemptible, request, until,
    until_evacuation,
};
use super::scheduler_calls::{get, until_at};
use ebbtide_harness::{MariaDb, Signal, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Database, Region, RegionOptions};
use ebbtide_proto::v1;
use std::collections::{BTreeMap, BTreeSet};
use tokio_stream::StreamExt;

fn on(database: Database) -> RegionOptions {
    RegionOptions {
        database,
        ..RegionOptions::default()
    }
}

fn creation(name: &str, flavor: &str) -> v1::CreateServersRequest {
    v1::CreateServersRequest {
        max_price: String::new(),
        name: name.to_owned(),
        request: Some(request(flavor, 1)),
    }
}

async fn what_one_has_written_the_others_show_at_once(database: Database) {
    let region = Region::start(on(database)).await.unwrap();
    let (second, third) = (
        region.start_peer("second").await.unwrap(),
        region.start_peer("third").await.unwrap(),
    );
    let watch = v1::WatchRequest::default();
    let mut scheduler = third.scheduler().await.unwrap();
    let mut events = scheduler.watch(watch).await.unwrap().into_inner();
    flavor(&region, "small", 1, &[]).await;
    // Each step asks another one for what the one before has written.
    let mut servers = second.servers().await.unwrap();
    let created = servers.create_servers(creation("there", "small")).await;
    let created = created.unwrap().into_inner();
    let id = created.servers[0].id.clone();
    assert_eq!(get(&third, &id).await.unwrap().name, "there");
    until(&region, &id, "active").await;
    until_at(&second, &id, "active").await;
    let delete = v1::DeleteServerRequest { id: id.clone() };
    let mut servers = third.servers().await.unwrap();
    servers.delete_server(delete).await.unwrap();
    until_at(&second, &id, "deleted").await;
    // Who watches one of them hears what all of them do, decisions included.
    let mut seen = BTreeSet::new();
    let all = async {
        while let Some(event) = events.next().await {
            match event.unwrap().event {
                Some(v1::watch_event::Event::Decision(_)) => {
                    seen.insert("decision".to_owned());
                }
                Some(v1::watch_event::Event::Server(server)) if server.id == id => {
                    seen.insert(server.status.clone());
                    if server.status == "deleted" {
                        return;
                    }
                }
                _ => {}
            }
        }
    };
    tokio::time::timeout(PATIENCE, all).await.unwrap();
    let wanted = ["decision", "building", "active", "deleting", "deleted"];
    assert!(wanted.iter().all(|w| seen.contains(*w)), "{seen:?}");
}

#[tokio::test]
async fn what_one_has_written_the_others_show_at_once_on_mariadb() {
    what_one_has_written_the_others_show_at_once(Database::MariaDb).await;
}

#[tokio::test]
async fn what_one_has_written_the_others_show_at_once_on_postgresql() {
    what_one_has_written_the_others_show_at_once(Database::Postgres).await;
}

/// 32 VCPU full of preemptible servers; four schedulers are asked for twice as many normal ones at
/// the same time.
async fn four_schedulers_that_race_for_the_last_rooms_give_none_twice(database: Database) {
    let region = Region::start(on(database)).await.unwrap();
    let mut peers = Vec::new();
    for name in ["second", "third", "fourth"] {
        peers.push(region.start_peer(name).await.unwrap());
    }
    preemptible(&region, "p.pair", 2, 0).await;
    flavor(&region, "pair", 2, &[]).await;
    let (cattle, _) = create(&region, "cattle", request("p.pair", 16)).await;
    for server in &cattle {
        until(&region, &server.id, "active").await;
    }
    let mut asked = tokio::task::JoinSet::new();
    for n in 0..32 {
        let mut servers = match n % 4 {
            0 => region.servers().await.unwrap(),
            peer => peers[peer - 1].servers().await.unwrap(),
        };
        asked.spawn(async move {
            let created = servers
                .create_servers(creation(&format!("pet-{n}"), "pair"))
                .await
                .unwrap()
                .into_inner();
            created.servers[0].clone()
        });
    }
    let pets = asked.join_all().await;
    let (placed, refused): (Vec<_>, Vec<_>) = pets.iter().partition(|pet| pet.status != "error");
    assert_eq!((placed.len(), refused.len()), (16, 16), "{pets:?}");
    for pet in &placed {
        until_at(&peers[0], &pet.id, "active").await;
    }
    let mut ends: BTreeMap<String, u32> = BTreeMap::new();
    for evacuation in evacuations(&region).await {
        assert_eq!(evacuation.state, "evacuated", "{evacuation:?}");
        *ends.entry(evacuation.victim_id.clone()).or_default() += 1;
    }
    assert_eq!(ends.len(), 16);
    assert!(
        ends.values().all(|n| *n == 1),
        "a victim chosen twice: {ends:?}"
    );
    nothing_is_overcommitted(&region).await;
}

#[tokio::test]
async fn four_schedulers_that_race_for_the_last_rooms_give_none_twice_on_mariadb() {
    four_schedulers_that_race_for_the_last_rooms_give_none_twice(Database::MariaDb).await;
}

#[tokio::test]
async fn four_schedulers_that_race_for_the_last_rooms_give_none_twice_on_postgresql() {
    four_schedulers_that_race_for_the_last_rooms_give_none_twice(Database::Postgres).await;
}

#[tokio::test]
async fn the_scheduler_on_duty_dies_and_another_one_continues_its_work() {
    let mut region = Region::start(on(Database::MariaDb)).await.unwrap();
    let second = region.start_peer("second").await.unwrap();
    fill(&region, 3).await;
    // The second one decides; the first one, which sends and hears, is killed before the victim is
    // gone.
    let mut servers = second.servers().await.unwrap();
    let created = servers.create_servers(creation("urgent", "half")).await;
    let created = created.unwrap().into_inner();
    let decision = created.decision.unwrap();
    let victim = &decision.placements[0].victims[0].server_id;
    let before = until_evacuation(&region, victim, "draining").await;
    region.kill_scheduler();
    // It still answers, also before it is on duty.
    let mut servers = second.servers().await.unwrap();
    let more = servers.create_servers(creation("more", "half")).await;
    let more = more.unwrap().into_inner().servers[0].id.clone();
    until_at(&second, &created.servers[0].id, "active").await;
    until_at(&second, &more, "active").await;
    assert!(second.log().contains("this scheduler is on duty"));
    region.start_scheduler().await.unwrap();
    let all = evacuations(&region).await;
    assert_eq!(all.len(), 2, "{all:?}");
    let after = all.iter().find(|e| e.victim_id == *victim).unwrap();
    assert_eq!(after.deadline_at, before.deadline_at);
    nothing_is_overcommitted(&region).await;
}

#[tokio::test]
async fn a_scheduler_suspended_for_longer_than_its_lease_continues_beside_the_others() {
    let region = Region::start(on(Database::Postgres)).await.unwrap();
    let second = region.start_peer("second").await.unwrap();
    fill(&region, 1).await;
    let process = region.scheduler_process().unwrap();
    process.signal(Signal::Stop).unwrap();
    let mut servers = second.servers().await.unwrap();
    // If the first scheduler was stopped inside a transaction, the database ends that transaction.
    // The second one may refuse requests until then, so the test repeats its request.
    let created = eventually(PATIENCE, async || {
        let created = servers
            .clone()
            .create_servers(creation("urgent", "half"))
            .await;
        created.map_err(|status| status.to_string())
    });
    let urgent = created.await.into_inner().servers[0].id.clone();
    until_at(&second, &urgent, "active").await;
    process.signal(Signal::Cont).unwrap();
    // It goes on as one that is not on duty, with everything that was written meanwhile.
    until(&region, &urgent, "active").await;
    let (more, _) = create(&region, "more", request("half", 1)).await;
    until_at(&second, &more[0].id, "active").await;
    eventually(PATIENCE, async || {
        match region
            .scheduler_log()
            .contains("another scheduler is on duty")
        {
            true => Ok(()),
            false => Err("it does not know"),
        }
    })
    .await;
    let get = v1::ListServersRequest::default();
    let listed = servers.list_servers(get).await.unwrap().into_inner();
    assert!(!listed.servers.is_empty());
    nothing_is_overcommitted(&region).await;
}

/// What happens to those who use a primary when it becomes a replica: connections end, and what
/// comes instead takes no writes.
#[tokio::test]
async fn a_primary_that_fails_over_costs_time_and_nothing_else() {
    let database = MariaDb::start().await.unwrap();
    let plain = "CREATE USER 'plain'@'127.0.0.1' IDENTIFIED BY 'plain'";
    database.execute(plain).await.unwrap();
    let rights = "GRANT ALL PRIVILEGES ON ebbtide.* TO 'plain'@'127.0.0.1'";
    database.execute(rights).await.unwrap();
    let options = RegionOptions {
        database_url: Some(database.url().replace("ebbtide:ebbtide@", "plain:plain@")),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    let second = region.start_peer("second").await.unwrap();
    fill(&region, 2).await;
    let (first_pet, decision) = create(&region, "early", request("half", 1)).await;
    let placement = &decision.placements[0];
    let victim = placement.victims[0].server_id.clone();
    let hypervisor = region.agent_dir(&placement.host).join("hypervisor.json");
    until_evacuation(&region, &victim, "draining").await;
    for step in [
        "SET GLOBAL read_only = ON",
        "KILL HARD CONNECTION USER 'plain'@'127.0.0.1'",
    ] {
        database.execute(step).await.unwrap();
    }
    // The victim ends meanwhile; what its agent says of that waits in its queue.
    let mut servers = second.servers().await.unwrap();
    let again = || v1::CreateServersRequest {
        max_price: String::new(),
        name: "during".to_owned(),
        request: Some(v1::PlacementRequest {
            server_ids: vec![uuid::Uuid::from_u128(43).to_string()],
            ..request("half", 1)
        }),
    };
    let refused = servers.create_servers(again()).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unavailable, "{refused:?}");
    // So long the outage lasts: longer than the victim has.
    eventually(PATIENCE, async || {
        let state = std::fs::read_to_string(&hypervisor).unwrap();
        let state: serde_json::Value = serde_json::from_str(&state).unwrap();
        match &state["servers"][&victim]["state"] {
            running if running == "running" => Err("the victim runs".to_owned()),
            _ => Ok(()),
        }
    })
    .await;
    database
        .execute("SET GLOBAL read_only = OFF")
        .await
        .unwrap();
    let pet = eventually(PATIENCE, async || {
        let created = servers.clone().create_servers(again()).await;
        created.map_err(|status| status.to_string())
    });
    let pet = pet.await.into_inner().servers[0].id.clone();
    until_at(&second, &first_pet[0].id, "active").await;
    until_at(&second, &pet, "active").await;
    let ended = evacuations(&region).await;
    assert_eq!(ended.len(), 2, "{ended:?}");
    assert!(ended.iter().all(|e| e.state == "evacuated"), "{ended:?}");
    nothing_is_overcommitted(&region).await;
}

//! Parts of the region die, fall silent, or misbehave in the middle of a preemption.

use super::kit::{
    create, evacuations, fill, flavor, nothing_is_overcommitted, preemptible, request, server,
    until, until_evacuation,
};
use ebbtide_harness::{MariaDb, RabbitMq, Signal, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_model::{EvacuationState, Timestamp};
use ebbtide_proto::v1;

fn impatient() -> RegionOptions {
    let region =
        "notice_timeout_seconds = 1\nnotice_attempts = 2\nhost_down_seconds = 4".to_owned();
    RegionOptions {
        region,
        ..RegionOptions::default()
    }
}

#[tokio::test]
async fn a_scheduler_killed_during_the_grace_period_goes_on_where_it_was() {
    let mut region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 5).await;
    let (servers, decision) = create(&region, "urgent", request("half", 1)).await;
    let victim = decision.placements[0].victims[0].server_id.clone();
    let before = until_evacuation(&region, &victim, "draining").await;
    region.kill_scheduler();
    region.start_scheduler().await.unwrap();
    let urgent = until(&region, &servers[0].id, "active").await;
    assert_eq!(urgent.host, decision.placements[0].host);
    let all = evacuations(&region).await;
    assert_eq!(all.len(), 1, "the restart chose again: {all:?}");
    assert_eq!(
        all[0].deadline_at, before.deadline_at,
        "the grace period began anew"
    );
    nothing_is_overcommitted(&region).await;
}

#[tokio::test]
async fn a_scheduler_killed_right_after_its_answer_still_tells_the_victims() {
    let mut region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 0).await;
    let (servers, _) = create(&region, "urgent", request("whole", 4)).await;
    region.kill_scheduler();
    region.start_scheduler().await.unwrap();
    for s in &servers {
        until(&region, &s.id, "active").await;
    }
    assert_eq!(evacuations(&region).await.len(), 8);
    nothing_is_overcommitted(&region).await;
}

#[tokio::test]
async fn an_agent_killed_during_the_grace_period_keeps_the_deadline() {
    let mut region = Region::start(RegionOptions::default()).await.unwrap();
    fill(&region, 4).await;
    let (servers, decision) = create(&region, "urgent", request("half", 1)).await;
    let placement = &decision.placements[0];
    let victim = placement.victims[0].server_id.clone();
    let before = until_evacuation(&region, &victim, "draining").await;
    region.kill_agent(&placement.host);
    region.start_agent(&placement.host).unwrap();
    until(&region, &servers[0].id, "active").await;
    let after = until_evacuation(&region, &victim, "evacuated").await;
    assert_eq!(
        after.deadline_at, before.deadline_at,
        "the grace period began anew"
    );
    let time = |text: &str| text.parse::<Timestamp>().unwrap();
    assert!(
        time(&after.ended_at) >= time(&after.deadline_at),
        "ended before its time: {after:?}"
    );
}

#[tokio::test]
async fn a_silent_agent_costs_its_host_the_request_and_no_server_its_life() {
    let region = Region::start(impatient()).await.unwrap();
    let cattle = fill(&region, 1).await;
    let mut scheduler = region.scheduler().await.unwrap();
    let what_if = v1::WhatIfRequest {
        request: Some(request("half", 1)),
        ..Default::default()
    };
    let first = scheduler
        .what_if(what_if)
        .await
        .unwrap()
        .into_inner()
        .decision
        .unwrap();
    let silent = first.placements[0].host.clone();
    region.signal_agent(&silent, Signal::Stop).unwrap();
    let (servers, decision) = create(&region, "urgent", request("half", 1)).await;
    assert_eq!(decision.placements[0].host, silent);
    let unreached = decision.placements[0].victims[0].server_id.clone();
    let failed = until_evacuation(&region, &unreached, "failed").await;
    assert_eq!(failed.attempts, 2);
    assert!(
        failed.reason.contains("did not answer 2 notices"),
        "{}",
        failed.reason
    );
    let urgent = until(&region, &servers[0].id, "active").await;
    assert_ne!(urgent.host, silent);
    assert_ne!(
        urgent.decision_id, decision.id,
        "a new decision has put it there"
    );
    // The agent resumes with two notices and a spare in its queue. It must not end a server for
    // them.
    region.signal_agent(&silent, Signal::Cont).unwrap();
    region.wait_for_hosts_up().await.unwrap();
    let (more, _) = create(&region, "again", request("p.half", 1)).await;
    assert_eq!(more[0].status, "error", "the cloud has no free capacity");
    let alive = server(&region, &unreached).await;
    assert_eq!(alive.status, "active", "{}", alive.fault_message);
    assert_eq!(cattle.len(), 8);
    nothing_is_overcommitted(&region).await;
}

#[tokio::test]
async fn a_hypervisor_that_fails_sends_the_request_elsewhere() {
    let region = Region::start(impatient()).await.unwrap();
    fill(&region, 0).await;
    let what_if = v1::WhatIfRequest {
        request: Some(request("half", 1)),
        ..Default::default()
    };
    let first = region
        .scheduler()
        .await
        .unwrap()
        .what_if(what_if)
        .await
        .unwrap()
        .into_inner()
        .decision
        .unwrap();
    let broken = first.placements[0].host.clone();
    region
        .simulate(
            &broken,
            &["fail", "--action", "terminate", "--times", "100"],
        )
        .await
        .unwrap();
    let (servers, decision) = create(&region, "urgent", request("half", 1)).await;
    let victim = decision.placements[0].victims[0].server_id.clone();
    let failed = until_evacuation(&region, &victim, "failed").await;
    assert!(!failed.reason.is_empty());
    let urgent = until(&region, &servers[0].id, "active").await;
    assert_ne!(urgent.host, broken);
    assert_eq!(server(&region, &victim).await.status, "active");
}

#[tokio::test]
async fn a_lost_server_is_noticed_and_its_room_is_free() {
    let region = Region::start(impatient()).await.unwrap();
    let cattle = fill(&region, 1).await;
    let lost = server(&region, cattle.values().next().unwrap()).await;
    region
        .simulate(&lost.host, &["lose", &lost.id])
        .await
        .unwrap();
    let found = until(&region, &lost.id, "error").await;
    assert_eq!(found.fault_code, "EB-FAULT-002");
    let (servers, decision) = create(&region, "lucky", request("half", 1)).await;
    assert!(
        decision.placements[0].victims.is_empty(),
        "there was room without any victim"
    );
    until(&region, &servers[0].id, "active").await;
}

#[tokio::test]
async fn a_broker_killed_in_the_middle_loses_nothing() {
    let mut broker = RabbitMq::start().await.unwrap();
    let options = RegionOptions {
        broker_url: Some(broker.url()),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    fill(&region, 2).await;
    let (first, _) = create(&region, "before", request("half", 1)).await;
    broker.kill();
    // The scheduler decides and claims while it cannot send notices.
    let (second, decision) = create(&region, "meanwhile", request("half", 1)).await;
    assert_eq!(second[0].status, "waiting");
    let told = evacuations(&region).await;
    let victim = &decision.placements[0].victims[0].server_id;
    let state = &told.iter().find(|e| e.victim_id == *victim).unwrap().state;
    assert_eq!(
        *state,
        EvacuationState::Claimed.to_string(),
        "no guest can have its notice"
    );
    broker.restart().await.unwrap();
    until(&region, &first[0].id, "active").await;
    until(&region, &second[0].id, "active").await;
    nothing_is_overcommitted(&region).await;
}

/// The database refuses to note that a message was sent. The row of the message is deleted when the
/// database takes writes again, without a restart.
#[tokio::test]
async fn a_message_whose_confirmation_cannot_be_written_is_noted_later() {
    let (database, broker) = tokio::join!(MariaDb::start(), RabbitMq::start());
    let (database, broker) = (database.unwrap(), broker.unwrap());
    // An account that may not write to a read-only server.
    for grant in [
        "CREATE USER 'plain'@'127.0.0.1' IDENTIFIED BY 'plain'",
        "GRANT ALL PRIVILEGES ON ebbtide.* TO 'plain'@'127.0.0.1'",
    ] {
        database.execute(grant).await.unwrap();
    }
    let options = RegionOptions {
        database_url: Some(database.url().replace("ebbtide:ebbtide@", "plain:plain@")),
        // Longer than the outage: a scheduler that comes on duty reads all rows anew.
        database_options: "lease_seconds = 60".to_owned(),
        broker_url: Some(broker.url()),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    preemptible(&region, "p.small", 1, 0).await;
    broker.freeze().unwrap();
    let (created, decision) = create(&region, "meanwhile", request("p.small", 1)).await;
    let set = "SET GLOBAL read_only = ON";
    database.execute(set).await.unwrap();
    broker.thaw().unwrap();
    let host = region.agent_dir(&decision.placements[0].host);
    // So long the outage lasts: the broker has confirmed the message to the agent.
    eventually(PATIENCE, async || {
        let state = std::fs::read_to_string(host.join("hypervisor.json")).unwrap_or_default();
        match state.contains(&created[0].id) {
            true => Ok(()),
            false => Err("the agent has not started the server".to_owned()),
        }
    })
    .await;
    let set = "SET GLOBAL read_only = OFF";
    database.execute(set).await.unwrap();
    until(&region, &created[0].id, "active").await;
    eventually(PATIENCE, async || {
        let mut admin = region.admin().await.map_err(|e| e.to_string())?;
        let report = admin.audit(v1::AuditRequest {}).await;
        match report.map_err(|e| e.to_string())?.into_inner() {
            report if report.unsent_messages == 0 => Ok(()),
            report => Err(format!("{} unsent messages", report.unsent_messages)),
        }
    })
    .await;
}

#[tokio::test]
async fn a_database_that_goes_away_is_an_error_and_no_loss() {
    let mut database = MariaDb::start().await.unwrap();
    let options = RegionOptions {
        database_url: Some(database.url()),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    preemptible(&region, "p.small", 1, 0).await;
    let (before, _) = create(&region, "before", request("p.small", 1)).await;
    until(&region, &before[0].id, "active").await;
    database.kill();
    let create_one = || v1::CreateServersRequest {
        max_price: String::new(),
        name: "during".to_owned(),
        request: Some(v1::PlacementRequest {
            server_ids: vec![uuid::Uuid::from_u128(42).to_string()],
            ..request("p.small", 1)
        }),
    };
    let refused = region
        .servers()
        .await
        .unwrap()
        .create_servers(create_one())
        .await
        .unwrap_err();
    assert_eq!(refused.code(), tonic::Code::Unavailable, "{refused:?}");
    assert!(
        super::kit::code(&refused).starts_with("EB-STORE-"),
        "{refused:?}"
    );
    database.restart().await.unwrap();
    // The same request, with the same id, as often as it takes.
    let created = eventually(PATIENCE, async || {
        let mut servers = region.servers().await.map_err(|e| e.to_string())?;
        servers
            .create_servers(create_one())
            .await
            .map_err(|e| e.to_string())
    })
    .await
    .into_inner();
    until(&region, &created.servers[0].id, "active").await;
    let list = v1::ListServersRequest::default();
    let all = region
        .servers()
        .await
        .unwrap()
        .list_servers(list)
        .await
        .unwrap()
        .into_inner()
        .servers;
    assert_eq!(all.len(), 2, "{all:?}");
}

#[tokio::test]
async fn a_full_disk_refuses_and_keeps_what_there_is() {
    // The database may have 4096-byte pages, this many of them: what a full disk looks like to
    // SQLite.
    let options = RegionOptions {
        database_options: "sqlite_max_pages = 120".to_owned(),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    flavor(&region, "small", 1, &[]).await;
    let (servers, _) = create(&region, "one", request("small", 1)).await;
    until(&region, &servers[0].id, "active").await;
    let refused = eventually(PATIENCE, async || {
        let create = v1::CreateServersRequest {
            max_price: String::new(),
            name: "more".to_owned(),
            request: Some(request("small", 31)),
        };
        match region.servers().await.unwrap().create_servers(create).await {
            Ok(_) => Err("the disk is not full yet"),
            Err(status) => Ok(status),
        }
    })
    .await;
    assert_eq!(super::kit::code(&refused), "EB-STORE-003", "{refused:?}");
    let kept = server(&region, &servers[0].id).await;
    assert_eq!(kept.status, "active", "what was there is still there");
}

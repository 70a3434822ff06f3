//! Hosts that an outside owner takes back.

use super::command::{ebbtide, json};
use super::kit::{
    create, evacuations, flavor, nothing_is_overcommitted, preemptible, request, server, until,
    until_evacuation,
};
use ebbtide_harness::eventually;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::v1;

/// Two hosts, each with two preemptible servers; a normal one has the rest of host-A.
async fn lent(grace: u32) -> (Region, Vec<v1::Server>, v1::Server) {
    let options = RegionOptions {
        hosts: ["host-A", "host-B"].map(str::to_owned).to_vec(),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    preemptible(&region, "p.small", 2, grace).await;
    flavor(&region, "half", 4, &[]).await;
    let on_host = |flavor: &str, count, host: &str| v1::PlacementRequest {
        force_hosts: vec![host.to_owned()],
        ..request(flavor, count)
    };
    let (pet, _) = create(&region, "pet", on_host("half", 1, "host-A")).await;
    let mut cattle = Vec::new();
    for host in ["host-A", "host-B"] {
        let (servers, _) = create(&region, host, on_host("p.small", 2, host)).await;
        cattle.extend(servers);
    }
    for server in cattle.iter().chain(&pet) {
        until(&region, &server.id, "active").await;
    }
    let pet = server(&region, &pet[0].id).await;
    (region, cattle, pet)
}

fn words(json: &serde_json::Value) -> (&str, &str) {
    let text = |key: &str| json[key].as_str().unwrap_or_default();
    (text("host"), text("state"))
}

#[tokio::test]
async fn a_batch_system_takes_a_host_back_and_lends_it_again() {
    let (region, cattle, pet) = lent(3).await;
    let reclaim = |more: &[&'static str]| {
        let mut arguments = vec![
            "host", "reclaim", "host-A", "--owner", "slurm:1", "--reason", "job 7", "--output",
            "json",
        ];
        arguments.extend(more);
        arguments
    };
    let preview = ebbtide(&region, &reclaim(&["--dry-run"])).await;
    assert_eq!(preview.code, Some(0), "{}", preview.text);
    let preview = json(&preview);
    assert_eq!(
        preview[0]["planned"].as_array().unwrap().len(),
        2,
        "{preview}"
    );
    assert_eq!(preview[0]["staying"][0]["reason"], "normal", "{preview}");
    assert!(evacuations(&region).await.is_empty());

    let taken = ebbtide(&region, &reclaim(&["--deadline", "1m", "--wait"])).await;
    assert_eq!(taken.code, Some(0), "{}", taken.text);
    let taken = json(&taken);
    assert_eq!(words(&taken[0]), ("host-A", "free"), "{taken}");
    let left = evacuations(&region).await;
    assert_eq!(left.len(), 2);
    for evacuation in &left {
        let words = (evacuation.cause.as_str(), evacuation.state.as_str());
        assert_eq!(words, ("reclaim", "evacuated"));
        assert_eq!(
            (evacuation.host.as_str(), evacuation.grace_seconds),
            ("host-A", 3)
        );
        let gone = server(&region, &evacuation.victim_id).await;
        assert_eq!(gone.status, "preempted");
    }
    assert_eq!(server(&region, &pet.id).await.status, "active");
    for other in &cattle[2..] {
        assert_eq!(server(&region, &other.id).await.status, "active");
    }
    let shown = ebbtide(&region, &["host", "show", "host-A", "--output", "json"]).await;
    let shown = json(&shown);
    assert_eq!(shown["disabled_reason"], "reclaimed by slurm:1: job 7");
    // Nothing new comes: three more find room on host-B for two.
    let (_, refused) = create(&region, "more", request("p.small", 3)).await;
    assert!(refused.no_valid_host.is_some());

    let other = ebbtide(
        &region,
        &["host", "reclaim", "host-A", "--owner", "x", "--reason", "y"],
    )
    .await;
    assert!(other.text.contains("EB-REGION-008"), "{}", other.text);
    let listed = ebbtide(&region, &["host", "reclaims", "--output", "json"]).await;
    assert_eq!(words(&json(&listed)[0]), ("host-A", "free"));
    let table = ebbtide(&region, &["host", "reclaims", "host-A"]).await;
    assert!(table.text.contains("a normal server"), "{}", table.text);

    for _ in 0..2 {
        let back = ebbtide(&region, &["host", "return", "host-A"]).await;
        assert_eq!(back.code, Some(0), "{}", back.text);
    }
    let (servers, _) = create(&region, "again", request("p.small", 3)).await;
    for server in &servers {
        until(&region, &server.id, "active").await;
    }
    let none = ebbtide(&region, &["host", "reclaims", "--output", "json"]).await;
    assert_eq!(json(&none), serde_json::json!([]));
    nothing_is_overcommitted(&region).await;
}

#[tokio::test]
async fn a_host_that_is_returned_in_time_spares_its_servers_also_after_a_restart() {
    let (mut region, cattle, _) = lent(120).await;
    let reclaim = v1::ReclaimHostRequest {
        name: "host-A".to_owned(),
        owner: "slurm:1".to_owned(),
        reason: "job 7".to_owned(),
        ..Default::default()
    };
    let mut admin = region.admin().await.unwrap();
    let begun = admin.reclaim_host(reclaim).await.unwrap().into_inner();
    assert_eq!(begun.reclaim.unwrap().state, "leaving");
    for victim in &cattle[..2] {
        until_evacuation(&region, &victim.id, "draining").await;
    }
    region.kill_scheduler();
    region.start_scheduler().await.unwrap();
    let back = v1::ReturnHostRequest {
        name: "host-A".to_owned(),
        keep_disabled: false,
    };
    eventually(PATIENCE, async || {
        let mut admin = region.admin().await.map_err(|e| e.to_string())?;
        let back = admin.return_host(back.clone()).await;
        back.map_err(|status| status.to_string())
    })
    .await;
    for victim in &cattle[..2] {
        until_evacuation(&region, &victim.id, "spared").await;
        assert_eq!(server(&region, &victim.id).await.status, "active");
    }
    nothing_is_overcommitted(&region).await;
}

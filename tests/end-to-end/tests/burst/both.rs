//! Works of a tenant and short jobs of users at a time: one service looks after both.

use crate::test_bed::{BedOptions, Beside, PATIENCE, TestBed, counted};
use ebbtide_harness::eventually;
use serde_json::json;

/// Short jobs of users, and members of the bag.
const SHORT: u32 = 8;
const MEMBERS: u64 = 8;

#[tokio::test]
async fn one_service_runs_works_and_an_elastic_partition_on_nodes_of_their_own() {
    let wanted = BedOptions {
        region: true,
        machines: true,
        resume_timeout: 30,
    };
    let bed = TestBed::with(Beside::Both, wanted).await;
    let config = bed.path("with.toml");
    let check = bed.burst("check", &config, &[]);
    let status = check.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{}", check.log_tail());
    let said = bed.text("check-with.log");
    assert!(
        said.contains("type spot") && said.contains("elastic partition"),
        "{said}"
    );

    let service = bed.burst("run", &config, &[]);
    // All jobs and members go on until servers of both were seen.
    bed.hold("out");
    let hold = bed.path("out.hold").display().to_string();
    for at in 1..=2 {
        bed.submit("long", &format!("long{at}"), 45, "out").await;
    }
    for at in 1..=SHORT {
        bed.submit("short", &format!("short{at}"), 5, "out").await;
    }
    let bag = json!({
        "name": "bag", "dir": bed.path("bag"), "command": format!("sleep 5; while [ -e {hold} ]; do sleep 0.2; done; echo $SLURMD_NODENAME"),
        "count": MEMBERS, "cpus": 2, "length": "6s",
    });
    let path = bed.path("bag.json");
    std::fs::write(&path, bag.to_string()).unwrap();
    eventually(PATIENCE, async || match bed.path("with.sock").exists() {
        true => Ok(()),
        false => Err(service.log_tail()),
    })
    .await;
    let id = bed.batch("with", &["submit", path.to_str().unwrap()]).await["id"].to_string();
    // Servers of both at a time.
    eventually(PATIENCE, async || {
        let status = bed.batch("with", &["status"]).await;
        let servers = status["servers"].as_array().unwrap();
        let there = |of: &str| servers.iter().any(|one| one["server_type"] == of);
        match there("spot") && there("elastic") && status["elastic"]["wanted"] == 3 {
            true => Ok(()),
            false => Err(format!("{status}")),
        }
    })
    .await;
    bed.release("out");
    bed.all_over().await;
    eventually(PATIENCE, async || {
        let one = bed.batch("with", &["show", &id]).await;
        if one["state"] == "done" {
            Ok(())
        } else {
            Err(format!("{one}"))
        }
    })
    .await;
    let ends = counted(&bed.text("out"), "end");
    assert_eq!(ends.len(), SHORT as usize + 2, "{ends:?}");
    assert!(ends.values().all(|count| *count == 1), "{ends:?}");
    // Members ran on nodes of types, and nothing is left behind.
    for at in 0..MEMBERS {
        let node = bed.text(&format!("bag/output/main.{at}.1"));
        assert!(["c1", "c2", "c3"].contains(&node.trim()), "{at}: {node}");
    }
    eventually(PATIENCE, async || {
        // The service knows it, too: what servers cost is final.
        let status = bed.batch("with", &["status"]).await;
        let known = status["servers"].as_array().unwrap().len();
        match (bed.instances().await.len(), known) {
            (0, 0) => Ok(()),
            left => Err(format!("{left:?}: {}", service.log_tail())),
        }
    })
    .await;
    // Jobs of users alone, and servers of their nodes alone: what is paid counts once.
    let made = bed.batch("with", &["elastic"]).await;
    assert_eq!(
        (
            &made["kinds"][0]["jobs"],
            &made["kinds"][1]["jobs"],
            &made["stays"]
        ),
        (&json!(SHORT), &json!(2), &json!(2)),
        "{made}"
    );
    assert!(made["money"]["instances"].as_u64().unwrap() >= 1, "{made}");
    let number = |value: &serde_json::Value| value.as_str().unwrap().parse::<f64>().unwrap();
    let spent = number(&bed.batch("with", &["status"]).await["spent"]);
    let works = &bed.batch("with", &["report", &id]).await["servers_micros"];
    let parts = works.as_f64().unwrap() / 1e6 + number(&made["money"]["paid"]);
    assert!(
        parts > 0.0 && (spent - parts).abs() < 2e-5,
        "{spent} {parts} {made}"
    );
    bed.end(service).await;
}

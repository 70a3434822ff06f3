//! A work with a bid on a region whose market price crosses it: the checkpoint scheme ACC, live.

use crate::test_bed::{BedOptions, PATIENCE, TestBed};
use ebbtide_harness::eventually;
use serde_json::{Value, json};

/// A paid hour, milliseconds. The region bills by real hours; the service is told that these are
/// what is paid at once.
const HOUR: i64 = 16_000;
/// From the begin of an hour to its t_td: a checkpoint of three seconds and a margin of three
/// before its end.
const T_TD: i64 = 10_000;
/// A spare is kept for longer than the test waits for anything, seconds.
const SPARE: &str = "spare_seconds = 3600";

/// Lines of a file of the service with this event.
fn events(bed: &TestBed, file: &str, event: &str) -> Vec<Value> {
    let text = bed.text(file);
    let lines = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let all: Vec<Value> = lines.collect();
    all.into_iter()
        .filter(|line| line["event"] == event)
        .collect()
}

#[tokio::test]
async fn a_member_is_let_go_at_the_end_of_its_hour_while_the_price_is_above_its_bid() {
    let wanted = BedOptions {
        region: true,
        machines: true,
        resume_timeout: 30,
    };
    let bed = TestBed::with_market(wanted).await;
    let config = bed.batch_settings("with", "hour_seconds = 16\nprice_seconds = 0.5");
    let text = std::fs::read_to_string(&config).unwrap();
    let text = text.replace("margin_seconds = 5", "margin_seconds = 3");
    let text = text.replace("spare_seconds = 3", SPARE);
    assert!(text.contains(SPARE), "{text}");
    std::fs::write(&config, text).unwrap();
    let service = bed.burst("run", &config, &[]);
    let socket = bed.path("with.sock");
    eventually(PATIENCE, async || {
        if socket.exists() {
            Ok(())
        } else {
            Err("no socket")
        }
    })
    .await;

    // Steps are counted in a file until the test says that it is enough.
    let out = bed.path("ends").display().to_string();
    let enough = bed.path("enough").display().to_string();
    let document = json!({
        "name": "poor", "dir": bed.path("poor"), "cpus": 1, "length": "20s", "max_price": "0.05",
        "command": format!(
            "i=$(cat \"$EBBTIDE_RESTORE_DIR/i\" 2>/dev/null || echo 0); echo $i >>{out}; \
             while [ ! -e {enough} ]; do i=$((i+1)); echo $i >now; mv now i; sleep 0.2; done"
        ),
        "checkpoint": {"command": "cp i \"$EBBTIDE_CHECKPOINT_DIR/i\"", "cost": "1s"},
    });
    let path = bed.path("poor.json");
    std::fs::write(&path, document.to_string()).unwrap();
    let made = bed.batch("with", &["submit", path.to_str().unwrap()]).await;
    let id = made["id"].to_string();
    let show = async || bed.batch("with", &["show", &id]).await;
    let until = async |what: &str, seen: &dyn Fn(&Value) -> bool| {
        eventually(PATIENCE, async || {
            let one = show().await;
            if seen(&one) {
                Ok(one)
            } else {
                Err(format!("not {what}: {one}\n{}", bed.text("run-with.log")))
            }
        })
        .await
    };
    until("running", &|one| {
        one["list"][0]["attempts"][0]["since_ms"].is_i64()
    })
    .await;

    // Another tenant takes four of the six places: some 0.085 an hour.
    bed.others(4, "p.node").await;
    let let_go = |one: &Value| one["list"][0]["attempts"][0]["end"] == "out of bid";
    until("out of bid", &let_go).await;
    let decided = events(&bed, "with/book.jsonl", "bid");
    let words: Vec<&str> = decided
        .iter()
        .map(|one| one["decision"].as_str().unwrap())
        .collect();
    assert_eq!(words.last(), Some(&"let_go"), "{decided:?}");
    assert!(words.contains(&"checkpoint"), "{decided:?}");
    assert!(
        decided.last().unwrap()["price"].as_u64() > Some(50_000),
        "{decided:?}"
    );
    // The server goes, though a spare would stay. How long a busy machine takes for that is no part
    // of the test: it was decided at t_td, and the suite of the controller counts the hours paid on
    // a clock of its own (`tenant/batch/tests/suite/bids.rs`).
    let gone = eventually(PATIENCE, async || {
        let gone = events(&bed, "with/record.jsonl", "gone");
        gone.first()
            .cloned()
            .ok_or_else(|| bed.text("run-with.log"))
    })
    .await;
    let launched = events(&bed, "with/record.jsonl", "launched")[0]["launch"]
        .as_i64()
        .unwrap();
    let decided_at = decided.last().unwrap()["at"].as_i64().unwrap() - launched;
    assert!(
        decided_at % HOUR >= T_TD,
        "{decided_at}: {decided:?}\n{}",
        bed.text("run-with.log")
    );
    assert!(gone["end"].as_i64().unwrap() >= launched + decided_at);
    assert!(bed.instances().await.is_empty());
    assert_eq!(
        show().await["list"][0]["attempts"]
            .as_array()
            .unwrap()
            .len(),
        1
    );

    // The price falls to the bid: the member goes on from its checkpoint.
    bed.end_normal_servers().await;
    until("on again", &|one| {
        one["list"][0]["attempts"][1]["since_ms"].is_i64()
    })
    .await;
    std::fs::write(bed.path("enough"), "").unwrap();
    let one = until("done", &|one| one["state"] == "done").await;
    let begun = bed.text("ends");
    let begun: Vec<u32> = begun.lines().map(|line| line.parse().unwrap()).collect();
    assert!(
        begun.len() >= 2 && begun[0] == 0 && begun[1] >= 1,
        "{begun:?} {one}"
    );
    eprintln!(
        "let go after {:.1} s, went on from step {}",
        decided_at as f64 / 1e3,
        begun[1]
    );

    // The server stays as a spare. Its next hour costs what the market said when that hour began.
    bed.others(4, "p.node").await;
    let dear = eventually(PATIENCE, async || {
        let prices = events(&bed, "with/record.jsonl", "price");
        let last = prices
            .last()
            .filter(|one| one["hourly"].as_u64() > Some(50_000));
        last.cloned().ok_or_else(|| bed.text("run-with.log"))
    })
    .await;
    let all = events(&bed, "with/record.jsonl", "launched");
    let own = all.iter().find(|one| one["instance"] == dear["instance"]);
    let launched = own.unwrap()["launch"].as_i64().unwrap();
    let since = dear["since"].as_i64().unwrap() - launched;
    assert!(since > 0 && since % HOUR == 0, "{since}: {dear}");
    bed.end(service).await;
}

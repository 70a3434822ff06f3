//! Beside servers of a region: the demonstration.

use super::kit::{Run, RunResult, TestHarness, printed};
use crate::kit::{create, flavor, preemptible, request, until};
use ebbtide_integration_tests::{Region, RegionOptions, bin};
use ebbtide_proto::v1;

/// How many seconds stand for an hour: jobs of hours are shrunk to seconds, and hourly checkpoints
/// with them.
const HOUR: &str = "2s";

/// Two hosts, each for one server.
async fn region() -> Region {
    let options = RegionOptions {
        hosts: ["host-A", "host-B"].map(str::to_owned).to_vec(),
        ..Default::default()
    };
    let region = Region::start(options).await.unwrap();
    preemptible(&region, "p.whole", 8, 10).await;
    flavor(&region, "whole", 8, &[]).await;
    region
}

/// A normal request for the host on which the job's server is; the room of the one before is free
/// again.
async fn preempt(region: &Region, before: &mut Option<String>) {
    let mut servers = region.servers().await.unwrap();
    let list = v1::ListServersRequest {
        status: "active".to_owned(),
        ..Default::default()
    };
    let all = servers
        .list_servers(list)
        .await
        .unwrap()
        .into_inner()
        .servers;
    let victim = all.iter().find(|server| server.preemptible).unwrap();
    if let Some(id) = before.take() {
        let delete = v1::DeleteServerRequest { id };
        servers.delete_server(delete).await.unwrap();
    }
    let request = v1::PlacementRequest {
        force_hosts: vec![victim.host.clone()],
        ..request("whole", 1)
    };
    let (created, _) = create(region, "urgent", request).await;
    until(region, &created[0].id, "active").await;
    let gone = crate::kit::server(region, &victim.id).await;
    assert_eq!(gone.status, "preempted");
    *before = Some(created[0].id.clone());
}

/// Three preemptions of a run, each once a planned checkpoint of that life is complete and some
/// work was done since.
async fn three_times(region: &Region, run: &Run) {
    let mut before = None;
    for time in 1..=3 {
        run.says("(planned)", time).await;
        preempt(region, &mut before).await;
        run.says("goes on from checkpoint", time).await;
    }
}

fn way(ended: &RunResult, at: usize) -> &serde_json::Value {
    &ended.json["ways"][at]
}

fn survived_with_less_lost_than_hourly(ended: &RunResult) {
    let said = &ended.output;
    assert_eq!(ended.code, Some(0), "{said}");
    let lives = ended.json["instances"].as_array().unwrap();
    let ends: Vec<&str> = lives.iter().map(|l| l["end"].as_str().unwrap()).collect();
    assert_eq!(
        ends,
        ["interrupted", "interrupted", "interrupted", "exited"],
        "{said}"
    );
    let lost = |at: usize| way(ended, at)["lost_seconds"].as_f64().unwrap();
    assert_eq!(way(ended, 1)["way"], "every 2.0 s");
    assert!(lost(0) < lost(1), "{} of {}: {said}", lost(0), lost(1));
    assert!(lost(1) <= lost(2), "{} of {}: {said}", lost(1), lost(2));
    // All that was worked on the first three was saved on notice.
    assert_eq!(ended.json["lost_seconds"], 0.0, "{said}");
}

#[tokio::test]
async fn a_job_survives_three_preemptions_with_less_lost_than_hourly_checkpoints() {
    let region = region().await;
    let rig = TestHarness::new();
    let program = bin("ebbtide-demo");
    let rate = printed(&program, &["chain", "--rate"]).await;
    // Half a minute of work on an idle processor.
    let rounds = (rate.trim().parse::<u64>().unwrap() * 30).to_string();
    let program = program.to_str().unwrap();
    let save = "rm -f now; kill -USR1 $EBBTIDE_PID; until [ -s now ]; do sleep 0.02; done; mv now $EBBTIDE_CHECKPOINT_DIR/state";
    let resume = format!(
        "exec {program} chain --rounds {rounds} --save-to now --resume $EBBTIDE_RESTORE_DIR/state"
    );
    // Instances that live for 48 s in the mean: a day where two seconds are an hour.
    let run = rig.run(
        Some(&region.endpoint().unwrap()),
        &[
            "--flavor",
            "p.whole",
            "--poll",
            "0.1s",
            "--job",
            "30s",
            "--cost",
            "0.2s",
            "--restart",
            "1s",
            "--model",
            "exponential:lambda=75,max=none",
            "--compare",
            HOUR,
            "--checkpoint-command",
            save,
            "--restore-command",
            &resume,
        ],
        &[program, "chain", "--rounds", &rounds, "--save-to", "now"],
    );
    three_times(&region, &run).await;
    let ended = run.ended().await;
    eprintln!("{}\n{}", ended.output, ended.json);
    survived_with_less_lost_than_hourly(&ended);
    let alone = printed(
        bin("ebbtide-demo").as_path(),
        &["chain", "--rounds", &rounds],
    )
    .await;
    assert_eq!(rig.text("state/stdout"), alone);
    crate::kit::the_audit_is_clean(&region).await;
}

/// Debian's `mawk`, as it is: it knows nothing of checkpoints.
const SUM: &str = "BEGIN { for (i = 0; i < N; i++) { s = (s * 31 + i) % 1000003; if (i % 4000000 == 0) { print i, s; fflush() } } print s }";

#[tokio::test]
async fn a_program_that_knows_nothing_of_checkpoints_survives_three_preemptions_by_criu() {
    let criu = std::env::var("EBBTIDE_CRIU").expect(
        "EBBTIDE_CRIU is not set: `bash devstack/lib/criu.sh target/criu` puts a CRIU there that knows this kernel; devstack/test does so",
    );
    let region = region().await;
    let rig = TestHarness::new();
    let n = "-vN=200000000";
    let run = rig.run(
        Some(&region.endpoint().unwrap()),
        &[
            "--flavor",
            "p.whole",
            "--poll",
            "0.1s",
            "--every",
            "1s",
            "--cost",
            "0.5s",
            "--compare",
            HOUR,
            "--criu",
            "--criu-program",
            &criu,
        ],
        &["mawk", n, SUM],
    );
    three_times(&region, &run).await;
    let ended = run.ended().await;
    eprintln!("{}\n{}", ended.output, ended.json);
    survived_with_less_lost_than_hourly(&ended);
    // Every line once, though it was stopped and gone on with in the middle.
    let alone = printed("/usr/bin/mawk".as_ref(), &[n, SUM]).await;
    assert_eq!(rig.text("state/stdout"), alone);
}

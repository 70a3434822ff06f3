//! `replay`, against the fake region (which decides by first fit) and offline.

use crate::fake::{self, Fake};
use crate::run::{Ran, against, alone, binary};
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

const HEADER: &str = "seq,event,vm,cpu,mem_gb,time_s\n";

async fn region(hosts: &[&str]) -> Fake {
    let fake = Fake::start().await;
    fake.with(|state| {
        state.keeps_ids = true;
        state.policy = "first-fit".into();
        state.hosts = hosts.iter().map(|name| fake::host(name, 4, 8192)).collect();
    });
    fake
}

fn write(directory: &Path, name: &str, text: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Two hosts of 4 CPUs: a and b fill the first, c goes to the second, d takes a's room, e has none.
const TINY: &str = "0,create,a,2,2,0\n1,create,b,2,2,60\n2,create,c,2,2,120\n3,delete,a,2,2,180\n\
                    4,create,d,1,0.5,240\n5,create,e,8,1,300\n6,delete,e,8,1,360\n7,delete,b,2,2,420\n";
const RECORDED: &str =
    "event,vm,action\ncreate,a,0\ncreate,b,0\ncreate,c,1\ndelete,a,0\ncreate,d,0\n";

async fn replay(fake: &Fake, file: &str, options: &[&str]) -> Ran {
    let mut args = vec!["replay", file, "--speed-up", "max"];
    args.extend(options);
    against(fake, &args).await
}

#[tokio::test]
async fn a_tiny_trace_gives_the_numbers_that_can_be_told_by_hand() {
    let fake = region(&["s0n0", "s0n1"]).await;
    let directory = tempfile::tempdir().unwrap();
    let trace = write(directory.path(), "t.csv", &format!("{HEADER}{TINY}"));
    let recorded = write(directory.path(), "r.csv", RECORDED);
    let report = directory.path().join("report");
    let report_text = report.to_str().unwrap();
    let options = [
        "--expect-placements",
        &recorded,
        "--report",
        report_text,
        "--sample-every",
        "1",
        "-o",
        "json",
    ];
    let ran = replay(&fake, &trace, &options).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    for (key, value) in [
        ("events", 8),
        ("creates", 5),
        ("placed", 4),
        ("refused", 1),
        ("failed", 0),
        ("preempted", 0),
        ("deletes", 2),
        ("deletes_without_server", 1),
        ("trace_seconds", 420),
    ] {
        assert_eq!(json[key].as_f64(), Some(f64::from(value)), "{key}: {json}");
    }
    assert_eq!(json["placements"]["equal"], 4);
    assert_eq!(json["decision_latency"]["count"], 5);
    // Before each event, and once at the end.
    let samples = json["samples"].as_array().unwrap();
    assert_eq!(samples.len(), 9);
    let cpu: Vec<u64> = samples
        .iter()
        .map(|s| s["classes"][0]["normal"].as_u64().unwrap())
        .collect();
    assert_eq!(cpu, [0, 2, 4, 6, 4, 5, 5, 5, 3]);
    // What was made is gone.
    fake.with(|state| {
        assert!(
            state
                .servers
                .iter()
                .all(|server| server.status == "deleted"),
            "{:?}",
            state.log
        );
        assert!(state.flavors.is_empty());
    });
    let svg = std::fs::read_to_string(report.join("utilisation.svg")).unwrap();
    assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
    let file: serde_json::Value =
        serde_json::from_str(&std::fs::read_to_string(report.join("report.json")).unwrap())
            .unwrap();
    assert_eq!(
        (&file["samples"], &file["placed"]),
        (&json["samples"], &json["placed"])
    );
}

#[tokio::test]
async fn in_order_means_that_each_delete_has_freed_its_room_before_the_next_event() {
    let fake = region(&["s0n0"]).await;
    let directory = tempfile::tempdir().unwrap();
    let mut lines = String::from(HEADER);
    for vm in 0..20 {
        // Each fills the host: there is room for the next only when this one is really gone.
        writeln!(lines, "0,create,{vm},4,8,{vm}\n0,delete,{vm},4,8,{vm}").unwrap();
    }
    let trace = write(directory.path(), "t.csv", &lines);
    let ran = replay(&fake, &trace, &["-o", "json"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(
        (&ran.json()["placed"], &ran.json()["refused"]),
        (&20.into(), &0.into())
    );
    let log = fake.with(|state| state.log.clone());
    let expected: Vec<String> = (0..20)
        .flat_map(|vm| {
            let name = format!("replay-{vm}");
            [
                format!("create {name} replay.c4m8"),
                format!("delete {name}"),
                format!("gone {name}"),
            ]
        })
        .collect();
    assert_eq!(log, expected);
}

#[tokio::test]
async fn with_more_in_flight_events_overlap_but_a_delete_waits_for_its_create() {
    let fake = region(&["s0n0", "s0n1"]).await;
    fake.with(|state| state.create_takes = Duration::from_millis(20));
    let directory = tempfile::tempdir().unwrap();
    let mut lines = String::from(HEADER);
    for vm in 0..40 {
        writeln!(lines, "0,create,{vm},1,1,{vm}\n0,delete,{vm},1,1,{vm}").unwrap();
    }
    let trace = write(directory.path(), "t.csv", &lines);
    let ran = replay(&fake, &trace, &["--in-flight", "8", "-o", "json"]).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    let json = ran.json();
    assert_eq!(
        (&json["placed"], &json["deletes"], &json["failed"]),
        (&40.into(), &40.into(), &0.into())
    );
    fake.with(|state| {
        assert!(
            (2..=8).contains(&state.most_creating),
            "{}",
            state.most_creating
        );
        for vm in 0..40 {
            let at = |what: String| state.log.iter().position(|line| line.starts_with(&what));
            let (created, deleted) = (
                at(format!("create replay-{vm} ")),
                at(format!("delete replay-{vm}")),
            );
            assert!(created.unwrap() < deleted.unwrap(), "{vm}");
        }
    });
}

#[tokio::test]
async fn a_share_is_preemptible_and_the_preempted_are_counted_not_mourned() {
    let fake = region(&["s0n0", "s0n1"]).await;
    let directory = tempfile::tempdir().unwrap();
    let trace = write(
        directory.path(),
        "t.csv",
        &format!("{HEADER}0,create,a,1,1,0\n1,delete,a,1,1,9\n"),
    );
    let preempt = fake.clone();
    // The region takes the server away as soon as it is there, before its delete comes.
    let taker = tokio::spawn(tokio::time::timeout(Duration::from_secs(30), async move {
        loop {
            let victim =
                preempt.with(|state| state.servers.first().map(|server| server.id.clone()));
            if let Some(id) = victim {
                preempt.set_status(&id, "preempted");
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }));
    let args = [
        "replay",
        &trace,
        "--speed-up",
        "30",
        "--preemptible-share",
        "1",
        "-o",
        "json",
    ];
    let ran = against(&fake, &args).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    taker.await.unwrap().expect("a server to take away");
    let json = ran.json();
    assert_eq!(
        (&json["preempted"], &json["failed"]),
        (&1.into(), &0.into())
    );
    assert_eq!(
        (&json["deletes"], &json["deletes_without_server"]),
        (&0.into(), &1.into())
    );
    assert!(fake.with(|state| state.log[0].ends_with("replay.c1m1.preemptible")));
    // 9 s of trace time at 30 times.
    assert!(json["wall_seconds"].as_f64().unwrap() >= 0.3);
}

#[tokio::test]
async fn a_difference_from_the_recording_fails_and_is_named() {
    let fake = region(&["s0n1", "s0n0"]).await;
    let directory = tempfile::tempdir().unwrap();
    let trace = write(directory.path(), "t.csv", &format!("{HEADER}{TINY}"));
    let recorded = write(directory.path(), "r.csv", RECORDED);
    let ran = replay(&fake, &trace, &["--expect-placements", &recorded, "--keep"]).await;
    assert_eq!(ran.code, 1);
    let last = ran.out.lines().last().unwrap();
    let expected = "0 of 4 placements equal; first difference at line 2 of the trace: vm a was placed on s0n1, recorded is s0n0";
    assert_eq!(last, expected);
    assert!(ran.err.contains("EB-CLI-010"), "{}", ran.err);
    assert!(fake.with(|state| state.servers.iter().any(|server| server.status == "active")));
}

#[tokio::test]
async fn what_cannot_work_is_refused_before_the_first_event() {
    let fake = region(&["s0n0"]).await;
    let directory = tempfile::tempdir().unwrap();
    let trace = write(directory.path(), "t.csv", &format!("{HEADER}{TINY}"));
    let recorded = write(directory.path(), "r.csv", RECORDED);
    let cut = write(
        directory.path(),
        "cut.csv",
        &format!("{HEADER}0,create,a,2\n"),
    );
    let orphan = write(
        directory.path(),
        "orphan.csv",
        &format!("{HEADER}0,delete,a,2,2,0\n"),
    );
    let missing = directory.path().join("none.csv");
    let expect = ["--expect-placements", recorded.as_str()];
    let cases: Vec<(&str, Vec<&str>, &str)> = vec![
        (cut.as_str(), vec![], "line 2: 4 fields"),
        (orphan.as_str(), vec![], "--lenient"),
        (missing.to_str().unwrap(), vec![], "EB-SIM-001"),
        (&trace, vec!["--preemptible-share", "2"], "EB-SIM-006"),
        (
            &trace,
            [&expect[..], &["--preemptible-share", "0.1"]].concat(),
            "EB-CLI-001",
        ),
        (
            &trace,
            [&expect[..], &["--in-flight", "2"]].concat(),
            "EB-CLI-001",
        ),
        (
            &trace,
            [&expect[..], &["--host-pattern", "x"]].concat(),
            "host pattern",
        ),
    ];
    for (file, options, says) in cases {
        let ran = replay(&fake, file, &options).await;
        assert!(ran.code == 1 || ran.code == 2, "{options:?}");
        assert!(ran.err.contains(says), "{file} {options:?}: {}", ran.err);
    }
    fake.with(|state| state.policy = "tiered".into());
    let ran = replay(&fake, &trace, &expect).await;
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("ranking policy is \"tiered\""),
        "{}",
        ran.err
    );
    let lenient = replay(&fake, &orphan, &["--lenient", "-o", "json"]).await;
    assert_eq!(lenient.code, 0, "{}", lenient.err);
    assert_eq!(
        lenient.json()["irregularities"]["deletes_without_create"],
        1
    );
    fake.with(|state| {
        state.hosts.clear();
        state.log.clear();
    });
    let ran = replay(&fake, &trace, &[]).await;
    assert!(
        ran.code == 1 && ran.err.contains("no host of the region is up"),
        "{}",
        ran.err
    );
    assert!(fake.with(|state| state.log.is_empty()));
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_stops_cleans_up_and_still_reports() {
    let fake = region(&["s0n0", "s0n1"]).await;
    let directory = tempfile::tempdir().unwrap();
    let lines = "0,create,a,1,1,0\n1,create,b,1,1,1\n2,create,c,1,1,100000\n";
    let trace = write(directory.path(), "t.csv", &format!("{HEADER}{lines}"));
    // Event c would come after a day.
    let child = std::process::Command::new(binary("ebbtide-lab"))
        .args([
            "--endpoint",
            &fake.endpoint(),
            "replay",
            &trace,
            "--speed-up",
            "1",
            "-o",
            "json",
        ])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let both = async {
        while fake.with(|state| state.log.len()) < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), both)
        .await
        .unwrap();
    let output = tokio::task::block_in_place(|| {
        let pid = child.id().to_string();
        std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap();
        child.wait_with_output().unwrap()
    });
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{err}");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["interrupted"], &json["placed"]),
        (&true.into(), &2.into())
    );
    assert!(
        err.contains("EB-CLI-012") && err.contains("after 2 of 3 events"),
        "{err}"
    );
    fake.with(|state| {
        assert!(
            state
                .servers
                .iter()
                .all(|server| server.status == "deleted")
        )
    });
}

#[tokio::test]
async fn offline_needs_no_region_and_compares_as_well() {
    let directory = tempfile::tempdir().unwrap();
    let trace = write(directory.path(), "t.csv", &format!("{HEADER}{TINY}"));
    let recorded = write(directory.path(), "r.csv", RECORDED);
    let mut args = vec![
        "replay",
        &trace,
        "--offline",
        "--hosts",
        "2",
        "--host-cpu",
        "4",
    ];
    args.extend([
        "--host-mem-gb",
        "8",
        "--policy",
        "first-fit",
        "--expect-placements",
        &recorded,
    ]);
    let ran = alone(&args).await;
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert_eq!(ran.out.lines().last(), Some("4 of 4 placements equal"));
    assert!(ran.out.contains("first-fit"), "{}", ran.out);
}

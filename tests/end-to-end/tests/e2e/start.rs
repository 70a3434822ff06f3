//! Starting, and being told why not.

use super::kit::{preemptible, request, server};
use ebbtide_harness::{Process, ProcessCommand, Signal, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Region, RegionOptions, bin};
use ebbtide_proto::v1;
use std::path::Path;

async fn refused(region: &Region, arguments: &[&str], config: &str) -> (Option<i32>, String) {
    let path = region.dir().join("refused.toml");
    std::fs::write(&path, config).unwrap();
    let process: Process = ProcessCommand::new("refused", bin("ebbtide-scheduler"))
        .arg("--config")
        .arg(&path)
        .args(arguments.iter().copied())
        .spawn(Path::new(&region.dir().join("refused.log")))
        .unwrap();
    let status = process.wait_exit(PATIENCE).await.unwrap();
    (status.code(), process.log_tail())
}

#[tokio::test]
async fn a_typing_error_in_the_configuration_is_named() {
    let region = Region::prepare(RegionOptions::default()).await.unwrap();
    let (code, said) = refused(&region, &[], "[region]\nnotice_atempts = 3\n").await;
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("EB-SERVICE-004") && said.contains("notice_atempts"),
        "{said}"
    );
    let (code, said) = refused(&region, &[], "[engine]\npolicy = \"best\"\n").await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("line 2, column 10"), "{said}");
    let (code, said) = refused(&region, &["--database-url", "oracle://x/y"], "").await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("EB-STORE-"), "{said}");
}

#[tokio::test]
async fn a_taken_port_and_a_taken_database_are_named() {
    let region = Region::start(RegionOptions {
        hosts: Vec::new(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    let taken = region.endpoint().unwrap().replace("http://", "");
    let other = format!("sqlite://{}", region.dir().join("other.db").display());
    let free = ["--http-listen", "127.0.0.1:0", "--database-url", &other];
    let (code, said) = refused(&region, &[&["--listen", &taken], &free[..]].concat(), "").await;
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("EB-SERVICE-005") && said.contains(&taken),
        "{said}"
    );
    let same = format!("sqlite://{}", region.dir().join("region.db").display());
    let arguments = [
        "--listen",
        "127.0.0.1:0",
        "--http-listen",
        "127.0.0.1:0",
        "--database-url",
        &same,
    ];
    let (code, said) = refused(&region, &arguments, "").await;
    assert_eq!(code, Some(1), "{said}");
    assert!(
        said.contains("EB-STORE-") && said.contains("ebbtide-scheduler"),
        "{said}"
    );
}

#[tokio::test]
async fn a_broker_that_comes_later_is_found() {
    let mut broker = ebbtide_harness::RabbitMq::start().await.unwrap();
    broker.kill();
    let options = RegionOptions {
        broker_url: Some(broker.url()),
        ..RegionOptions::default()
    };
    let mut region = Region::prepare(options).await.unwrap();
    region.start_scheduler().await.unwrap();
    region.start_agent("host-A").unwrap();
    region.start_agent("host-B").unwrap();
    region.start_agent("host-C").unwrap();
    region.start_agent("host-D").unwrap();
    let hosts = region
        .admin()
        .await
        .unwrap()
        .list_hosts(ebbtide_proto::v1::ListHostsRequest {})
        .await;
    assert!(
        hosts.unwrap().into_inner().hosts.is_empty(),
        "it answers, and has no servers yet"
    );
    broker.restart().await.unwrap();
    region.wait_for_hosts_up().await.unwrap();
}

#[tokio::test]
async fn sigterm_ends_it_cleanly_and_the_next_one_starts_at_once() {
    let mut region = Region::start(RegionOptions::default()).await.unwrap();
    let process = region.scheduler_process().unwrap();
    process.signal(ebbtide_harness::Signal::Term).unwrap();
    let status = process.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{status:?}\n{}", region.scheduler_log());
    region.start_scheduler().await.unwrap();
    let log = region.scheduler_log();
    assert!(
        !log.contains("waiting in case that scheduler is gone"),
        "the lease was not given back:\n{log}"
    );
    region.wait_for_hosts_up().await.unwrap();
}

#[tokio::test]
async fn health_and_reflection_are_served() {
    let region = Region::start(RegionOptions {
        hosts: Vec::new(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    let channel = tonic::transport::Channel::from_shared(region.endpoint().unwrap())
        .unwrap()
        .connect()
        .await
        .unwrap();
    let mut health = tonic_health::pb::health_client::HealthClient::new(channel);
    for service in [
        "",
        "ebbtide.v1.Scheduler",
        "ebbtide.v1.Servers",
        "ebbtide.v1.Admin",
    ] {
        let check = tonic_health::pb::HealthCheckRequest {
            service: service.to_owned(),
        };
        let answer = health.check(check).await.unwrap().into_inner();
        assert_eq!(answer.status, 1, "{service} is not serving");
    }
    let http = region.address("http").unwrap();
    for (path, expected) in [
        ("/healthz", "ok"),
        ("/readyz", "ready"),
        ("/metrics", "ebbtide_decisions"),
    ] {
        // Ready only when the broker is connected, which comes a moment after the port is open.
        ebbtide_harness::eventually(PATIENCE, async || {
            let page = get(&http, path).await;
            if page.contains(" 200 OK\r\n") && page.contains(expected) {
                Ok(())
            } else {
                Err(page)
            }
        })
        .await;
    }
}

pub(super) use ebbtide_integration_tests::get_raw;

/// A page, with its head. One request needs no HTTP client.
pub(super) async fn get(base: &str, path: &str) -> String {
    get_raw(&base.replace("http://", ""), path).await.unwrap()
}

fn create_one(flavor: &str) -> v1::CreateServersRequest {
    v1::CreateServersRequest {
        max_price: String::new(),
        name: flavor.to_owned(),
        request: Some(request(flavor, 1)),
    }
}

#[tokio::test]
async fn a_scheduler_that_is_asked_to_end_writes_what_it_has_accepted_before_it_gives_its_lease_back()
 {
    let mut region = Region::start(RegionOptions::default()).await.unwrap();
    preemptible(&region, "tiny", 1, 0).await;
    let mut callers = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let mut servers = region.servers().await.unwrap();
        callers.spawn(async move {
            let mut created = Vec::new();
            // Until the scheduler is gone.
            while let Ok(answer) = servers.create_servers(create_one("tiny")).await {
                created.extend(answer.into_inner().servers.into_iter().map(|s| s.id));
            }
            created
        });
    }
    let busy = async || -> Result<(), String> {
        let mut servers = region.servers().await.map_err(|e| e.to_string())?;
        let listed = servers
            .list_servers(v1::ListServersRequest::default())
            .await;
        match listed
            .map_err(|e| e.to_string())?
            .into_inner()
            .servers
            .len()
        {
            0..50 => Err("hardly anybody has asked yet".to_owned()),
            _ => Ok(()),
        }
    };
    eventually(PATIENCE, busy).await;
    let process = region.scheduler_process().unwrap();
    process.signal(Signal::Term).unwrap();
    let status = process.wait_exit(PATIENCE).await.unwrap();
    let log = region.scheduler_log();
    assert_eq!(status.code(), Some(0), "{log}");
    for code in ["EB-SERVICE-006", "EB-STORE-004"] {
        assert!(!log.contains(code), "{log}");
    }
    let mut created = Vec::new();
    while let Some(ids) = callers.join_next().await {
        created.extend(ids.unwrap());
    }
    // The scheduler has given its lease back, so the next start does not wait for the end of the
    // lease. Every caller with an answer has its server.
    region.start_scheduler().await.unwrap();
    assert!(!region.scheduler_log().contains("waiting in case"));
    for id in created {
        server(&region, &id).await;
    }
}

#[tokio::test]
async fn readers_that_go_away_end_every_program_quietly() {
    let dir = tempfile::tempdir().unwrap();
    let conf = dir.path().join("nova.conf");
    std::fs::write(&conf, "[DEFAULT]\nhost = controller\n").unwrap();
    let conf = conf.display().to_string();
    let state = dir.path().display().to_string();
    for (program, args, code) in [
        ("ebbtide-scheduler", &["--check-config"][..], 0),
        (
            "ebbtide-scheduler",
            &["--config-file", &conf, "--check-config"],
            0,
        ),
        ("ebbtide-scheduler", &["--config", "/nowhere"], 2),
        (
            "ebbtide-agent",
            &[
                "config",
                "check",
                "--host",
                "h",
                "--state-dir",
                &state,
                "--set",
                "driver.simulated.inventory={ VCPU = 4 }",
            ],
            0,
        ),
        ("ebbtide-agent", &["simulate", "--help"], 0),
        ("ebbtide-batch", &["check", "--config", "/nowhere"], 1),
        ("ebbtide-demo", &["chain", "--rounds", "1"], 0),
        (
            "ebbtide-demo",
            &["story", "--endpoint", "http://127.0.0.1:1"],
            1,
        ),
    ] {
        // Both streams are closed. With println! the program would end with 101.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = std::process::Command::new(bin(program));
        command.args(args).stdin(std::process::Stdio::null());
        let errors = writer.try_clone().unwrap();
        let status = command.stdout(writer).stderr(errors).status().unwrap();
        assert_eq!(status.code(), Some(code), "{program} {args:?}: {status}");
    }
}

#[tokio::test]
async fn what_a_nova_conf_comes_to_is_shown_as_nova_conf_has_it() {
    let dir = tempfile::tempdir().unwrap();
    let conf = dir.path().join("nova.conf");
    let text =
        "[DEFAULT]\nhost = controller\n[ebbtide]\nconnection = mysql://e:s3cret@db/ebbtide\n";
    std::fs::write(&conf, text).unwrap();
    let done = std::process::Command::new(bin("ebbtide-scheduler"))
        .arg("--config-file")
        .arg(&conf)
        .arg("--check-config")
        .output()
        .unwrap();
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{said}");
    for line in ["host = controller", "connection = mysql://e:***@db/ebbtide"] {
        assert!(said.lines().any(|one| one == line), "{line}: {said}");
    }
    assert!(
        !said.contains("s3cret") && !said.contains("Some("),
        "{said}"
    );
}

#[tokio::test]
async fn under_the_name_nova_scheduler_it_reads_the_nova_conf_that_nova_finds() {
    let home = tempfile::tempdir().unwrap();
    let named = home.path().join("nova-scheduler");
    std::os::unix::fs::symlink(bin("ebbtide-scheduler"), &named).unwrap();
    // oslo.config looks into ~/.nova first.
    std::fs::create_dir(home.path().join(".nova")).unwrap();
    std::fs::write(
        home.path().join(".nova/nova.conf"),
        "[DEFAULT]\nhost = found-at-home\n",
    )
    .unwrap();
    let run = |args: &[&str]| {
        std::process::Command::new(&named)
            .args(args)
            .env("HOME", home.path())
            .output()
            .unwrap()
    };
    let done = run(&["--check-config"]);
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{said}");
    assert!(
        said.lines().any(|line| line == "host = found-at-home"),
        "{said}"
    );
    let refused = run(&["--config", "scheduler.toml", "--check-config"]);
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("nova.conf (--config-file)"), "{said}");
}

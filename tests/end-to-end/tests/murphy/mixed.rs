//! A rolling upgrade: schedulers and agents of two versions beside each other, under load.
//!
//! `devstack/rolling-upgrade` runs it, with the programs of the previous version in the directory
//! that EBBTIDE_PREVIOUS_BIN_DIR names.

use crate::client::RetryingClient;
use crate::day::{DRIVER, flavors};
use crate::faults::Schedulers;
use crate::load::Load;
use crate::verification::{self, Verdict};
use crate::watch::Watch;
use ebbtide_harness::Deadline;
use ebbtide_integration_tests::{Database, Region, RegionOptions};
use std::path::PathBuf;
use std::time::Duration;

const HOSTS: usize = 6;
const PREEMPTORS: u64 = 5;
const FILLERS: u64 = 2;

/// What a host's agent does for as long as it takes to replace it.
const LIMITS: &str = "notice_timeout_seconds = 10\nnotice_attempts = 5\nact_timeout_seconds = 40\n\
     start_timeout_seconds = 40\nhost_down_seconds = 40\nfailed_victim_rest_seconds = 1";

async fn upgrade(database: Database) {
    let previous = PathBuf::from(
        std::env::var_os("EBBTIDE_PREVIOUS_BIN_DIR")
            .expect("EBBTIDE_PREVIOUS_BIN_DIR: the programs of the previous version"),
    );
    let phase = Duration::from_secs(crate::setting("EBBTIDE_MIXED_SECONDS").unwrap_or(60) / 3);
    let old_agent = previous.join("ebbtide-agent");
    let hosts: Vec<String> = (0..HOSTS).map(|n| format!("host-{n}")).collect();
    let options = RegionOptions {
        database,
        database_options: "lease_seconds = 2\ntimeout_seconds = 10".to_owned(),
        hosts: hosts.clone(),
        region: LIMITS.to_owned(),
        drivers: hosts
            .iter()
            .map(|host| (host.clone(), DRIVER.to_owned()))
            .collect(),
        ..RegionOptions::default()
    };
    let mut region = Region::prepare(options).await.unwrap();
    let names = ["one", "two", "three"];
    let ready: Vec<PathBuf> = names
        .iter()
        .map(|name| region.dir().join(format!("ready-{name}.json")))
        .collect();
    let old = previous.join("ebbtide-scheduler");
    let mut schedulers = Schedulers {
        dir: region.dir().to_owned(),
        config: region.scheduler_config().unwrap(),
        running: names.iter().map(|n| ((*n).to_owned(), None)).collect(),
        programs: names
            .iter()
            .map(|n| ((*n).to_owned(), old.clone()))
            .collect(),
    };
    schedulers.start().await;
    for host in &hosts {
        region.start_agent_of(&old_agent, host).unwrap();
    }
    let mut client = RetryingClient::of(&ready, 0);
    flavors(&mut client).await;
    verification::until_hosts_are_up(&mut client, hosts.len()).await;
    let watch = Watch::start(&region, &hosts);
    let load = Load::new(1);
    let steps = async {
        // Schedulers first, one after the other, so that the last one of the previous version works
        // beside new ones, and with agents of both versions. Then the other agents.
        let steps: [(&str, &[usize], &[usize]); 3] = [
            ("one scheduler, no agent", &[0], &[]),
            ("two schedulers, half of the agents", &[1], &[0, 1, 2]),
            ("all", &[2], &[3, 4, 5]),
        ];
        let alone = "the previous version alone";
        say(alone, phase / 3, &mut client, &load).await;
        for (what, newer, agents) in steps {
            for at in newer {
                let (name, peer) = &mut schedulers.running[*at];
                schedulers.programs.remove(name.as_str());
                peer.take().unwrap().stop().await.unwrap();
                schedulers.start().await;
            }
            for at in agents {
                region.kill_agent(&hosts[*at]);
                region.start_agent(&hosts[*at]).unwrap();
            }
            say(what, phase, &mut client, &load).await;
        }
        load.end();
    };
    tokio::join!(load.run(&ready, PREEMPTORS, FILLERS), steps);
    verification::until_all_is_at_rest(&mut client, hosts.len()).await;
    let seen = watch.end();
    let verdict = Verdict::settled(&mut client, &region, &hosts, &load.ledger, &seen).await;
    println!(
        "mixed: {database:?}: {} evacuations: {verdict}",
        verdict.evacuations
    );
    verdict.insist();
    for (name, peer) in &schedulers.running {
        assert!(!peer.as_ref().unwrap().has_ended(), "{name} has ended");
    }
}

/// Lets a step last, at least until ten victims more have left.
async fn say(what: &str, time: Duration, client: &mut RetryingClient, load: &Load) {
    let (before, lasts) = (verification::evacuated(client).await, Deadline::after(time));
    let patience = Deadline::after(time + crate::client::PATIENCE);
    let mut now = before;
    while !lasts.has_passed() || now < before + 10 {
        assert!(
            !patience.has_passed(),
            "{what}: {} evacuations",
            now - before
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
        now = verification::evacuated(client).await;
    }
    println!(
        "mixed: newer: {what}: {:.0} s, {} evacuations, {}",
        lasts.elapsed().as_secs_f64(),
        now - before,
        load.noticed(),
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the programs of the previous version; devstack/rolling-upgrade asks for it"]
async fn a_rolling_upgrade_loses_nothing_on_postgresql() {
    upgrade(Database::Postgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs the programs of the previous version; devstack/rolling-upgrade asks for it"]
async fn a_rolling_upgrade_loses_nothing_on_mariadb() {
    upgrade(Database::MariaDb).await;
}

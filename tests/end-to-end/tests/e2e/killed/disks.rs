//! Disks run full under real processes: a small tmpfs, and a file that takes what is left of it.

use super::kit::{
    LIMITS, audited, flavors, hypervisor, insist, one_host, only_evacuation, runs_exactly, runs_in,
    try_to_create,
};
use crate::kit::{create, preemptible, request, server, until, until_evacuation};
use ebbtide_harness::eventually;
use ebbtide_harness::hypervisor::in_private_network;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{ProcessEnvironment, Region, RegionOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use uuid::Uuid;

const HOST: &str = "host-A";

/// A file system of its own, which only this test sees.
struct Disk(PathBuf);

impl Disk {
    fn at(path: PathBuf, kib: u32) -> Self {
        std::fs::create_dir_all(&path).unwrap();
        let size = format!("size={kib}k");
        let status = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "none"])
            .arg(&path)
            .status()
            .unwrap();
        assert!(status.success(), "mount: {status}");
        Self(path)
    }

    fn filler(&self) -> PathBuf {
        self.0.join("everything-else")
    }

    /// Nothing more fits.
    fn fill(&self) {
        let mut file = std::fs::File::create(self.filler()).unwrap();
        let mut block: &[u8] = &[0; 4096];
        loop {
            match file.write(block) {
                Ok(_) => {}
                Err(_) if block.len() > 1 => block = &block[..1],
                Err(_) => return,
            }
        }
    }

    /// There is room again.
    fn tidy(&self) {
        std::fs::remove_file(self.filler()).unwrap();
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Those who have files open there end later.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

async fn until_said(region: &Region, what: &str, log: impl Fn(&Region) -> String) {
    eventually(PATIENCE, async || {
        let said = log(region);
        match said.contains(what) {
            true => Ok(()),
            false => Err(format!("{what} was not said: {said}")),
        }
    })
    .await;
}

#[tokio::test]
async fn an_agent_whose_disk_is_full_begins_nothing_and_goes_on_when_there_is_room() {
    let name =
        "killed::disks::an_agent_whose_disk_is_full_begins_nothing_and_goes_on_when_there_is_room";
    if !in_private_network(name).unwrap() {
        return;
    }
    let broker = ebbtide_harness::RabbitMq::start().await.unwrap();
    // The hypervisor has a disk of its own, so that only the agent's journal has no room.
    let place = tempfile::tempdir().unwrap();
    let driver = format!(
        "[driver]\nkind = \"simulated\"\n[driver.simulated]\ndir = \"{}\"\n\
         inventory = {{ VCPU = 8, MEMORY_MB = 16000, DISK_GB = 160 }}\n",
        place.path().display()
    );
    let limits = LIMITS.replace("attempts = 3", "attempts = 10");
    let options = RegionOptions {
        broker_url: Some(broker.url()),
        region: limits.replace("act_timeout_seconds = 10", "act_timeout_seconds = 30"),
        drivers: [(HOST.to_owned(), driver)].into(),
        ..one_host()
    };
    let mut region = Region::prepare(options).await.unwrap();
    let disk = Disk::at(region.agent_dir(HOST), 256);
    region.start_scheduler().await.unwrap();
    region.start_agent(HOST).unwrap();
    region.wait_for_hosts_up().await.unwrap();
    flavors(&region).await;
    preemptible(&region, "eighth", 1, 2).await;
    // The notices, or the ends, of eight victims are more than what is left of the journal's last
    // page.
    for (round, before) in [(0, true), (1, false)] {
        let (victims, _) = create(&region, "victim", request("eighth", 8)).await;
        for victim in &victims {
            until(&region, &victim.id, "active").await;
        }
        let complaints = |region: &Region| region.agent_log(HOST).matches("EB-AGENT-005").count();
        let said = complaints(&region);
        if before {
            disk.fill();
        }
        let pet = insist(&region, "pet", "pet", Uuid::from_u128(10 + round))
            .await
            .id;
        if !before {
            for victim in &victims {
                until_evacuation(&region, &victim.id, "draining").await;
            }
            disk.fill();
        }
        eventually(PATIENCE, async || match complaints(&region) > said {
            true => Ok(()),
            false => Err(region.agent_log(HOST)),
        })
        .await;
        assert_eq!(server(&region, &pet).await.status, "waiting");
        disk.tidy();
        until(&region, &pet, "active").await;
        for victim in &victims {
            let ended = only_evacuation(&region, &victim.id).await;
            assert_eq!(ended.state, "evacuated", "{ended:?}");
        }
        assert_eq!(runs_in(place.path()), [(pet.clone(), false)]);
        super::kit::delete(&region, &pet).await;
    }
    audited(&region).await;
}

#[tokio::test]
async fn a_scheduler_whose_disk_is_full_refuses_and_goes_on_when_there_is_room() {
    let name =
        "killed::disks::a_scheduler_whose_disk_is_full_refuses_and_goes_on_when_there_is_room";
    if !in_private_network(name).unwrap() {
        return;
    }
    let broker = ebbtide_harness::RabbitMq::start().await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let disk = Disk::at(place.path().join("database"), 8192);
    let archive = Disk::at(place.path().join("archive"), 256);
    let options = RegionOptions {
        broker_url: Some(broker.url()),
        database_url: Some(format!("sqlite://{}", disk.0.join("region.db").display())),
        ..one_host()
    };
    let options = RegionOptions {
        database_options: format!(
            "{}\nkeep_minutes = 60\narchive = \"{}\"",
            options.database_options,
            archive.0.display()
        ),
        region: format!("{}\nlongest_budget_window_seconds = 60", options.region),
        ..options
    };
    let mut region = Region::prepare(options).await.unwrap();
    let clock = place.path().join("clock");
    std::fs::write(&clock, "+0\n").unwrap();
    region.scheduler_will_run_in(ProcessEnvironment::with_clock(&clock).unwrap());
    region.start_scheduler().await.unwrap();
    region.start_agent(HOST).unwrap();
    region.wait_for_hosts_up().await.unwrap();
    flavors(&region).await;

    // A claim that cannot be written is none; a victim that has been told leaves all the same, and
    // that is written when there is room.
    let victim = insist(&region, "victim", "victim", Uuid::from_u128(1))
        .await
        .id;
    until(&region, &victim, "active").await;
    let pet = Uuid::from_u128(2);
    let first = insist(&region, "pet", "pet", pet).await.id;
    until_evacuation(&region, &victim, "draining").await;
    disk.fill();
    let mut next = 1_000;
    let refused = eventually(PATIENCE, async || {
        // There is a little room in the pages that there are.
        next += 1;
        match try_to_create(&region, "more", "pet", Uuid::from_u128(next)).await {
            Ok(_) => Err("there is room yet"),
            Err(refused) => Ok(refused),
        }
    })
    .await;
    assert!(refused.starts_with("EB-STORE-003"), "{refused}");
    assert_eq!(server(&region, &first).await.status, "waiting");
    eventually(PATIENCE, async || {
        let there = hypervisor(&region, HOST);
        if there.is_empty() {
            Ok(())
        } else {
            Err(format!("{there:?}"))
        }
    })
    .await;
    disk.tidy();
    until(&region, &first, "active").await;
    assert_eq!(only_evacuation(&region, &victim).await.state, "evacuated");
    runs_exactly(&region, HOST, &[&first]).await;
    audited(&region).await;

    // Old records leave the database only when they are in a file.
    archive.fill();
    std::fs::write(&clock, "+7200\n").unwrap();
    until_said(&region, "EB-SERVICE-011", Region::scheduler_log).await;
    assert_eq!(only_evacuation(&region, &victim).await.state, "evacuated");
    assert_eq!(lines(&archive.0), Vec::<serde_json::Value>::new());
    archive.tidy();
    let archived = eventually(Duration::from_secs(30), async || {
        let there = lines(&archive.0);
        match there
            .iter()
            .any(|record| record["victim_id"] == victim.as_str())
        {
            true => Ok(there),
            false => Err(format!("{there:?}")),
        }
    })
    .await;
    assert!(!archived.is_empty());
    until(&region, &first, "active").await;
}

/// All whole records in a directory; a line that is none is an error.
fn lines(dir: &Path) -> Vec<serde_json::Value> {
    let mut records = Vec::new();
    for file in std::fs::read_dir(dir).unwrap().flatten() {
        if file.path().extension().is_some_and(|e| e == "jsonl") {
            let text = std::fs::read_to_string(file.path()).unwrap();
            records.extend(text.lines().map(|line| serde_json::from_str(line).unwrap()));
        }
    }
    records
}

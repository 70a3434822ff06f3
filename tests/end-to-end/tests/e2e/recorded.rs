//! What earlier versions wrote is read for ever: `tests/end-to-end/recorded` has, for each version,
//! the database of a region in the middle of a preemption, the state of its agents, and messages.
//!
//! A release adds a directory and changes none:
//!
//! ```console
//! $ EBBTIDE_RECORD=tests/end-to-end/recorded/0.2 cargo nextest run --run-ignored only \
//!     -p ebbtide-integration-tests --test e2e -E 'test(this_version_is_recorded)'
//! ```

use crate::kit::{
    create, evacuations, fill, nothing_is_overcommitted, preemptible, request, server, until,
    until_evacuation,
};
use ebbtide_harness::{ProcessCommand, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Database, Region, RegionOptions};
use ebbtide_model::message::Message;
use ebbtide_proto::v1;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const DUMP: &str = "import sqlite3, sys\n\
    c = sqlite3.connect(sys.argv[1])\n\
    open(sys.argv[2], 'w').write('\\n'.join(c.iterdump()) + '\\n')";
const RESTORE: &str = "import sqlite3, sys\n\
    c = sqlite3.connect(sys.argv[1])\nc.executescript(open(sys.argv[2]).read())";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recorded")
}

fn versions() -> Vec<PathBuf> {
    let all = std::fs::read_dir(root()).unwrap();
    let mut all: Vec<PathBuf> = all.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    assert!(!all.is_empty(), "nothing is recorded");
    all
}

async fn python(program: &str, file: &Path, text: &Path) {
    let process = ProcessCommand::new("sqlite3", "/usr/bin/python3")
        .args(["-c", program])
        .arg(file)
        .arg(text)
        .spawn(file.with_extension("python.log"))
        .unwrap();
    let status = process.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{}", process.log_tail());
}

fn options() -> RegionOptions {
    RegionOptions {
        database: Database::Sqlite,
        // Records of any age are read, none is purged.
        database_options: "keep_days = 36500".to_owned(),
        ..RegionOptions::default()
    }
}

async fn servers(region: &Region) -> BTreeMap<String, v1::Server> {
    let list = v1::ListServersRequest {
        include_gone: true,
        limit: 1000,
        ..Default::default()
    };
    let listed = region.servers().await.unwrap().list_servers(list).await;
    let listed = listed.unwrap().into_inner().servers;
    listed.into_iter().map(|s| (s.id.clone(), s)).collect()
}

async fn decisions(region: &Region) -> Vec<v1::Decision> {
    let list = v1::ListDecisionsRequest {
        limit: 100,
        ..Default::default()
    };
    let listed = region.scheduler().await.unwrap().list_decisions(list).await;
    listed.unwrap().into_inner().decisions
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_file() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// One preemption is over, another one is in its grace period.
#[tokio::test]
#[ignore = "writes to the directory that EBBTIDE_RECORD names"]
async fn this_version_is_recorded() {
    let to = std::env::var_os("EBBTIDE_RECORD").expect("EBBTIDE_RECORD: a new directory");
    // A test runs in the directory of its package, a person types from the root.
    let to = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(to);
    assert!(!to.exists(), "{}: a version is recorded once", to.display());
    let mut region = Region::start(options()).await.unwrap();
    fill(&region, 0).await;
    let (first, _) = create(&region, "first", request("half", 1)).await;
    until(&region, &first[0].id, "active").await;
    preemptible(&region, "p.whole", 8, 30).await;
    let (cattle, _) = create(&region, "whole-cattle", request("whole", 1)).await;
    until(&region, &cattle[0].id, "active").await;
    let delete = v1::DeleteServerRequest {
        id: cattle[0].id.clone(),
    };
    region
        .servers()
        .await
        .unwrap()
        .delete_server(delete)
        .await
        .unwrap();
    until(&region, &cattle[0].id, "deleted").await;
    let (patient, _) = create(&region, "patient", request("p.whole", 1)).await;
    until(&region, &patient[0].id, "active").await;
    let on = v1::PlacementRequest {
        force_hosts: vec![server(&region, &patient[0].id).await.host],
        ..request("half", 1)
    };
    let (second, _) = create(&region, "second", on).await;
    until_evacuation(&region, &patient[0].id, "draining").await;
    let expected = json!({
        "servers": servers(&region).await.values().map(|s| json!({
            "id": s.id, "name": s.name, "flavor": s.flavor_name, "project": s.project_id,
            "host": s.host, "status": s.status,
        })).collect::<Vec<_>>(),
        "evacuations": evacuations(&region).await.iter().map(|e| json!({
            "id": e.id, "victim": e.victim_id, "preemptor": e.preemptor_id, "host": e.host,
            "state": e.state,
        })).collect::<Vec<_>>(),
        "decisions": decisions(&region).await.iter().map(|d| d.id.clone()).collect::<Vec<_>>(),
        "waits": second[0].id,
    });
    region.kill_scheduler();
    for host in region.hosts() {
        region.kill_agent(&host);
        copy(&region.agent_dir(&host), &to.join("agents").join(&host));
    }
    python(
        DUMP,
        &region.dir().join("region.db"),
        &to.join("region.sql"),
    )
    .await;
    let text = serde_json::to_string_pretty(&expected).unwrap() + "\n";
    std::fs::write(to.join("expected.json"), text).unwrap();
    let seeds = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds/bus_message");
    copy(&seeds, &to.join("messages"));
}

#[tokio::test]
async fn a_region_of_every_version_goes_on_where_it_was() {
    for version in versions() {
        let text = std::fs::read(version.join("expected.json")).unwrap();
        let expected: Value = serde_json::from_slice(&text).unwrap();
        let mut region = Region::prepare(options()).await.unwrap();
        let file = region.dir().join("region.db");
        python(RESTORE, &file, &version.join("region.sql")).await;
        for host in region.hosts() {
            copy(
                &version.join("agents").join(&host),
                &region.agent_dir(&host),
            );
        }
        region.start_scheduler().await.unwrap();
        // As it was written, before any agent has said a word.
        let (now, left) = (servers(&region).await, evacuations(&region).await);
        for was in expected["servers"].as_array().unwrap() {
            let server = &now[was["id"].as_str().unwrap()];
            let is = json!({
                "id": server.id, "name": server.name, "flavor": server.flavor_name,
                "project": server.project_id, "host": server.host, "status": server.status,
            });
            assert_eq!(is, *was, "{}", version.display());
        }
        for was in expected["evacuations"].as_array().unwrap() {
            let id = was["id"].as_str().unwrap();
            let evacuation = left.iter().find(|e| e.id == id).unwrap();
            let is = json!({
                "id": evacuation.id, "victim": evacuation.victim_id,
                "preemptor": evacuation.preemptor_id, "host": evacuation.host,
                "state": evacuation.state,
            });
            assert_eq!(is, *was, "{}", version.display());
        }
        let known: Vec<String> = decisions(&region).await.into_iter().map(|d| d.id).collect();
        for id in expected["decisions"].as_array().unwrap() {
            assert!(known.iter().any(|known| known == id), "{id} of {known:?}");
        }
        // Its agents go on from their journals: the victim's time is over, and its preemptor runs.
        for host in region.hosts() {
            region.start_agent(&host).unwrap();
        }
        region.wait_for_hosts_up().await.unwrap();
        until(&region, expected["waits"].as_str().unwrap(), "active").await;
        let drained = expected["evacuations"].as_array().unwrap();
        let drained = drained.iter().find(|e| e["state"] == "draining").unwrap();
        eventually(PATIENCE, async || {
            let all = evacuations(&region).await;
            match all.iter().find(|e| drained["id"] == e.id.as_str()) {
                Some(evacuation) if evacuation.state == "evacuated" => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await;
        // And it preempts as ever.
        let (more, decision) = create(&region, "more", request("half", 2)).await;
        assert!(decision.placements.iter().any(|p| !p.victims.is_empty()));
        for server in &more {
            until(&region, &server.id, "active").await;
        }
        nothing_is_overcommitted(&region).await;
    }
}

/// Migrations that take away what no version reads any more that may run beside this one
/// (docs/operate/upgrade.md). None so far.
const CONTRACTING: [&str; 0] = [];

#[test]
fn migrations_take_nothing_away_that_the_previous_version_reads() {
    let store = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scheduler/common/store/src");
    let mut files = vec![store.join("ledger/migration.rs")];
    let dated = std::fs::read_dir(store.join("migration")).unwrap();
    files.extend(dated.map(|entry| entry.unwrap().path()));
    assert!(files.len() > 8, "{files:?}");
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap().to_lowercase();
        for step in ["drop", "rename", "modify_column"] {
            let is_free = !text.contains(step) || CONTRACTING.contains(&name.as_str());
            assert!(is_free, "{name}: {step}: see docs/operate/upgrade.md");
        }
    }
}

/// All that stands in `old` stands in `new`, too.
fn contains(new: &Value, old: &Value) -> bool {
    match (new, old) {
        (Value::Object(new), Value::Object(old)) => old
            .iter()
            .all(|(key, old)| new.get(key).is_some_and(|new| contains(new, old))),
        (Value::Array(new), Value::Array(old)) => {
            new.len() == old.len() && new.iter().zip(old).all(|(new, old)| contains(new, old))
        }
        _ => new == old,
    }
}

#[test]
fn messages_of_every_version_are_read_and_written_with_all_that_was_in_them() {
    for version in versions() {
        let messages: Vec<PathBuf> = std::fs::read_dir(version.join("messages"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(messages.len() >= 12, "{messages:?}");
        for file in messages {
            let bytes = std::fs::read(&file).unwrap();
            let message = Message::from_bytes(&bytes);
            let message = message.unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            let old: Value = serde_json::from_slice(&bytes).unwrap();
            let new: Value = serde_json::from_slice(&message.to_bytes().unwrap()).unwrap();
            assert!(
                contains(&new, &old),
                "{}: {new} lacks of {old}",
                file.display()
            );
        }
    }
}

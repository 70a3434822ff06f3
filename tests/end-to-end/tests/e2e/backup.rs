//! A region whose database is restored from a backup, while its hosts are where they are.

use super::command::{Said, json, run};
use super::kit::{
    create, fill, flavor, nothing_is_overcommitted, request, server, until, until_evacuation,
};
use ebbtide_harness::{ProcessCommand, eventually};
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Database, Region, RegionOptions, bin};
use ebbtide_proto::v1;
use ebbtide_runtime::clock::Stopwatch;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Long enough that no grace period ends by itself before the test ends.
const GRACE: u32 = 600;

/// Runs one of the database's own programs to its end.
async fn tool(program: &str, arguments: &[&str], log: &Path) {
    let process = ProcessCommand::new(program, format!("/usr/bin/{program}"))
        .args(arguments.iter().copied())
        .spawn(log)
        .unwrap();
    let status = process.wait_exit(PATIENCE).await.unwrap();
    assert!(status.success(), "{program}: {}", process.log_tail());
}

/// `mysql://user:password@host:port/name` as options of MariaDB's programs, and the name.
fn mariadb_options(url: &str) -> (Vec<String>, String) {
    let rest = url.split_once("://").unwrap().1;
    let (login, place) = rest.split_once('@').unwrap();
    let (address, name) = place.split_once('/').unwrap();
    let (host, port) = address.split_once(':').unwrap();
    let (user, password) = login.split_once(':').unwrap_or((login, ""));
    let mut options = vec![
        "--no-defaults".to_owned(),
        format!("--host={host}"),
        format!("--port={port}"),
        format!("--user={user}"),
    ];
    if !password.is_empty() {
        options.push(format!("--password={password}"));
    }
    (options, name.to_owned())
}

async fn dump(region: &Region, database: Database, to: &Path) {
    let (url, log) = (region.database_url(), to.with_extension("dump.log"));
    let file = to.display().to_string();
    if database == Database::Postgres {
        let arguments = ["--clean", "--if-exists", "--file", &file, url];
        return tool("pg_dump", &arguments, &log).await;
    }
    let (options, name) = mariadb_options(url);
    let result = format!("--result-file={file}");
    let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
    arguments.extend(["--single-transaction", &result, &name]);
    tool("mariadb-dump", &arguments, &log).await;
}

async fn restore(region: &Region, database: Database, from: &Path) {
    let (url, log) = (region.database_url(), from.with_extension("restore.log"));
    let file = from.display().to_string();
    if database == Database::Postgres {
        let arguments = ["--quiet", "--set=ON_ERROR_STOP=1", "--file", &file, url];
        return tool("psql", &arguments, &log).await;
    }
    let (options, name) = mariadb_options(url);
    let source = format!("source {file}");
    let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
    arguments.extend([&name, "--execute", &source]);
    tool("mariadb", &arguments, &log).await;
}

/// The names of all servers that a hypervisor runs, with whether the guest has a notice.
fn running(region: &Region) -> BTreeMap<String, bool> {
    let mut all = BTreeMap::new();
    for host in region.hosts() {
        let path = region.agent_dir(&host).join("hypervisor.json");
        let state: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        for guest in state["servers"].as_object().unwrap().values() {
            if guest["state"] == "running" {
                let name = guest["name"].as_str().unwrap().to_owned();
                let before = all.insert(name.clone(), !guest["notice"].is_null());
                assert_eq!(before, None, "{name} runs twice");
            }
        }
    }
    all
}

/// A normal server that needs a victim, and the victim once its guest has the notice.
async fn preemption(region: &Region, name: &str) -> (v1::Server, v1::Evacuation) {
    let (created, _) = create(region, name, request("half", 1)).await;
    let all = super::kit::evacuations(region).await;
    let its = |e: &&v1::Evacuation| e.preemptor_id == created[0].id;
    let victim = all.iter().find(its).unwrap().victim_id.clone();
    let evacuation = until_evacuation(region, &victim, "draining").await;
    (created[0].clone(), evacuation)
}

/// The victim gives its time away, and the preemptor starts.
async fn give_way(region: &Region, preemptor: &v1::Server, evacuation: &v1::Evacuation) {
    let release = v1::ReleaseServerRequest {
        id: evacuation.victim_id.clone(),
    };
    let mut servers = region.servers().await.unwrap();
    servers.release_server(release).await.unwrap();
    until(region, &preemptor.id, "active").await;
}

async fn delete(region: &Region, id: &str) {
    let delete = v1::DeleteServerRequest { id: id.to_owned() };
    let mut servers = region.servers().await.unwrap();
    servers.delete_server(delete).await.unwrap();
    until(region, id, "deleted").await;
}

async fn reconcile(region: &Region, arguments: &[&str]) -> Said {
    let all: Vec<&str> = ["reconcile"]
        .into_iter()
        .chain(arguments.iter().copied())
        .collect();
    run("ebbtide-manage", region, &all).await
}

/// Asks until nothing is in the way.
async fn plan(region: &Region) -> Value {
    eventually(PATIENCE, async || {
        let said = reconcile(region, &["--output", "json", "--quiet"]).await;
        let answer = json(&said);
        let obstacles = answer["obstacles"].as_array().is_none_or(Vec::is_empty);
        if said.code == Some(0) && obstacles {
            Ok(answer)
        } else {
            Err(said.text)
        }
    })
    .await
}

fn steps(plan: &Value) -> BTreeSet<(String, String)> {
    let text = |step: &Value, key: &str| step[key].as_str().unwrap().to_owned();
    let all = plan["steps"].as_array().unwrap().iter();
    all.map(|step| (text(step, "action"), text(step, "subject")))
        .collect()
}

#[track_caller]
fn has(steps: &BTreeSet<(String, String)>, action: &str, kind: &str, id: &str) {
    let step = (action.to_owned(), format!("{kind} {id}"));
    assert!(steps.contains(&step), "{step:?} is not in {steps:#?}");
}

async fn a_restored_region_is_reconciled_with_its_hosts(database: Database) {
    let mut region = Region::start(RegionOptions {
        database,
        region: "host_down_seconds = 4".to_owned(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    let cattle = fill(&region, GRACE).await;
    let (first, first_victim) = preemption(&region, "first").await;
    let backup = region.dir().join("backup.sql");
    let watch = Stopwatch::start();
    dump(&region, database, &backup).await;
    eprintln!("dump: {:?}", watch.elapsed());

    // What the backup does not know.
    give_way(&region, &first, &first_victim).await;
    let (second, second_victim) = preemption(&region, "second").await;
    give_way(&region, &second, &second_victim).await;
    let victims = [&first_victim.victim_id, &second_victim.victim_id];
    let mut left = cattle.values().filter(|id| !victims.contains(id));
    let (gone, gone_too) = (left.next().unwrap(), left.next().unwrap());
    delete(&region, gone).await;
    let (later, _) = create(&region, "later", request("half", 1)).await;
    until(&region, &later[0].id, "active").await;
    delete(&region, gone_too).await;
    flavor(&region, "half.new", 4, &[]).await;
    let (newest, _) = create(&region, "newest", request("half.new", 1)).await;
    until(&region, &newest[0].id, "active").await;
    let (third, third_victim) = preemption(&region, "third").await;
    let before = running(&region);
    assert_eq!(before.len(), 8, "{before:?}");

    region.kill_scheduler();
    let watch = Stopwatch::start();
    restore(&region, database, &backup).await;
    let config = region.scheduler_config().unwrap();
    let process = ProcessCommand::new("ebbtide-scheduler", bin("ebbtide-scheduler"))
        .arg("--config")
        .arg(&config)
        .arg("--restored")
        .spawn(region.dir().join("restored.log"))
        .unwrap();
    assert!(
        process.wait_exit(PATIENCE).await.unwrap().success(),
        "{}",
        process.log_tail()
    );
    eprintln!("restored and marked: {:?}", watch.elapsed());
    region.start_scheduler().await.unwrap();

    // Held: nothing is decided.
    let refused = v1::CreateServersRequest {
        name: "too-early".to_owned(),
        request: Some(request("half", 1)),
        ..Default::default()
    };
    let mut servers = region.servers().await.unwrap();
    let refused = servers.create_servers(refused).await.unwrap_err();
    assert_eq!(super::kit::code(&refused), "EB-REGION-011", "{refused:?}");
    let mut admin = region.admin().await.unwrap();
    let audit = admin.audit(v1::AuditRequest {}).await.unwrap().into_inner();
    assert_eq!(audit.findings[0].code, "EB-AUDIT-109", "{audit:?}");

    // Shown, twice the same, with a flavor that is younger than the backup.
    let shown = plan(&region).await;
    let found = steps(&shown);
    has(&found, "leave", "evacuation", &first_victim.id);
    has(&found, "run", "server", &first.id);
    has(&found, "adopt", "server", &second.id);
    has(&found, "close", "server", &second_victim.victim_id);
    has(&found, "close", "server", gone);
    has(&found, "close", "server", gone_too);
    has(&found, "adopt", "server", &later[0].id);
    has(&found, "look", "server", &newest[0].id);
    has(&found, "spare", "evacuation", &third_victim.id);
    assert_eq!(steps(&plan(&region).await), found);
    assert_eq!(running(&region), before, "a look changes nothing");
    flavor(&region, "half.new", 4, &[]).await;
    has(
        &steps(&plan(&region).await),
        "adopt",
        "server",
        &newest[0].id,
    );

    // Refused while an agent is silent.
    region.kill_agent("host-A");
    eventually(PATIENCE, async || {
        let said = reconcile(&region, &[]).await;
        match said.text.contains("EB-AUDIT-103") {
            true => Ok(()),
            false => Err(said.text),
        }
    })
    .await;
    let silent = reconcile(&region, &["--apply"]).await;
    assert_ne!(silent.code, Some(0), "{}", silent.text);
    assert!(silent.text.contains("EB-REGION-012"), "{}", silent.text);
    region.start_agent("host-A").unwrap();
    plan(&region).await;

    let table = reconcile(&region, &[]).await;
    eprintln!("$ ebbtide-manage reconcile\n{}", table.text);
    let watch = Stopwatch::start();
    let applied = reconcile(&region, &["--apply"]).await;
    eprintln!("$ ebbtide-manage reconcile --apply: {:?}", watch.elapsed());
    assert_eq!(applied.code, Some(0), "{}", applied.text);
    let again = reconcile(&region, &["--apply", "--output", "json", "--quiet"]).await;
    assert_eq!(steps_or_none(&again), BTreeSet::new(), "{}", again.text);

    // Nothing ended, nothing is over capacity, and the victim without a preemptor is told so.
    nothing_is_overcommitted(&region).await;
    let names = |all: &BTreeMap<String, bool>| all.keys().cloned().collect::<BTreeSet<_>>();
    assert_eq!(names(&running(&region)), names(&before));
    eventually(PATIENCE, async || match running(&region) {
        all if all.values().any(|notice| *notice) => Err(format!("{all:?}")),
        _ => Ok(()),
    })
    .await;
    for id in [
        &first.id,
        &second.id,
        &later[0].id,
        &newest[0].id,
        &third_victim.victim_id,
    ] {
        until(&region, id, "active").await;
    }
    assert_eq!(
        server(&region, &first_victim.victim_id).await.status,
        "preempted"
    );
    let closed = server(&region, gone).await;
    assert_eq!(
        (closed.status.as_str(), closed.fault_code.as_str()),
        ("error", "EB-FAULT-005")
    );
    let mut servers = region.servers().await.unwrap();
    let get = v1::GetServerRequest { id: third.id };
    assert!(servers.get_server(get).await.is_err(), "its record is lost");

    // The region works, also after the scheduler has read it anew.
    let (fourth, fourth_victim) = preemption(&region, "fourth").await;
    give_way(&region, &fourth, &fourth_victim).await;
    region.stop_scheduler().await.unwrap();
    region.start_scheduler().await.unwrap();
    delete(&region, gone).await;
    delete(&region, &later[0].id).await;
    nothing_is_overcommitted(&region).await;
}

fn steps_or_none(said: &Said) -> BTreeSet<(String, String)> {
    let answer = json(said);
    match answer["steps"].is_array() {
        true => steps(&answer),
        false => BTreeSet::new(),
    }
}

#[tokio::test]
async fn a_restored_region_is_reconciled_with_its_hosts_on_mariadb() {
    a_restored_region_is_reconciled_with_its_hosts(Database::MariaDb).await;
}

#[tokio::test]
async fn a_restored_region_is_reconciled_with_its_hosts_on_postgresql() {
    a_restored_region_is_reconciled_with_its_hosts(Database::Postgres).await;
}

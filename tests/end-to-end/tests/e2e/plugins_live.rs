//! Plugins that are added and changed while schedulers run, in shadow, as services, and tried on a
//! recorded region: with the command that operators have.

use super::command::{ebbtide, json, run};
use super::kit::{create, flavor, request};
use ebbtide_harness::eventually;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Database, Region, RegionOptions};
use ebbtide_proto::plugin::v1 as asked;
use ebbtide_proto::plugin::v1::plugin_server::{Plugin, PluginServer};
use ebbtide_proto::v1;
use std::path::{Path, PathBuf};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// The first component that was ever made: a weigher by free processors and memory.
fn first() -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path: PathBuf = tests.join("../../weighers/wasm/tests/fixtures/weigher-1.0.wasm");
    path.display().to_string()
}

/// The first cost module that was ever made.
fn first_cost() -> String {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path: PathBuf = tests.join("../../weighers/wasm/tests/fixtures/cost-1.0.wasm");
    path.display().to_string()
}

async fn ok(region: &Region, arguments: &[&str]) -> String {
    let said = ebbtide(region, arguments).await;
    assert_eq!(said.code, Some(0), "{arguments:?}: {}", said.text);
    said.text
}

async fn list(region: &Region) -> serde_json::Value {
    let said = ebbtide(region, &["plugin", "list", "-o", "json"]).await;
    json(&said)
}

/// How much a weigher counted in a decision; `None` if it was not asked.
fn counted(decision: &v1::Decision, weigher: &str) -> Option<f64> {
    let explanation = decision.explanation.as_ref().unwrap();
    let weights = &explanation.instances[0].ranking[0].weights;
    let mut weights = weights.iter();
    let weight = weights.find(|weight| weight.weigher == weigher)?;
    Some(weight.multiplier)
}

#[tokio::test]
async fn a_plugin_that_was_added_counts_at_once_and_still_after_a_restart() {
    let mut region = Region::start(RegionOptions::default()).await.unwrap();
    flavor(&region, "m1", 1, &[]).await;
    let add = ["plugin", "add", "spread", "--file", &first()];
    ok(&region, &add).await;
    let (_, decision) = create(&region, "one", request("m1", 1)).await;
    assert_eq!(counted(&decision, "spread"), Some(1.0));
    // Not twice under one name, unless it is said.
    let again = ebbtide(&region, &add).await;
    assert!(
        again.code == Some(1) && again.text.contains("EB-PLUGIN-007"),
        "{}",
        again.text
    );
    let replaced = [&add[..], &["--multiplier", "4", "--replace"]].concat();
    ok(&region, &replaced).await;
    ok(&region, &["plugin", "set-multiplier", "spread", "-2.5"]).await;
    // A built-in weigher, too.
    ok(&region, &["plugin", "set-multiplier", "ram", "3"]).await;
    let (_, decision) = create(&region, "two", request("m1", 1)).await;
    assert_eq!(counted(&decision, "spread"), Some(-2.5));
    assert_eq!(counted(&decision, "ram"), Some(3.0));

    region.kill_scheduler();
    region.start_scheduler().await.unwrap();
    let (_, decision) = create(&region, "three", request("m1", 1)).await;
    assert_eq!(counted(&decision, "spread"), Some(-2.5));
    assert_eq!(counted(&decision, "ram"), Some(3.0));
    let listed = list(&region).await;
    assert_eq!(listed[0]["added"], true);
    assert_eq!(listed[0]["digest"].as_str().unwrap().len(), 64);

    ok(&region, &["plugin", "disable", "spread"]).await;
    ok(&region, &["plugin", "set-multiplier", "ram", "default"]).await;
    let (_, decision) = create(&region, "four", request("m1", 1)).await;
    assert_eq!(counted(&decision, "spread"), None);
    assert_eq!(counted(&decision, "ram"), Some(1.0));
    ok(&region, &["plugin", "enable", "spread"]).await;
    let (_, decision) = create(&region, "five", request("m1", 1)).await;
    assert_eq!(counted(&decision, "spread"), Some(-2.5));
    ok(&region, &["plugin", "remove", "spread"]).await;
    let gone = ebbtide(&region, &["plugin", "remove", "spread"]).await;
    assert!(gone.text.contains("EB-PLUGIN-006"), "{}", gone.text);
    let (_, decision) = create(&region, "six", request("m1", 1)).await;
    assert_eq!(counted(&decision, "spread"), None);
}

#[tokio::test]
async fn what_is_no_plugin_is_refused_and_nothing_changes() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    let notes = region.dir().join("notes.wasm");
    std::fs::write(&notes, "to do: write it").unwrap();
    let notes = notes.display().to_string();
    let nowhere = ["plugin", "add", "far", "--address", "http://127.0.0.1:9"];
    for (arguments, code) in [
        (
            vec!["plugin", "add", "notes", "--file", notes.as_str()],
            "EB-PLUGIN-003",
        ),
        (
            vec!["plugin", "add", "there", "--at", "/nowhere/x.wasm"],
            "EB-PLUGIN-002",
        ),
        (nowhere.to_vec(), "EB-PLUGIN-005"),
        (
            vec!["plugin", "set-multiplier", "unknown-plugin", "2"],
            "EB-PLUGIN-006",
        ),
        (vec!["plugin", "disable", "ram"], "EB-PLUGIN-006"),
        (vec!["plugin", "use", "unknown-plugin"], "EB-PLUGIN-010"),
        (vec!["plugin", "use", "ram"], "EB-PLUGIN-010"),
    ] {
        let said = ebbtide(&region, &arguments).await;
        assert!(
            said.code == Some(1) && said.text.contains(code),
            "{arguments:?}: {:?} {}",
            said.code,
            said.text
        );
    }
    assert_eq!(list(&region).await, serde_json::json!([]));
}

#[tokio::test]
async fn a_cost_module_that_was_added_decides_once_it_is_chosen_and_cannot_be_taken_away_then() {
    let mut region = Region::start(RegionOptions::default()).await.unwrap();
    flavor(&region, "m1", 1, &[]).await;
    let decided_by = async |region: &Region, name: &str| {
        let (_, decision) = create(region, name, request("m1", 1)).await;
        decision.explanation.unwrap().cost_module
    };
    let said = ok(&region, &["plugin", "add", "loss", "--file", &first_cost()]).await;
    assert!(said.contains("`ebbtide plugin use loss`"), "{said}");
    assert_eq!(decided_by(&region, "one").await, "partial_hour");
    ok(&region, &["plugin", "use", "loss"]).await;
    assert_eq!(decided_by(&region, "two").await, "loss");
    assert_eq!(list(&region).await[0]["in_use"], true);
    for arguments in [
        ["plugin", "disable", "loss"],
        ["plugin", "shadow", "loss"],
        ["plugin", "remove", "loss"],
    ] {
        let said = ebbtide(&region, &arguments).await;
        assert!(
            said.text.contains("EB-PLUGIN-009"),
            "{arguments:?}: {}",
            said.text
        );
    }
    region.kill_scheduler();
    region.start_scheduler().await.unwrap();
    assert_eq!(decided_by(&region, "three").await, "loss");
    let status = json(&ebbtide(&region, &["status", "-o", "json"]).await);
    assert_eq!(status["cost_module"], "loss");
    // Built in, by choice, and then as the configuration has it.
    ok(&region, &["plugin", "use", "num_instances"]).await;
    assert_eq!(decided_by(&region, "four").await, "num_instances");
    ok(&region, &["plugin", "use", "--configured"]).await;
    assert_eq!(decided_by(&region, "five").await, "partial_hour");
    ok(&region, &["plugin", "disable", "loss"]).await;
    let disabled = ebbtide(&region, &["plugin", "use", "loss"]).await;
    assert!(disabled.text.contains("EB-PLUGIN-010"), "{}", disabled.text);
    ok(&region, &["plugin", "remove", "loss"]).await;
}

async fn all_schedulers_use_what_one_was_told(database: Database) {
    let options = RegionOptions {
        database,
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    let second = region.start_peer("second").await.unwrap();
    ok(&region, &["plugin", "add", "spread", "--file", &first()]).await;
    let at_second = async || {
        let mut admin = second.admin().await.unwrap();
        let listed = admin.list_plugins(v1::ListPluginsRequest {}).await.unwrap();
        listed.into_inner().plugins
    };
    eventually(PATIENCE, async || {
        let plugins = at_second().await;
        match plugins.as_slice() {
            [plugin] if plugin.in_use && plugin.added => Ok(()),
            other => Err(format!("the second has {other:?}")),
        }
    })
    .await;
    ok(&region, &["plugin", "set-multiplier", "spread", "7"]).await;
    eventually(PATIENCE, async || {
        let multiplier = at_second().await[0].multiplier;
        match multiplier == Some(7.0) {
            true => Ok(()),
            false => Err(format!("the multiplier is {multiplier:?}")),
        }
    })
    .await;
    ok(&region, &["plugin", "remove", "spread"]).await;
    eventually(PATIENCE, async || match at_second().await.len() {
        0 => Ok(()),
        n => Err(format!("the second still has {n}")),
    })
    .await;
}

#[tokio::test]
async fn all_schedulers_use_what_one_was_told_on_mariadb() {
    all_schedulers_use_what_one_was_told(Database::MariaDb).await;
}

#[tokio::test]
async fn all_schedulers_use_what_one_was_told_on_postgresql() {
    all_schedulers_use_what_one_was_told(Database::Postgres).await;
}

#[tokio::test]
async fn a_plugin_in_shadow_decides_nothing_and_the_report_says_what_it_would_have_changed() {
    let options = RegionOptions {
        // The order of hosts is to depend on weights alone.
        engine: "policy = \"nova\"".to_owned(),
        ..RegionOptions::default()
    };
    let region = Region::start(options).await.unwrap();
    flavor(&region, "m1", 1, &[]).await;
    let nothing = ok(&region, &["plugin", "shadow-report"]).await;
    assert!(nothing.contains("Nothing is in shadow"), "{nothing}");
    // It packs where the others spread.
    let add = [
        "plugin",
        "add",
        "pack",
        "--file",
        &first(),
        "--multiplier",
        "-1000",
        "--shadow",
    ];
    ok(&region, &add).await;
    for name in ["one", "two", "three"] {
        let (_, decision) = create(&region, name, request("m1", 1)).await;
        assert_eq!(counted(&decision, "pack"), None);
    }
    let said = ebbtide(
        &region,
        &["plugin", "shadow-report", "-o", "json", "--quiet"],
    )
    .await;
    let report = json(&said);
    assert_eq!(report["decisions"], 3);
    // The first finds all hosts alike; then those that spread and those that pack part.
    assert_eq!(report["different"], 2, "{report}");
    assert_eq!(report["failed"], 0);
    assert_eq!(report["what"], "weigher pack");
    let moves = report["moves"].as_array().unwrap();
    let times: u64 = moves.iter().map(|m| m["times"].as_u64().unwrap()).sum();
    assert_eq!(times, 2);
    let listed = list(&region).await;
    assert_eq!(listed[0]["shadow_calls"], 3);
    assert_eq!(listed[0]["calls"], 0);
    let table = ok(&region, &["plugin", "shadow-report"]).await;
    assert!(
        table.contains("3 decisions since then, 2 would have been others (66.7 %)"),
        "{table}"
    );
    ok(&region, &["plugin", "enable", "pack"]).await;
    let (_, decision) = create(&region, "four", request("m1", 1)).await;
    assert_eq!(counted(&decision, "pack"), Some(-1000.0));
}

/// A service whose only weigher prefers the host with the largest name.
struct LastName;

#[tonic::async_trait]
impl Plugin for LastName {
    async fn describe(
        &self,
        _: Request<asked::DescribeRequest>,
    ) -> Result<Response<asked::Description>, Status> {
        let weigher = asked::Weigher {
            default_multiplier: 1000.0,
            needs: vec!["host_name".to_owned()],
            ..asked::Weigher::default()
        };
        Ok(Response::new(asked::Description {
            contract: "1.0".to_owned(),
            kind: Some(asked::description::Kind::Weigher(weigher)),
        }))
    }

    async fn weigh(
        &self,
        request: Request<asked::WeighRequest>,
    ) -> Result<Response<asked::Numbers>, Status> {
        let columns = request.into_inner().columns;
        let Some(asked::column::Kind::Texts(names)) = columns[0].kind.clone() else {
            return Err(Status::invalid_argument("no names"));
        };
        let mut sorted = names.texts.clone();
        sorted.sort_unstable();
        let place = |code: &u32| {
            let name = &names.texts[*code as usize];
            sorted.iter().position(|known| known == name).unwrap() as f64
        };
        Ok(Response::new(asked::Numbers {
            numbers: names.codes.iter().map(place).collect(),
        }))
    }

    async fn cost(
        &self,
        _: Request<asked::CostRequest>,
    ) -> Result<Response<asked::Numbers>, Status> {
        Err(Status::unimplemented("it is a weigher"))
    }

    async fn filter(
        &self,
        _: tonic::Request<asked::FilterRequest>,
    ) -> Result<tonic::Response<asked::Verdicts>, tonic::Status> {
        Err(tonic::Status::unimplemented("no filter"))
    }
}

/// A service that ends with all its connections.
struct Service {
    address: String,
    end: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl Service {
    #[allow(clippy::disallowed_methods)] // The service of the test, which the test ends.
    async fn start(at: &str) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (end, ended) = oneshot::channel();
        let task = tokio::spawn(async move {
            tonic::transport::Server::builder()
                .add_service(PluginServer::new(LastName))
                .serve_with_incoming_shutdown(TcpListenerStream::new(listener), async {
                    let _ = ended.await;
                })
                .await
                .unwrap();
        });
        Self { address, end, task }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    async fn end(self) -> String {
        self.end.send(()).unwrap();
        self.task.await.unwrap();
        self.address
    }
}

fn host(decision: &v1::Decision) -> &str {
    &decision.placements[0].host
}

#[tokio::test]
async fn a_service_weighs_and_decisions_go_on_without_it_until_it_is_back() {
    let mut region = Region::start(RegionOptions {
        engine: "policy = \"nova\"".to_owned(),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    flavor(&region, "m1", 1, &[]).await;
    let service = Service::start("127.0.0.1:0").await;
    let url = service.url();
    ok(&region, &["plugin", "add", "last_name", "--address", &url]).await;
    for name in ["one", "two"] {
        let (_, decision) = create(&region, name, request("m1", 1)).await;
        assert_eq!(host(&decision), "host-D");
    }
    // The plugin stops. Its weight is then unknown, and the explanation says so.
    let address = service.end().await;
    let (_, decision) = create(&region, "three", request("m1", 1)).await;
    assert_ne!(host(&decision), "host-D");
    let warnings = decision.explanation.unwrap().warnings;
    assert!(
        warnings.iter().any(|w| w.contains("last_name")),
        "{warnings:?}"
    );
    let listed = list(&region).await;
    assert_eq!(listed[0]["carrier"], "remote");
    assert_eq!(listed[0]["failures"], 1);
    let page = super::start::get(&region.address("http").unwrap(), "/metrics").await;
    for line in [
        "ebbtide_plugin_calls_total{plugin=\"last_name\",outcome=\"good\"} 2",
        "ebbtide_plugin_calls_total{plugin=\"last_name\",outcome=\"failed\"} 1",
        "ebbtide_plugins{kind=\"used\"} 1",
    ] {
        assert!(page.contains(line), "{line}: {page}");
    }
    assert!(region.scheduler_log().contains("last_name"));
    // A scheduler that starts now starts without it.
    region.kill_scheduler();
    region.start_scheduler().await.unwrap();
    let listed = list(&region).await;
    assert!(
        listed[0]["missing"]
            .as_str()
            .unwrap()
            .contains("does not answer"),
        "{listed}"
    );
    create(&region, "four", request("m1", 1)).await;
    let _again = Service::start(&address).await;
    eventually(PATIENCE, async || {
        let listed = list(&region).await;
        match listed[0]["missing"] == "" && listed[0]["in_use"] == true {
            true => Ok(()),
            false => Err(format!("{listed}")),
        }
    })
    .await;
    let (_, decision) = create(&region, "five", request("m1", 1)).await;
    assert_eq!(host(&decision), "host-D");
}

#[tokio::test]
async fn a_plugin_is_tried_on_a_recorded_region_beside_what_is_decided_today() {
    let region = Region::start(RegionOptions::default()).await.unwrap();
    flavor(&region, "half", 4, &[]).await;
    let record = region.dir().join("region.json").display().to_string();
    ok(&region, &["plugin", "record", &record]).await;
    let service = Service::start("127.0.0.1:0").await;
    let url = service.url();
    let arguments = [
        "plugin",
        "try",
        "--address",
        &url,
        "--plugin",
        "last_name",
        "--snapshot",
        &record,
        "--flavor",
        "half",
        "-o",
        "json",
        "--quiet",
    ];
    let said = run("ebbtide-lab", &region, &arguments).await;
    let rows = json(&said);
    let rows = rows.as_array().unwrap();
    assert_eq!(rows.len(), 4);
    let raw: Vec<(String, f64)> = rows
        .iter()
        .map(|row| {
            let host = row["host"].as_str().unwrap().to_owned();
            (host, row["raw"].as_f64().unwrap())
        })
        .collect();
    for (name, number) in [("host-A", 0.0), ("host-D", 3.0)] {
        assert!(raw.contains(&(name.to_owned(), number)), "{raw:?}");
    }
    let unknown = [
        "plugin",
        "try",
        "--address",
        &url,
        "--plugin",
        "last_name",
        "--snapshot",
        &record,
        "--flavor",
        "huge",
    ];
    let said = run("ebbtide-lab", &region, &unknown).await;
    assert!(
        said.code == Some(1) && said.text.contains("half"),
        "{:?} {}",
        said.code,
        said.text
    );
}

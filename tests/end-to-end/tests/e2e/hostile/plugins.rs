//! Plugins that fail in every way in a running scheduler. Each decision goes on without them;
//! explanation, list, metrics and log name them.

use crate::kit::{create, flavor, request, until};
use crate::secure::floods::peak_mib;
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::plugin::v1 as asked;
use ebbtide_proto::plugin::v1::plugin_server::{Plugin, PluginServer};
use ebbtide_proto::v1;
use std::path::{Path, PathBuf};
use std::process::Command;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// A failing plugin is left alone after so many calls.
const CALLS_BEFORE_REST: u64 = 5;

/// The component of the sandbox's tests, which fails as its settings say. Cargo sees to it that two
/// tests do not build at the same time.
fn naughty() -> PathBuf {
    let guests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../weighers/wasm/tests/guests");
    let target: PathBuf = [env!("CARGO_TARGET_TMPDIR"), "guests", "weigher"]
        .iter()
        .collect();
    let words = ["build", "--release", "--locked", "--quiet"];
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(words)
        .args(["--target", "wasm32-wasip2", "--manifest-path"])
        .arg(guests.join("naughty/Cargo.toml"))
        .arg("--target-dir")
        .arg(&target)
        // Flags and wrappers of the build around us are not meant for it.
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS");
    let built = cargo.output().unwrap();
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "the guest does not build: {said}");
    target.join("wasm32-wasip2/release/naughty.wasm")
}

async fn plugins(region: &Region) -> Vec<v1::Plugin> {
    let mut admin = region.admin().await.unwrap();
    let listed = admin.list_plugins(v1::ListPluginsRequest {}).await.unwrap();
    listed.into_inner().plugins
}

/// Ten servers are decided and run; the first decision names all of these. Then none of them is
/// asked any more.
async fn decided_without(region: &Region, names: &[&str]) {
    flavor(region, "small", 1, &[]).await;
    for n in 0..10 {
        let (servers, decision) = create(region, &format!("s{n}"), request("small", 1)).await;
        assert!(decision.no_valid_host.is_none(), "{decision:?}");
        let warnings = decision.explanation.unwrap().warnings;
        for name in names {
            let named = warnings.iter().any(|warning| warning.contains(name));
            assert!(named, "decision {n}, {name}: {warnings:?}");
        }
        until(region, &servers[0].id, "active").await;
    }
    let listed = plugins(region).await;
    let address = region.address("http").unwrap();
    let page = crate::start::get(&address, "/metrics").await;
    let log = region.scheduler_log();
    for name in names {
        let plugin = listed.iter().find(|plugin| plugin.name == *name).unwrap();
        assert!(plugin.resting, "{plugin:?}");
        assert_eq!(plugin.failures, plugin.calls, "{plugin:?}");
        assert!(!plugin.last_failure.is_empty(), "{plugin:?}");
        assert!(plugin.calls >= CALLS_BEFORE_REST, "{plugin:?}");
        assert!(plugin.skipped > 0, "{plugin:?}");
        let line = format!("ebbtide_plugin_calls_total{{plugin=\"{name}\",outcome=\"failed\"}}");
        assert!(page.contains(&line), "{line}: {page}");
        assert!(log.contains(name), "{name}: {log}");
    }
}

#[tokio::test]
async fn components_that_loop_recurse_and_swallow_memory_stop_no_decision_and_are_named() {
    let file = naughty();
    let bombs = ["loop", "memory", "recurse", "panic", "exit", "nan", "sleep"];
    let sections: String = bombs
        .iter()
        .map(|what| {
            format!(
                "[[plugins]]\nname = \"bomb_{what}\"\nfile = \"{}\"\n[plugins.settings]\ndo = \"{what}\"\n",
                file.display()
            )
        })
        .collect();
    let region = Region::start(RegionOptions {
        sections,
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    let before = peak_mib(&region);
    let names = bombs.map(|what| format!("bomb_{what}"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    decided_without(&region, &names).await;
    // Each call may have 64 MiB, and they come one after another.
    let grown = peak_mib(&region) - before;
    assert!(grown < 200, "{grown} MiB");
}

/// A service that says what it is, and never what it was asked for.
struct Silent;

#[tonic::async_trait]
impl Plugin for Silent {
    async fn describe(
        &self,
        _: Request<asked::DescribeRequest>,
    ) -> Result<Response<asked::Description>, Status> {
        let weigher = asked::Weigher {
            default_multiplier: 1.0,
            needs: vec!["free_vcpus".to_owned()],
            ..asked::Weigher::default()
        };
        Ok(Response::new(asked::Description {
            contract: "1.0".to_owned(),
            kind: Some(asked::description::Kind::Weigher(weigher)),
        }))
    }

    async fn weigh(
        &self,
        _: Request<asked::WeighRequest>,
    ) -> Result<Response<asked::Numbers>, Status> {
        std::future::pending().await
    }

    async fn cost(
        &self,
        _: Request<asked::CostRequest>,
    ) -> Result<Response<asked::Numbers>, Status> {
        std::future::pending().await
    }

    async fn filter(
        &self,
        _: tonic::Request<asked::FilterRequest>,
    ) -> Result<tonic::Response<asked::Verdicts>, tonic::Status> {
        Err(tonic::Status::unimplemented("no filter"))
    }
}

#[tokio::test]
async fn weigher_services_that_never_answer_stop_no_decision_and_are_named() {
    let mut services = JoinSet::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap();
    services.spawn(async move {
        tonic::transport::Server::builder()
            .add_service(PluginServer::new(Silent))
            .serve_with_incoming(TcpListenerStream::new(listener))
            .await
            .unwrap();
    });
    // Takes connections, and does not even say what it is.
    let mute = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let section = |name: &str, address| {
        format!(
            "[[plugins]]\nname = \"{name}\"\naddress = \"http://{address}\"\ndeadline_ms = 100\n"
        )
    };
    let region = Region::start(RegionOptions {
        sections: section("silent", silent) + &section("mute", mute.local_addr().unwrap()),
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    flavor(&region, "small", 1, &[]).await;
    let mut named = 0;
    for n in 0..12 {
        let (servers, decision) = create(&region, &format!("s{n}"), request("small", 1)).await;
        assert!(decision.no_valid_host.is_none(), "{decision:?}");
        let warnings = decision.explanation.unwrap().warnings;
        named += usize::from(warnings.iter().any(|w| w.contains("silent")));
        until(&region, &servers[0].id, "active").await;
    }
    assert_eq!(named, 12, "each decision says that it was made without it");
    let listed = plugins(&region).await;
    let of = |name: &str| listed.iter().find(|plugin| plugin.name == name).unwrap();
    let silent = of("silent");
    assert!(silent.calls >= CALLS_BEFORE_REST, "{silent:?}");
    assert!(silent.skipped > 0, "it is left alone: {silent:?}");
    assert!(silent.last_failure.contains("100"), "{silent:?}");
    assert!(!of("mute").missing.is_empty(), "{:?}", of("mute"));
    let log = region.scheduler_log();
    assert!(log.contains("silent") && log.contains("mute"), "{log}");
}

//! A region for calls: the scheduler on SQLite in memory, one agent with a simulated hypervisor,
//! the in-process bus.

use ebbtide_access::rules::{AccessRule, RULES};
use ebbtide_agent::clock::SystemClock;
use ebbtide_agent::driver::registry::{self, DriverContext};
use ebbtide_agent::{Agent, AgentConfig};
use ebbtide_bus::InProcessBroker;
use ebbtide_proto::v1;
use ebbtide_scheduler::{Config, NamedBus, RunningScheduler};
use prost::Message;
use prost::bytes::{Buf, BufMut};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};

/// Far more than any call needs.
const PATIENCE: Duration = Duration::from_secs(20);
const SIZE: &str = "inventory = { VCPU = 64, MEMORY_MB = 65536, DISK_GB = 1000 }";

pub(super) struct CallTarget {
    pub(super) calls: usize,
    runtime: Option<Runtime>,
    client: Grpc<Channel>,
    stop: CancellationToken,
    running: Option<RunningScheduler>,
    methods: Vec<&'static AccessRule>,
    _state: tempfile::TempDir,
}

impl CallTarget {
    pub(super) fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let state = tempfile::tempdir().expect("a folder");
        let stop = CancellationToken::new();
        let (running, client) = runtime.block_on(start(&state, &stop));
        // An audit has nothing to read, and takes its time.
        let methods = RULES.iter().filter(|rule| {
            !rule.waits && rule.method.contains("ebbtide") && !rule.method.ends_with("/Audit")
        });
        let mut world = Self {
            calls: 0,
            runtime: Some(runtime),
            client,
            stop,
            running: Some(running),
            methods: methods.collect(),
            _state: state,
        };
        world.furnish();
        world
    }

    /// Flavors that seeds can name, and a host that is there.
    fn furnish(&mut self) {
        for (name, preemptible) in [("m1", "false"), ("p1", "true")] {
            let extra_specs =
                HashMap::from([("ebbtide:preemptible".to_owned(), preemptible.to_owned())]);
            let flavor = v1::Flavor {
                name: name.to_owned(),
                vcpus: 1,
                ram_mb: 512,
                disk_gb: 1,
                extra_specs,
                ..v1::Flavor::default()
            };
            let request = v1::CreateFlavorRequest {
                flavor: Some(flavor),
            };
            self.send("/ebbtide.v1.Admin/CreateFlavor", request.encode_to_vec())
                .expect("a flavor");
        }
        for _ in 0..1_000 {
            let hosts = self
                .send("/ebbtide.v1.Admin/ListHosts", Vec::new())
                .expect("hosts");
            let hosts = v1::ListHostsResponse::decode(hosts.as_slice())
                .expect("a message")
                .hosts;
            if hosts.iter().any(|host| host.health == "up") {
                return;
            }
            self.wait(async { tokio::time::sleep(Duration::from_millis(10)).await });
        }
        panic!("the host did not come up");
    }

    fn wait<T>(&self, what: impl Future<Output = T>) -> T {
        self.runtime.as_ref().expect("until the end").block_on(what)
    }

    fn send(&mut self, method: &'static str, message: Vec<u8>) -> Result<Vec<u8>, Status> {
        self.calls += 1;
        let mut client = self.client.clone();
        let answer = self.wait(async {
            client.ready().await.expect("the scheduler is there");
            let call = client.unary(
                Request::new(message),
                PathAndQuery::from_static(method),
                Raw,
            );
            tokio::time::timeout(PATIENCE, call).await
        });
        let answer = answer.unwrap_or_else(|_| panic!("{method}: no answer within {PATIENCE:?}"));
        answer.map(tonic::Response::into_inner)
    }

    pub(super) fn ask(&mut self, call: u8, message: &[u8]) {
        let method = self.methods[usize::from(call) % self.methods.len()].method;
        let Err(status) = self.send(method, message.to_vec()) else {
            return;
        };
        // tonic says so of what it cannot read.
        let unread =
            status.code() == Code::Internal && status.message().starts_with("failed to decode");
        let ours = [
            Code::Internal,
            Code::Unknown,
            Code::DataLoss,
            Code::Unavailable,
            Code::Cancelled,
        ];
        assert!(
            unread || !ours.contains(&status.code()),
            "{method}: {status:?}"
        );
        assert!(
            status.message().len() < 4_000,
            "{method}: {} bytes",
            status.message().len()
        );
    }
}

impl Drop for CallTarget {
    fn drop(&mut self) {
        self.stop.cancel();
        if let (Some(runtime), Some(running)) = (self.runtime.take(), self.running.take()) {
            runtime
                .block_on(running.finish())
                .expect("it ends as it was told to");
            runtime.shutdown_background();
        }
    }
}

async fn start(
    state: &tempfile::TempDir,
    stop: &CancellationToken,
) -> (RunningScheduler, Grpc<Channel>) {
    let mut config = Config::default();
    config.grpc.listen.set_port(0);
    config.http.listen.set_port(0);
    config.database.url = "sqlite::memory:".to_owned();
    let broker = InProcessBroker::new();
    let context = DriverContext {
        host: "host-a".to_owned(),
        state_dir: state.path().to_owned(),
        settings: SIZE.parse().expect("TOML"),
        clock: Arc::new(SystemClock),
    };
    let driver = registry::build("simulated", &context).expect("a driver");
    let agent = AgentConfig::new("host-a", state.path().to_owned());
    let bus = Arc::new(broker.connect());
    let agent = Agent::run(agent, bus, driver, stop.clone());
    #[allow(clippy::disallowed_methods, reason = "it ends with its runtime")]
    tokio::spawn(agent);
    let bus = NamedBus {
        name: "in-process",
        logins: None,
        bus: Arc::new(broker.connect()),
    };
    let running = ebbtide_scheduler::start(config, bus, stop.clone())
        .await
        .expect("it starts");
    let endpoint = Endpoint::from_shared(format!("http://{}", running.grpc)).expect("an address");
    let channel = endpoint.connect().await.expect("it listens");
    (running, Grpc::new(channel))
}

/// Messages as bytes: whatever a fuzzer makes up goes over the wire as it is.
#[derive(Debug, Clone, Copy, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Self;
    type Decoder = Self;
    fn encoder(&mut self) -> Self {
        *self
    }
    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;
    fn encode(&mut self, item: Vec<u8>, into: &mut EncodeBuf<'_>) -> Result<(), Status> {
        into.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;
    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        let mut item = vec![0; from.remaining()];
        from.copy_to_slice(&mut item);
        Ok(Some(item))
    }
}

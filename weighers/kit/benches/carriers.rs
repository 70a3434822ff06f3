//! One weigher (free processors and memory) by every carrier, in one run: a loop written by hand
//! over the columns, compiled in behind the trait, as a WebAssembly component, as a service over
//! loopback. Hand-over of columns and answers is part of each.
//!
//!     cargo bench -p ebbtide-plugin-kit --bench carriers
// A benchmark: criterion's macros, and a service of its own.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ebbtide_model::Resources;
use ebbtide_proto::plugin::v1;
use ebbtide_proto::plugin::v1::plugin_server::{Plugin, PluginServer};
use ebbtide_remote::{RemotePlugin, Service, Tls};
use ebbtide_wasm::{Grants, PluginSettings, Sandbox, SandboxLimits};
use ebbtide_weigher_api::{
    Column, Details, HostBatch, RequestDetails, RequestView, Weigher, WeigherError,
};
use std::hint::black_box;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

const NEEDS: [Column; 2] = [Column::FreeVcpus, Column::FreeRamMb];

struct CompiledIn;

impl Weigher for CompiledIn {
    fn name(&self) -> &str {
        "spread"
    }

    fn multiplier_key(&self) -> &str {
        "spread_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &NEEDS
    }

    fn weigh(
        &self,
        _: &RequestView<'_>,
        hosts: &HostBatch<'_>,
        out: &mut [f64],
    ) -> Result<(), WeigherError> {
        by_hand(
            hosts.column(Column::FreeVcpus)?,
            hosts.column(Column::FreeRamMb)?,
            out,
        );
        Ok(())
    }
}

#[inline(never)]
fn by_hand(vcpus: &[f64], memory: &[f64], out: &mut [f64]) {
    for ((out, vcpus), memory) in out.iter_mut().zip(vcpus).zip(memory) {
        *out = vcpus + memory / 1024.0;
    }
}

struct Remote;

#[tonic::async_trait]
impl Plugin for Remote {
    async fn describe(
        &self,
        _: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::Description>, Status> {
        let weigher = v1::Weigher {
            default_multiplier: 1.0,
            needs: NEEDS.map(|column| column.name().to_owned()).to_vec(),
            ..v1::Weigher::default()
        };
        Ok(Response::new(v1::Description {
            contract: "1.0".to_owned(),
            kind: Some(v1::description::Kind::Weigher(weigher)),
        }))
    }

    async fn weigh(
        &self,
        request: Request<v1::WeighRequest>,
    ) -> Result<Response<v1::Numbers>, Status> {
        let columns = request.into_inner().columns;
        let column = |at: usize| match columns[at].kind.as_ref() {
            Some(v1::column::Kind::Numbers(numbers)) => numbers.numbers.as_slice(),
            _ => &[],
        };
        let mut numbers = vec![0.0; column(0).len()];
        by_hand(column(0), column(1), &mut numbers);
        Ok(Response::new(v1::Numbers { numbers }))
    }

    async fn cost(&self, _: Request<v1::CostRequest>) -> Result<Response<v1::Numbers>, Status> {
        Err(Status::unimplemented("a weigher"))
    }

    async fn filter(
        &self,
        _: tonic::Request<v1::FilterRequest>,
    ) -> Result<tonic::Response<v1::Verdicts>, tonic::Status> {
        Err(tonic::Status::unimplemented("no filter"))
    }
}

fn carriers(c: &mut Criterion) {
    let fixture = include_bytes!("../../wasm/tests/fixtures/weigher-1.0.wasm");
    let compiled = Sandbox::new().unwrap().compile(fixture).unwrap();
    let wasm = compiled
        .weigher(
            "spread",
            &PluginSettings::new(),
            SandboxLimits::default(),
            Grants::default(),
        )
        .unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(
        tonic::transport::Server::builder()
            .add_service(PluginServer::new(Remote))
            // Without it an answer waits 40 ms for the acknowledgement of its own beginning.
            .serve_with_incoming(TcpIncoming::from(listener).with_nodelay(Some(true))),
    );
    let service = Service::at(&address, &Tls::default()).unwrap();
    let limits = ebbtide_remote::ServiceLimits {
        deadline: std::time::Duration::from_secs(5),
        ..ebbtide_remote::ServiceLimits::default()
    };
    let described = service.plugin("spread", "spread", &PluginSettings::new(), limits);
    let RemotePlugin::Weigher(remote) = described.unwrap() else {
        return;
    };
    for hosts in [1_000, 10_000] {
        let mut columns: [Vec<f64>; Column::COUNT] = Default::default();
        columns[Column::FreeVcpus.index()] = (0..hosts).map(|n| f64::from(n % 64)).collect();
        columns[Column::FreeRamMb.index()] = (0..hosts).map(|n| f64::from(n % 4096)).collect();
        let len = columns[Column::FreeVcpus.index()].len();
        let resources = Resources::new();
        let request = RequestView {
            project_id: "p",
            resources: &resources,
            preemptible: false,
            group_policy: None,
            details: RequestDetails::default(),
        };
        let batch = HostBatch {
            len,
            columns: &columns,
            preemptibles: None,
            details: Details::default(),
        };
        let mut out = vec![0.0; len];
        let mut group = c.benchmark_group(format!("weigher of {hosts} hosts"));
        group.throughput(Throughput::Elements(len as u64));
        group.bench_function("by hand", |b| {
            let (vcpus, memory) = (
                &columns[Column::FreeVcpus.index()],
                &columns[Column::FreeRamMb.index()],
            );
            b.iter(|| by_hand(black_box(vcpus), black_box(memory), &mut out));
        });
        let all: [(&str, &dyn Weigher); 3] = [
            ("compiled in", &CompiledIn),
            ("wasm", &wasm),
            ("remote", &remote),
        ];
        for (name, weigher) in all {
            group.bench_function(name, |b| {
                b.iter(|| {
                    weigher
                        .weigh(black_box(&request), black_box(&batch), &mut out)
                        .unwrap()
                });
            });
        }
        group.finish();
    }
}

criterion_group!(benches, carriers);
criterion_main!(benches);

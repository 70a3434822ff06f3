//! The conformance kit on services: a good one passes, bad ones are found out, in plain words.

use ebbtide_plugin_kit::{Check, CheckOutcome, PluginLocation, Subject, bench, check};
use ebbtide_proto::plugin::v1;
use ebbtide_proto::plugin::v1::plugin_server::{Plugin, PluginServer};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// Behaves according to the name under which it is asked.
#[derive(Default)]
struct Service {
    calls: AtomicU64,
}

fn numbers(columns: &[v1::Column]) -> Vec<f64> {
    match columns.first().and_then(|column| column.kind.clone()) {
        Some(v1::column::Kind::Numbers(numbers)) => numbers.numbers,
        _ => Vec::new(),
    }
}

#[tonic::async_trait]
impl Plugin for Service {
    async fn describe(
        &self,
        request: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::Description>, Status> {
        let kind = match request.into_inner().plugin.as_str() {
            "price" => v1::description::Kind::CostModule(v1::CostModule {
                unit: "cents".to_owned(),
                needs: vec!["price_per_hour".to_owned()],
                surcharges: Vec::new(),
            }),
            filter if filter.starts_with("filter") => v1::description::Kind::Filter(v1::Filter {
                needs: vec!["free_vcpus".to_owned()],
            }),
            "unknown" => return Err(Status::not_found("unknown plugin")),
            _ => v1::description::Kind::Weigher(v1::Weigher {
                default_multiplier: 1.0,
                needs: vec!["free_vcpus".to_owned()],
                ..v1::Weigher::default()
            }),
        };
        Ok(Response::new(v1::Description {
            contract: "1.0".to_owned(),
            kind: Some(kind),
        }))
    }

    async fn weigh(
        &self,
        request: Request<v1::WeighRequest>,
    ) -> Result<Response<v1::Numbers>, Status> {
        let asked = request.into_inner();
        let mut numbers = numbers(&asked.columns);
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        match asked.plugin.as_str() {
            "moody" => numbers[0] += call as f64,
            "queue" => numbers
                .iter_mut()
                .enumerate()
                .for_each(|(at, n)| *n += at as f64),
            "infinite" => numbers[1] = f64::INFINITY,
            _ => {}
        }
        Ok(Response::new(v1::Numbers { numbers }))
    }

    async fn cost(
        &self,
        request: Request<v1::CostRequest>,
    ) -> Result<Response<v1::Numbers>, Status> {
        let numbers = numbers(&request.into_inner().columns);
        Ok(Response::new(v1::Numbers { numbers }))
    }

    async fn filter(
        &self,
        request: Request<v1::FilterRequest>,
    ) -> Result<Response<v1::Verdicts>, Status> {
        let asked = request.into_inner();
        let call = self.calls.fetch_add(1, Ordering::SeqCst);
        let least = match asked.plugin.as_str() {
            "filter_moody" => 100.0 + (call % 2) as f64 * 100.0,
            _ => 100.0,
        };
        let numbers = numbers(&asked.columns);
        let codes = numbers.iter().map(|number| u32::from(*number < least));
        let mut codes: Vec<u32> = codes.collect();
        let mut reasons = vec!["too few processors".to_owned()];
        match asked.plugin.as_str() {
            "filter_half" => codes.truncate(numbers.len() / 2),
            "filter_silent" => reasons[0].clear(),
            _ => {}
        }
        Ok(Response::new(v1::Verdicts { codes, reasons }))
    }
}

fn start() -> (Runtime, String) {
    let runtime = Runtime::new().unwrap();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    runtime.spawn(
        tonic::transport::Server::builder()
            .add_service(PluginServer::new(Service::default()))
            .serve_with_incoming(TcpListenerStream::new(listener)),
    );
    (runtime, address)
}

/// With more patience than a busy machine needs.
fn at(address: &str, plugin: &str) -> Subject {
    let mut subject = Subject::at(address, plugin);
    if let PluginLocation::Service { limits, .. } = &mut subject.place {
        limits.deadline = Duration::from_secs(30);
    }
    subject
}

fn failures(checks: &[Check]) -> Vec<&'static str> {
    let failed = checks.iter().filter(|c| c.outcome == CheckOutcome::Failed);
    failed.map(|check| check.name).collect()
}

#[test]
fn good_services_pass_and_each_fault_is_found_by_its_name() {
    let (_runtime, address) = start();
    for (plugin, expected) in [
        ("good", &[][..]),
        ("price", &[]),
        ("moody", &["deterministic", "order"]),
        ("queue", &["order"]),
        ("infinite", &["numbers"]),
        ("unknown", &["description"]),
        ("filter", &[]),
        ("filter_half", &["answers"]),
        ("filter_silent", &["answers"]),
        ("filter_moody", &["deterministic", "order"]),
    ] {
        let checks = check(&at(&address, plugin)).unwrap();
        assert_eq!(failures(&checks), expected, "{plugin}: {checks:?}");
    }
    let checks = check(&at(&address, "filter_moody")).unwrap();
    let mind = checks.iter().find(|check| check.name == "deterministic");
    assert!(
        mind.unwrap().says.contains("changes its mind about host"),
        "{checks:?}"
    );
    let checks = check(&at(&address, "unknown")).unwrap();
    assert!(checks[0].says.contains("unknown plugin"), "{checks:?}");
}

#[test]
fn a_service_is_measured_without_units_of_work() {
    let (_runtime, address) = start();
    let stopwatch = |work: &mut dyn FnMut()| {
        work();
        Duration::from_micros(500)
    };
    let measured = bench(&at(&address, "good"), 1000, 10, &stopwatch).unwrap();
    assert_eq!(
        (measured.rows, measured.calls, measured.work),
        (1000, 10, None)
    );
    assert_eq!(measured.ns_per_row.to_bits(), 500.0_f64.to_bits());
}

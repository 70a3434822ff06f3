//! A real service behind gRPC: good ones, and all the ways to be a bad one.
// A test that cannot go on fails.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::disallowed_methods)]

use ebbtide_cost_api::{CostModule, NO_END, VictimBatch};
use ebbtide_model::Resources;
use ebbtide_proto::plugin::v1;
use ebbtide_proto::plugin::v1::description::Kind;
use ebbtide_proto::plugin::v1::plugin_server::{Plugin, PluginServer};
use ebbtide_remote::{
    PluginSettings, RemoteCostModule, RemoteError, RemotePlugin, RemoteWeigher, Service,
    ServiceLimits, Tls,
};
use ebbtide_weigher_api::{
    Column, Details, Fact, FactColumn, HostBatch, HostFilter, RequestDetails, RequestView, Texts,
    Weigher,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{Notify, oneshot};
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// Answers according to the name under which it is asked.
#[derive(Clone, Default)]
struct Fake {
    calls: Arc<AtomicUsize>,
    /// Given when a call has begun that will never end.
    begun: Arc<Notify>,
}

#[tonic::async_trait]
impl Plugin for Fake {
    async fn describe(
        &self,
        request: Request<v1::DescribeRequest>,
    ) -> Result<Response<v1::Description>, Status> {
        let asked = request.into_inner();
        let mut weigher = v1::Weigher {
            default_multiplier: 2.0,
            needs: vec!["free_vcpus".to_owned(), "text:rack".to_owned()],
            min: Some(0.0),
            max: None,
        };
        let mut contract = "1.0".to_owned();
        match asked.plugin.as_str() {
            "old" => contract = "2.0".to_owned(),
            "greedy" => weigher.needs.push("passwords".to_owned()),
            "unknown" => return Err(Status::not_found("unknown plugin")),
            filter if filter.starts_with("filter") => {
                let filter = v1::Filter {
                    needs: vec!["free_vcpus".to_owned(), "text:rack".to_owned()],
                };
                let kind = Some(Kind::Filter(filter));
                return Ok(Response::new(v1::Description { contract, kind }));
            }
            "price" => {
                let module = v1::CostModule {
                    unit: "cents".to_owned(),
                    needs: vec!["price_per_hour".to_owned()],
                    surcharges: vec![0.0, 5.0],
                };
                let kind = Some(Kind::CostModule(module));
                return Ok(Response::new(v1::Description { contract, kind }));
            }
            _ => {}
        }
        if asked
            .settings
            .get("floor")
            .is_some_and(|floor| floor == "x")
        {
            return Err(Status::invalid_argument("floor: \"x\" is no number"));
        }
        let kind = Some(Kind::Weigher(weigher));
        Ok(Response::new(v1::Description { contract, kind }))
    }

    async fn weigh(
        &self,
        request: Request<v1::WeighRequest>,
    ) -> Result<Response<v1::Numbers>, Status> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let asked = request.into_inner();
        let Some(v1::column::Kind::Numbers(free)) = asked.columns[0].kind.clone() else {
            return Err(Status::internal("the first column is no numbers"));
        };
        let Some(v1::column::Kind::Texts(racks)) = asked.columns[1].kind.clone() else {
            return Err(Status::internal("the second column is no texts"));
        };
        let mut numbers = free.numbers;
        match asked.plugin.as_str() {
            "hangs" => {
                self.begun.notify_one();
                std::future::pending::<()>().await;
            }
            "short" => numbers.truncate(1),
            "nan" => numbers[0] = f64::NAN,
            "refuses" => return Err(Status::failed_precondition("not on Sundays")),
            _ => {
                // Hosts in rack "a" get ten more.
                for (number, code) in numbers.iter_mut().zip(&racks.codes) {
                    *number += 10.0 * f64::from(u8::from(racks.texts[*code as usize] == "a"));
                }
                let request = asked.request.unwrap();
                assert_eq!(request.resources["VCPU"], 2);
                assert_eq!(request.properties["flavor"], "m1");
                assert_eq!(request.properties["extra_spec:ours:x"], "1");
            }
        }
        Ok(Response::new(v1::Numbers { numbers }))
    }

    async fn cost(
        &self,
        request: Request<v1::CostRequest>,
    ) -> Result<Response<v1::Numbers>, Status> {
        let asked = request.into_inner();
        let Some(v1::column::Kind::Numbers(prices)) = asked.columns[0].kind.clone() else {
            return Err(Status::internal("no prices"));
        };
        let numbers = prices.numbers.iter().map(|price| price * 100.0).collect();
        Ok(Response::new(v1::Numbers { numbers }))
    }

    async fn filter(
        &self,
        request: Request<v1::FilterRequest>,
    ) -> Result<Response<v1::Verdicts>, Status> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        let asked = request.into_inner();
        let Some(v1::column::Kind::Texts(racks)) = asked.columns[1].kind.clone() else {
            return Err(Status::internal("the second column is no texts"));
        };
        let refused = |code: &u32| u32::from(racks.texts[*code as usize] == "b");
        let mut codes: Vec<u32> = racks.codes.iter().map(refused).collect();
        match asked.plugin.as_str() {
            "filter-hangs" => std::future::pending::<()>().await,
            "filter-half" => codes.truncate(1),
            "filter-refuses" => return Err(Status::failed_precondition("not on Sundays")),
            _ => {}
        }
        let reasons = vec!["rack b is being moved".to_owned()];
        Ok(Response::new(v1::Verdicts { codes, reasons }))
    }
}

/// A service on a thread of its own, as it would be a process of its own.
struct Running {
    address: String,
    fake: Fake,
    _runtime: tokio::runtime::Runtime,
}

fn start() -> Running {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let fake = Fake::default();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let server = tonic::transport::Server::builder()
        .add_service(PluginServer::new(fake.clone()))
        .serve_with_incoming(TcpListenerStream::new(listener));
    runtime.spawn(server);
    Running {
        address,
        fake,
        _runtime: runtime,
    }
}

fn plugin(address: &str, name: &str, limits: ServiceLimits) -> Result<RemotePlugin, RemoteError> {
    Service::at(address, &Tls::default())?.plugin(name, "ours", &PluginSettings::new(), limits)
}

fn weigher(running: &Running, name: &str, limits: ServiceLimits) -> RemoteWeigher {
    match plugin(&running.address, name, limits).unwrap() {
        RemotePlugin::Weigher(weigher) => weigher,
        _ => panic!("it is no weigher"),
    }
}

/// Three hosts in two racks.
fn weigh(weigher: &RemoteWeigher) -> Result<Vec<f64>, String> {
    let mut out = vec![0.0; 3];
    ask(|request, hosts| weigher.weigh(request, hosts, &mut out))
        .map(|()| out)
        .map_err(|error| error.to_string())
}

/// Which of the three hosts a filter refuses, and why.
fn filter(
    running: &Running,
    name: &str,
    limits: ServiceLimits,
) -> Result<Vec<Option<String>>, String> {
    let RemotePlugin::Filter(filter) = plugin(&running.address, name, limits).unwrap() else {
        panic!("it is no filter");
    };
    let verdicts = ask(|request, hosts| filter.filter(request, hosts));
    let verdicts = verdicts.map_err(|error| error.to_string())?;
    let reason = |at| verdicts.reason(at).map(str::to_owned);
    Ok((0..3).map(reason).collect())
}

fn ask<T>(ask: impl FnOnce(&RequestView<'_>, &HostBatch<'_>) -> T) -> T {
    let mut columns: [Vec<f64>; Column::COUNT] = Default::default();
    columns[Column::FreeVcpus.index()] = vec![4.0, 8.0, 2.0];
    let racks = FactColumn::Texts(Texts {
        codes: vec![0, 1, 0],
        texts: vec!["a".to_owned(), "b".to_owned()],
    });
    let facts = [(Fact::Text("rack".to_owned()), racks)];
    let mut resources = Resources::new();
    resources
        .set(ebbtide_model::ResourceClass::vcpu(), 2)
        .unwrap();
    let request = RequestView {
        project_id: "p",
        resources: &resources,
        preemptible: false,
        group_policy: None,
        details: RequestDetails {
            flavor: "m1",
            extra_specs: &[("ours:x", "1")],
            image_id: None,
            scheduler_hints: &[],
        },
    };
    let hosts = HostBatch {
        len: 3,
        columns: &columns,
        preemptibles: None,
        details: Details {
            facts: &facts,
            ..Details::default()
        },
    };
    ask(&request, &hosts)
}

#[test]
fn a_service_weighs_hosts_with_columns_facts_and_the_request() {
    let running = start();
    let weigher = weigher(&running, "good", ServiceLimits::default());
    assert_eq!(weigher.name(), "ours");
    assert_eq!(weigher.default_multiplier().to_bits(), 2.0_f64.to_bits());
    assert_eq!(weigher.bounds().min, Some(0.0));
    assert_eq!(weigher.reads(), ["free_vcpus", "text:rack"]);
    assert_eq!(weigh(&weigher), Ok(vec![14.0, 8.0, 12.0]));
}

#[test]
fn a_service_filters_hosts_and_its_bad_answers_are_failures() {
    let running = start();
    let limits = ServiceLimits {
        deadline: Duration::from_millis(300),
        ..ServiceLimits::default()
    };
    let moved = Some("rack b is being moved".to_owned());
    assert_eq!(
        filter(&running, "filter", ServiceLimits::default()),
        Ok(vec![None, moved, None])
    );
    for (name, says) in [
        ("filter-half", "gave 1 answers for 3 hosts"),
        ("filter-refuses", "refused: not on Sundays"),
        ("filter-hangs", "did not answer: no answer within 300 ms"),
    ] {
        let said = filter(&running, name, limits).unwrap_err();
        assert!(said.contains(says), "{name}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_decision_that_is_made_inside_a_runtime_waits_without_holding_the_runtime() {
    let running = tokio::task::block_in_place(|| std::thread::spawn(start).join().unwrap());
    let limits = ServiceLimits {
        deadline: Duration::from_secs(30),
        ..ServiceLimits::default()
    };
    let weigher = tokio::task::block_in_place(|| weigher(&running, "hangs", limits));
    let fake = running.fake.clone();
    let weigher = Arc::new(weigher);
    let waiting = tokio::spawn(async move { weigh(&weigher) });
    // The only worker is in that call; this goes on nevertheless.
    fake.begun.notified().await;
    assert!(!waiting.is_finished());
    tokio::task::block_in_place(|| drop(running));
    let said = waiting.await.unwrap().unwrap_err();
    assert!(
        said.contains("could not be reached") || said.contains("refused"),
        "{said}"
    );
}

#[test]
fn a_service_prices_victims_and_charges_for_the_second_of_a_project() {
    let running = start();
    let plugin = plugin(&running.address, "price", ServiceLimits::default()).unwrap();
    let RemotePlugin::CostModule(module) = plugin else {
        panic!("it is a weigher");
    };
    let module: RemoteCostModule = module;
    assert_eq!(module.unit(), "cents");
    let batch = VictimBatch {
        len: 2,
        age_seconds: &[1.0, 2.0],
        vcpus: &[1.0, 1.0],
        memory_mb: &[1.0, 1.0],
        price_per_hour: &[0.5, 0.25],
        max_price: &[0.5, 0.25],
        priority: &[0, 0],
        project: &[1, 1],
        ends_in_seconds: &[NO_END, NO_END],
        flavors: None,
        facts: &[],
    };
    let mut costs = [0.0; 2];
    module.cost(&batch, &mut costs).unwrap();
    assert_eq!(costs, [50.0, 25.0]);
    assert_eq!(module.nth_of_a_project(7).to_bits(), 5.0_f64.to_bits());
}

#[test]
fn what_is_wrong_with_a_service_is_said_before_it_is_used() {
    let running = start();
    let problem = |name: &str| {
        plugin(&running.address, name, ServiceLimits::default())
            .unwrap_err()
            .to_string()
    };
    for (name, says) in [
        ("old", "made for version \"2.0\""),
        ("greedy", "it needs \"passwords\""),
        ("unknown", "it refuses: unknown plugin"),
    ] {
        let said = problem(name);
        assert!(said.contains(says), "{said}");
    }
    let service = Service::at(&running.address, &Tls::default()).unwrap();
    let settings = PluginSettings::from([("floor".to_owned(), "x".to_owned())]);
    let refused = service.plugin("good", "ours", &settings, ServiceLimits::default());
    assert!(
        refused
            .unwrap_err()
            .to_string()
            .contains("\"x\" is no number")
    );
    for (limits, key) in [
        (
            ServiceLimits {
                deadline: Duration::ZERO,
                ..ServiceLimits::default()
            },
            "deadline_ms",
        ),
        (
            ServiceLimits {
                in_flight: 0,
                ..ServiceLimits::default()
            },
            "in_flight",
        ),
    ] {
        let said = plugin(&running.address, "good", limits).unwrap_err();
        assert!(said.to_string().starts_with(key), "{said}");
    }
}

#[test]
fn invalid_addresses_and_unreachable_services_have_different_errors() {
    for address in ["127.0.0.1:7480", "ftp://x", "http://", "", "unix"] {
        let said = Service::at(address, &Tls::default()).unwrap_err();
        assert!(matches!(said, RemoteError::Address(_)), "{address}: {said}");
    }
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let unused_address = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let said = plugin(&unused_address, "good", ServiceLimits::default()).unwrap_err();
    assert!(said.may_pass(), "{said}");
    assert!(said.to_string().contains("refused"), "{said}");
}

#[test]
fn a_call_that_fails_says_how() {
    let running = start();
    let limits = ServiceLimits {
        deadline: Duration::from_millis(50),
        in_flight: 1,
    };
    for (name, says) in [
        ("hangs", "no answer within 50 ms"),
        ("short", "gave 1 numbers for 3 rows"),
        ("refuses", "refused: not on Sundays"),
    ] {
        let said = weigh(&weigher(&running, name, limits)).unwrap_err();
        assert!(said.contains(says), "{said}");
    }
    // The weigher does not reject NaN; the caller that monitors all plugins does.
    let given = weigh(&weigher(&running, "nan", limits)).unwrap();
    assert!(given[0].is_nan());
}

#[test]
fn one_call_more_than_there_may_be_is_not_made() {
    let running = start();
    let limits = ServiceLimits {
        deadline: Duration::from_secs(30),
        in_flight: 1,
    };
    let slow = Arc::new(weigher(&running, "hangs", limits));
    let first = Arc::clone(&slow);
    let waiting = std::thread::spawn(move || weigh(&first));
    running._runtime.block_on(running.fake.begun.notified());
    let said = weigh(&slow).unwrap_err();
    assert!(said.contains("1 calls are under way already"), "{said}");
    assert_eq!(running.fake.calls.load(Ordering::SeqCst), 1);
    drop(running);
    assert!(waiting.join().unwrap().is_err());
}

#[test]
fn a_service_that_comes_back_is_asked_again_without_anybody_doing_anything() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let dir = std::env::temp_dir().join(format!("ebbtide-remote-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let path = dir.join("plugin.sock");
    let serve = |end: oneshot::Receiver<()>| {
        let _ = std::fs::remove_file(&path);
        let _inside = runtime.enter();
        let listener = tokio::net::UnixListener::bind(&path).unwrap();
        let incoming = tokio_stream::wrappers::UnixListenerStream::new(listener);
        runtime.spawn(
            tonic::transport::Server::builder()
                .add_service(PluginServer::new(Fake::default()))
                .serve_with_incoming_shutdown(incoming, async {
                    let _ = end.await;
                }),
        )
    };
    let (end, ended) = oneshot::channel();
    let first = serve(ended);
    let address = format!("unix:{}", path.display());
    let RemotePlugin::Weigher(weigher) =
        plugin(&address, "good", ServiceLimits::default()).unwrap()
    else {
        panic!("it is a cost module");
    };
    assert!(weigh(&weigher).is_ok());
    end.send(()).unwrap();
    runtime.block_on(first).unwrap().unwrap();
    std::fs::remove_file(&path).unwrap();
    let said = weigh(&weigher).unwrap_err();
    assert!(said.contains("could not be reached"), "{said}");
    let (_end, ended) = oneshot::channel();
    let _second = serve(ended);
    // The old connection may take a moment to be known as broken; no more than a few calls fail by
    // that.
    let came_back = (0..100).any(|_| weigh(&weigher).is_ok());
    assert!(came_back);
    std::fs::remove_dir_all(&dir).unwrap();
}

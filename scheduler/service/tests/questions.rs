//! Read-only calls take no write turn: a scheduler answers them while another one writes.

// All of this file is tests; helpers too may fail loudly.
use ebbtide_access::rules::RULES;
use ebbtide_access::{Caller, Role};
use ebbtide_bus::InProcessBroker;
use ebbtide_harness::SharedServers;
use ebbtide_model::Seconds;
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::market_client::MarketClient;
use ebbtide_proto::v1::plugins_client::PluginsClient;
use ebbtide_proto::v1::scheduler_client::SchedulerClient;
use ebbtide_proto::v1::servers_client::ServersClient;
use ebbtide_runtime::clock;
use ebbtide_scheduler::{Config, NamedBus};
use ebbtide_store::{Store, StoreConfig};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Code, Status};

/// Well below the 5 seconds after which the database ends an idle turn.
const ANSWER: Duration = Duration::from_secs(3);

fn flavor(name: &str) -> v1::CreateFlavorRequest {
    v1::CreateFlavorRequest {
        flavor: Some(v1::Flavor {
            name: name.to_owned(),
            vcpus: 1,
            ram_mb: 1024,
            extra_specs: [("ebbtide:preemptible".to_owned(), "true".to_owned())].into(),
            ..Default::default()
        }),
    }
}

fn placement() -> Option<v1::PlacementRequest> {
    Some(v1::PlacementRequest {
        count: 1,
        flavor: "small".to_owned(),
        ..Default::default()
    })
}

/// The methods of the API that change nothing: those that a reader may call.
fn questions() -> impl Iterator<Item = &'static str> {
    let reader = Caller {
        role: Role::Reader,
        ..Caller::unauthenticated()
    };
    let allowed = RULES
        .iter()
        .filter(move |rule| rule.permit(&reader).is_ok());
    allowed.filter_map(|rule| rule.method.strip_prefix("/ebbtide.v1."))
}

/// Calls a read-only method. The region has one flavor, `small`, and one server, `s`.
async fn ask(channel: &Channel, method: &str) -> Result<(), Status> {
    let mut servers = ServersClient::new(channel.clone());
    let mut market = MarketClient::new(channel.clone());
    let mut scheduler = SchedulerClient::new(channel.clone());
    let mut admin = AdminClient::new(channel.clone());
    let mut plugins = PluginsClient::new(channel.clone());
    macro_rules! call {
        ($call:expr) => {
            $call.await.map(|_| ())
        };
    }
    let (server, small) = ("s".to_owned(), "small".to_owned());
    match method {
        "Servers/GetServer" => call!(servers.get_server(v1::GetServerRequest { id: server })),
        "Servers/ListServers" => call!(servers.list_servers(v1::ListServersRequest::default())),
        "Servers/ListServerGroups" => {
            call!(servers.list_server_groups(v1::ListServerGroupsRequest::default()))
        }
        "Servers/GetEvacuation" => {
            let id = uuid::Uuid::nil().to_string();
            call!(servers.get_evacuation(v1::GetEvacuationRequest { id }))
        }
        "Servers/ListEvacuations" => {
            call!(servers.list_evacuations(v1::ListEvacuationsRequest::default()))
        }
        "Market/ListLives" => call!(market.list_lives(v1::ListLivesRequest::default())),
        "Market/ListPrices" => call!(market.list_prices(v1::ListPricesRequest::default())),
        "Market/ListPriceHistory" => {
            call!(market.list_price_history(v1::ListPriceHistoryRequest::default()))
        }
        "Market/ListBills" => call!(market.list_bills(v1::ListBillsRequest::default())),
        "Market/ListBilledHours" => {
            call!(market.list_billed_hours(v1::ListBilledHoursRequest::default()))
        }
        "Market/GetAdvice" => call!(market.get_advice(v1::GetAdviceRequest {
            flavor: small,
            ..Default::default()
        })),
        "Scheduler/WhatIf" => call!(scheduler.what_if(v1::WhatIfRequest {
            request: placement(),
            ..Default::default()
        })),
        "Scheduler/Explain" => call!(scheduler.explain(v1::ExplainRequest {
            id: server,
            ..Default::default()
        })),
        "Scheduler/ListDecisions" => {
            call!(scheduler.list_decisions(v1::ListDecisionsRequest::default()))
        }
        "Scheduler/Watch" => call!(scheduler.watch(v1::WatchRequest::default())),
        "Scheduler/RegionSummary" => {
            call!(scheduler.region_summary(v1::RegionSummaryRequest::default()))
        }
        "Admin/ListHosts" => call!(admin.list_hosts(v1::ListHostsRequest::default())),
        "Admin/GetHost" => call!(admin.get_host(v1::GetHostRequest {
            name: "none".to_owned()
        })),
        "Admin/GetReclaim" => call!(admin.get_reclaim(v1::GetReclaimRequest {
            name: "none".to_owned()
        })),
        "Admin/ListReclaims" => call!(admin.list_reclaims(v1::ListReclaimsRequest::default())),
        "Admin/ListFlavors" => call!(admin.list_flavors(v1::ListFlavorsRequest::default())),
        "Admin/GetFlavor" => call!(admin.get_flavor(v1::GetFlavorRequest { id: small })),
        "Admin/ListAggregates" => {
            call!(admin.list_aggregates(v1::ListAggregatesRequest::default()))
        }
        "Admin/ListBudgets" => call!(admin.list_budgets(v1::ListBudgetsRequest::default())),
        "Admin/ListPlugins" => call!(admin.list_plugins(v1::ListPluginsRequest::default())),
        "Admin/Audit" => call!(admin.audit(v1::AuditRequest::default())),
        "Plugins/ShadowReport" => call!(plugins.shadow_report(v1::ShadowReportRequest::default())),
        "Plugins/RecordRegion" => call!(plugins.record_region(v1::RecordRegionRequest::default())),
        other => panic!("{other} is read-only: this test has to call it"),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_read_only_call_is_answered_while_another_scheduler_has_the_write_turn() {
    let database = SharedServers::postgres()
        .await
        .expect("a PostgreSQL server");
    let other = Store::open(&StoreConfig::new(database.url()).unwrap()).await;
    let other = other.unwrap();
    // The other scheduler is on duty, so that this one has no ticks to write.
    let lease = other.acquire_lease("other", clock::now(), Seconds(3600));
    lease.await.unwrap();
    let text = format!(
        "[grpc]\nlisten = \"127.0.0.1:0\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
         [database]\nurl = {:?}\n",
        database.url()
    );
    let config: Config = toml::from_str(&text).unwrap();
    let stop = CancellationToken::new();
    let bus = NamedBus {
        name: "in-process",
        logins: None,
        bus: Arc::new(InProcessBroker::new().connect()),
    };
    let running = ebbtide_scheduler::start(config, bus, stop.clone()).await;
    let running = running.unwrap();
    let address = format!("http://{}", running.grpc);
    let channel = Channel::from_shared(address).unwrap().connect().await;
    let channel = channel.unwrap();
    let mut admin = AdminClient::new(channel.clone());
    admin.create_flavor(flavor("small")).await.unwrap();
    let create = v1::CreateServersRequest {
        name: "s".to_owned(),
        request: placement(),
        ..Default::default()
    };
    let mut servers = ServersClient::new(channel.clone());
    servers.create_servers(create).await.unwrap();
    let (_, seen) = other.load_all(clock::now()).await.unwrap();
    for method in questions() {
        let turn = other.begin_write(seen, None).await.unwrap();
        let answer = timeout(ANSWER, ask(&channel, method)).await;
        turn.give_back().await;
        match answer.unwrap_or_else(|_| panic!("{method} waits for the write turn")) {
            Ok(()) => {}
            Err(status) => assert_eq!(status.code(), Code::NotFound, "{method}: {status}"),
        }
    }
    // A command does wait, so the turn was held.
    let turn = other.begin_write(seen, None).await.unwrap();
    assert!(turn.news().is_empty(), "a question was written");
    let mut created = Box::pin(admin.create_flavor(flavor("large")));
    let waits = timeout(Duration::from_millis(500), &mut created).await;
    assert!(waits.is_err(), "a command was written without a turn");
    turn.give_back().await;
    created.await.unwrap();
    stop.cancel();
    running.finish().await.unwrap();
}

//! A region that the test plays: it keeps what it is told, answers from that, and decides by first
//! fit over CPUs and memory.

use ebbtide_proto::v1::admin_server::AdminServer;
use ebbtide_proto::v1::market_server::MarketServer;
use ebbtide_proto::v1::plugins_server::PluginsServer;
use ebbtide_proto::v1::scheduler_server::SchedulerServer;
use ebbtide_proto::v1::servers_server::ServersServer;
use ebbtide_proto::v1::watch_event::Event;
use ebbtide_proto::v1::*;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;
use tonic::{Code, Response, Status};
use tonic_types::{ErrorDetails, StatusExt};

mod market;
mod operators;
mod plugins;
mod scheduling;
mod tenants;

type Answer<T> = Result<Response<T>, Status>;

/// What the region knows. Tests write into it as they like.
#[derive(Default)]
pub struct State {
    pub hosts: Vec<Host>,
    pub flavors: Vec<Flavor>,
    pub servers: Vec<Server>,
    pub evacuations: Vec<Evacuation>,
    pub decisions: Vec<Decision>,
    pub groups: Vec<ServerGroup>,
    pub aggregates: Vec<Aggregate>,
    pub budgets: Vec<DisruptionBudget>,
    pub reclaims: Vec<HostReclaim>,
    pub plugins: Vec<Plugin>,
    pub lives: Vec<Life>,
    pub prices: Vec<FlavorPrice>,
    /// The earliest first.
    pub price_history: Vec<PriceRecord>,
    pub bills: ListBillsResponse,
    pub bills_asked: Option<ListBillsRequest>,
    pub billed_hours: Vec<BilledHour>,
    /// The last request for a first page of them.
    pub hours_asked: Option<ListBilledHoursRequest>,
    /// The answer to requests for advice, and the last request.
    pub advice: GetAdviceResponse,
    pub advice_asked: Option<GetAdviceRequest>,
    pub shadow: ShadowReportResponse,
    pub policy: String,
    /// Number of servers created, for ids and as a clock of creation.
    pub made: u32,
    /// New servers keep the ids that the caller chose.
    pub keeps_ids: bool,
    /// The next create is answered with this decision instead of a first fit.
    pub scripted: Option<Decision>,
    /// Status of new servers.
    pub new_status: String,
    /// Calls of CreateServers, DeleteServer: what was asked, in order.
    pub log: Vec<String>,
    /// Most creates that were under way at once.
    pub creating: u32,
    pub most_creating: u32,
    /// No event stream.
    pub mute: bool,
    /// How long a create takes.
    pub create_takes: Duration,
}

#[derive(Clone)]
pub struct Fake {
    pub state: Arc<Mutex<State>>,
    pub events: broadcast::Sender<WatchEvent>,
    address: SocketAddr,
    stop: watch::Sender<bool>,
    serving: Arc<Mutex<Option<JoinHandle<()>>>>,
}

pub fn id(number: u32) -> String {
    format!("01900000-0000-7000-8000-{number:012}")
}

pub fn usage(
    class: &str,
    capacity: u64,
    normal: u64,
    preemptible: u64,
    leaving: u64,
) -> ResourceUsage {
    let signed = |n: u64| i64::try_from(n).unwrap();
    ResourceUsage {
        resource_class: class.into(),
        total: capacity,
        allocation_ratio: 1.0,
        capacity,
        normal,
        preemptible,
        leaving,
        free_full: signed(capacity) - signed(normal + preemptible + leaving),
        free_normal: signed(capacity) - signed(normal),
        ..Default::default()
    }
}

pub fn host(name: &str, cpu: u64, mem_mb: u64) -> Host {
    Host {
        name: name.into(),
        health: "up".into(),
        resources: vec![
            usage("VCPU", cpu, 0, 0, 0),
            usage("MEMORY_MB", mem_mb, 0, 0, 0),
        ],
        last_seen: "2026-11-20T20:40:05Z".into(),
        created_at: "2026-11-20T08:00:00Z".into(),
        ..Default::default()
    }
}

pub fn refuse(kind: Code, code: &str, message: &str) -> Status {
    let info = ErrorDetails::with_error_info(code, "ebbtide", []);
    Status::with_error_details(kind, message, info)
}

impl Fake {
    /// Starts it on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (events, _) = broadcast::channel(10_000);
        let state = State {
            new_status: "active".into(),
            policy: "tiered".into(),
            ..State::default()
        };
        let fake = Self {
            state: Arc::new(Mutex::new(state)),
            events,
            address,
            stop: watch::channel(false).0,
            serving: Arc::default(),
        };
        fake.serve(listener);
        fake
    }

    fn serve(&self, listener: TcpListener) {
        let mut stop = self.stop.subscribe();
        let server = tonic::transport::Server::builder()
            .add_service(AdminServer::new(self.clone()))
            .add_service(PluginsServer::new(self.clone()))
            .add_service(MarketServer::new(self.clone()))
            .add_service(ServersServer::new(self.clone()))
            .add_service(SchedulerServer::new(self.clone()))
            .serve_with_incoming_shutdown(
                TcpIncoming::from(listener).with_nodelay(Some(true)),
                async move {
                    stop.wait_for(|stop| *stop).await.unwrap();
                },
            );
        let serving = tokio::spawn(async move { server.await.unwrap() });
        *self.serving.lock().unwrap() = Some(serving);
    }

    /// Ends it as a scheduler ends: streams are over, and its port is closed. What it knows it
    /// keeps.
    pub async fn end(&self) {
        self.stop.send_replace(true);
        let serving = self.serving.lock().unwrap().take().unwrap();
        serving.await.unwrap();
    }

    /// Starts it again at the same address.
    pub async fn start_again(&self) {
        self.stop.send_replace(false);
        self.serve(TcpListener::bind(self.address).await.unwrap());
    }

    /// Until it has been asked to end.
    pub async fn ended(&self) {
        let mut stop = self.stop.subscribe();
        let _ = stop.wait_for(|stop| *stop).await;
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.lock().unwrap())
    }

    pub fn send(&self, event: Event) {
        let sequence = 1;
        let at = "2026-11-20T20:37:05Z".to_owned();
        // There may be no receiver.
        let _ = self.events.send(WatchEvent {
            at,
            sequence,
            event: Some(event),
        });
    }

    /// Changes the status of a server, and notifies all watchers.
    pub fn set_status(&self, id: &str, status: &str) {
        let changed = self.with(|state| {
            let server = state
                .servers
                .iter_mut()
                .find(|server| server.id == id)
                .unwrap();
            server.status = status.into();
            server.clone()
        });
        self.send(Event::Server(changed));
    }
}

impl State {
    fn first_fit(&mut self, flavor: &Flavor) -> Option<String> {
        let (cpu, mem) = (i64::from(flavor.vcpus), i64::from(flavor.ram_mb));
        let fits = |host: &&mut Host| {
            host.resources[0].free_full >= cpu && host.resources[1].free_full >= mem
        };
        let host = self.hosts.iter_mut().find(fits)?;
        for (usage, amount) in host.resources.iter_mut().zip([cpu, mem]) {
            usage.free_full -= amount;
            if flavor.preemptible {
                usage.preemptible += amount.unsigned_abs();
            } else {
                usage.normal += amount.unsigned_abs();
                usage.free_normal -= amount;
            }
        }
        Some(host.name.clone())
    }

    fn free(&mut self, server: &Server) {
        let flavor = self
            .flavors
            .iter()
            .find(|f| f.name == server.flavor_name)
            .cloned();
        let host = self.hosts.iter_mut().find(|host| host.name == server.host);
        if let (Some(host), Some(flavor)) = (host, flavor) {
            let amounts = [i64::from(flavor.vcpus), i64::from(flavor.ram_mb)];
            for (usage, amount) in host.resources.iter_mut().zip(amounts) {
                usage.free_full += amount;
                if flavor.preemptible {
                    usage.preemptible -= amount.unsigned_abs();
                } else {
                    usage.normal -= amount.unsigned_abs();
                    usage.free_normal += amount;
                }
            }
        }
    }

    fn flavor(&self, text: &str) -> Result<Flavor, Status> {
        let known = self.flavors.iter().find(|f| f.name == text || f.id == text);
        known.cloned().ok_or_else(|| {
            refuse(
                Code::NotFound,
                "EB-API-004",
                &format!("no flavor named {text:?}"),
            )
        })
    }

    fn decide(&mut self, request: &PlacementRequest, keep: bool) -> Result<Decision, Status> {
        let flavor = self.flavor(&request.flavor)?;
        if let Some(scripted) = self.scripted.clone() {
            return Ok(scripted);
        }
        let before = self.hosts.clone();
        let count = request.count.max(1);
        let mut decision = Decision {
            at: "2026-11-20T20:40:12Z".into(),
            project_id: request.project_id.clone(),
            flavor_name: flavor.name.clone(),
            preemptible: flavor.preemptible,
            ..Default::default()
        };
        for number in 0..count {
            let server_id = if self.keeps_ids {
                request.server_ids[number as usize].clone()
            } else {
                id(self.made + number + 1)
            };
            decision.server_ids.push(server_id.clone());
            match self.first_fit(&flavor) {
                Some(host) => {
                    decision.placements.push(Placement {
                        server_id,
                        host,
                        ..Default::default()
                    });
                }
                None => {
                    decision.placements.clear();
                    self.hosts.clone_from(&before);
                    decision.no_valid_host = Some(NoValidHost {
                        reason: format!("no host has room for {} × {}", count, flavor.name),
                        placed_before: number,
                        dropped: vec![FilterCount {
                            filter: "capacity".into(),
                            dropped: u32::try_from(self.hosts.len()).unwrap(),
                        }],
                        hosts: u32::try_from(self.hosts.len()).unwrap(),
                    });
                    break;
                }
            }
        }
        if keep {
            decision.id = id(900_000 + self.made);
        } else {
            self.hosts = before;
        }
        Ok(decision)
    }
}

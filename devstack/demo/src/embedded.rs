//! A whole region in one process: the scheduler on SQLite, four agents with simulated hypervisors,
//! and the in-process bus.
//!
//! Nothing but RabbitMQ is replaced: database, API, protocol and agents are the real ones. What the
//! in-process bus cannot do is outlive the process; the outbox and the agents' journals make up for
//! that at the next start.

use crate::silent_hosts;
use anyhow::{Context, Result};
use clap::Args;
use ebbtide_agent::clock::SystemClock;
use ebbtide_agent::driver::registry::{self, DriverContext};
use ebbtide_agent::{Agent, AgentConfig};
use ebbtide_bus::{Bus, InProcessBroker, QueuePrefix};
use ebbtide_model::Seconds;
use ebbtide_scheduler::{Config, NamedBus};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The paper's hosts.
const HOSTS: [&str; 4] = ["host-A", "host-B", "host-C", "host-D"];
/// What each of them has.
const SIZE: &str = "inventory = { VCPU = 8, MEMORY_MB = 16000, DISK_GB = 160 }";

/// When a host without an agent counts as down: not while a person looks at it.
const SILENT_HOST_DOWN: Seconds = Seconds(24 * 3600);

/// How the region is to be.
#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Where state is kept.
    #[arg(long)]
    dir: PathBuf,
    /// Written with the addresses once the region answers.
    #[arg(long)]
    ready_file: PathBuf,
    /// Where the API listens; a free port if it is not said.
    #[arg(long)]
    listen: Option<SocketAddr>,
    /// Who may do what: a file that `ebbtide-manage token` writes. Without it every caller is an
    /// operator.
    #[arg(long)]
    tokens: Option<PathBuf>,
    /// So many more hosts, which have no agents: servers that are placed there do not start.
    #[arg(long, default_value_t = 0)]
    silent_hosts: u32,
    /// Prices follow supply and demand, and change every so many seconds. Without it they are what
    /// flavors say.
    #[arg(long, value_name = "SECONDS")]
    market: Option<u32>,
}

/// Runs until SIGTERM or SIGINT.
///
/// # Errors
/// Whatever keeps it from starting.
pub(crate) async fn run(options: Options) -> Result<()> {
    let dir = &options.dir;
    let mut config = Config::default();
    match options.listen {
        Some(address) => config.grpc.listen = address,
        None => config.grpc.listen.set_port(0),
    }
    config.http.listen.set_port(0);
    config.auth.tokens = options.tokens;
    if options.silent_hosts > 0 {
        config.region.host_down_seconds = SILENT_HOST_DOWN;
    }
    if let Some(seconds) = options.market {
        config.region.market.enabled = true;
        config.region.market.interval_seconds = Seconds(seconds);
    }
    config.database.url = format!("sqlite://{}", dir.join("region.db").display());
    ebbtide_scheduler::init_log(&config)?;
    let broker = InProcessBroker::new();
    let stop = CancellationToken::new();
    let mut agents = JoinSet::new();
    for host in HOSTS {
        let state_dir = dir.join("agents").join(host);
        std::fs::create_dir_all(&state_dir).with_context(|| format!("{}", state_dir.display()))?;
        let context = DriverContext {
            host: host.to_owned(),
            state_dir: state_dir.clone(),
            settings: SIZE.parse()?,
            clock: Arc::new(SystemClock),
        };
        let driver = registry::build("simulated", &context)?;
        let mut agent = AgentConfig::new(host, state_dir);
        agent.heartbeat_interval = Duration::from_secs(5);
        let bus: Arc<dyn Bus> = Arc::new(broker.connect());
        agents.spawn(Agent::run(agent, bus, driver, stop.clone()));
    }
    let bus = NamedBus {
        name: "in-process",
        logins: None,
        bus: Arc::new(broker.connect()),
    };
    let running = ebbtide_scheduler::start(config, bus, stop.clone()).await?;
    let bus = broker.connect();
    silent_hosts::register(&bus, &QueuePrefix::default(), options.silent_hosts).await?;
    running.write_ready_file(&options.ready_file)?;
    let (mut terminate, mut interrupt) = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
    );
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
        () = stop.cancelled() => {}
    }
    stop.cancel();
    running.finish().await?;
    while let Some(ended) = agents.join_next().await {
        ended.context("an agent's task")??;
    }
    Ok(())
}

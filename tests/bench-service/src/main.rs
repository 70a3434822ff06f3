//! How many placements a second go through the service: gRPC in, a durable claim, a notice for each
//! victim on RabbitMQ, and, where the service also starts the instances, a message for each start.
//!
//! A private broker and a scheduler with its own database are started and ended with the program.
//! The hosts are heartbeats without agents behind them: what is measured is the scheduler, its
//! database and its broker. `ebbtide-lab bench service` runs this program, which has to lie beside
//! it, as has `ebbtide-scheduler`.
//!
//! - `cloud` registers hosts and fills them; `load` asks; `meters` reads what the scheduler and the
//!   kernel count;
//! - `churn` evacuates from end to end, `takeover` ends the scheduler on duty again and again;
//!   `agents` and `watcher` are what both need;
//! - `sizing` measures what a region needs at rest and how its database grows;
//! - `report` says what came out, and what bounds it.

/// One line of output. A reader that has gone away (`| head`) ends nothing and is no error:
/// `println!` would panic.
macro_rules! say {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stdout(), format_args!("{}\n", format_args!($($words)*)));
    }};
}

/// The same to standard error.
macro_rules! complain {
    ($($words:tt)*) => {{
        let _ = std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{}\n", format_args!($($words)*)));
    }};
}

mod agents;
mod churn;
mod cloud;
mod load;
mod meters;
mod report;
mod sizing;
mod takeover;
mod watcher;

use anyhow::{Result, bail};
use clap::{Parser, ValueEnum};
use ebbtide_bench::Machine;
use ebbtide_integration_tests::{Database, Peer, Region, RegionOptions};
use meters::Meters;
use report::{LoadReport, Window};
use std::collections::BTreeSet;
use std::process::ExitCode;
use std::time::Duration;

/// Where the state is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Store {
    /// A file.
    Sqlite,
    /// A private MariaDB.
    Mariadb,
    /// A private PostgreSQL.
    Postgres,
}

impl Store {
    fn database(self) -> Database {
        match self {
            Self::Sqlite => Database::Sqlite,
            Self::Mariadb => Database::MariaDb,
            Self::Postgres => Database::Postgres,
        }
    }
}

/// What is asked of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchCall {
    /// The call that nova-conductor makes to a scheduler: hosts with durable claims. The scheduler
    /// starts no instances.
    SelectDestinations,
    /// A tenant's call: places, and a start message to an agent for each.
    CreateServers,
}

impl BenchCall {
    /// As on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::SelectDestinations => "select-destinations",
            Self::CreateServers => "create-servers",
        }
    }
}

/// Measures placements a second through the service.
#[derive(Debug, Parser)]
#[command(name = "ebbtide-bench-service", version)]
pub(crate) struct BenchOptions {
    /// How many hosts
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    hosts: u32,
    /// Callers that ask one request after another
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..=4096))]
    clients: u32,
    /// How long is measured
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=3600))]
    seconds: u32,
    /// Fill the cloud with preemptible instances first: every placement ends one
    #[arg(long)]
    preempting: bool,
    /// What is asked
    #[arg(long, value_enum, default_value = "select-destinations")]
    call: BenchCall,
    /// Where the state is kept
    #[arg(long, value_enum, default_value = "sqlite")]
    database: Store,
    /// Schedulers that are active at once on the database; callers are spread over them
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=16))]
    schedulers: u32,
    /// Evacuate for real: agents with simulated hypervisors, 8 places on each of few hosts; every
    /// placement waits until it runs
    #[arg(long)]
    evacuate: bool,
    /// Measure what a region needs at rest, and how its database grows: agents as with --evacuate
    #[arg(long)]
    sizing: bool,
    /// With --evacuate: the grace period of the victims
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=900))]
    grace: u32,
    /// With --evacuate: how long each call of a simulated hypervisor takes, in milliseconds
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    driver_ms: u32,
    /// With --evacuate: a process for each agent, as in a region, instead of all agents in this one
    #[arg(long)]
    agent_processes: bool,
    /// End the scheduler on duty so many times, and measure how long it takes until another one
    /// evacuates in its place
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    takeovers: u32,
    /// With --takeovers: how it ends
    #[arg(long, value_enum, default_value = "kill")]
    by: takeover::TakeoverMethod,
    /// With --takeovers: seconds that a scheduler which has fallen silent keeps its duty from
    /// others
    #[arg(long, default_value_t = 6, value_parser = clap::value_parser!(u32).range(2..=60))]
    lease: u32,
    /// Print JSON instead of lines
    #[arg(long)]
    json: bool,
}

/// All schedulers of the region.
pub(crate) struct Group<'r> {
    pub(crate) region: &'r Region,
    pub(crate) peers: &'r [Peer],
}

/// Threads for what blocks: journals and files of hypervisors. With one for each host they would
/// only take the processors from one another.
const BLOCKING: usize = 4;

fn main() -> ExitCode {
    let options = BenchOptions::parse();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .max_blocking_threads(BLOCKING)
        .enable_all()
        .build();
    let measured = match runtime {
        Ok(runtime) => runtime.block_on(measure(&options)),
        Err(error) => Err(error.into()),
    };
    match measured.and_then(|outcome| match outcome {
        BenchResult::Placed(report) => report.print(options.json),
        BenchResult::Evacuated(churn) => churn.print(options.json),
        BenchResult::TakenOver(takeovers) => takeovers.print(options.json),
        BenchResult::Sized(sizing) => sizing.print(options.json),
    }) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain!("EB-BENCH-005: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What was measured.
enum BenchResult {
    Placed(Box<LoadReport>),
    Evacuated(Box<churn::Churn>),
    TakenOver(Box<takeover::Takeovers>),
    Sized(Box<sizing::Sizing>),
}

/// A host with an agent.
pub(crate) fn host_name(n: u32) -> String {
    format!("host-{n:04}")
}

/// Hosts with real agents.
async fn evacuate(options: &BenchOptions) -> Result<BenchResult> {
    if options.clients > options.hosts {
        bail!("each caller has a host of its own: use no more --clients than --hosts");
    }
    let hosts: Vec<String> = (0..options.hosts).map(host_name).collect();
    let driver = churn::driver(options.driver_ms);
    let drivers = hosts.iter().map(|h| (h.clone(), driver.clone())).collect();
    let (processes, tasks) = match options.agent_processes {
        true => (hosts, Vec::new()),
        false => (Vec::new(), hosts),
    };
    complain!(
        "starting a broker, a scheduler and {} agents",
        options.hosts
    );
    let region = Region::start(RegionOptions {
        database: options.database.database(),
        // What has ended is deleted after a minute (servers after ten), so that it is seen whether
        // tables stay small.
        database_options: "keep_minutes = 1".to_owned(),
        region: "longest_budget_window_seconds = 0".to_owned(),
        hosts: processes,
        drivers,
        log: "warn".to_owned(),
        ..RegionOptions::default()
    })
    .await?;
    let agents = match tasks.is_empty() {
        true => None,
        false => Some(agents::start(&region, region.admin().await?, &tasks, &driver).await?),
    };
    let churn = churn::run(&region, options).await?;
    if let Some(agents) = agents {
        agents.end().await?;
    }
    Ok(BenchResult::Evacuated(Box::new(churn)))
}

async fn measure(options: &BenchOptions) -> Result<BenchResult> {
    if options.takeovers > 0 {
        let takeovers = takeover::run(options).await?;
        return Ok(BenchResult::TakenOver(Box::new(takeovers)));
    }
    if options.sizing {
        return Ok(BenchResult::Sized(Box::new(sizing::run(options).await?)));
    }
    if options.evacuate {
        return evacuate(options).await;
    }
    // No agent sends heartbeats or answers notices. The timeouts are therefore longer than the
    // benchmark.
    let region = "host_down_seconds = 86400\nstart_timeout_seconds = 86400\nact_timeout_seconds = 86400\n\
                  notice_timeout_seconds = 3600\ndefault_grace_seconds = 900";
    let mut region = Region::prepare(RegionOptions {
        database: options.database.database(),
        hosts: Vec::new(),
        region: region.to_owned(),
        ..RegionOptions::default()
    })
    .await?;
    complain!("starting a broker and a scheduler");
    region.start_scheduler().await?;
    complain!("registering {} hosts", options.hosts);
    cloud::register(&region, options).await?;
    if options.preempting {
        complain!("filling them");
        cloud::fill(&region, options).await?;
    }
    if options.schedulers > 1 && options.database == Store::Sqlite {
        bail!("SQLite takes one scheduler; use --database mariadb or postgres");
    }
    let mut peers = Vec::new();
    for number in 2..=options.schedulers {
        peers.push(region.start_peer(&format!("number-{number}")).await?);
    }
    let group = Group {
        region: &region,
        peers: &peers,
    };
    // A second of load before the measurement: connections, caches and queues are as they are in a
    // region that runs.
    complain!("measuring for {} s", options.seconds);
    let (call, clients) = (options.call, options.clients);
    let first = load::run(&group, call, clients, Duration::from_secs(1)).await?;
    let before = Meters::read(&group).await?;
    let span = Duration::from_secs(u64::from(options.seconds));
    let done = load::run(&group, call, clients, span).await?;
    let after = Meters::read(&group).await?;
    // No server leaves in this region, so the scheduler must not choose a victim twice.
    let mut chosen = BTreeSet::new();
    for victim in first.victims.iter().chain(&done.victims) {
        if !chosen.insert(victim) {
            bail!("victim {victim} was chosen twice");
        }
    }
    let drained = load::drained(&group).await?;
    let window = Window {
        before,
        after,
        drained,
        done,
    };
    let report = LoadReport::of(options, &window, Machine::here());
    Ok(BenchResult::Placed(Box::new(report)))
}

//! What a region of so many hosts needs: processor time and memory at rest, and how the database
//! grows, at rest and with each evacuation.
//!
//! All hosts have agents, as tasks of this program, with simulated hypervisors that are full of
//! preemptible servers. At rest they send heartbeats at their default interval. Then callers
//! displace one server after another. Nothing is purged meanwhile, because the default retention
//! is longer than any measurement.

use crate::churn::{self, Cpu, SLOTS, SPOT};
use crate::{BenchOptions, agents, host_name};
use anyhow::{Context, Result, bail};
use ebbtide_bench::Machine;
use ebbtide_bench::stats::rounded;
use ebbtide_integration_tests::{Region, RegionOptions};
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, DbBackend, Statement};
use serde::Serialize;
use std::time::Duration;
use tokio::task::JoinSet;

/// The largest part of places that are filled: the rest is for servers that move.
const FILLING: usize = 64;
const MIB: f64 = 1024.0 * 1024.0;

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Sizing {
    hosts: u32,
    servers: u32,
    database: String,
    /// How long was measured at rest, and how long while servers were displaced.
    seconds: u32,
    /// Part of one processor.
    scheduler_cpu_percent_at_rest: f64,
    broker_cpu_percent_at_rest: f64,
    scheduler_mib: u64,
    broker_mib: u64,
    /// With all hosts and servers, before anything was displaced.
    database_mib: f64,
    database_bytes_per_hour_at_rest: f64,
    evacuations: u64,
    database_bytes_per_evacuation: f64,
    scheduler_cpu_ms_per_evacuation: f64,
    scheduler_mib_after: u64,
    machine: Machine,
}

/// Measures a region of as many hosts as the options say.
pub(crate) async fn run(options: &BenchOptions) -> Result<Sizing> {
    if options.clients > options.hosts {
        bail!("each caller has a host of its own: use no more --clients than --hosts");
    }
    let hosts: Vec<String> = (0..options.hosts).map(host_name).collect();
    let driver = churn::driver(options.driver_ms);
    complain!("starting a broker, a scheduler and {} agents", hosts.len());
    let region = Region::start(RegionOptions {
        database: options.database.database(),
        hosts: Vec::new(),
        log: "warn".to_owned(),
        ..RegionOptions::default()
    })
    .await?;
    let agents = agents::start(&region, region.admin().await?, &hosts, &driver).await?;
    churn::flavors(region.admin().await?, options.grace).await?;
    fill(&region, options).await?;

    let database = DatabaseSize::of(&region).await?;
    complain!("measuring at rest for {} s", options.seconds);
    let span = Duration::from_secs(u64::from(options.seconds));
    let (cpu, size) = (Cpu::read(&region)?, database.bytes().await?);
    let memory = Memory::read(&region)?;
    tokio::time::sleep(span).await;
    let (rested, rested_size) = (Cpu::read(&region)?, database.bytes().await?);

    complain!("displacing servers for {} s", options.seconds);
    let evacuations = churn::displace(&region, options).await?;
    let (after, grown) = (Cpu::read(&region)?, database.bytes().await?);
    let memory_after = Memory::read(&region)?;
    agents.end().await?;

    let seconds = span.as_secs_f64();
    let percent = |cpu: f64| rounded(cpu * 100.0 / seconds);
    #[allow(clippy::cast_precision_loss)] // Far below 2^53.
    let each = |amount: f64| rounded(amount / evacuations.max(1) as f64);
    Ok(Sizing {
        hosts: options.hosts,
        servers: options.hosts * SLOTS,
        database: format!("{:?}", options.database).to_lowercase(),
        seconds: options.seconds,
        scheduler_cpu_percent_at_rest: percent(rested.scheduler - cpu.scheduler),
        broker_cpu_percent_at_rest: percent(rested.broker - cpu.broker),
        scheduler_mib: memory.scheduler,
        broker_mib: memory.broker,
        database_mib: rounded(size / MIB),
        database_bytes_per_hour_at_rest: rounded((rested_size - size) * 3600.0 / seconds),
        evacuations,
        database_bytes_per_evacuation: each(grown - rested_size),
        scheduler_cpu_ms_per_evacuation: each((after.scheduler - rested.scheduler) * 1000.0),
        scheduler_mib_after: memory_after.scheduler,
        machine: Machine::here(),
    })
}

/// Fills all places with preemptible servers.
async fn fill(region: &Region, options: &BenchOptions) -> Result<()> {
    let places = options.hosts * SLOTS;
    complain!("filling {places} places");
    let servers = region.servers().await?;
    let mut filling = JoinSet::new();
    for n in 0..places {
        if filling.len() >= FILLING
            && let Some(filled) = filling.join_next().await
        {
            filled??;
        }
        let request = churn::request(SPOT, &host_name(n % options.hosts));
        let mut servers = servers.clone();
        filling.spawn(async move { servers.create_servers(request).await.map(|_| ()) });
    }
    while let Some(filled) = filling.join_next().await {
        filled??;
    }
    churn::all_run(region, places).await
}

/// Resident memory, MiB.
struct Memory {
    scheduler: u64,
    broker: u64,
}

impl Memory {
    fn read(region: &Region) -> Result<Self> {
        Ok(Self {
            scheduler: churn::resident(region.scheduler_process()?.pid())?,
            broker: churn::resident(crate::meters::child("beam.smp")?)?,
        })
    }
}

/// How large the database is.
struct DatabaseSize(DatabaseConnection);

impl DatabaseSize {
    async fn of(region: &Region) -> Result<Self> {
        Ok(Self(Database::connect(region.database_url()).await?))
    }

    /// Bytes of tables and indexes. MariaDB reckons them from samples of its pages.
    #[allow(clippy::cast_precision_loss)] // Far below 2^53.
    async fn bytes(&self) -> Result<f64> {
        let backend = self.0.get_database_backend();
        let sql = match backend {
            DbBackend::Sqlite => {
                "SELECT (p.page_count - f.freelist_count) * s.page_size AS bytes FROM \
                 pragma_page_count p, pragma_freelist_count f, pragma_page_size s"
            }
            DbBackend::Postgres => "SELECT pg_database_size(current_database()) AS bytes",
            DbBackend::MySql => {
                "SELECT CAST(SUM(data_length + index_length) AS SIGNED) AS bytes \
                 FROM information_schema.tables WHERE table_schema = DATABASE()"
            }
            other => bail!("no such database is measured: {other:?}"),
        };
        let row = self
            .0
            .query_one_raw(Statement::from_string(backend, sql))
            .await?;
        let bytes: i64 = row.context("no size")?.try_get("", "bytes")?;
        Ok(bytes as f64)
    }
}

impl Sizing {
    /// On standard output.
    pub(crate) fn print(&self, json: bool) -> Result<()> {
        if json {
            say!("{}", serde_json::to_string_pretty(self)?);
            return Ok(());
        }
        say!(
            "{} hosts, {} servers: scheduler {} MiB and {:.1} % of a processor at rest, database \
             {:.1} MiB; each evacuation {:.0} bytes",
            self.hosts,
            self.servers,
            self.scheduler_mib,
            self.scheduler_cpu_percent_at_rest,
            self.database_mib,
            self.database_bytes_per_evacuation
        );
        Ok(())
    }
}

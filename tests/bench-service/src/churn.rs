//! Evacuations a second, from end to end: hosts with real agents and simulated hypervisors are full
//! of preemptible servers; each caller asks for a normal one on a host of its own, waits until it
//! runs on the room that was taken, deletes it, and fills the room with a preemptible one again.
//!
//! What must not grow meanwhile is sampled: memory of the scheduler and of the agents, unsent
//! messages, and rows of the database.

use crate::BenchOptions;
use crate::watcher::Watcher;
use anyhow::{Context, Result, bail};
use ebbtide_bench::stats::rounded;
use ebbtide_bench::{Latency, Machine};
use ebbtide_integration_tests::Region;
use ebbtide_integration_tests::region::RegionChannel;
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::servers_client::ServersClient;
use ebbtide_runtime::clock;
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

pub(crate) const NORMAL: &str = "pet";
pub(crate) const SPOT: &str = "spot";
/// VCPUs of each host, as the region's agents have them.
pub(crate) const SLOTS: u32 = 8;
/// How long servers may take to run, and how often that is looked at.
const PATIENCE: Duration = Duration::from_secs(300);
const POLL: Duration = Duration::from_millis(500);
/// How often is looked at what must not grow.
const SAMPLE: Duration = Duration::from_secs(10);

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Churn {
    hosts: u32,
    clients: u32,
    grace_seconds: u32,
    driver_ms: u32,
    database: String,
    seconds: f64,
    evacuations: u64,
    evacuations_per_s: f64,
    /// From the request to the server that runs on the freed room.
    #[serde(flatten)]
    latency: Latency,
    /// Processor time for each evacuation, in milliseconds.
    scheduler_cpu_ms: f64,
    broker_cpu_ms: f64,
    /// Processor time of this program: the callers, and the agents if they run as tasks of this
    /// program.
    load_cpu_ms: f64,
    samples: Vec<Sample>,
    machine: Machine,
}

/// Processor seconds so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cpu {
    pub(crate) scheduler: f64,
    pub(crate) broker: f64,
    load: f64,
}

impl Cpu {
    pub(crate) fn read(region: &Region) -> Result<Self> {
        let of = |pid: u32| crate::meters::process_cpu(&pid.to_string());
        Ok(Self {
            scheduler: of(region.scheduler_process()?.pid())?,
            broker: crate::meters::child_cpu("beam.smp")?,
            load: crate::meters::process_cpu("self")?,
        })
    }
}

/// What must not grow, at one moment.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Sample {
    /// Since the beginning, in seconds.
    at: f64,
    evacuations: u64,
    scheduler_mib: u64,
    agents_mib: u64,
    unsent: u32,
}

pub(crate) fn request(flavor: &str, host: &str) -> v1::CreateServersRequest {
    v1::CreateServersRequest {
        max_price: String::new(),
        name: flavor.to_owned(),
        request: Some(v1::PlacementRequest {
            count: 1,
            flavor: flavor.to_owned(),
            project_id: "load".to_owned(),
            // Each caller has its own host. On a shared host, one caller would take the capacity
            // that another caller has just released, and no victim would have to leave.
            force_hosts: vec![host.to_owned()],
            ..Default::default()
        }),
    }
}

/// Makes the load for so long as the options say.
pub(crate) async fn run(region: &Region, options: &BenchOptions) -> Result<Churn> {
    flavors(region.admin().await?, options.grace).await?;
    let mut background: JoinSet<Result<()>> = JoinSet::new();
    let watcher = Watcher::of(region.scheduler().await?, &mut background).await?;
    let slots = options.hosts * SLOTS;
    complain!("filling {slots} places");
    let mut servers = region.servers().await?;
    for n in 0..slots {
        let host = crate::host_name(n % options.hosts);
        servers.create_servers(request(SPOT, &host)).await?;
    }
    complain!("measuring for {} s", options.seconds);
    let span = Duration::from_secs(u64::from(options.seconds));
    let before = Cpu::read(region)?;
    let began = clock::instant();
    let mut callers = JoinSet::new();
    for n in 0..options.clients {
        let (servers, watcher) = (region.servers().await?, watcher.clone());
        callers.spawn(caller(servers, watcher, crate::host_name(n), began, span));
    }
    let mut samples = Vec::new();
    while began.elapsed() < span {
        samples.push(sample(region, began).await?);
        if let Some(sample) = samples.last() {
            complain!(
                "  {:>4.0} s  {:>7} evacuations  scheduler {} MiB, agents {} MiB, {} messages to be sent",
                sample.at,
                sample.evacuations,
                sample.scheduler_mib,
                sample.agents_mib,
                sample.unsent
            );
        }
        tokio::select! {
            () = tokio::time::sleep(SAMPLE.min(span.saturating_sub(began.elapsed()))) => {}
            Some(ended) = background.join_next() => ended??,
        }
    }
    let mut times = Vec::new();
    while let Some(done) = callers.join_next().await {
        times.extend(done??);
    }
    let seconds = began.elapsed().as_secs_f64();
    samples.push(sample(region, began).await?);
    let audit = region.admin().await?.audit(v1::AuditRequest {}).await?;
    let findings = audit.into_inner().findings;
    if !findings.is_empty() {
        bail!("the audit is not clean: {findings:?}");
    }
    let evacuations = match samples.as_slice() {
        [first, .., last] => last.evacuations - first.evacuations,
        _ => 0,
    };
    // Of the first and last few it is chance on which side of a sample they are.
    let asked = times.len() as u64;
    if evacuations.abs_diff(asked) > u64::from(2 * options.clients) {
        bail!("{asked} requests, and {evacuations} evacuations: not everyone needed one");
    }
    let after = Cpu::read(region)?;
    let each = |of: fn(&Cpu) -> f64| {
        rounded((of(&after) - of(&before)) * 1000.0 / evacuations.max(1) as f64)
    };
    Ok(Churn {
        hosts: options.hosts,
        clients: options.clients,
        grace_seconds: options.grace,
        driver_ms: options.driver_ms,
        database: format!("{:?}", options.database).to_lowercase(),
        seconds: rounded(seconds),
        evacuations,
        evacuations_per_s: rounded(evacuations as f64 / seconds),
        latency: Latency::of(&times),
        scheduler_cpu_ms: each(|cpu| cpu.scheduler),
        broker_cpu_ms: each(|cpu| cpu.broker),
        load_cpu_ms: each(|cpu| cpu.load),
        samples,
        machine: Machine::here(),
    })
}

/// Displaces servers for so long as the options say; how many.
pub(crate) async fn displace(region: &Region, options: &BenchOptions) -> Result<u64> {
    let mut background: JoinSet<Result<()>> = JoinSet::new();
    let watcher = Watcher::of(region.scheduler().await?, &mut background).await?;
    let span = Duration::from_secs(u64::from(options.seconds));
    let began = clock::instant();
    let before = sample(region, began).await?.evacuations;
    let mut callers = JoinSet::new();
    for n in 0..options.clients {
        let (servers, watcher) = (region.servers().await?, watcher.clone());
        callers.spawn(caller(servers, watcher, crate::host_name(n), began, span));
    }
    while let Some(done) = callers.join_next().await {
        done??;
    }
    Ok(sample(region, began).await?.evacuations - before)
}

/// Waits until so many servers run.
pub(crate) async fn all_run(region: &Region, count: u32) -> Result<()> {
    let mut waited = Duration::ZERO;
    loop {
        let page = crate::meters::page(&region.address("http")?).await?;
        let active = crate::meters::metric(&page, "servers{kind=\"active\"}")? as u32;
        if active >= count {
            return Ok(());
        }
        if waited >= PATIENCE {
            bail!("only {active} of {count} servers run after {PATIENCE:?}");
        }
        tokio::time::sleep(POLL).await;
        waited += POLL;
    }
}

async fn caller(
    mut servers: ServersClient<RegionChannel>,
    watcher: Watcher,
    host: String,
    began: Instant,
    span: Duration,
) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    while began.elapsed() < span {
        let asked = clock::instant();
        let created = servers
            .create_servers(request(NORMAL, &host))
            .await?
            .into_inner();
        let id = created.servers.first().map(|s| s.id.clone());
        let id = id.context("no server")?;
        if created.decision.is_none_or(|d| d.no_valid_host.is_some()) {
            bail!("no valid host: no preemptible server is left on {host}");
        }
        watcher.expect(&id, "active").come().await?;
        times.push(asked.elapsed());
        let delete = v1::DeleteServerRequest { id: id.clone() };
        let deleted = watcher.expect(&id, "deleted");
        servers.delete_server(delete).await?;
        deleted.come().await?;
        servers.create_servers(request(SPOT, &host)).await?;
    }
    Ok(times)
}

/// The `[driver]` section of an agent whose hypervisor takes so long for each call.
pub(crate) fn driver(millis: u32) -> String {
    let mut text = format!(
        "[driver]\nkind = \"simulated\"\n[driver.simulated]\n\
         inventory = {{ VCPU = {SLOTS}, MEMORY_MB = {}, DISK_GB = {} }}\n",
        SLOTS * 1000,
        SLOTS * 10
    );
    let seconds = f64::from(millis) / 1000.0;
    for call in [
        "start",
        "notice",
        "terminate",
        "stop",
        "hibernate",
        "delete",
    ] {
        text.push_str(&format!("{call}_seconds = {seconds:?}\n"));
    }
    // As in a region under load; four lines for each evacuation are for a quiet one.
    text.push_str("[log]\nfilter = \"warn\"\n");
    text
}

/// One flavor for each kind of server.
pub(crate) async fn flavors(mut admin: AdminClient<RegionChannel>, grace: u32) -> Result<()> {
    for (name, preemptible) in [(NORMAL, false), (SPOT, true)] {
        let mut flavor = v1::Flavor {
            name: name.to_owned(),
            vcpus: 1,
            ram_mb: 1000,
            disk_gb: 10,
            ..Default::default()
        };
        if preemptible {
            for (key, value) in [
                ("ebbtide:preemptible", "true"),
                ("ebbtide:grace_seconds", grace.to_string().as_str()),
            ] {
                flavor.extra_specs.insert(key.to_owned(), value.to_owned());
            }
        }
        let flavor = Some(flavor);
        admin
            .create_flavor(v1::CreateFlavorRequest { flavor })
            .await?;
    }
    Ok(())
}

async fn sample(region: &Region, began: Instant) -> Result<Sample> {
    let page = crate::meters::page(&region.address("http")?).await?;
    let value = |name: &str| crate::meters::metric(&page, name);
    let scheduler = region.scheduler_process()?.pid();
    let mut agents = 0;
    for pid in region.agent_pids() {
        agents += resident(pid)?;
    }
    if agents == 0 {
        // They are tasks of this program.
        agents = resident(std::process::id())?;
    }
    Ok(Sample {
        at: rounded(began.elapsed().as_secs_f64()),
        evacuations: value("evacuations_total{kind=\"evacuated\"}")? as u64,
        scheduler_mib: resident(scheduler)?,
        agents_mib: agents,
        unsent: value("outbox_messages")? as u32,
    })
}

/// Resident memory of a process in MiB.
pub(crate) fn resident(pid: u32) -> Result<u64> {
    let path = format!("/proc/{pid}/status");
    let text = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.with_context(|| format!("{path} has no VmRSS"))? / 1024)
}

impl Churn {
    /// On standard output.
    pub(crate) fn print(&self, json: bool) -> Result<()> {
        if json {
            say!("{}", serde_json::to_string_pretty(self)?);
            return Ok(());
        }
        say!(
            "{:.0} evacuations/s ({} in {:.1} s), request to running: p50 {:.0} ms, p99 {:.0} ms",
            self.evacuations_per_s,
            self.evacuations,
            self.seconds,
            self.latency.p50_us / 1000.0,
            self.latency.p99_us / 1000.0
        );
        say!(
            "processor time for each evacuation: scheduler {:.2} ms, broker {:.2} ms, agents and callers {:.2} ms",
            self.scheduler_cpu_ms,
            self.broker_cpu_ms,
            self.load_cpu_ms
        );
        Ok(())
    }
}

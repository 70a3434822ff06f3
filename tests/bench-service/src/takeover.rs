//! Measures how long the region has no scheduler on duty. The benchmark kills, stops or terminates
//! the scheduler on duty again and again. At the same moment it asks another scheduler for a normal
//! server that needs the capacity of a victim.
//!
//! The benchmark takes three times, from the end of the first scheduler:
//! - until the other scheduler has answered (a decision needs no leader);
//! - until the other scheduler is on duty;
//! - until the server runs on the freed capacity. Before that the scheduler must send the notice
//!   and receive the report of the agent.

use crate::churn::{NORMAL, SLOTS, SPOT, driver, flavors, request};
use crate::watcher::Watcher;
use crate::{BenchOptions, Store, agents, host_name, meters};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use ebbtide_bench::{Latency, Machine};
use ebbtide_harness::Signal;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Peer, Region, RegionOptions};
use ebbtide_proto::v1;
use ebbtide_runtime::clock;
use serde::Serialize;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How often is looked who is on duty.
const LOOK: Duration = Duration::from_millis(10);

/// How the scheduler on duty ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum TakeoverMethod {
    /// SIGKILL: it dies at once.
    Kill,
    /// SIGSTOP: it hangs, and its connections stay open.
    Stop,
    /// SIGTERM: it gives its duty back.
    Term,
}

/// What came out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Takeovers {
    database: String,
    by: TakeoverMethod,
    lease_seconds: u32,
    rounds: u32,
    /// Milliseconds until the other scheduler has answered with a decision: the median, and the
    /// longest.
    answered_p50_ms: f64,
    answered_max_ms: f64,
    /// Until the other scheduler is on duty.
    on_duty_p50_ms: f64,
    on_duty_max_ms: f64,
    /// Until the server runs on the room of its victim.
    running_p50_ms: f64,
    running_max_ms: f64,
    machine: Machine,
}

/// Two schedulers, and their region.
struct Pair {
    region: Region,
    first: Peer,
    second: Peer,
    started: u32,
}

impl Pair {
    /// Makes the first one the one on duty.
    async fn sort(&mut self) -> Result<()> {
        let began = clock::instant();
        while began.elapsed() < PATIENCE {
            if is_on_duty(&self.first).await? {
                return Ok(());
            }
            if is_on_duty(&self.second).await? {
                std::mem::swap(&mut self.first, &mut self.second);
                return Ok(());
            }
            tokio::time::sleep(LOOK).await;
        }
        bail!("no scheduler is on duty after {PATIENCE:?}")
    }

    /// Puts a new one in the place of the first one, which ends for good.
    async fn replace(&mut self) -> Result<()> {
        self.started += 1;
        let name = format!("number-{}", self.started);
        let new = self.region.start_peer(&name).await?;
        std::mem::replace(&mut self.first, new).kill();
        Ok(())
    }
}

async fn is_on_duty(peer: &Peer) -> Result<bool> {
    let page = meters::page(&peer.address("http")?).await?;
    Ok(meters::metric(&page, "on_duty")? > 0.0)
}

/// The times of one round, from the end of the first one.
struct Times {
    answered: Duration,
    on_duty: Duration,
    running: Duration,
}

/// Ends schedulers for so many rounds as the options say.
pub(crate) async fn run(options: &BenchOptions) -> Result<Takeovers> {
    if options.database == Store::Sqlite {
        bail!("SQLite takes one scheduler; use --database mariadb or postgres");
    }
    let driver = driver(options.driver_ms);
    complain!("starting a broker, a database, two schedulers and an agent");
    let region = Region::prepare(RegionOptions {
        database: options.database.database(),
        database_options: format!("lease_seconds = {}", options.lease),
        region: "longest_budget_window_seconds = 0".to_owned(),
        hosts: Vec::new(),
        log: "warn".to_owned(),
        ..RegionOptions::default()
    })
    .await?;
    let first = region.start_peer("number-1").await?;
    let second = region.start_peer("number-2").await?;
    let host = host_name(0);
    let hosts = std::slice::from_ref(&host);
    let agents = agents::start(&region, first.admin().await?, hosts, &driver).await?;
    flavors(first.admin().await?, options.grace).await?;
    let mut servers = first.servers().await?;
    for _ in 0..SLOTS {
        servers.create_servers(request(SPOT, &host)).await?;
    }
    let mut pair = Pair {
        region,
        first,
        second,
        started: 2,
    };
    let mut all = Vec::new();
    for n in 1..=options.takeovers {
        pair.sort().await?;
        let times = round(&pair, options.by, n, &host).await?;
        complain!(
            "  {n:>4}  answered after {:>4} ms, on duty after {:>5} ms, running after {:>5} ms",
            times.answered.as_millis(),
            times.on_duty.as_millis(),
            times.running.as_millis()
        );
        all.push(times);
        pair.replace().await?;
    }
    let mut admin = pair.second.admin().await?;
    let audit = admin.audit(v1::AuditRequest {}).await?;
    let findings = audit.into_inner().findings;
    if !findings.is_empty() {
        bail!("the audit is not clean: {findings:?}");
    }
    agents.end().await?;
    let of = |of: fn(&Times) -> Duration| {
        let times = Latency::of(&all.iter().map(of).collect::<Vec<_>>());
        (
            (times.p50_us / 1000.0).round(),
            (times.max_us / 1000.0).round(),
        )
    };
    let (answered_p50_ms, answered_max_ms) = of(|t| t.answered);
    let (on_duty_p50_ms, on_duty_max_ms) = of(|t| t.on_duty);
    let (running_p50_ms, running_max_ms) = of(|t| t.running);
    Ok(Takeovers {
        database: format!("{:?}", options.database).to_lowercase(),
        by: options.by,
        lease_seconds: options.lease,
        rounds: options.takeovers,
        answered_p50_ms,
        answered_max_ms,
        on_duty_p50_ms,
        on_duty_max_ms,
        running_p50_ms,
        running_max_ms,
        machine: Machine::here(),
    })
}

/// Ends the first one, and has the second one evacuate a victim.
async fn round(pair: &Pair, by: TakeoverMethod, n: u32, host: &str) -> Result<Times> {
    let mut background: JoinSet<Result<()>> = JoinSet::new();
    let watcher = Watcher::of(pair.second.scheduler().await?, &mut background).await?;
    let mut servers = pair.second.servers().await?;
    let signal = match by {
        TakeoverMethod::Kill => Signal::Kill,
        TakeoverMethod::Stop => Signal::Stop,
        TakeoverMethod::Term => Signal::Term,
    };
    let began = clock::instant();
    pair.first.signal(signal)?;
    let duty = until_on_duty(&pair.second, began);
    let asked = async {
        let created = answered(&mut servers, n, host, began).await?;
        let answered = began.elapsed();
        let id = created.servers.first().map(|s| s.id.clone());
        let id = id.context("no server")?;
        if created.decision.is_none_or(|d| d.no_valid_host.is_some()) {
            bail!("no valid host: no preemptible server is left on {host}");
        }
        watcher.expect(&id, "active").come().await?;
        Ok((id, answered, began.elapsed()))
    };
    let (on_duty, (id, answered, running)) = tokio::try_join!(duty, asked)?;
    // The place is filled again for the next round.
    let deleted = watcher.expect(&id, "deleted");
    servers
        .delete_server(v1::DeleteServerRequest { id })
        .await?;
    deleted.come().await?;
    let spot = servers.create_servers(request(SPOT, host)).await?;
    let spot = spot.into_inner().servers.first().map(|s| s.id.clone());
    let spot = spot.context("no server")?;
    watcher.expect(&spot, "active").come().await?;
    Ok(Times {
        answered,
        on_duty,
        running,
    })
}

/// Repeats the request until a scheduler answers it. A scheduler that is stopped inside a write
/// transaction blocks the other schedulers until the database ends that transaction. Meanwhile they
/// answer `UNAVAILABLE`, and callers repeat their requests.
async fn answered(
    servers: &mut v1::servers_client::ServersClient<
        ebbtide_integration_tests::region::RegionChannel,
    >,
    n: u32,
    host: &str,
    began: Instant,
) -> Result<v1::CreateServersResponse> {
    let mut create = request(NORMAL, host);
    if let Some(request) = &mut create.request {
        // The server ids mark the repeated request as the same request.
        request.server_ids = vec![uuid::Uuid::from_u128(n.into()).to_string()];
    }
    loop {
        match servers.create_servers(create.clone()).await {
            Ok(created) => return Ok(created.into_inner()),
            Err(status) if status.code() != tonic::Code::Unavailable => return Err(status.into()),
            Err(status) if began.elapsed() >= PATIENCE => return Err(status.into()),
            Err(_) => tokio::time::sleep(LOOK).await,
        }
    }
}

async fn until_on_duty(peer: &Peer, began: Instant) -> Result<Duration> {
    while !is_on_duty(peer).await? {
        if began.elapsed() >= PATIENCE {
            bail!("it is not on duty after {PATIENCE:?}");
        }
        tokio::time::sleep(LOOK).await;
    }
    Ok(began.elapsed())
}

impl Takeovers {
    /// On standard output.
    pub(crate) fn print(&self, json: bool) -> Result<()> {
        if json {
            say!("{}", serde_json::to_string_pretty(self)?);
            return Ok(());
        }
        for (what, p50, max) in [
            ("answered", self.answered_p50_ms, self.answered_max_ms),
            ("on duty", self.on_duty_p50_ms, self.on_duty_max_ms),
            ("running", self.running_p50_ms, self.running_max_ms),
        ] {
            say!("{what}: p50 {p50:.0} ms, at most {max:.0} ms");
        }
        Ok(())
    }
}

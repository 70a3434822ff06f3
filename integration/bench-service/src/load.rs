//! Callers that ask one request after another, each over a connection of its own.

use crate::Call;
use crate::clock;
use crate::cloud::NORMAL;
use crate::meters::Meters;
use anyhow::{Result, bail};
use ebbtide_integration_tests::Region;
use ebbtide_proto::v1;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long the broker may take to confirm what is left at the end.
const DRAIN_LIMIT: Duration = Duration::from_secs(120);

/// What came of a load.
#[derive(Debug, Default)]
pub(crate) struct Done {
    /// How long each placement took, as its caller saw it.
    pub(crate) times: Vec<Duration>,
    /// Victims of all placements.
    pub(crate) victims: u64,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
}

/// Asks for so long.
pub(crate) async fn run(region: &Region, call: Call, clients: u32, span: Duration) -> Result<Done> {
    let mut callers = JoinSet::new();
    let mut connections = Vec::new();
    for _ in 0..clients {
        connections.push((region.scheduler().await?, region.servers().await?));
    }
    let began = clock::instant();
    for (mut scheduler, mut servers) in connections {
        callers.spawn(async move {
            let mut mine = Done::default();
            while began.elapsed() < span {
                let request = v1::PlacementRequest {
                    count: 1,
                    flavor: NORMAL.to_owned(),
                    ..Default::default()
                };
                let asked = clock::instant();
                let decision = match call {
                    Call::SelectDestinations => {
                        let select = v1::SelectDestinationsRequest {
                            request: Some(request),
                            wait_for_room: false,
                        };
                        scheduler.select_destinations(select).await?.into_inner().decision
                    }
                    Call::CreateServers => {
                        let create = v1::CreateServersRequest {
                            name: "load".to_owned(),
                            request: Some(request),
                        };
                        servers.create_servers(create).await?.into_inner().decision
                    }
                };
                mine.times.push(asked.elapsed());
                let Some(decision) = decision.filter(|d| d.no_valid_host.is_none()) else {
                    bail!("no valid host: the cloud is too small for this run; use more hosts or fewer seconds");
                };
                mine.victims += decision.placements.iter().map(|p| p.victims.len() as u64).sum::<u64>();
            }
            Ok(mine)
        });
    }
    let mut all = Done::default();
    while let Some(caller) = callers.join_next().await {
        let mine = caller??;
        all.times.extend(mine.times);
        all.victims += mine.victims;
    }
    all.elapsed = began.elapsed();
    Ok(all)
}

/// Waits until the broker has confirmed every message; answers how long that took.
pub(crate) async fn drained(region: &Region, scheduler: u32) -> Result<Duration> {
    let began: Instant = clock::instant();
    loop {
        if Meters::read(region, scheduler).await?.outbox < 1.0 {
            return Ok(began.elapsed());
        }
        if began.elapsed() > DRAIN_LIMIT {
            bail!("after {DRAIN_LIMIT:?} the broker still has not confirmed every message");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

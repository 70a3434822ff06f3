//! Callers that ask one request after another, each over a connection of its own.

use crate::cloud::NORMAL;
use crate::meters::Meters;
use crate::{BenchCall, Group};
use anyhow::{Result, bail};
use ebbtide_proto::v1;
use ebbtide_runtime::clock;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;

/// How long the broker may take to confirm what is left at the end.
const DRAIN_LIMIT: Duration = Duration::from_secs(120);

/// What came of a load.
#[derive(Debug, Default)]
pub(crate) struct LoadResult {
    /// How long each placement took, as its caller saw it.
    pub(crate) times: Vec<Duration>,
    /// Victims of all placements.
    pub(crate) victims: Vec<String>,
    /// From the first request to the last answer.
    pub(crate) elapsed: Duration,
}

/// Asks for so long.
pub(crate) async fn run(
    group: &Group<'_>,
    call: BenchCall,
    clients: u32,
    span: Duration,
) -> Result<LoadResult> {
    let mut callers = JoinSet::new();
    let mut connections = Vec::new();
    let all = group.peers.len() + 1;
    for caller in 0..clients as usize {
        connections.push(match (caller % all).checked_sub(1) {
            None => (
                group.region.scheduler().await?,
                group.region.servers().await?,
            ),
            Some(peer) => {
                let peer = &group.peers[peer];
                (peer.scheduler().await?, peer.servers().await?)
            }
        });
    }
    let began = clock::instant();
    for (mut scheduler, mut servers) in connections {
        callers.spawn(async move {
            let mut mine = LoadResult::default();
            while began.elapsed() < span {
                let request = v1::PlacementRequest {
                    count: 1,
                    flavor: NORMAL.to_owned(),
                    ..Default::default()
                };
                let asked = clock::instant();
                let decision = match call {
                    BenchCall::SelectDestinations => {
                        let select = v1::SelectDestinationsRequest {
                            request: Some(request),
                            wait_for_room: false,
                        };
                        scheduler.select_destinations(select).await?.into_inner().decision
                    }
                    BenchCall::CreateServers => {
                        let create = v1::CreateServersRequest {
                            max_price: String::new(),
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
                for placement in decision.placements {
                    mine.victims.extend(placement.victims.into_iter().map(|v| v.server_id));
                }
            }
            Ok(mine)
        });
    }
    let mut all = LoadResult::default();
    while let Some(caller) = callers.join_next().await {
        let mine = caller??;
        all.times.extend(mine.times);
        all.victims.extend(mine.victims);
    }
    all.elapsed = began.elapsed();
    Ok(all)
}

/// Waits until the broker has confirmed every message; answers how long that took.
pub(crate) async fn drained(group: &Group<'_>) -> Result<Duration> {
    let began: Instant = clock::instant();
    loop {
        if Meters::read(group).await?.outbox < 1.0 {
            return Ok(began.elapsed());
        }
        if began.elapsed() > DRAIN_LIMIT {
            bail!("after {DRAIN_LIMIT:?} the broker still has not confirmed every message");
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

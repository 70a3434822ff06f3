//! Tells what happens, as it happens.

use crate::scenario::{self, TENANT};
use anyhow::{Context, Result, bail};
use ebbtide_engine::papers::PaperTable;
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_proto::MAX_MESSAGE_BYTES;
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::scheduler_client::SchedulerClient;
use ebbtide_proto::v1::servers_client::ServersClient;
use std::collections::HashMap;
use std::io::Write;
use std::time::Duration;
use tokio_stream::StreamExt;
use tonic::transport::Channel;

/// How long the whole preemption may take beyond the grace period.
const PATIENCE: Duration = Duration::from_secs(60);

/// Where the story is told: standard output, or a test's buffer.
pub struct StoryWriter<W> {
    out: W,
    began: Timestamp,
    now: fn() -> Timestamp,
}

impl<W: Write> StoryWriter<W> {
    /// A teller that counts seconds from now.
    pub fn new(out: W, now: fn() -> Timestamp) -> Self {
        Self {
            out,
            began: now(),
            now,
        }
    }

    /// One line with the time since the beginning.
    ///
    /// # Errors
    /// The writer's.
    pub fn say(&mut self, text: &str) -> Result<()> {
        let millis = (self.now)().millis_since(self.began);
        writeln!(
            self.out,
            "{:>3}.{} s  {text}",
            millis / 1000,
            millis % 1000 / 100
        )?;
        self.out.flush()?;
        Ok(())
    }

    /// Lines below the last one.
    ///
    /// # Errors
    /// The writer's.
    pub fn more(&mut self, text: &str) -> Result<()> {
        writeln!(self.out, "         {text}")?;
        self.out.flush()?;
        Ok(())
    }
}

/// What came of the story.
#[derive(Debug)]
pub struct StoryResult {
    /// The host on which the new server runs.
    pub host: String,
    /// Names of the victims, sorted.
    pub victims: Vec<String>,
    pub server_id: String,
    /// Milliseconds from the request to the running server.
    pub took_millis: i64,
}

/// Loads the table, sends its request, and tells the rest.
///
/// # Errors
/// Whatever goes wrong; the region is left as it is.
pub async fn tell<W: Write>(
    endpoint: &str,
    table: &PaperTable,
    grace: Seconds,
    teller: &mut StoryWriter<W>,
) -> Result<StoryResult> {
    let channel = Channel::from_shared(endpoint.to_owned())?
        .connect()
        .await
        .with_context(|| format!("no region answers at {endpoint}"))?;
    let mut admin = AdminClient::new(channel.clone());
    let mut servers = ServersClient::new(channel.clone());
    let mut scheduler = SchedulerClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES);

    scenario::wait_for_hosts(&mut admin, table).await?;
    let summary = scheduler
        .region_summary(v1::RegionSummaryRequest {})
        .await?;
    let bus = summary.into_inner().bus;
    teller.say(&format!(
        "{} hosts have registered, 8 VCPU and 16 GB each.",
        table.hosts.len()
    ))?;
    scenario::create_flavors(&mut admin, grace).await?;
    scenario::load(&mut admin, &mut servers, table, (teller.now)()).await?;
    teller.say(&format!(
        "The cloud of {} runs (minutes since launch; p = preemptible):",
        table.title
    ))?;
    for host in &table.hosts {
        let list = |all: &[ebbtide_engine::papers::PaperInstance], mark: &str| -> Vec<String> {
            all.iter()
                .map(|i| format!("{} {mark}{} {} min", i.id, i.size, i.minutes))
                .collect()
        };
        let mut there = list(&host.normal, "");
        there.extend(list(&host.preemptible, "p."));
        teller.more(&format!("{}  {}", host.name, there.join(" · ")))?;
    }
    show_room(&mut admin, teller).await?;

    let flavor = scenario::flavor_name(&table.request, false);
    teller.say(&format!(
        "Tenant {TENANT:?} asks for one normal {flavor}. No host has that much free capacity."
    ))?;
    let mut events = scheduler
        .watch(v1::WatchRequest::default())
        .await?
        .into_inner();
    let asked = (teller.now)();
    let request = v1::PlacementRequest {
        count: 1,
        project_id: TENANT.to_owned(),
        flavor,
        ..v1::PlacementRequest::default()
    };
    let name = "urgent".to_owned();
    let created = servers
        .create_servers(v1::CreateServersRequest {
            max_price: String::new(),
            name,
            request: Some(request),
        })
        .await?
        .into_inner();
    let decision = created.decision.context("the region gave no decision")?;
    explain(&decision, teller)?;
    let Some(placement) = decision.placements.first() else {
        bail!(
            "no valid host: {}",
            decision.no_valid_host.map(|n| n.reason).unwrap_or_default()
        );
    };
    let names: HashMap<String, String> = placement
        .victims
        .iter()
        .map(|v| (v.server_id.clone(), v.name.clone()))
        .collect();
    let patience = PATIENCE + Duration::from_secs(u64::from(grace.0));
    let told = StoryNames { names, bus };
    let follow = follow(&mut events, &told, &placement.server_id, teller);
    tokio::time::timeout(patience, follow)
        .await
        .context("the new server did not run in time")??;
    let took_millis = (teller.now)().millis_since(asked);
    show_room(&mut admin, teller).await?;
    let mut victims: Vec<String> = told.names.into_values().collect();
    victims.sort();
    Ok(StoryResult {
        host: placement.host.clone(),
        victims,
        server_id: placement.server_id.clone(),
        took_millis,
    })
}

/// Both states of every host, in VCPU.
async fn show_room<W: Write>(
    admin: &mut AdminClient<Channel>,
    teller: &mut StoryWriter<W>,
) -> Result<()> {
    let hosts = admin
        .list_hosts(v1::ListHostsRequest {})
        .await?
        .into_inner()
        .hosts;
    teller.say("VCPUs by host (# normal, p preemptible, . free), and how many are free:")?;
    for host in hosts {
        if let Some(cpu) = host.resources.iter().find(|r| r.resource_class == "VCPU") {
            let bar = |n: u64, mark: &str| mark.repeat(usize::try_from(n).unwrap_or(0));
            let free = u64::try_from(cpu.free_full).unwrap_or(0);
            teller.more(&format!(
                "{}  [{}{}{}{}]  free, all: {}   free, normal only: {}",
                host.name,
                bar(cpu.normal, "#"),
                bar(cpu.preemptible, "p"),
                bar(cpu.leaving, "~"),
                bar(free, "."),
                cpu.free_full,
                cpu.free_normal
            ))?;
        }
    }
    Ok(())
}

/// The decision and why, from the explanation that came with it.
fn explain<W: Write>(decision: &v1::Decision, teller: &mut StoryWriter<W>) -> Result<()> {
    let Some(explanation) = &decision.explanation else {
        return Ok(());
    };
    teller.say(&format!(
        "Decided in one pass (policy {}, cost module {}):",
        explanation.policy, explanation.cost_module
    ))?;
    for instance in &explanation.instances {
        for step in instance.filters.iter().filter(|s| s.before != s.after) {
            let named: Vec<String> = step
                .dropped
                .iter()
                .map(|d| format!("{} ({})", d.host, d.reason))
                .collect();
            teller.more(&format!(
                "filter {}: {} -> {}  {}",
                step.filter,
                step.before,
                step.after,
                named.join(", ")
            ))?;
        }
        for host in &instance.ranking {
            let victims: Vec<&str> = host.victims.iter().map(|v| v.name.as_str()).collect();
            let cost = host
                .eviction_cost
                .map_or_else(|| "?".to_owned(), |c| format!("{:.0} min", c / 60.0));
            let mark = if host.chosen { "  <== cheapest" } else { "" };
            teller.more(&format!(
                "{}  evict {:<13} cost {cost}{mark}",
                host.host,
                victims.join("+")
            ))?;
        }
    }
    teller.say("The claim and the evacuations are durable. Only now the victims are told.")
}

/// The victims of the story by their ids, and the kind of bus that carries their notices.
struct StoryNames {
    names: HashMap<String, String>,
    bus: String,
}

/// What `notified` means: a broker has confirmed the notice, where there is one.
#[must_use]
pub fn notified(bus: &str, victim: &str) -> String {
    if bus == "amqp" {
        format!("notice for {victim} is confirmed by the broker")
    } else {
        format!("notice for {victim} is in its agent's queue, in this process")
    }
}

async fn follow<W: Write>(
    events: &mut tonic::Streaming<v1::WatchEvent>,
    told: &StoryNames,
    preemptor: &str,
    teller: &mut StoryWriter<W>,
) -> Result<()> {
    while let Some(event) = events.next().await {
        match event?.event {
            Some(v1::watch_event::Event::Evacuation(e)) => {
                if let Some(name) = told.names.get(&e.victim_id) {
                    let what = match e.state.as_str() {
                        "notified" => notified(&told.bus, name),
                        "draining" => {
                            format!(
                                "{name} on {} has its notice: {} s to go",
                                e.host, e.grace_seconds
                            )
                        }
                        "evacuated" => format!("{name} is gone, its room on {} is free", e.host),
                        "failed" => format!("{name} could not be evacuated: {}", e.reason),
                        "spared" => format!("{name} is spared: {}", e.reason),
                        _ => continue,
                    };
                    teller.say(&what)?;
                }
            }
            Some(v1::watch_event::Event::Server(s)) if s.id == preemptor => match s.status.as_str()
            {
                "building" => teller.say(&format!(
                    "All room is really free: {} is being started on {}",
                    s.name, s.host
                ))?,
                "active" => {
                    teller.say(&format!("{} runs on {}.", s.name, s.host))?;
                    return Ok(());
                }
                "error" => bail!("the new server failed: {}", s.fault_message),
                _ => {}
            },
            _ => {}
        }
    }
    bail!("the region ended the stream of events")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broker_confirms_a_notice_only_where_there_is_one() {
        assert_eq!(
            notified("amqp", "AP2"),
            "notice for AP2 is confirmed by the broker"
        );
        assert!(!notified("in-process", "AP2").contains("broker"));
    }
}

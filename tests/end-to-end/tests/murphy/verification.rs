//! What must be true in the end, by the files of agents and hypervisors, the callers' own notes,
//! and what the region says.

use crate::client::{PATIENCE, RetryingClient};
use crate::load::{Entry, Ledger};
use crate::watch::{HypervisorGuests, Seen};
use ebbtide_client::Region as Clients;
use ebbtide_harness::Deadline;
use ebbtide_integration_tests::Region;
use ebbtide_proto::v1;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::time::Duration;

const PAGE: u32 = 1000;
/// A report may be on its way still when all servers are at rest: of an end that was carried out
/// after the region had given it up, for example.
const LATE_REPORTS: Duration = Duration::from_secs(30);
/// States that last.
const AT_REST: [&str; 5] = ["active", "error", "preempted", "deleted", "stopped"];

/// Everything that the region has.
struct Found {
    servers: BTreeMap<String, v1::Server>,
    evacuations: Vec<v1::Evacuation>,
}

async fn all(client: &mut RetryingClient) -> Found {
    let mut servers = BTreeMap::new();
    let mut marker = String::new();
    loop {
        let list = v1::ListServersRequest {
            include_gone: true,
            limit: PAGE,
            marker: marker.clone(),
            ..Default::default()
        };
        let call = async |mut clients: Clients| clients.servers.list_servers(list.clone()).await;
        let page = client.ask("servers", call).await.unwrap().servers;
        let Some(last) = page.last() else { break };
        marker.clone_from(&last.id);
        servers.extend(page.into_iter().map(|server| (server.id.clone(), server)));
    }
    Found {
        servers,
        evacuations: evacuations(client).await,
    }
}

async fn evacuations(client: &mut RetryingClient) -> Vec<v1::Evacuation> {
    let mut all: Vec<v1::Evacuation> = Vec::new();
    loop {
        let list = v1::ListEvacuationsRequest {
            limit: PAGE,
            marker: all.last().map(|e| e.id.clone()).unwrap_or_default(),
            ..Default::default()
        };
        let call =
            async |mut clients: Clients| clients.servers.list_evacuations(list.clone()).await;
        let page = client.ask("evacuations", call).await.unwrap().evacuations;
        if page.is_empty() {
            return all;
        }
        all.extend(page);
    }
}

/// How many have been carried out so far.
pub(crate) async fn evacuated(client: &mut RetryingClient) -> u64 {
    let all = evacuations(client).await;
    all.iter().filter(|e| e.state == "evacuated").count() as u64
}

async fn until<F: AsyncFnMut(&mut RetryingClient) -> Result<(), String>>(
    client: &mut RetryingClient,
    mut look: F,
) {
    let deadline = Deadline::after(PATIENCE);
    while let Err(seen) = look(client).await {
        assert!(!deadline.has_passed(), "after {PATIENCE:?}: {seen}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

pub(crate) async fn until_hosts_are_up(client: &mut RetryingClient, wanted: usize) {
    until(client, async |client| hosts_are_up(client, wanted).await).await;
}

async fn hosts_are_up(client: &mut RetryingClient, wanted: usize) -> Result<(), String> {
    let call = async |mut clients: Clients| clients.admin.list_hosts(v1::ListHostsRequest {}).await;
    let hosts = client.ask("hosts", call).await.unwrap().hosts;
    let up = hosts.iter().filter(|host| host.health == "up").count();
    match up == wanted {
        true => Ok(()),
        false => Err(format!("{up} of {wanted} hosts are up")),
    }
}

/// Waits until nothing is under way and the audit of the scheduler on duty finds nothing.
pub(crate) async fn until_all_is_at_rest(client: &mut RetryingClient, hosts: usize) {
    until(client, async |client| {
        hosts_are_up(client, hosts).await?;
        let list = v1::ListServersRequest {
            limit: PAGE,
            ..Default::default()
        };
        let call = async |mut clients: Clients| clients.servers.list_servers(list.clone()).await;
        let servers = client.ask("servers", call).await.unwrap().servers;
        let restless: Vec<_> = servers
            .iter()
            .filter(|server| !AT_REST.contains(&server.status.as_str()))
            .map(|server| format!("{} {} on {}", server.id, server.status, server.host))
            .collect();
        if !restless.is_empty() {
            return Err(format!("{restless:?}"));
        }
        let call = async |mut clients: Clients| clients.admin.audit(v1::AuditRequest {}).await;
        let audit = client.ask("audit", call).await.unwrap();
        if !audit.on_duty {
            // Another one hears the agents.
            client.another();
            return Err("a scheduler that is not on duty was asked".to_owned());
        }
        match (audit.findings.is_empty(), audit.unsent_messages) {
            (true, 0) => Ok(()),
            (_, unsent) => Err(format!("{:?}, {unsent} unsent messages", audit.findings)),
        }
    })
    .await;
}

/// What the day has come to.
#[derive(Debug, Default)]
pub(crate) struct Verdict {
    pub(crate) evacuations: u64,
    /// Of these: victims whose preemptor ran on the host that they left.
    took_the_room: u64,
    /// Whose preemptor was deleted by its owner before it could run there.
    withdrawn: u64,
    /// Whose preemptor had to go elsewhere after that, or found no place that worked.
    moved_on: u64,
    spared: u64,
    failed: u64,
    servers: usize,
    reads: u64,
    lost: BTreeSet<String>,
    over: BTreeSet<String>,
    /// Started elsewhere after a start that was given up, and came up late there: what is left must
    /// go, and has gone in the end.
    twice: BTreeSet<String>,
    without_preemptor: BTreeSet<String>,
    disagree: BTreeSet<String>,
}

impl Verdict {
    /// What is true in the end, as soon as the region knows of all that agents have carried out.
    pub(crate) async fn settled(
        client: &mut RetryingClient,
        region: &Region,
        hosts: &[String],
        ledger: &Ledger,
        seen: &Seen,
    ) -> Self {
        let late = Deadline::after(LATE_REPORTS);
        loop {
            let found = all(client).await;
            let verdict = Self::of(region, hosts, &ledger.all(), seen, &found);
            if verdict.disagree.is_empty() || late.has_passed() {
                return verdict;
            }
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }

    fn of(
        region: &Region,
        hosts: &[String],
        ledger: &BTreeMap<String, Entry>,
        seen: &Seen,
        found: &Found,
    ) -> Self {
        let mut verdict = Self {
            servers: ledger.len(),
            reads: seen.reads,
            over: seen.over.clone(),
            twice: seen.twice.clone(),
            ..Self::default()
        };
        verdict.count_evacuations(ledger, seen, found);
        verdict.compare_journals(seen, found);
        verdict.look_for_servers(region, hosts, ledger, found);
        for host in hosts {
            // The hypervisor has refused what did not fit: the scheduler has given room twice.
            let log = region.agent_log(host);
            let refused = log.lines().filter(|line| line.contains(" asked for, "));
            verdict.over.extend(refused.map(str::to_owned));
        }
        verdict
    }

    fn count_evacuations(&mut self, ledger: &BTreeMap<String, Entry>, seen: &Seen, found: &Found) {
        for evacuation in &found.evacuations {
            match evacuation.state.as_str() {
                "spared" => self.spared += 1,
                "failed" => self.failed += 1,
                "evacuated" => {
                    self.evacuations += 1;
                    self.judge(evacuation, ledger, seen, found);
                }
                other => drop(
                    self.disagree
                        .insert(format!("{} is {other}", evacuation.id)),
                ),
            }
        }
    }

    /// Checks that the evacuation served a normal preemptor that came for the capacity.
    fn judge(
        &mut self,
        evacuation: &v1::Evacuation,
        ledger: &BTreeMap<String, Entry>,
        seen: &Seen,
        found: &Found,
    ) {
        let victim = ledger.get(&evacuation.victim_id);
        if victim.is_none_or(|victim| victim.normal) {
            self.without_preemptor
                .insert(format!("no victim: {evacuation:?}"));
        }
        let id = &evacuation.preemptor_id;
        let preemptor = ledger.get(id).zip(found.servers.get(id));
        let Some((asked, server)) = preemptor.filter(|(asked, _)| asked.normal) else {
            self.without_preemptor.insert(format!("{evacuation:?}"));
            return;
        };
        let ran = seen.ran.get(id);
        if ran.is_some_and(|hosts| hosts.contains(&evacuation.host)) {
            self.took_the_room += 1;
        } else if ran.is_some() || !server.fault_code.is_empty() {
            self.moved_on += 1;
        } else if asked.deleted {
            self.withdrawn += 1;
        } else {
            self.without_preemptor
                .insert(format!("{evacuation:?}: {server:?}"));
        }
    }

    /// What agents have done, by their journals, is what the region believes.
    fn compare_journals(&mut self, seen: &Seen, found: &Found) {
        let known: BTreeMap<&str, &v1::Evacuation> = found
            .evacuations
            .iter()
            .map(|e| (e.id.as_str(), e))
            .collect();
        for (evacuation, victim) in &seen.ended {
            match known.get(evacuation.as_str()) {
                Some(known) if known.state == "evacuated" && known.victim_id == *victim => {}
                other => drop(self.disagree.insert(format!(
                    "an agent has carried out {evacuation} of {victim}; the region says {other:?}"
                ))),
            }
        }
    }

    fn look_for_servers(
        &mut self,
        region: &Region,
        hosts: &[String],
        ledger: &BTreeMap<String, Entry>,
        found: &Found,
    ) {
        let mut running: BTreeMap<String, Vec<&str>> = BTreeMap::new();
        for host in hosts {
            for id in HypervisorGuests::read(&region.agent_dir(host))
                .servers
                .into_keys()
            {
                running.entry(id).or_default().push(host);
            }
        }
        for (id, entry) in ledger {
            let server = found.servers.get(id);
            let on = running.get(id).map(Vec::as_slice).unwrap_or_default();
            let status = server.map(|server| server.status.as_str());
            let right = match status {
                Some("active") => server.is_some_and(|server| on == [server.host.as_str()]),
                Some("preempted") => {
                    let its = |e: &&v1::Evacuation| e.victim_id == *id && e.state == "evacuated";
                    on.is_empty() && !entry.normal && found.evacuations.iter().any(|e| its(&e))
                }
                Some("deleted") => on.is_empty() && entry.deleted,
                // There was no place: it never ran, or nothing that was tried worked.
                Some("error") => {
                    let no_place = server.is_some_and(|s| s.fault_code == "EB-FAULT-001");
                    on.is_empty() && no_place
                }
                Some(_) => false,
                None => !entry.acknowledged && on.is_empty(),
            };
            if !right {
                let what = format!("{id} {entry:?} runs on {on:?}: {server:?}");
                self.lost.insert(what);
            }
        }
        for id in running.keys().filter(|id| !ledger.contains_key(*id)) {
            self.lost
                .insert(format!("{id} runs, and no caller asked for it"));
        }
    }

    /// Nothing of what must not be is there.
    pub(crate) fn insist(&self) {
        let wrong: Vec<_> = [
            ("lost", &self.lost),
            ("over capacity", &self.over),
            ("evacuated without a preemptor", &self.without_preemptor),
            ("journal and region disagree", &self.disagree),
        ]
        .into_iter()
        .filter(|(_, which)| !which.is_empty())
        .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} servers asked for; {} lost, {} over capacity, {} evacuated without a preemptor, {} journals disagree; \
             the room was taken by {}, {} withdrew, {} moved on; {} spared, {} failed; {} were on two hosts for a moment; {} states of hypervisors seen",
            self.servers,
            self.lost.len(),
            self.over.len(),
            self.without_preemptor.len(),
            self.disagree.len(),
            self.took_the_room,
            self.withdrawn,
            self.moved_on,
            self.spared,
            self.failed,
            self.twice.len(),
            self.reads,
        )
    }
}

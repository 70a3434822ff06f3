//! The host's guests and its agent: what really runs.

use super::super::agents::{Agent, evacuated};
use super::super::full_host::{VICTIM, on_host, victim, write};
use super::{SeededWorld, now};
use crate::preemption::{Preemption, PreemptionState};
use ebbtide_model::message::{Body, EvacuationFailed, Notice, Spared};
use ebbtide_model::{EvacuationId, Timestamp};
use rand::{Rng, RngExt};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use uuid::Uuid;

const HOST: &str = "compute1";
/// VCPUs of the host, and of each guest that can leave.
const HAS: u64 = 8;
const EACH: u64 = 2;

/// What runs on the host.
#[derive(Debug, Default)]
pub(super) struct Guests {
    ended: BTreeSet<Uuid>,
    started: BTreeMap<Uuid, u64>,
}

impl Guests {
    pub(super) fn runs(&self, server: Uuid) -> bool {
        !self.ended.contains(&server)
    }

    pub(super) fn started(&self, newcomer: Uuid) -> bool {
        self.started.contains_key(&newcomer)
    }

    pub(super) fn ended(&self) -> usize {
        self.ended.len()
    }

    /// Starts a newcomer; how many VCPUs run then.
    pub(super) fn start(&mut self, newcomer: Uuid, vcpus: u64) -> u64 {
        self.started.insert(newcomer, vcpus);
        let victims = (1..=4).map(victim).filter(|server| self.runs(*server));
        victims.count() as u64 * EACH + self.started.values().sum::<u64>()
    }

    pub(super) fn fits(vcpus: u64) -> bool {
        vcpus <= HAS
    }
}

/// What the agent does about an evacuation.
#[derive(Debug, Clone)]
enum AgentAct {
    /// It ends the guest then.
    Ends(Timestamp, Notice),
    Said(Body),
}

impl SeededWorld {
    /// The agent of the host, until the world is over.
    pub(super) async fn play(&self, mut agent: Agent) {
        let mut chance = self.chance(4);
        let mut deeds: BTreeMap<EvacuationId, AgentAct> = BTreeMap::new();
        loop {
            let next = deeds.values().filter_map(|deed| match deed {
                AgentAct::Ends(at, _) => Some(*at),
                AgentAct::Said(_) => None,
            });
            let next = next.min();
            let due = async {
                match next {
                    Some(at) => {
                        let millis = at.millis_since(now()).max(0).unsigned_abs();
                        tokio::time::sleep(Duration::from_millis(millis)).await;
                    }
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                said = agent.listens() => {
                    self.hears(&agent, said, &mut deeds, &mut chance).await;
                }
                () = due => self.ends_due(&agent, &mut deeds).await,
                () = self.over.cancelled() => return,
            }
        }
    }

    async fn hears(
        &self,
        agent: &Agent,
        said: Body,
        deeds: &mut BTreeMap<EvacuationId, AgentAct>,
        chance: &mut impl Rng,
    ) {
        match said {
            Body::Notice(notice) => self.notice(agent, notice, deeds, chance).await,
            Body::Spare(spare) => {
                let id = spare.evacuation_id;
                let said = match deeds.get(&id) {
                    Some(AgentAct::Said(said @ Body::Evacuated(_))) => said.clone(),
                    _ => Body::Spared(Spared {
                        evacuation_id: id,
                        host: HOST.to_owned(),
                        server_id: spare.server_id,
                    }),
                };
                self.tell(format!(
                    "{} is spared: {}",
                    spare.server_id,
                    said.event_type()
                ));
                deeds.insert(id, AgentAct::Said(said.clone()));
                agent.says(said).await;
            }
            other => panic!("the agent was told {other:?}"),
        }
    }

    async fn notice(
        &self,
        agent: &Agent,
        notice: Notice,
        deeds: &mut BTreeMap<EvacuationId, AgentAct>,
        chance: &mut impl Rng,
    ) {
        self.is_for_something(&notice).await;
        let id = notice.evacuation_id;
        match deeds.get(&id) {
            Some(AgentAct::Ends(..)) => return,
            Some(AgentAct::Said(said)) => return agent.says(said.clone()).await,
            None => {}
        }
        if !self.guests().runs(notice.server_id.0) {
            return agent.says(evacuated(HOST, id, notice.server_id)).await;
        }
        if notice.begin_before <= now() {
            return;
        }
        match chance.random_range(0..10) {
            // The message is lost to the agent.
            0 => {}
            1 => {
                self.tell(format!("{} cannot be ended", notice.server_id));
                let said = Body::EvacuationFailed(EvacuationFailed {
                    evacuation_id: id,
                    host: HOST.to_owned(),
                    server_id: notice.server_id,
                    reason: "the hypervisor does not answer".to_owned(),
                    still_running: true,
                    late_attempt: None,
                });
                deeds.insert(id, AgentAct::Said(said.clone()));
                agent.says(said).await;
            }
            _ => {
                let grace = chance.random_range(0..600);
                let at = Timestamp::from_millis(now().as_millis() + grace);
                deeds.insert(id, AgentAct::Ends(at, notice));
            }
        }
    }

    /// What became of the record for which a guest has to leave, as the ledger has it.
    async fn state_behind(&self, notice: &Notice) -> Option<PreemptionState> {
        let rows = self.full.ledger.rows_of_late(3_600_000).await.unwrap();
        let mut records = rows
            .into_iter()
            .filter_map(|row| serde_json::from_value::<Preemption>(row.document).ok());
        let record = records.find(|record| {
            let mut victims = record.victims.iter();
            victims.any(|victim| victim.evacuation == notice.evacuation_id)
        });
        record.map(|record| record.state)
    }

    /// A notice is sent only for a swap that Placement has taken.
    async fn is_for_something(&self, notice: &Notice) {
        let server = notice.server_id.0;
        let whole = self.full.has(server) == on_host(&VICTIM);
        let state = self.state_behind(notice).await;
        self.tell(format!(
            "{server} has its notice {} ({state:?})",
            notice.attempt
        ));
        self.promise(state.is_some(), || {
            format!("no record tells why {server} has to leave")
        });
        // Read after what it holds: it was not given back by then.
        let taken = !(whole && state == Some(PreemptionState::Planned));
        self.promise(taken, || format!("{server} has a notice before the swap"));
    }

    async fn ends_due(&self, agent: &Agent, deeds: &mut BTreeMap<EvacuationId, AgentAct>) {
        let due: Vec<(EvacuationId, Notice)> = deeds
            .iter()
            .filter_map(|(id, deed)| match deed {
                AgentAct::Ends(at, notice) if *at <= now() => Some((*id, notice.clone())),
                _ => None,
            })
            .collect();
        for (id, notice) in due {
            let server = notice.server_id.0;
            // A record that is called off is over when its agents have heard of it.
            let over = [
                Some(PreemptionState::Withdrawn),
                Some(PreemptionState::Refused),
            ];
            let state = self.state_behind(&notice).await;
            self.promise(!over.contains(&state), || {
                format!("{server} ends, and its record is {state:?}")
            });
            self.guests().ended.insert(server);
            self.tell(format!("{server} is ended"));
            // Nova deletes it, and what it holds.
            let sql =
                format!("UPDATE instances SET deleted = id, host = NULL WHERE uuid = '{server}'");
            self.full.bench.nova.cell.sql(&sql).await;
            let freed = self
                .full
                .bench
                .placement
                .model(|model| write(model, server, &[]));
            assert_eq!(freed, 204);
            let said = evacuated(HOST, id, notice.server_id);
            deeds.insert(id, AgentAct::Said(said.clone()));
            agent.says(said).await;
        }
    }
}

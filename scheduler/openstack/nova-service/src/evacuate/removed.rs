//! What the scheduler has of a host that is removed: its agent and the agent's queue.

use super::agent_sessions::{AgentSessions, HeartbeatResult};
use super::{Evacuations, read};
use crate::removals::RemovedAgent;
use ebbtide_model::message::Heartbeat;
use ebbtide_store::ledger::LedgerError;
use std::sync::PoisonError;

impl Evacuations {
    /// Number of victims of open preemptions on a host.
    ///
    /// # Errors
    /// Those of the ledger.
    pub(crate) async fn under_way_on(&self, host: &str) -> Result<usize, LedgerError> {
        let rows = self.shared.ledger.open_rows().await?;
        let records = rows.iter().filter_map(read);
        let on_host = records.map(|record| {
            let victims = record.victims.iter().filter(|v| v.host == host);
            victims.count()
        });
        Ok(on_host.sum())
    }

    /// True if an agent has reported for a host that Nova does not have.
    pub(crate) fn has_refused_agent(&self, host: &str) -> bool {
        self.agents(|agents| agents.is_refused(host))
    }

    /// Forgets the agent of a host.
    pub(crate) fn forget_agent(&self, host: &str) {
        self.agents(|agents| agents.forget(host));
    }

    /// Deletes the queue of a host's agent. What it answers is part of the removal: the scheduler's
    /// login may have no right to it, and then an administrator of the broker deletes it.
    pub(crate) async fn delete_queue_of(&self, host: &str) -> RemovedAgent {
        let queue = match self.shared.prefix.agent(host) {
            Ok(queue) => queue,
            // No queue can have such a name, so there was no agent.
            Err(error) => {
                return RemovedAgent {
                    queue: String::new(),
                    problem: Some(error.to_string()),
                };
            }
        };
        let deleted = self.shared.bus.delete(&queue).await;
        RemovedAgent {
            queue: queue.to_string(),
            problem: deleted.err().map(|error| error.to_string()),
        }
    }

    /// Handles a heartbeat of a host that Nova does not have, as far as this scheduler knows. Each
    /// session of the agent is reported once, after a look at Nova's databases.
    pub(super) fn refuse_agent(&self, beat: &Heartbeat) {
        self.shared.metrics.refused_agent();
        if !self.agents(|agents| agents.refuse(beat)) {
            return;
        }
        let (all, host, session) = (self.clone(), beat.host.clone(), beat.session);
        self.shared.tasks.spawn("agents-refused", async move {
            let facts = &all.shared.facts;
            facts.database.freshen().await;
            if facts.read(|cloud| cloud.has_service(&host)) {
                // A new host.
                all.forget_agent(&host);
                return;
            }
            tracing::error!(
                code = "EB-DOOR-071",
                host,
                %session,
                "an agent reports for a host of which Nova has no compute service: it gets nothing \
                 to do. If the host is new, start its nova-compute; if it was removed, stop the \
                 agent and delete its login at the broker"
            );
        });
    }

    fn agents<T>(&self, look: impl FnOnce(&mut AgentSessions) -> T) -> T {
        // No code under this lock can panic halfway.
        let agents = self.shared.agents.lock();
        look(&mut agents.unwrap_or_else(PoisonError::into_inner))
    }

    /// Notes a heartbeat of a host that Nova has.
    pub(super) fn hear_agent(&self, beat: &Heartbeat) -> HeartbeatResult {
        let now = ebbtide_runtime::clock::now();
        self.agents(|agents| agents.hear(beat, now))
    }
}

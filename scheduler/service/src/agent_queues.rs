//! What a removed host leaves at the broker.

use crate::agent_logins::AgentLogins;
use ebbtide_bus::{Bus, QueuePrefix};
use ebbtide_proto::v1;
use std::sync::Arc;

/// The agents' queues and logins at the broker.
#[derive(Clone)]
pub(crate) struct AgentQueues {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) prefix: QueuePrefix,
    pub(crate) logins: AgentLogins,
}

impl AgentQueues {
    /// Deletes the queue of a removed host. The removal is durable already, so a failure is part of
    /// the answer: where agents have logins of their own, the scheduler's login may not delete
    /// their queues, and an administrator of the broker does.
    pub(crate) async fn delete(&self, host: &str) -> v1::RemoveHostResponse {
        let login = self.logins.own(host);
        let (queue, deleted) = match self.prefix.agent(host) {
            Ok(queue) => (queue.to_string(), self.bus.delete(&queue).await),
            Err(error) => (String::new(), Err(error)),
        };
        let problem = deleted.err().map(|error| error.to_string());
        v1::RemoveHostResponse {
            queue,
            queue_deleted: problem.is_none(),
            queue_problem: problem.unwrap_or_default(),
            login,
        }
    }
}

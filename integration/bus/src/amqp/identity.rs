//! The identity of publishers on the bus, proven by the broker.
//!
//! Without it every process publishes through the broker's default exchange, where a routing key is
//! the name of a queue. A user that may write there may write into every queue, including other
//! hosts' notices. With it agents write to one exchange of their own, `PREFIX.reports`, under one
//! routing key of their own, `report.USER` (or `dead-letter.USER`). The operator can grant each of
//! them by a permission and a topic permission. Every message carries the property `user-id`.
//! RabbitMQ accepts it only if it is the user of the connection ("Validated User-ID"), so the
//! scheduler can rely on it.

use lapin::options::{ExchangeDeclareOptions, QueueBindOptions};
use lapin::types::FieldTable;
use lapin::{Channel, ExchangeKind};

use super::topology::StepError;
use crate::{QueueName, QueuePrefix};

/// The part that this process plays on a bus with proven identities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BusIdentity {
    /// No identities: every queue is written to directly.
    #[default]
    None,
    /// The scheduler: makes the exchange and reads what comes through it.
    Scheduler,
    /// An agent: writes to the exchange only.
    Agent,
}

/// The exchange to which agents write.
pub(crate) fn exchange(prefix: &QueuePrefix) -> String {
    format!("{prefix}.reports")
}

/// The first word of the routing key under which agents write to this queue through the exchange;
/// none for queues that they do not write to.
fn routing_key_prefix(queue: &QueueName) -> Option<&'static str> {
    if *queue == queue.prefix().scheduler() {
        Some("report")
    } else if *queue == queue.dead_letter() {
        Some("dead-letter")
    } else {
        None
    }
}

/// Exchange and routing key for a message to a queue.
pub(crate) fn route(identity: BusIdentity, user: &str, queue: &QueueName) -> (String, String) {
    match (identity, routing_key_prefix(queue)) {
        (BusIdentity::Agent, Some(word)) => (exchange(queue.prefix()), format!("{word}.{user}")),
        // The default exchange routes to the queue of the routing key's name.
        _ => (String::new(), queue.as_str().to_owned()),
    }
}

/// True if the scheduler declares this queue, and this process must not.
pub(crate) fn scheduler_declares(identity: BusIdentity, queue: &QueueName) -> bool {
    identity == BusIdentity::Agent && routing_key_prefix(queue).is_some()
}

/// The exchange and the routing key to which a quorum queue sends messages that it drops after too
/// many deliveries.
pub(crate) fn dead_letters(
    identity: BusIdentity,
    user: &str,
    queue: &QueueName,
) -> (String, String) {
    route(identity, user, &queue.dead_letter())
}

/// Declares the exchange to which agents write, and binds a queue of the scheduler to it.
pub(crate) async fn bind(
    channel: &Channel,
    identity: BusIdentity,
    queue: &QueueName,
) -> Result<(), StepError> {
    let (BusIdentity::Scheduler, Some(word)) = (identity, routing_key_prefix(queue)) else {
        return Ok(());
    };
    let exchange = exchange(queue.prefix());
    let describe = || format!("make the exchange {exchange} and bind {queue} to it");
    channel
        .exchange_declare(
            exchange.as_str().into(),
            ExchangeKind::Topic,
            ExchangeDeclareOptions {
                durable: true,
                ..ExchangeDeclareOptions::default()
            },
            FieldTable::default(),
        )
        .await
        .map_err(|error| StepError::during(&error, describe))?;
    channel
        .queue_bind(
            queue.as_str().into(),
            exchange.as_str().into(),
            format!("{word}.#").as_str().into(),
            QueueBindOptions::default(),
            FieldTable::default(),
        )
        .await
        .map_err(|error| StepError::during(&error, describe))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_reaches_the_scheduler_and_the_dead_letters_through_its_own_key_only() {
        let prefix = QueuePrefix::default();
        let to = |queue: &QueueName| route(BusIdentity::Agent, "agent-h.1", queue);
        let (reports, key) = to(&prefix.scheduler());
        assert_eq!(
            (reports.as_str(), key.as_str()),
            ("ebbtide.reports", "report.agent-h.1")
        );
        assert_eq!(to(&prefix.dead_letter()).1, "dead-letter.agent-h.1");
        let own = prefix.agent("h.1").unwrap();
        assert!(
            scheduler_declares(BusIdentity::Agent, &prefix.scheduler())
                && !scheduler_declares(BusIdentity::Agent, &own)
        );
        let plain = route(BusIdentity::Scheduler, "s", &own);
        assert_eq!(plain, (String::new(), "ebbtide.agent.h.1".to_owned()));
    }
}

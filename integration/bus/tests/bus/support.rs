//! Small helpers: unique names, messages, and waiting with a limit.

use std::future::Future;
use std::time::Duration;

use ebbtide_bus::{Bus, BusStatus, Delivery, OutgoingMessage, QueuePrefix, Subscription};
use ebbtide_harness::{RabbitMq, SharedBroker, SharedServers};
use uuid::Uuid;

/// Generous: a loaded machine restarts a RabbitMQ in far less.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for `future`, and panics with a message if it takes longer than `PATIENCE`.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain for this: {what}"),
    }
}

/// A prefix that no other test uses.
pub fn unique_prefix() -> QueuePrefix {
    QueuePrefix::new(&format!("t{}", Uuid::new_v4().simple())).unwrap()
}

/// A message with a fresh id.
pub fn message(text: &str) -> OutgoingMessage {
    OutgoingMessage::cloud_event(Uuid::new_v4(), text.as_bytes().to_vec())
}

pub async fn next(subscription: &mut Subscription) -> Delivery {
    soon("the next delivery", subscription.next())
        .await
        .expect("the subscription ended")
}

pub fn text(delivery: &Delivery) -> &str {
    std::str::from_utf8(&delivery.body).unwrap()
}

/// Waits until the bus has the wanted status.
pub async fn status(bus: &dyn Bus, what: &str, wanted: impl Fn(&BusStatus) -> bool) -> BusStatus {
    let mut status = bus.status();
    let seen = soon(what, status.wait_for(|status| wanted(status))).await;
    seen.expect("the bus is still there").clone()
}

/// The broker that all tests share. To be kept until the test ends: it may be this process's own.
pub async fn shared_broker() -> SharedBroker {
    SharedServers::rabbitmq()
        .await
        .expect("a RabbitMQ to test with")
}

/// A broker of the test's own, to be ill-treated.
pub async fn private_broker() -> RabbitMq {
    RabbitMq::start().await.expect("a private RabbitMQ")
}

//! The bus's two links, and what their events mean for its status.

use std::sync::Arc;

use ebbtide_amqp::{ClientError, ConnectionPurpose, Dialer, LinkEvent, LinkPolicy};
use ebbtide_runtime::clock;
use tokio_util::sync::CancellationToken;

use super::config::AmqpConfig;
use super::hosts::LastGoodHost;
use crate::backoff::ExponentialBackoff;
use crate::status::StatusBoard;
use crate::{BusError, BusStatus};

/// A supervised connection of the bus.
pub(crate) type Link = ebbtide_amqp::Link<BusError>;

/// Starts a link. It ends when `stop` is cancelled.
pub(crate) fn start(
    dialer: Arc<Dialer>,
    config: &AmqpConfig,
    purpose: ConnectionPurpose,
    board: Arc<StatusBoard>,
    stop: CancellationToken,
) -> Link {
    // The connection for reading opens while the bus is already in use. Its start is therefore not
    // shown as a problem; a failed attempt is.
    if purpose == ConnectionPurpose::Publish {
        board.set(purpose, StatusBoard::connecting());
    }
    let seed = config.jitter_seed ^ purpose as u64;
    let policy = LinkPolicy {
        task: "bus-link",
        purpose,
        backoff: Box::new(ExponentialBackoff::new(config.reconnect, seed)),
        hosts: Box::new(LastGoodHost::new(config.brokers.len())),
        // When a broker comes back, thousands of agents would connect at once.
        port_probe: None,
    };
    let observer = move |event: LinkEvent<'_, BusError>| match event {
        LinkEvent::Ready => board.set(purpose, BusStatus::Connected),
        LinkEvent::Blocked(reason) => {
            let (since, reason) = (clock::wall(), reason.to_owned());
            board.set(purpose, BusStatus::Blocked { since, reason });
        }
        LinkEvent::Failed(broker, error) => {
            board.failed(purpose, format!("{broker}: {}", error.cause()), true);
        }
        LinkEvent::Lost(why) => board.failed(purpose, why.to_owned(), false),
        LinkEvent::Closed => board.set(purpose, BusStatus::Closed),
    };
    Link::start(dialer, policy, observer, stop)
}

impl ClientError for BusError {
    fn code(&self) -> &'static str {
        self.code()
    }

    fn refused(operation: String, detail: String) -> Self {
        Self::Refused { operation, detail }
    }

    fn closed() -> Self {
        Self::Closed
    }

    fn lost(broker: &str, problem: String) -> Self {
        Self::Unavailable {
            operation: "keep the connection".to_owned(),
            waited_seconds: 0,
            brokers: broker.to_owned(),
            last_problem: problem,
        }
    }
}

//! What is owed to the broker for a delivery.

use std::sync::Arc;

use ebbtide_amqp::BrokerSession;
use futures::FutureExt;
use lapin::Acker;
use lapin::options::{BasicAckOptions, BasicNackOptions, BasicRejectOptions};

/// A delivery that is not acknowledged yet. On a dead channel all of this does nothing: the broker
/// redelivers.
#[derive(Debug)]
pub(crate) struct Receipt {
    acker: Acker,
    session: Arc<BrokerSession>,
    /// Keeps the channel open: closing it would give the message to another server while it is
    /// worked on.
    _channel: lapin::Channel,
}

impl Receipt {
    pub(crate) fn new(acker: Acker, session: Arc<BrokerSession>, channel: lapin::Channel) -> Self {
        Self {
            acker,
            session,
            _channel: channel,
        }
    }

    /// The message is done with.
    pub(crate) async fn ack(self) {
        tokio::select! {
            biased;
            sent = self.acker.ack(BasicAckOptions::default()) => {
                if !matches!(sent, Ok(true)) {
                    tracing::debug!("an ack came too late: its channel is gone");
                }
            }
            () = self.session.gone().cancelled() => {
                tracing::debug!("an ack was lost with its connection");
            }
        }
    }

    /// The message is of no use to anybody.
    pub(crate) async fn reject(self) {
        let throw_away = BasicRejectOptions { requeue: false };
        tokio::select! {
            biased;
            _ = self.acker.reject(throw_away) => {}
            () = self.session.gone().cancelled() => {}
        }
    }

    /// Gives the message back to the broker, for another delivery.
    pub(crate) fn requeue(self) {
        let requeue = BasicNackOptions {
            requeue: true,
            ..BasicNackOptions::default()
        };
        // lapin queues the frame in the first poll; only the wait until it is written is cut short.
        let _ = self.acker.nack(requeue).now_or_never();
    }
}

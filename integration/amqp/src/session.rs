//! One connection, from its login to its first failure.
//!
//! lapin's automatic recovery is off. A session is built once, used until its first failure, and
//! thrown away whole: with it go its channels, consumers and pending confirms. There is then no
//! half-recovered state to reason about, and every retry above this layer starts from nothing.
//!
//! When a connection dies in the middle of an operation, lapin 4.12 does not always complete that
//! operation: an ack was seen to wait without end. All waits for lapin therefore also wait for
//! [`BrokerSession::gone`], which the supervisor sets as soon as it knows that the connection is
//! lost.

use std::fmt;
use std::time::Duration;

use futures::StreamExt;
use futures::stream::BoxStream;
use lapin::{Connection, Event};
use tokio_util::sync::CancellationToken;

use crate::socket::SocketHandle;

/// Limit for a polite goodbye; after it the socket is cut.
const GOODBYE: Duration = Duration::from_secs(2);

/// Interval of looks at lapin's state. lapin reports most failures as an event, but a close with an
/// unknown reply code makes no event.
const LIVENESS_CHECK: Duration = Duration::from_secs(1);

/// The use of a connection. Reading and writing are apart, because a broker that is short of memory
/// blocks the connections that publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectionPurpose {
    /// Messages to the broker.
    Publish,
    /// Messages from the broker, and their acknowledgements.
    Consume,
    /// Nothing: whether a new login is accepted.
    Test,
}

impl ConnectionPurpose {
    /// The word for logs and for the connection's name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Publish => "publish",
            Self::Consume => "consume",
            Self::Test => "test of a new login",
        }
    }
}

/// A living connection, used by many tasks at once.
pub struct BrokerSession {
    /// Grows with every connection of the same link.
    pub id: u64,
    /// The broker, without credentials.
    pub broker: String,
    pub(crate) connection: Connection,
    pub(crate) socket: SocketHandle,
    pub(crate) gone: CancellationToken,
    pub(crate) goodbye: &'static str,
}

/// A change of a session, for its supervisor.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum SessionEvent {
    Blocked(String),
    Unblocked,
    Lost(String),
}

impl BrokerSession {
    /// Opens a channel; it closes itself when its last clone is dropped.
    ///
    /// # Errors
    ///
    /// Those of lapin.
    pub async fn channel(&self) -> lapin::Result<lapin::Channel> {
        self.connection.create_channel().await
    }

    /// False as soon as the connection is known to be lost or closed.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        self.connection.status().connected() && !self.gone.is_cancelled()
    }

    /// Set when this connection is lost or closed.
    #[must_use]
    pub fn gone(&self) -> &CancellationToken {
        &self.gone
    }

    /// The stream from which [`BrokerSession::wait`] reads. To be made once, right after
    /// connecting.
    pub(crate) fn events(&self) -> BoxStream<'static, Event> {
        self.connection.events_listener().boxed()
    }

    /// Waits for the next change that the supervisor must know.
    pub(crate) async fn wait(&self, events: &mut BoxStream<'static, Event>) -> SessionEvent {
        loop {
            match tokio::time::timeout(LIVENESS_CHECK, events.next()).await {
                Ok(Some(Event::Error(error))) => return SessionEvent::Lost(error.to_string()),
                Ok(Some(Event::ConnectionBlocked(reason))) => return SessionEvent::Blocked(reason),
                Ok(Some(Event::ConnectionUnblocked)) => return SessionEvent::Unblocked,
                Ok(Some(_)) => {}
                Ok(None) | Err(_) if self.is_alive() => {}
                Ok(None) | Err(_) => {
                    return SessionEvent::Lost("the broker closed the connection".to_owned());
                }
            }
        }
    }

    /// Says goodbye to the broker, so that it logs no error, and cuts the socket.
    pub(crate) async fn close(&self) {
        let goodbye = self.connection.close(200, self.goodbye.into());
        if let Ok(Err(error)) = tokio::time::timeout(GOODBYE, goodbye).await {
            tracing::debug!(broker = %self.broker, %error, "the goodbye was not heard");
        }
        self.discard();
    }

    /// Cuts the socket of a connection that has failed, and notifies all tasks that wait on it.
    pub(crate) fn discard(&self) {
        self.gone.cancel();
        self.socket.shut_down();
    }
}

impl Drop for BrokerSession {
    fn drop(&mut self) {
        self.discard();
    }
}

impl fmt::Debug for BrokerSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Session({} on {})", self.id, self.broker)
    }
}

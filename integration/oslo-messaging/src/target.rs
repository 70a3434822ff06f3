//! Where a request goes (oslo_messaging/target.py).

use crate::{MessagingError, RpcVersion};

/// AMQP names are short strings (AMQP 0-9-1 section 4.2.5.3).
const MAX_NAME_BYTES: usize = 255;

/// Where a request goes, and in which version of which interface it speaks.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Target {
    /// The exchange; the transport's `control_exchange` if not said.
    pub exchange: Option<String>,
    /// The topic, for example `scheduler`.
    pub topic: String,
    /// One server of those that listen on the topic; any of them if not said.
    pub server: Option<String>,
    /// To all servers of the topic. For casts only.
    pub fanout: bool,
    /// The interface; most have no name.
    pub namespace: Option<String>,
    /// The version of the interface that the request needs. Servers take `None` for 1.0.
    pub version: Option<RpcVersion>,
}

impl Target {
    /// Any server that listens on `topic`.
    #[must_use]
    pub fn topic(topic: impl Into<String>) -> Self {
        Self {
            topic: topic.into(),
            ..Self::default()
        }
    }

    /// The same in this version.
    #[must_use]
    pub fn version(mut self, major: u32, minor: u32) -> Self {
        self.version = Some(RpcVersion::new(major, minor));
        self
    }

    /// The same in this namespace.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }

    /// The same to this server.
    #[must_use]
    pub fn server(mut self, server: impl Into<String>) -> Self {
        self.server = Some(server.into());
        self
    }

    /// The same to all servers of the topic.
    #[must_use]
    pub fn fanout(mut self) -> Self {
        self.fanout = true;
        self
    }

    pub(crate) fn check(&self) -> Result<(), MessagingError> {
        check_name("topic", &self.topic)?;
        if let Some(server) = &self.server {
            check_name("server", server)?;
            check_name("topic.server", &format!("{}.{server}", self.topic))?;
        }
        if let Some(exchange) = &self.exchange {
            check_name("exchange", exchange)?;
        }
        // The name of the fanout exchange and of the queues behind it.
        check_name("topic", &format!("{}_fanout_{:32}", self.topic, ""))
    }
}

/// Whether a text can be the name of a queue, an exchange, or a routing key.
pub(crate) fn check_name(what: &str, name: &str) -> Result<(), MessagingError> {
    if name.is_empty() || name.len() > MAX_NAME_BYTES {
        return Err(MessagingError::InvalidTarget {
            reason: format!(
                "{what} has {} bytes, 1 to {MAX_NAME_BYTES} are possible",
                name.len()
            ),
        });
    }
    if name.chars().any(char::is_control) {
        return Err(MessagingError::InvalidTarget {
            reason: format!("{what} {name:?} has control characters"),
        });
    }
    Ok(())
}

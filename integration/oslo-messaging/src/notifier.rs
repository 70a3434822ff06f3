//! Notifications (oslo_messaging/notify/notifier.py and messaging.py).

use std::fmt;
use std::sync::Arc;

use ebbtide_runtime::{clock, ids};
use serde_json::Value;
use time::OffsetDateTime;
use time::macros::format_description;

use crate::link::Publication;
use crate::names::{ExchangeDeclaration, Queue};
use crate::target::check_name;
use crate::transport::TransportState;
use crate::wire::{NotificationFields, encode_notification};
use crate::{Map, MessagingError, Transport};

/// How urgent a notification is. It decides the queue: `notifications.info` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Priority {
    /// For accounting.
    Audit,
    /// For developers.
    Debug,
    /// What happens in normal life.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
    /// The operator has to act.
    Critical,
    /// Measurements, in large numbers.
    Sample,
}

impl Priority {
    /// As it stands in the message.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Audit => "AUDIT",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
            Self::Critical => "CRITICAL",
            Self::Sample => "SAMPLE",
        }
    }
}

/// In which form notifications are sent (`[oslo_messaging_notifications] driver`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NotifierFormat {
    /// `messagingv2`: in the same envelope as requests.
    #[default]
    V2,
    /// `messaging`: without envelope.
    V1,
}

/// Where notifications go and who sends them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotifierOptions {
    /// Who says it: `scheduler.HOST` for Nova's unversioned notifications, `nova-scheduler:HOST`
    /// for its versioned ones.
    pub publisher_id: String,
    /// `notifications` for the unversioned ones, `versioned_notifications` for the versioned ones,
    /// or what the options `topics` and `versioned_notifications_topics` say.
    pub topics: Vec<String>,
    /// The form.
    pub format: NotifierFormat,
}

/// A notification.
#[derive(Debug, Clone, PartialEq)]
pub struct Notification {
    /// What happened, for example `scheduler.select_destinations.start`.
    pub event_type: String,
    /// How urgent it is.
    pub priority: Priority,
    /// The details. Secrets must not be in here.
    pub payload: Value,
    /// The request's context. Tokens must not be in here: Python's notifier takes them out
    /// (`redacted_copy`).
    pub context: Map,
}

/// Sends notifications. Cheap to clone.
#[derive(Clone)]
pub struct Notifier {
    shared: Arc<TransportState>,
    options: Arc<NotifierOptions>,
}

impl Notifier {
    /// A notifier on this transport.
    ///
    /// # Errors
    ///
    /// If a topic is no name of a queue.
    pub fn new(transport: &Transport, options: NotifierOptions) -> Result<Self, MessagingError> {
        for topic in &options.topics {
            check_name("topic", &format!("{topic}.critical"))?;
        }
        Ok(Self {
            shared: Arc::clone(transport.shared()),
            options: Arc::new(options),
        })
    }

    /// Sends a notification to all topics, and waits until the broker has confirmed them, however
    /// long that takes: use `tokio::time::timeout` around it. The queue of each topic is made if it
    /// is not there, so that a reader who comes later misses nothing.
    ///
    /// # Errors
    ///
    /// If the broker refuses, or the transport is closed.
    pub async fn notify(&self, notification: &Notification) -> Result<(), MessagingError> {
        let message_id = ids::random().to_string();
        let timestamp = timestamp(clock::wall().into());
        let priority = notification.priority.as_str();
        for topic in &self.options.topics {
            let body = encode_notification(
                &NotificationFields {
                    message_id: &message_id,
                    publisher_id: &self.options.publisher_id,
                    event_type: &notification.event_type,
                    priority,
                    payload: &notification.payload,
                    timestamp: &timestamp,
                    unique_id: &ids::hex(),
                    context: &notification.context,
                },
                self.options.format == NotifierFormat::V2,
            )?;
            let name = format!("{topic}.{}", priority.to_ascii_lowercase());
            let options = self.shared.options();
            let publication = Publication {
                exchange: Some(ExchangeDeclaration::topic(&self.shared.exchange, options)),
                queue: Some(Queue::topic(&name, &self.shared.exchange, options)),
                routing_key: name,
                mandatory: false,
                expiration: None,
                body,
            };
            self.shared.publisher.publish(&publication).await?;
        }
        Ok(())
    }
}

/// As Python's `str(datetime.utcnow())`: without a fraction if that is zero.
fn timestamp(at: OffsetDateTime) -> String {
    let seconds = format_description!("[year]-[month]-[day] [hour]:[minute]:[second]");
    let text = at.format(&seconds).unwrap_or_default();
    match at.microsecond() {
        0 => text,
        microseconds => format!("{text}.{microseconds:06}"),
    }
}

impl fmt::Debug for Notifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notifier")
            .field("options", &self.options)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn timestamps_look_as_python_prints_them() {
        assert_eq!(
            timestamp(datetime!(2026-11-20 17:53:29.000042 UTC)),
            "2026-11-20 17:53:29.000042"
        );
        assert_eq!(
            timestamp(datetime!(2026-01-02 03:04:05 UTC)),
            "2026-01-02 03:04:05"
        );
    }
}

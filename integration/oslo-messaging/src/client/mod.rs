//! The RPC client: calls, casts, fanout casts (oslo_messaging/rpc/client.py and
//! `_drivers/amqpdriver.py`).

mod replies;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ebbtide_amqp::PublishOutcome;
use ebbtide_runtime::ids;
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::link::Publication;
use crate::names::ExchangeDeclaration;
use crate::transport::TransportState;
use crate::wire::{RequestFields, encode_request};
use crate::{Map, MessagingError, RpcVersion, Target, Transport};
use replies::Replies;

/// How a call waits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallOptions {
    /// How long the call may take (`rpc_response_timeout`). A request that is still in the queue
    /// then is thrown away by the broker.
    pub timeout: Duration,
    /// The call fails earlier if nothing is heard from the server for this long: the server sends
    /// heartbeats at twice the rate while it works. Whole seconds, at least 2.
    pub call_monitor_timeout: Option<Duration>,
    /// Fail at once if the topic has no queue, because no server has ever listened on it, instead
    /// of waiting for the timeout. Python's default is to wait.
    pub mandatory: bool,
    /// Versions above this are not sent.
    pub version_cap: Option<RpcVersion>,
}

impl Default for CallOptions {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(60),
            call_monitor_timeout: None,
            mandatory: true,
            version_cap: None,
        }
    }
}

/// Sends requests. Cheap to clone; clones share the queue for replies, which is made at the first
/// call.
#[derive(Clone)]
pub struct RpcClient {
    shared: Arc<TransportState>,
    replies: Arc<OnceCell<Replies>>,
}

impl RpcClient {
    /// A client on this transport.
    #[must_use]
    pub fn new(transport: &Transport) -> Self {
        Self {
            shared: Arc::clone(transport.shared()),
            replies: Arc::new(OnceCell::new()),
        }
    }

    /// Calls a method and waits for its result.
    ///
    /// # Errors
    ///
    /// [`MessagingError::Remote`] if the method answered with an error, [`MessagingError::Timeout`]
    /// if no answer came in time (whether the method ran is then unknown),
    /// [`MessagingError::Undeliverable`] if no server listens.
    pub async fn call(
        &self,
        target: &Target,
        context: &Map,
        method: &str,
        args: &Map,
        options: &CallOptions,
    ) -> Result<Value, MessagingError> {
        if target.fanout {
            return Err(MessagingError::InvalidTarget {
                reason: "a call cannot go to all servers of a topic; use cast".to_owned(),
            });
        }
        target.check()?;
        check_cap(target, options.version_cap)?;
        let message_id = ids::hex();
        let timed_out = |detail: &str| MessagingError::Timeout {
            method: method.to_owned(),
            message_id: message_id.clone(),
            detail: detail.to_owned(),
        };
        let replies = self
            .replies
            .get_or_init(async || Replies::start(Arc::clone(&self.shared)))
            .await;
        let send_and_wait = async {
            let mut waiting = replies.expect(&message_id).await?;
            let body = encode_request(&RequestFields {
                method,
                args,
                namespace: target.namespace.as_deref(),
                version: target.version.map(|v| v.to_string()).as_deref(),
                reply_to: Some((&message_id, replies.queue())),
                call_monitor_timeout: options.call_monitor_timeout,
                unique_id: &ids::hex(),
                context,
            })?;
            let mut publication = self.to_topic(target, body);
            publication.expiration = Some(options.timeout);
            publication.mandatory = options.mandatory;
            if self.shared.publisher.publish(&publication).await? == PublishOutcome::Unroutable {
                return Err(MessagingError::Undeliverable {
                    exchange: publication.exchange_name().to_owned(),
                    routing_key: publication.routing_key,
                });
            }
            loop {
                // Each message renews the time, so it begins again here.
                let silence = options.call_monitor_timeout.unwrap_or(options.timeout);
                let reply = tokio::time::timeout(silence, waiting.next())
                    .await
                    .map_err(|_| timed_out("the server sends no heartbeats"))??;
                if let Some(failure) = reply.failure {
                    return Err(failure.into());
                }
                if reply.ending {
                    return Ok(reply.result);
                }
                // Servers of long ago send the result and its end as two messages.
                if !reply.result.is_null() {
                    return Ok(reply.result);
                }
            }
        };
        match tokio::time::timeout(options.timeout, Box::pin(send_and_wait)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(timed_out(&format!(
                "no result within {:?} ({})",
                options.timeout,
                replies.describe()
            ))),
        }
    }

    /// Sends a request without an answer, to one server of the topic, or with [`Target::fanout`] to
    /// all of them. Returns when the broker has confirmed the request, however long that takes: use
    /// `tokio::time::timeout` around it. Does not check that a server listens.
    ///
    /// # Errors
    ///
    /// If the broker refuses, or the transport is closed.
    pub async fn cast(
        &self,
        target: &Target,
        context: &Map,
        method: &str,
        args: &Map,
    ) -> Result<(), MessagingError> {
        target.check()?;
        let body = encode_request(&RequestFields {
            method,
            args,
            namespace: target.namespace.as_deref(),
            version: target.version.map(|v| v.to_string()).as_deref(),
            reply_to: None,
            call_monitor_timeout: None,
            unique_id: &ids::hex(),
            context,
        })?;
        let publication = if target.fanout {
            Publication {
                exchange: Some(ExchangeDeclaration::fanout(
                    &target.topic,
                    self.shared.options(),
                )),
                queue: None,
                routing_key: String::new(),
                mandatory: false,
                expiration: None,
                body,
            }
        } else {
            self.to_topic(target, body)
        };
        self.shared.publisher.publish(&publication).await?;
        Ok(())
    }

    fn to_topic(&self, target: &Target, body: Vec<u8>) -> Publication {
        let exchange = target.exchange.as_deref().unwrap_or(&self.shared.exchange);
        Publication {
            exchange: Some(ExchangeDeclaration::topic(exchange, self.shared.options())),
            queue: None,
            routing_key: match &target.server {
                Some(server) => format!("{}.{server}", target.topic),
                None => target.topic.clone(),
            },
            mandatory: false,
            expiration: None,
            body,
        }
    }
}

fn check_cap(target: &Target, cap: Option<RpcVersion>) -> Result<(), MessagingError> {
    match (cap, target.version) {
        (Some(cap), Some(version)) if !cap.understands(version) => {
            Err(MessagingError::VersionCap {
                version: version.to_string(),
                cap: cap.to_string(),
            })
        }
        _ => Ok(()),
    }
}

impl fmt::Debug for RpcClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RpcClient")
            .field("reply_queue", &self.replies.get().map(Replies::queue))
            .finish_non_exhaustive()
    }
}

//! What a service implements: endpoints, and what they are told about a call.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use ebbtide_runtime::clock;
use futures::future::BoxFuture;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::link::Publisher;
use crate::{Map, RemoteError, RpcVersion};

/// The interface that an endpoint implements.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointTarget {
    /// The interface's name; most have none.
    pub namespace: Option<String>,
    /// Requests of this major version up to this minor version are understood.
    pub version: RpcVersion,
}

impl EndpointTarget {
    /// The interface without a name, in this version.
    #[must_use]
    pub const fn version(major: u32, minor: u32) -> Self {
        Self {
            namespace: None,
            version: RpcVersion::new(major, minor),
        }
    }

    /// The same with a name.
    #[must_use]
    pub fn namespace(mut self, namespace: impl Into<String>) -> Self {
        self.namespace = Some(namespace.into());
        self
    }
}

/// What comes of a method.
///
/// [`Endpoint`] is no `async_trait`: the bounds of its method on lifetimes make the compiler prove
/// for each endpoint anew that all futures below it may change threads, which takes seconds for a
/// large service.
pub type HandlerFuture<'a> = BoxFuture<'a, Result<Value, RemoteError>>;

/// A set of methods of one interface in one version.
///
/// A request goes to the first endpoint whose namespace and version fit and that has the method.
/// Methods that begin with `_` are never called (Python's `DefaultRPCAccessPolicy`).
pub trait Endpoint: Send + Sync {
    /// The interface that this endpoint implements.
    fn target(&self) -> EndpointTarget;

    /// The names of the methods.
    fn methods(&self) -> &[&str];

    /// Does one of the methods. For a cast the result is thrown away and an error is only logged.
    ///
    /// With [`AckMode::Late`](crate::AckMode::Late) the same request may come to another server if
    /// this one dies before the reply is confirmed, so what is done here must bear being done
    /// again; `call.redelivered` says that it may be so.
    ///
    /// # Errors
    ///
    /// What the caller gets as an exception.
    fn handle(&self, call: IncomingCall) -> HandlerFuture<'_>;
}

/// By which queue a request came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ArrivalQueue {
    /// The queue that all servers of the topic share.
    Topic,
    /// The queue of this server alone.
    Server,
    /// This server's queue on the fanout exchange.
    Fanout,
}

/// A request, for an endpoint.
///
/// `Debug` shows neither context nor arguments: requests of Nova carry tokens and the cell's
/// database password.
pub struct IncomingCall {
    /// The caller's request context, without the prefix `_context_`.
    pub context: Map,
    /// The method.
    pub method: String,
    /// The interface's name.
    pub namespace: Option<String>,
    /// The version that the caller asked for.
    pub version: RpcVersion,
    /// The named arguments.
    pub args: Map,
    /// `_msg_id` of a call; `None` for a cast, which has no waiting caller.
    pub message_id: Option<String>,
    /// `_unique_id`: the same for every delivery of the same request.
    pub unique_id: Option<String>,
    /// By which queue it came.
    pub source: ArrivalQueue,
    /// The broker has delivered it before, to us or to a server that did not acknowledge it. That
    /// other server may have begun with it, and may even have finished.
    pub redelivered: bool,
    /// How often a quorum queue says that it has delivered it before. Classic queues do not count.
    pub delivery_count: Option<u64>,
    /// The time after which a call that is still in the queue is thrown away: the caller's timeout.
    /// The broker tells the original value only, not what is left of it, so a request may be as old
    /// as this.
    pub expiration: Option<Duration>,
    /// When the message was published, in seconds since 1970, if its publisher or a plugin of the
    /// broker says so. oslo.messaging does not.
    pub sent_at: Option<u64>,
    /// The caller gives up when it hears nothing for this long (`_timeout`). Heartbeats are sent
    /// without your doing.
    pub call_monitor_timeout: Option<Duration>,
    /// What becomes known about the caller and the server while the work lasts.
    pub state: CallState,
}

impl IncomingCall {
    /// A call as a test of an endpoint may make it: version 1.0, no caller, never redelivered.
    #[must_use]
    pub fn detached(method: impl Into<String>, args: Map) -> Self {
        Self {
            context: Map::new(),
            method: method.into(),
            namespace: None,
            version: RpcVersion::new(1, 0),
            args,
            message_id: None,
            unique_id: None,
            source: ArrivalQueue::Topic,
            redelivered: false,
            delivery_count: None,
            expiration: None,
            sent_at: None,
            call_monitor_timeout: None,
            state: CallState::detached(),
        }
    }

    /// Whether a caller waits for the result.
    #[must_use]
    pub fn is_call(&self) -> bool {
        self.message_id.is_some()
    }

    /// The longest time that the caller can still be waiting, from its timeout and from when we got
    /// the request. `None` if the message does not say. How long it lay in the queue before is not
    /// known, so it may be less.
    #[must_use]
    pub fn remaining_at_most(&self) -> Option<Duration> {
        self.expiration
            .map(|timeout| timeout.saturating_sub(self.state.elapsed()))
    }
}

impl fmt::Debug for IncomingCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingCall")
            .field("method", &self.method)
            .field("namespace", &self.namespace)
            .field("version", &self.version)
            .field("message_id", &self.message_id)
            .field("unique_id", &self.unique_id)
            .field("source", &self.source)
            .field("redelivered", &self.redelivered)
            .field("expiration", &self.expiration)
            .finish_non_exhaustive()
    }
}

/// What is known about the caller's reply queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerState {
    /// A cast: no caller waits.
    NoCaller,
    /// Nothing was sent or asked yet.
    Unknown,
    /// The queue was there when it was last used.
    Listening,
    /// The queue is there, but no program reads from it: the caller has been disconnected or is
    /// dead.
    NotListening,
    /// The queue was not there when it was last used. After a restart of the broker the caller may
    /// make it again.
    Missing,
    /// The queue has been missing for `kombu_missing_consumer_retry_timeout`: the caller is gone
    /// for good.
    Gone,
}

/// How a call ends that this server does not answer. See [`CallState::end`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallEnd {
    /// The message goes back to the broker: it comes again, to this server or to another one.
    GivenBack,
    /// The message is acknowledged without an answer: another server got the same request and
    /// answers the caller.
    Unanswered,
}

/// What becomes known about a call while it is worked on. Cheap to clone.
#[derive(Clone)]
pub struct CallState {
    inner: Arc<Inner>,
}

struct Inner {
    received: Instant,
    stopping: CancellationToken,
    abandoned: CancellationToken,
    ending: OnceLock<CallEnd>,
    caller: Mutex<Caller>,
    /// `None` for casts and in tests.
    reply: Option<ReplyPath>,
}

struct Caller {
    state: CallerState,
    missing_since: Option<Instant>,
}

/// How to look after the caller.
pub(crate) struct ReplyPath {
    pub(crate) publisher: Arc<Publisher>,
    pub(crate) reply_queue: String,
}

impl CallState {
    pub(crate) fn new(stopping: CancellationToken, reply: Option<ReplyPath>) -> Self {
        let state = if reply.is_some() {
            CallerState::Unknown
        } else {
            CallerState::NoCaller
        };
        Self {
            inner: Arc::new(Inner {
                received: clock::timer(),
                stopping,
                abandoned: CancellationToken::new(),
                ending: OnceLock::new(),
                caller: Mutex::new(Caller {
                    state,
                    missing_since: None,
                }),
                reply,
            }),
        }
    }

    /// The state of a call that came from nowhere, for tests of endpoints.
    #[must_use]
    pub fn detached() -> Self {
        Self::new(CancellationToken::new(), None)
    }

    /// How long ago the request was received.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        clock::timer().saturating_duration_since(self.inner.received)
    }

    /// Cancelled when the server begins to stop: what can be given up should be, another server
    /// does it.
    #[must_use]
    pub fn stopping(&self) -> &CancellationToken {
        &self.inner.stopping
    }

    /// Cancelled when the caller is [`CallerState::Gone`]: no process will read the result.
    #[must_use]
    pub fn abandoned(&self) -> &CancellationToken {
        &self.inner.abandoned
    }

    /// This server will not answer: what the handler returns is thrown away. The first word counts.
    /// Without [`AckMode::Late`](crate::AckMode::Late) there is no message left that could be given
    /// back.
    pub fn end(&self, ending: CallEnd) {
        let _ = self.inner.ending.set(ending);
    }

    /// What [`CallState::end`] was told.
    #[must_use]
    pub fn ending(&self) -> Option<CallEnd> {
        self.inner.ending.get().copied()
    }

    /// What was last learnt about the caller, by heartbeats or by [`CallState::ask`]. Costs
    /// nothing.
    #[must_use]
    pub fn caller(&self) -> CallerState {
        self.lock().state
    }

    /// Asks the broker whether the caller's reply queue exists and has a consumer: one round trip.
    /// The queue of a dead caller stays for half an hour, so this detects more than heartbeats do.
    ///
    /// A consumer does not prove that the caller still waits for *this* call; compare
    /// [`IncomingCall::remaining_at_most`]. If the broker does not answer, the last known state is
    /// returned.
    pub async fn ask(&self) -> CallerState {
        if let Some(reply) = &self.inner.reply {
            match reply.publisher.consumers(&reply.reply_queue).await {
                Some(Some(0)) => self.set(CallerState::NotListening),
                Some(Some(_)) => self.set(CallerState::Listening),
                Some(None) => self.note_missing(),
                None => {}
            }
        }
        self.caller()
    }

    /// Something was delivered to the reply queue.
    pub(crate) fn note_listening(&self) {
        self.set(CallerState::Listening);
    }

    /// The reply queue does not exist. Since when is kept.
    pub(crate) fn note_missing(&self) {
        let mut caller = self.lock();
        if caller.state != CallerState::Gone {
            caller.state = CallerState::Missing;
            caller.missing_since.get_or_insert_with(clock::timer);
        }
    }

    /// The queue has been missing for so long that the caller is given up.
    pub(crate) fn note_gone(&self) {
        self.lock().state = CallerState::Gone;
        self.inner.abandoned.cancel();
    }

    /// For how long the queue has been missing.
    pub(crate) fn missing_for(&self) -> Duration {
        self.lock().missing_since.map_or(Duration::ZERO, |since| {
            clock::timer().saturating_duration_since(since)
        })
    }

    fn set(&self, state: CallerState) {
        let mut caller = self.lock();
        caller.state = state;
        caller.missing_since = None;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Caller> {
        self.inner
            .caller
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for CallState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallState")
            .field("caller", &self.caller())
            .field("elapsed", &self.elapsed())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn debug_shows_no_argument_and_no_context() {
        let mut call = IncomingCall::detached("select_destinations", Map::new());
        call.args
            .insert("cell".to_owned(), json!("mysql://nova:geheim@db"));
        call.context
            .insert("auth_token".to_owned(), json!("geheim"));
        let shown = format!("{call:?}");
        assert!(
            shown.contains("select_destinations") && !shown.contains("geheim"),
            "{shown}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_comes_back_is_no_longer_missing() {
        let state = CallState::detached();
        assert_eq!(state.ask().await, CallerState::NoCaller);
        state.note_missing();
        tokio::time::advance(Duration::from_secs(3)).await;
        state.note_missing();
        assert_eq!(
            (state.caller(), state.missing_for()),
            (CallerState::Missing, Duration::from_secs(3))
        );
        state.note_listening();
        assert_eq!(
            (state.caller(), state.missing_for()),
            (CallerState::Listening, Duration::ZERO)
        );
        state.note_gone();
        assert!(state.abandoned().is_cancelled());
        state.note_missing();
        assert_eq!(state.caller(), CallerState::Gone);
    }

    #[tokio::test(start_paused = true)]
    async fn the_remaining_time_shrinks_and_never_gets_negative() {
        let mut call = IncomingCall::detached("m", Map::new());
        assert_eq!(call.remaining_at_most(), None);
        call.expiration = Some(Duration::from_secs(10));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(call.remaining_at_most(), Some(Duration::from_secs(6)));
        tokio::time::advance(Duration::from_secs(40)).await;
        assert_eq!(call.remaining_at_most(), Some(Duration::ZERO));
    }
}

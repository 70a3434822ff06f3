//! Brokers, transports, an endpoint that keeps book, and waiting with a limit.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ebbtide_harness::{RabbitMq, SharedBroker, SharedServers};
use oslo_messaging::{
    ArrivalQueue, CallEnd, CallState, CallerState, Endpoint, EndpointTarget, HandlerFuture,
    IncomingCall, Map, RabbitOptions, RemoteError, RpcServer, ServerOptions, Target, Transport,
    TransportUrl,
};
use serde_json::{Value, json};
use tokio::sync::{Semaphore, watch};

/// Generous: a loaded machine restarts a RabbitMQ in far less.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits for `future`, and fails the test loudly when it takes longer than anybody should wait.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {PATIENCE:?} in vain for this: {what}"),
    }
}

/// A broker that all tests share, and names that only this test uses.
pub struct Place {
    pub url: String,
    pub exchange: String,
    pub topic: String,
    _broker: Option<SharedBroker>,
}

impl Place {
    pub async fn shared() -> Self {
        let broker = SharedServers::rabbitmq()
            .await
            .expect("a RabbitMQ to test with");
        let prefix = broker.prefix().to_owned();
        Self {
            url: rabbit(broker.url()),
            exchange: format!("{prefix}nova"),
            topic: format!("{prefix}scheduler"),
            _broker: Some(broker),
        }
    }

    /// On a broker of the test's own.
    pub fn on(broker: &RabbitMq) -> Self {
        Self {
            url: rabbit(&broker.url()),
            exchange: "nova".to_owned(),
            topic: "scheduler".to_owned(),
            _broker: None,
        }
    }

    /// The same place with options in the URL's query, for both sides.
    pub fn with(mut self, query: &str) -> Self {
        let mark = if self.url.contains('?') { '&' } else { '?' };
        self.url = format!("{}{mark}{query}", self.url);
        self
    }

    /// The same place through a proxy.
    pub fn through(&self, address: std::net::SocketAddr) -> Self {
        let target = self.address();
        Self {
            url: self.url.replacen(&target, &address.to_string(), 1),
            exchange: self.exchange.clone(),
            topic: self.topic.clone(),
            _broker: None,
        }
    }

    /// Host and port of the broker.
    pub fn address(&self) -> String {
        let url: TransportUrl = self.url.parse().unwrap();
        url.hosts()[0].to_string()
    }

    pub fn transport(&self) -> Transport {
        let url: TransportUrl = self.url.parse().unwrap();
        let mut options = RabbitOptions::for_url(&url, |_| None).unwrap();
        options.reconnect_delay = Duration::from_millis(50);
        options.retry_backoff = Duration::ZERO;
        Transport::start(&url, options, &self.exchange).unwrap()
    }

    pub fn target(&self) -> Target {
        Target::topic(&self.topic).version(2, 3)
    }

    pub async fn serve(
        &self,
        transport: &Transport,
        host: &str,
        options: ServerOptions,
        book: &Book,
    ) -> RpcServer {
        let target = Target::topic(&self.topic).server(host);
        let endpoints: Vec<Arc<dyn Endpoint>> = vec![
            Arc::new(Recorder(EndpointTarget::version(2, 3), book.clone())),
            Arc::new(Recorder(
                EndpointTarget::version(1, 1).namespace("named"),
                book.clone(),
            )),
        ];
        soon(
            "the server starts",
            RpcServer::start(transport, &target, options, endpoints),
        )
        .await
        .unwrap()
    }
}

fn rabbit(url: &str) -> String {
    url.replacen("amqp://", "rabbit://", 1)
}

pub async fn private_broker() -> RabbitMq {
    RabbitMq::start().await.expect("a private RabbitMQ")
}

/// What an endpoint was asked.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    pub method: String,
    pub args: Map,
    pub user: Option<String>,
    pub source: ArrivalQueue,
    pub redelivered: bool,
    pub delivery_count: Option<u64>,
    pub expiration: Option<Duration>,
    pub namespace: Option<String>,
}

/// The book of all requests, shared by servers; and the gates at which `wait` waits.
#[derive(Clone)]
pub struct Book {
    entries: Arc<watch::Sender<Vec<Entry>>>,
    pub finished: Arc<AtomicUsize>,
    /// `wait` needs a permit to go on.
    pub gate: Arc<Semaphore>,
    /// The state of the last `wait`.
    pub state: Arc<watch::Sender<Option<CallState>>>,
}

impl Default for Book {
    fn default() -> Self {
        Self {
            entries: Arc::new(watch::Sender::new(Vec::new())),
            finished: Arc::default(),
            gate: Arc::new(Semaphore::new(0)),
            state: Arc::new(watch::Sender::new(None)),
        }
    }
}

impl Book {
    pub fn entries(&self) -> Vec<Entry> {
        self.entries.borrow().clone()
    }

    /// Waits until there are so many entries.
    pub async fn wait(&self, count: usize) -> Vec<Entry> {
        let mut entries = self.entries.subscribe();
        soon(
            &format!("{count} requests have begun"),
            entries.wait_for(|entries| entries.len() >= count),
        )
        .await
        .unwrap()
        .clone()
    }
}

/// Methods: `echo`, `note`, `slow` (seconds), `wait` (for the gate), `fail` (reason), `panic`,
/// `ping`.
struct Recorder(EndpointTarget, Book);

impl Endpoint for Recorder {
    fn target(&self) -> EndpointTarget {
        self.0.clone()
    }

    fn methods(&self) -> &[&str] {
        if self.0.namespace.is_some() {
            &["ping"]
        } else {
            &["echo", "note", "slow", "wait", "fail", "panic", "leave"]
        }
    }

    fn handle(&self, call: IncomingCall) -> HandlerFuture<'_> {
        Box::pin(async move {
            let book = &self.1;
            let user = call
                .context
                .get("user")
                .and_then(Value::as_str)
                .map(str::to_owned);
            let entry = Entry {
                method: call.method.clone(),
                args: call.args.clone(),
                user: user.clone(),
                source: call.source,
                redelivered: call.redelivered,
                delivery_count: call.delivery_count,
                expiration: call.expiration,
                namespace: call.namespace.clone(),
            };
            let state = call.state.clone();
            if call.method == "wait" {
                book.state.send_replace(Some(state.clone()));
            }
            book.entries.send_modify(|entries| entries.push(entry));
            let result = match call.method.as_str() {
                "slow" => {
                    let seconds = call.args["seconds"].as_f64().unwrap();
                    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
                    json!("done")
                }
                "wait" => {
                    tokio::select! {
                        permit = book.gate.acquire() => permit.unwrap().forget(),
                        () = state.abandoned().cancelled() => {}
                    }
                    json!("done")
                }
                "fail" => {
                    let reason = call.args["reason"].as_str().unwrap();
                    return Err(RemoteError::new(
                        "peer_errors",
                        "NoHost",
                        format!("No host was found. {reason}"),
                    )
                    .with_kwarg("reason", reason)
                    .with_kwarg("code", 500)
                    .expected());
                }
                // Ends the call without an answer if the argument says so. Otherwise gives the
                // first delivery back to the broker, for another server.
                "leave" if call.args["to"] == "another" => {
                    state.end(CallEnd::Unanswered);
                    json!("not read by any client")
                }
                "leave" if !call.redelivered => {
                    state.end(CallEnd::GivenBack);
                    json!("not read by any client")
                }
                "leave" => json!("done"),
                "panic" => panic!("as the test wants it"),
                "ping" => json!({"service": "ours", "arg": call.args["arg"]}),
                _ => json!({"context": {"user": user}, "args": call.args}),
            };
            book.finished.fetch_add(1, Ordering::Relaxed);
            Ok(result)
        })
    }
}

/// Waits until the last `wait` knows this about its caller.
pub async fn caller_becomes(book: &Book, wanted: CallerState) -> CallState {
    let mut states = book.state.subscribe();
    let state = soon("a call waits", states.wait_for(Option::is_some))
        .await
        .unwrap()
        .clone()
        .unwrap();
    ebbtide_harness::eventually(PATIENCE, async || {
        let caller = state.caller();
        if caller == wanted {
            Ok(())
        } else {
            Err(format!("the caller is {caller:?}"))
        }
    })
    .await;
    state
}

pub fn args(value: Value) -> Map {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

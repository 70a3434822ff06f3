//! A small HTTP server on loopback, and clients of it.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response, Uri};
use ebbtide_openstack::{
    AdapterOptions, AuthOptions, Compute, OpenStackError, Placement, Session, SessionOptions,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::task::JoinSet;

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Seen {
    pub(crate) method: String,
    pub(crate) path: String,
    /// Names in lower case.
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: Value,
}

/// What is answered.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: body.to_string().into_bytes(),
        }
    }

    pub(crate) fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A running server; it ends with its owner.
pub(crate) struct Server {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    _task: JoinSet<()>,
}

impl Server {
    /// Answers each request by this function, which gets its number, from 0, too.
    pub(crate) async fn start(
        answer: impl Fn(usize, &Seen) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (Arc::clone(&seen), Arc::new(answer));
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let request = Seen {
                method: method.to_string(),
                path: uri.to_string(),
                headers: headers
                    .iter()
                    .map(|(n, v)| (n.to_string(), v.to_str().unwrap().to_owned()))
                    .collect(),
                body: serde_json::from_slice(&body).unwrap_or(Value::Null),
            };
            let number = {
                let mut log = log.lock().unwrap();
                log.push(request.clone());
                log.len() - 1
            };
            let reply = answer(number, &request);
            async move {
                let mut response = Response::builder()
                    .status(reply.status)
                    .header("content-type", "application/json");
                for (name, value) in reply.headers {
                    response = response.header(name, value);
                }
                response.body(Body::from(reply.body)).unwrap()
            }
        };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut task = JoinSet::new();
        task.spawn(async move {
            axum::serve(listener, Router::new().fallback(handler))
                .await
                .unwrap()
        });
        Self {
            url,
            seen,
            _task: task,
        }
    }

    /// Everything that has arrived.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

/// Options of a section, for example of nova.conf.
pub(crate) fn options(pairs: &[(&str, &str)]) -> Result<AuthOptions, OpenStackError> {
    AuthOptions::from_lookup("[test]", |name| {
        let found = pairs.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| (*value).to_owned())
    })
}

/// A session with a fixed token at this server.
pub(crate) fn token_session(url: &str) -> Session {
    let auth = options(&[
        ("auth_type", "admin_token"),
        ("token", "a-token"),
        ("endpoint", url),
    ])
    .unwrap();
    Session::new(auth, SessionOptions::new("ebbtide-test")).unwrap()
}

/// Placement at this server; waits between tries are short.
pub(crate) fn placement(url: &str) -> Placement {
    let placement = Placement::new(token_session(url), AdapterOptions::placement()).unwrap();
    placement.with_retry_wait(Duration::from_millis(1))
}

/// Nova's API at this server.
pub(crate) fn compute(url: &str) -> Compute {
    Compute::new(token_session(url), AdapterOptions::compute()).unwrap()
}

//! A small Nova: a real HTTP server, servers in memory. What takes time takes two looks.

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, Method, Response, Uri};
use ebbtide_model::Timestamp;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use tokio::task::JoinSet;
use uuid::Uuid;

/// How it misbehaves.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// So many requests are answered with 503.
    pub(super) away: u32,
    /// So many looks at a server show a part of it only: its cell does not answer.
    pub(super) partial: u32,
    /// Its cell does not answer lists.
    pub(super) partial_lists: bool,
    /// Nothing that was asked for is ever done.
    pub(super) slow: bool,
    pub(super) soft_delete: bool,
    pub(super) no_room: bool,
    pub(super) conflict: bool,
    pub(super) metadata_is_full: bool,
}

#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) method: String,
    pub(super) path: String,
    pub(super) request_id: Option<String>,
    action: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    servers: BTreeMap<Uuid, Map<String, Value>>,
    /// What will have happened at the look after the next one.
    pending: BTreeMap<Uuid, (String, u8)>,
    faults: Faults,
    requests: Vec<Request>,
}

pub(super) struct FakeNova {
    pub(super) url: String,
    state: Arc<Mutex<State>>,
    listed: Arc<Notify>,
    _task: JoinSet<()>,
}

const HOST: &str = "OS-EXT-SRV-ATTR:host";
const TASK: &str = "OS-EXT-STS:task_state";

impl FakeNova {
    pub(super) async fn start() -> Self {
        let (state, listed) = (
            Arc::new(Mutex::new(State::default())),
            Arc::new(Notify::new()),
        );
        let (inner, told) = (Arc::clone(&state), Arc::clone(&listed));
        let handler = move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let id = headers
                .get("x-openstack-request-id")
                .map(|id| id.to_str().unwrap().to_owned());
            let (status, body) =
                inner
                    .lock()
                    .unwrap()
                    .answer(method.as_str(), &uri.to_string(), id, &body);
            if uri.path() == "/servers/detail" {
                told.notify_waiters();
            }
            async move {
                Response::builder()
                    .status(status)
                    .body(Body::from(body.to_string()))
                    .unwrap()
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
            state,
            listed,
            _task: task,
        }
    }

    pub(super) fn add(&self, number: u128, host: &str, launched_at: Timestamp) {
        let id = Uuid::from_u128(number);
        let server = json!({
            "id": id.to_string(), "name": "s", "status": "ACTIVE", "tenant_id": "p1", "user_id": "u1",
            "metadata": {"tenant": "own"}, HOST: host, TASK: null, "updated": "2026-11-20T00:00:00Z",
            "OS-SRV-USG:launched_at": launched_at.to_string().trim_end_matches('Z'),
            "flavor": {"original_name": "small", "vcpus": 4, "ram": 8_000, "disk": 80, "ephemeral": 0, "swap": 0},
        });
        let Value::Object(server) = server else {
            unreachable!()
        };
        self.state.lock().unwrap().servers.insert(id, server);
    }

    pub(super) fn configure(&self, change: impl FnOnce(&mut Faults)) {
        change(&mut self.state.lock().unwrap().faults);
    }

    pub(super) fn set(&self, number: u128, key: &str, value: Value) {
        let id = Uuid::from_u128(number);
        self.state
            .lock()
            .unwrap()
            .servers
            .get_mut(&id)
            .unwrap()
            .insert(key.to_owned(), value);
    }

    pub(super) fn set_metadata(&self, number: u128, key: &str, value: &str) {
        let mut metadata = self.metadata(number);
        metadata[key] = json!(value);
        self.set(number, "metadata", metadata);
    }

    fn get(&self, number: u128, key: &str) -> Value {
        self.state.lock().unwrap().servers[&Uuid::from_u128(number)][key].clone()
    }

    pub(super) fn metadata(&self, number: u128) -> Value {
        self.get(number, "metadata")
    }

    pub(super) fn status(&self, number: u128) -> String {
        self.get(number, "status").as_str().unwrap().to_owned()
    }

    pub(super) fn host(&self, number: u128) -> String {
        self.get(number, HOST).as_str().unwrap().to_owned()
    }

    pub(super) fn exists(&self, number: u128) -> bool {
        self.state
            .lock()
            .unwrap()
            .servers
            .contains_key(&Uuid::from_u128(number))
    }

    pub(super) fn remove(&self, number: u128) {
        self.state
            .lock()
            .unwrap()
            .servers
            .remove(&Uuid::from_u128(number));
    }

    /// As a deletion shows in a list of changes.
    pub(super) fn remove_softly(&self, number: u128) {
        self.set(number, "status", json!("DELETED"));
        self.set(number, "updated", json!("2026-11-20T00:00:09Z"));
    }

    pub(super) async fn next_list(&self) {
        self.listed.notified().await;
    }

    pub(super) fn requests(&self) -> Vec<Request> {
        self.state.lock().unwrap().requests.clone()
    }

    pub(super) fn writes(&self) -> usize {
        self.requests().iter().filter(|r| r.method != "GET").count()
    }

    /// How often an action was asked for.
    pub(super) fn count(&self, action: &str) -> usize {
        self.requests()
            .iter()
            .filter(|r| r.action.as_deref() == Some(action))
            .count()
    }
}

fn fault(status: u16, message: &str) -> (u16, Value) {
    (
        status,
        json!({"fault": {"code": status, "message": message}}),
    )
}

/// What Nova shows of a server whose cell does not answer, from microversion 2.69 on.
fn partial(server: &Map<String, Value>) -> Value {
    json!({"id": server["id"], "status": "UNKNOWN", "tenant_id": server["tenant_id"], "created": "2026-11-20T00:00:00Z", "links": []})
}

impl State {
    fn answer(
        &mut self,
        method: &str,
        path: &str,
        request_id: Option<String>,
        body: &Value,
    ) -> (u16, Value) {
        let action = body
            .as_object()
            .and_then(|body| body.keys().next().cloned());
        self.requests.push(Request {
            method: method.to_owned(),
            path: path.to_owned(),
            request_id,
            action: action.clone(),
        });
        if path == "/" {
            return (
                200,
                json!({"version": {"version": "2.93", "min_version": "2.1"}}),
            );
        }
        if self.faults.away > 0 {
            self.faults.away -= 1;
            return fault(503, "try later");
        }
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match (method, parts.as_slice()) {
            ("GET", ["servers", "detail"]) => self.list(query),
            ("GET", ["os-hypervisors", "detail"]) => self.hypervisors(),
            (_, ["servers", id, rest @ ..]) => {
                let id: Uuid = id.parse().unwrap();
                self.pass_time(id);
                if !self.servers.contains_key(&id) {
                    return fault(404, "Instance could not be found.");
                }
                self.about(
                    id,
                    method,
                    rest,
                    action.as_deref().unwrap_or_default(),
                    body,
                )
            }
            other => panic!("{other:?}"),
        }
    }

    fn list(&self, query: &str) -> (u16, Value) {
        let pairs: BTreeMap<_, _> = query
            .split('&')
            .filter_map(|pair| pair.split_once('='))
            .collect();
        let fits = |server: &&Map<String, Value>| {
            let updated = server["updated"].as_str().unwrap().replace(':', "%3A");
            let here = pairs.get("host").is_none_or(|host| server[HOST] == *host);
            let news = pairs
                .get("changes-since")
                .map_or(server["status"] != "DELETED", |since| {
                    updated.as_str() >= *since
                });
            here && news
        };
        // A list of changes leaves out the servers of a cell that does not answer.
        if self.faults.partial_lists && pairs.contains_key("changes-since") {
            return (200, json!({"servers": []}));
        }
        let shown = self.servers.values().filter(fits).map(|server| {
            if self.faults.partial_lists {
                partial(server)
            } else {
                json!(server)
            }
        });
        (200, json!({"servers": shown.collect::<Vec<_>>()}))
    }

    fn hypervisors(&self) -> (u16, Value) {
        let hosts: std::collections::BTreeSet<_> = self
            .servers
            .values()
            .filter_map(|s| s[HOST].as_str())
            .collect();
        let hypervisor = |host: &str| {
            json!({"id": Uuid::from_u128(9), "hypervisor_hostname": host, "vcpus": 8, "memory_mb": 16_000, "local_gb": 160,
                   "service": {"host": host}})
        };
        (
            200,
            json!({"hypervisors": hosts.into_iter().map(hypervisor).collect::<Vec<_>>()}),
        )
    }

    fn about(
        &mut self,
        id: Uuid,
        method: &str,
        rest: &[&str],
        action: &str,
        body: &Value,
    ) -> (u16, Value) {
        let server = self.servers.get_mut(&id).unwrap();
        match (method, rest) {
            ("GET", []) if self.faults.partial > 0 => {
                self.faults.partial -= 1;
                (200, json!({"server": partial(server)}))
            }
            ("GET", []) => (200, json!({"server": server})),
            ("DELETE", []) => self.begin(
                id,
                if self.faults.soft_delete {
                    "soft-delete"
                } else {
                    "delete"
                },
                "deleting",
            ),
            ("GET", ["os-instance-actions"]) => (
                200,
                json!({"instanceActions": [{"action": "live-migration", "message": "No valid host was found."}]}),
            ),
            ("POST", ["metadata"]) if self.faults.metadata_is_full => {
                fault(403, "Maximum number of metadata items exceeds 128")
            }
            ("POST", ["metadata"]) => {
                let status = server["status"].as_str().unwrap();
                if !["ACTIVE", "SHUTOFF", "PAUSED", "SUSPENDED"].contains(&status) {
                    return fault(409, "Cannot 'update metadata'");
                }
                let given = body["metadata"].as_object().unwrap().clone();
                server
                    .get_mut("metadata")
                    .unwrap()
                    .as_object_mut()
                    .unwrap()
                    .extend(given);
                (200, json!({}))
            }
            ("DELETE", ["metadata", key]) => {
                let key = key.replace("%3A", ":");
                match server
                    .get_mut("metadata")
                    .unwrap()
                    .as_object_mut()
                    .unwrap()
                    .remove(&key)
                {
                    Some(_) => (204, Value::Null),
                    None => fault(404, "Metadata item was not found"),
                }
            }
            ("POST", ["action"]) if self.faults.conflict => {
                fault(409, "Cannot do it while it is in task_state strange")
            }
            ("POST", ["action"]) => match action {
                "os-stop" => self.begin(id, "stop", "powering-off"),
                "shelve" => self.begin(id, "shelve", "shelving"),
                "shelveOffload" => self.begin(id, "offload", "shelving_offloading"),
                "forceDelete" => self.begin(id, "delete", "deleting"),
                "os-migrateLive" => self.begin(id, "migrate", "migrating"),
                other => panic!("{other}"),
            },
            other => panic!("{other:?}"),
        }
    }

    fn begin(&mut self, id: Uuid, what: &str, task: &str) -> (u16, Value) {
        self.servers
            .get_mut(&id)
            .unwrap()
            .insert(TASK.to_owned(), json!(task));
        self.pending.insert(id, (what.to_owned(), 2));
        (202, Value::Null)
    }

    fn pass_time(&mut self, id: Uuid) {
        let Some((what, looks)) = self.pending.get_mut(&id).filter(|_| !self.faults.slow) else {
            return;
        };
        *looks -= 1;
        if *looks > 0 {
            return;
        }
        let what = what.clone();
        self.pending.remove(&id);
        let server = self.servers.get_mut(&id).unwrap();
        server.insert(TASK.to_owned(), Value::Null);
        let mut set = |key: &str, value: Value| drop(server.insert(key.to_owned(), value));
        match what.as_str() {
            "delete" => drop(self.servers.remove(&id)),
            "soft-delete" => set("status", json!("SOFT_DELETED")),
            "stop" => set("status", json!("SHUTOFF")),
            "shelve" => set("status", json!("SHELVED")),
            "offload" => {
                set("status", json!("SHELVED_OFFLOADED"));
                set(HOST, Value::Null);
            }
            "migrate" if !self.faults.no_room => set(HOST, json!("compute2")),
            _ => {}
        }
    }
}

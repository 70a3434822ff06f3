//! Those who ask for servers: normal ones that take room, and preemptible ones that fill what is
//! left.

use crate::client::{PATIENCE, RetryingClient};
use ebbtide_bench::seeded::SeededNumbers;
use ebbtide_harness::Deadline;
use ebbtide_proto::v1;
use ebbtide_runtime::clock::Stopwatch;
use futures::FutureExt as _;
use futures::future::join_all;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tonic::Code;
use uuid::Uuid;

/// `(name, VCPUs, grace period of a preemptible one)`
pub(crate) const FLAVORS: [(&str, u32, Option<u32>); 4] = [
    ("half", 4, None),
    ("whole", 8, None),
    ("victim", 4, Some(0)),
    ("patient", 4, Some(1)),
];
const POLL: Duration = Duration::from_millis(50);

/// What a caller knows of its server.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) normal: bool,
    /// The region has said that it has it.
    pub(crate) acknowledged: bool,
    /// Its owner has asked for its end.
    pub(crate) deleted: bool,
}

/// What callers have asked for, by the identifier of the server.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    entries: Mutex<BTreeMap<String, Entry>>,
    /// Decisions.
    pub(crate) decisions: Pauses,
    /// Normal servers that began to run.
    pub(crate) starts: Pauses,
}

/// How often something happened that callers wait for, and the longest time without it.
#[derive(Debug, Default)]
pub(crate) struct Pauses(Mutex<Happened>);

#[derive(Debug, Default)]
struct Happened {
    last: Option<Stopwatch>,
    longest: Duration,
    count: u64,
}

impl Happened {
    fn note_pause(&mut self) {
        let now = self.last.map_or(Duration::ZERO, Stopwatch::elapsed);
        self.longest = self.longest.max(now);
    }
}

impl Ledger {
    fn note(&self, id: &str, normal: bool) {
        let entry = Entry {
            normal,
            acknowledged: false,
            deleted: false,
        };
        self.entries.lock().unwrap().insert(id.to_owned(), entry);
    }

    fn change(&self, id: &str, change: impl FnOnce(&mut Entry)) {
        change(self.entries.lock().unwrap().get_mut(id).unwrap());
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Entry> {
        self.entries.lock().unwrap().clone()
    }
}

impl Pauses {
    fn note(&self) {
        let mut happened = self.0.lock().unwrap();
        happened.note_pause();
        happened.last = Some(Stopwatch::start());
        happened.count += 1;
    }

    /// The longest time without one since the last call, and how many there were.
    pub(crate) fn take(&self) -> (Duration, u64) {
        let mut happened = self.0.lock().unwrap();
        happened.note_pause();
        let taken = (happened.longest, happened.count);
        happened.longest = Duration::ZERO;
        happened.count = 0;
        taken
    }
}

/// Callers at the same time, and what they notice.
#[derive(Debug)]
pub(crate) struct Load {
    seed: u64,
    pub(crate) ledger: Arc<Ledger>,
    /// Attempts that got no answer.
    unanswered: Arc<AtomicU64>,
    over: Arc<AtomicBool>,
}

impl Load {
    /// The same seed gives the same callers.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            seed,
            ledger: Arc::default(),
            unanswered: Arc::default(),
            over: Arc::default(),
        }
    }

    /// So many callers for normal servers, and so many for preemptible ones, until [`Self::end`].
    pub(crate) async fn run(&self, ready: &[PathBuf], preemptors: u64, fillers: u64) {
        let callers = (0..preemptors + fillers).map(|n| {
            let mut client = RetryingClient::of(ready, n as usize);
            client.unanswered = Arc::clone(&self.unanswered);
            let caller = Caller {
                client,
                dice: SeededNumbers::new(self.seed, 100 + n),
                ledger: Arc::clone(&self.ledger),
                over: Arc::clone(&self.over),
            };
            async move {
                match n < preemptors {
                    true => caller.preempt().await,
                    false => caller.fill().await,
                }
            }
            // In this task: what is asked with a closure cannot be moved to another thread.
            .boxed_local()
        });
        join_all(callers).await;
    }

    /// Callers finish with the servers that they have.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// What they have noticed since the last call.
    pub(crate) fn noticed(&self) -> String {
        let (pause, decisions) = self.ledger.decisions.take();
        let (waited, starts) = self.ledger.starts.take();
        format!(
            "{decisions} decisions, longest pause {:.1} s; {starts} starts, longest pause {:.1} s; \
             {} attempts without an answer",
            pause.as_secs_f64(),
            waited.as_secs_f64(),
            self.unanswered.swap(0, Ordering::Relaxed),
        )
    }
}

struct Caller {
    client: RetryingClient,
    dice: SeededNumbers,
    ledger: Arc<Ledger>,
    over: Arc<AtomicBool>,
}

impl Caller {
    async fn pause(&mut self, at_most_ms: u64) {
        let pause = Duration::from_millis(self.dice.below(at_most_ms));
        tokio::time::sleep(pause).await;
    }

    /// Creates a server under an identifier that is known before, so that it can be asked for
    /// again.
    async fn create(&mut self, flavor: &str, normal: bool) -> v1::Server {
        let number = u128::from(self.dice.draw()) << 64 | u128::from(self.dice.draw());
        let id = Uuid::from_u128(number).to_string();
        self.ledger.note(&id, normal);
        let create = v1::CreateServersRequest {
            name: flavor.to_owned(),
            request: Some(v1::PlacementRequest {
                count: 1,
                flavor: flavor.to_owned(),
                project_id: "murphy".to_owned(),
                server_ids: vec![id.clone()],
                ..Default::default()
            }),
            ..Default::default()
        };
        let call = async |mut clients: ebbtide_client::Region| {
            clients.servers.create_servers(create.clone()).await
        };
        let created = self.client.ask("create", call).await;
        let mut created = created.unwrap_or_else(|status| panic!("create {id}: {status}"));
        self.ledger.change(&id, |entry| entry.acknowledged = true);
        self.ledger.decisions.note();
        created.servers.remove(0)
    }

    async fn get(&mut self, id: &str) -> v1::Server {
        let get = v1::GetServerRequest { id: id.to_owned() };
        let call = async |mut clients: ebbtide_client::Region| {
            clients.servers.get_server(get.clone()).await
        };
        let got = self.client.ask("get", call).await;
        let got = got.unwrap_or_else(|status| panic!("{id} was acknowledged: {status}"));
        got.server.unwrap()
    }

    async fn until(&mut self, id: &str, wanted: &[&str]) -> v1::Server {
        let deadline = Deadline::after(PATIENCE);
        loop {
            let server = self.get(id).await;
            if wanted.contains(&server.status.as_str()) {
                return server;
            }
            assert!(
                !deadline.has_passed(),
                "{id} is {} for {PATIENCE:?}, not {wanted:?}: {server:?}",
                server.status
            );
            tokio::time::sleep(POLL).await;
        }
    }

    async fn delete(&mut self, id: &str) {
        self.ledger.change(id, |entry| entry.deleted = true);
        let delete = v1::DeleteServerRequest { id: id.to_owned() };
        let call = async |mut clients: ebbtide_client::Region| {
            clients.servers.delete_server(delete.clone()).await
        };
        match self.client.ask("delete", call).await {
            Ok(_) => {}
            // An attempt was heard whose answer was not.
            Err(status) if status.code() == Code::NotFound => {}
            Err(status) => panic!("delete {id}: {status}"),
        }
    }

    /// One normal server after the other: asked for, waited for, ended; one of ten is not waited
    /// for.
    async fn preempt(mut self) {
        while !self.over.load(Ordering::Relaxed) {
            let flavor = match self.dice.below(5) {
                0 => "whole",
                _ => "half",
            };
            let server = self.create(flavor, true).await;
            if self.dice.below(10) == 0 {
                self.pause(400).await;
            } else {
                let now = self.until(&server.id, &["active", "error"]).await;
                if now.status == "active" {
                    self.ledger.starts.note();
                    self.pause(200).await;
                }
            }
            self.delete(&server.id).await;
            self.until(&server.id, &["deleted"]).await;
        }
    }

    /// Preemptible servers for as long as there is room. One of twenty is ended by its owner.
    async fn fill(mut self) {
        while !self.over.load(Ordering::Relaxed) {
            let flavor = match self.dice.below(3) {
                0 => "patient",
                _ => "victim",
            };
            let server = self.create(flavor, false).await;
            if server.status == "error" {
                self.delete(&server.id).await;
                self.pause(300).await;
            } else if self.dice.below(20) == 0 {
                self.pause(300).await;
                self.delete(&server.id).await;
            }
        }
    }
}

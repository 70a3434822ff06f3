//! Placement of Nova's world: the model that is checked against a real one
//! (`ebbtide-placement-model`), under the client and the code with which a scheduler swaps, reads,
//! gives back and claims (`ebbtide-openstack`, `ebbtide-swap`). Every question and answer of theirs
//! can be lost.

use ebbtide_openstack::transport::{ExchangeFuture, NoResponse, Transport, TransportRequest};
use ebbtide_openstack::{AdapterOptions, NewClaim, RequestEffect, Resources, Session};
use ebbtide_placement_model::{InProcess, Model, ModelRequest};
use ebbtide_preemption::Holding;
use ebbtide_swap::{Amounts, InstanceRow, PlacementSwap, SwapEnvironment};
use futures::FutureExt;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// The provider of the first host; those of the others follow.
const FIRST: u128 = 0x2e00_0000_0000_4000_8000_0000_0000_0000;
/// What a host has where Placement does not count.
const PLENTY: u64 = 1 << 20;
/// The first microversion in which consumers have generations.
const VERSION: (u32, u32) = (1, 36);

/// What a consumer holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ConsumerClaim {
    pub(super) generation: u64,
    pub(super) host: usize,
    pub(super) vcpus: u64,
}

/// What goes wrong between a scheduler and Placement.
#[derive(Debug, Clone, Copy, Default)]
struct WireFaults {
    /// The next answer is lost.
    silent: bool,
    /// The next question is not heard.
    away: bool,
    /// Broken on purpose: Placement accepts old generations and does not check capacity.
    careless: bool,
}

/// The way to Placement.
#[derive(Debug)]
struct Wire {
    service: InProcess,
    faults: Mutex<WireFaults>,
}

impl Wire {
    fn faults(&self) -> MutexGuard<'_, WireFaults> {
        self.faults.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A write as it would be had its sender looked just now.
    fn freshened(&self, sent: &TransportRequest<'_>) -> Option<Value> {
        let mut body = sent.body?.clone();
        let consumer = sent.path.strip_prefix("/allocations/").map(str::to_owned);
        self.service.model(|model| {
            let now = |consumer: &str| {
                let uuid = Uuid::try_parse(consumer).unwrap_or_default();
                json!(model.consumer(uuid).map(|known| known.generation))
            };
            match &consumer {
                Some(consumer) => body["consumer_generation"] = now(consumer),
                None => {
                    for (consumer, entry) in body.as_object_mut().into_iter().flatten() {
                        entry["consumer_generation"] = now(consumer);
                    }
                }
            }
        });
        Some(body)
    }
}

fn silence() -> NoResponse {
    NoResponse {
        problem: "no answer".to_owned(),
        effect: RequestEffect::Unknown,
    }
}

impl Transport for Wire {
    fn exchange<'a>(&'a self, request: TransportRequest<'a>) -> ExchangeFuture<'a> {
        Box::pin(async move {
            let faults = {
                let mut faults = self.faults();
                let now = *faults;
                (faults.silent, faults.away) = (false, false);
                now
            };
            if faults.away {
                return Err(silence());
            }
            let careless = faults.careless.then(|| self.freshened(&request)).flatten();
            let body = careless.as_ref().or(request.body);
            let answer = self
                .service
                .exchange(TransportRequest { body, ..request })
                .await;
            if faults.silent {
                Err(silence())
            } else {
                answer
            }
        })
    }
}

#[derive(Debug)]
pub(super) struct Placement {
    pub(super) capacity: Vec<u64>,
    /// What everybody holds: the model, as it was looked at after the last write.
    pub(super) consumers: BTreeMap<Uuid, ConsumerClaim>,
    wire: Arc<Wire>,
    client: ebbtide_openstack::Placement,
}

impl Placement {
    /// Hosts with the given numbers of VCPUs. `careless`: Placement accepts old generations and
    /// does not check capacity.
    pub(super) fn new(capacity: Vec<u64>, careless: bool) -> Self {
        let mut model = Model::new();
        for (host, vcpus) in capacity.iter().enumerate() {
            let vcpus = if careless { PLENTY } else { *vcpus };
            model.add_host(provider(host), &format!("host-{host}"), vcpus, 0, 0);
        }
        let faults = WireFaults {
            careless,
            ..WireFaults::default()
        };
        let wire = Arc::new(Wire {
            service: InProcess::new(model),
            faults: Mutex::new(faults),
        });
        let session = Session::in_process(Arc::clone(&wire) as Arc<dyn Transport>);
        let client = ebbtide_openstack::Placement::new(session, AdapterOptions::placement());
        let client = match client {
            Ok(client) => client.with_retry_wait(Duration::ZERO),
            Err(error) => unreachable!("the options are right: {error}"),
        };
        Self {
            capacity,
            consumers: BTreeMap::new(),
            wire,
            client,
        }
    }

    pub(super) fn used(&self, host: usize) -> u64 {
        let here = self.consumers.values().filter(|h| h.host == host);
        here.map(|h| h.vcpus).sum()
    }

    /// Runs what a scheduler does to a preemption's allocations, to its end.
    pub(super) fn with_room<T>(
        &mut self,
        rows: &Rows,
        work: impl AsyncFnOnce(PlacementSwap<'_, Rows>) -> T,
    ) -> T {
        let done = at_once(work(PlacementSwap::new(self.client.clone(), rows)));
        self.look();
        done
    }

    /// Runs what a scheduler asks Placement, to its end.
    pub(super) fn with_client<T>(
        &mut self,
        work: impl AsyncFnOnce(&ebbtide_openstack::Placement) -> T,
    ) -> T {
        let done = at_once(work(&self.client));
        self.look();
        done
    }

    /// Nova deletes what a consumer holds.
    pub(super) fn delete(&mut self, consumer: Uuid) {
        if self.consumers.remove(&consumer).is_some() {
            let path = format!("/allocations/{consumer}");
            self.write("DELETE", &path, None);
        }
    }

    /// Another writer repeats the write of an allocation, so that only its generation changes.
    pub(super) fn touch(&mut self, n: usize) -> bool {
        let count = self.consumers.len().max(1);
        let Some((consumer, held)) = self.consumers.iter().nth(n % count) else {
            return false;
        };
        let path = format!("/allocations/{consumer}");
        let body = json!({
            "allocations": holding(held.host, held.vcpus, None).allocations,
            "project_id": "p",
            "user_id": "u",
            "consumer_generation": held.generation,
        });
        self.write("PUT", &path, Some(&body));
        self.look();
        true
    }

    fn write(&self, method: &str, path: &str, body: Option<&Value>) {
        let request = ModelRequest {
            method,
            path,
            version: VERSION,
            body,
        };
        self.wire.service.model(|model| drop(model.ask(request)));
    }

    /// Looks at the model from outside.
    fn look(&mut self) {
        self.consumers = self.wire.service.model(|model| {
            let all = model.consumers().map(|(id, known)| (id, known.generation));
            all.filter_map(|(id, generation)| {
                let (provider, of) = model.holds(id).into_iter().next()?;
                let held = ConsumerClaim {
                    generation,
                    host: host_of(provider)?,
                    vcpus: of.get("VCPU").copied()?,
                };
                Some((id, held))
            })
            .collect()
        });
    }

    /// The next answer is lost.
    pub(super) fn lose_answer(&self) {
        self.wire.faults().silent = true;
    }

    /// The next question is not heard.
    pub(super) fn lose_question(&self) {
        self.wire.faults().away = true;
    }

    /// Nothing more is lost.
    pub(super) fn mend(&self) {
        let mut faults = self.wire.faults();
        (faults.silent, faults.away) = (false, false);
    }
}

/// Nothing in this world is waited for: Placement answers within the call, or not at all.
fn at_once<T>(work: impl Future<Output = T>) -> T {
    match work.now_or_never() {
        Some(done) => done,
        None => unreachable!("a call to Placement in the process waits for something"),
    }
}

/// What a scheduler of this world has beside Placement: rows of Nova's database. It believes
/// nothing, and does one thing after another.
#[derive(Debug, Default)]
pub(super) struct Rows(pub(super) BTreeMap<Uuid, InstanceRow>);

impl SwapEnvironment for Rows {
    type Guard = ();

    async fn instance(&self, server: Uuid) -> Result<Option<InstanceRow>, String> {
        Ok(self.0.get(&server).cloned())
    }

    async fn lock_for_write(&self, _claims: &[NewClaim]) {}

    fn wrote(&self, _turn: &()) {}

    fn claimed(&self, _consumer: Uuid, _amounts: &Amounts) {}

    fn released(&self, _consumer: Uuid) {}
}

fn provider(host: usize) -> Uuid {
    Uuid::from_u128(FIRST + host as u128)
}

fn host_of(provider: Uuid) -> Option<usize> {
    usize::try_from(provider.as_u128().checked_sub(FIRST)?).ok()
}

/// A holding in the form in which records keep it.
pub(super) fn holding(host: usize, vcpus: u64, generation: Option<u64>) -> Holding {
    Holding {
        allocations: json!({ provider(host).to_string(): { "resources": { "VCPU": vcpus } } }),
        mappings: None,
        project_id: "p".to_owned(),
        user_id: "u".to_owned(),
        generation,
    }
}

/// A claim of a consumer that most probably holds nothing yet.
pub(super) fn new_claim(consumer: Uuid, host: usize, vcpus: u64) -> Option<NewClaim> {
    let holding = holding(host, vcpus, None);
    Some(NewClaim {
        consumer,
        resources: Resources::new(holding.allocations, None).ok()?,
        project_id: holding.project_id,
        user_id: holding.user_id,
        generation: None,
    })
}

pub(super) fn amounts(holding: &Holding) -> Option<(usize, u64)> {
    let (provider, of) = ebbtide_swap::amounts(&holding.allocations)
        .into_iter()
        .next()?;
    Some((host_of(provider)?, of.get("VCPU").copied()?))
}

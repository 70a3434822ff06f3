//! What Placement says of the next probable victims, read while no request waits for it.
//!
//! A swap names the consumer generations of its victims. In a full cloud the next request often
//! wants what the last one wanted, and gets the next cheapest victims. So after a preemption the
//! scheduler plans the same request once more, in memory, and reads the consumers of that plan's
//! hosts. A request that begins with them reads them again beside its swap: no victim hears of it
//! before they are confirmed.

use super::placement_snapshot::PlacementSnapshot;
use super::{SelectRequest, Selector};
use crate::evacuate::Evacuations;
use crate::facts::Facts;
use ebbtide_nova_cloud::{
    Cloud, NoPlan, NoPlanReason, PlacementQuery, PreemptionPlan, ProviderSnapshot, VerifyResult,
};
use ebbtide_openstack::OpenStackError;
use ebbtide_runtime::clock::{self, Stopwatch};
use ebbtide_runtime::task::{self, AbortOnDropHandle};
use futures::future::try_join_all;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// How long consumers are kept. Most changes since then are seen before they are used; the others
/// cost a swap that is taken back.
const FRESH: Duration = Duration::from_secs(30);
/// Most hosts of which consumers are kept.
const MOST: usize = 64;

/// The consumers that were read ahead, and the requests that are under way. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ReadAhead {
    kept: Arc<Mutex<HashMap<Uuid, CachedSnapshot>>>,
    busy: Arc<AtomicUsize>,
}

struct CachedSnapshot {
    truth: ProviderSnapshot,
    read: Stopwatch,
    /// How many claims this scheduler had begun on the host.
    writes: u64,
}

/// A request that is under way, until it is dropped.
pub(super) struct InFlightGuard(Arc<AtomicUsize>);

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ReadAhead {
    /// Counts a request as under way.
    pub(super) fn busy(&self) -> InFlightGuard {
        self.busy.fetch_add(1, Ordering::Relaxed);
        InFlightGuard(Arc::clone(&self.busy))
    }

    fn kept(&self) -> MutexGuard<'_, HashMap<Uuid, CachedSnapshot>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, truth: ProviderSnapshot, writes: u64) {
        let mut kept = self.kept();
        kept.retain(|_, kept| kept.read.elapsed() < FRESH);
        if kept.len() < MOST {
            let read = Stopwatch::start();
            let entry = CachedSnapshot {
                truth,
                read,
                writes,
            };
            kept.insert(entry.truth.provider, entry);
        }
    }

    fn of(&self, facts: &Facts, provider: Uuid) -> Option<ProviderSnapshot> {
        let writes = facts.providers.writes_at_rest(provider)?;
        let kept = self.kept();
        let kept = kept.get(&provider)?;
        (kept.read.elapsed() < FRESH && kept.writes == writes).then(|| kept.truth.clone())
    }

    /// The consumers of a host have changed.
    pub(super) fn forget(&self, provider: Uuid) {
        self.kept().remove(&provider);
    }
}

/// The consumers of a plan's hosts, which are being read again. Dropping it gives that up.
pub(super) struct SecondReading {
    truth: AbortOnDropHandle<Result<Vec<ProviderSnapshot>, OpenStackError>>,
}

impl SecondReading {
    fn begin(facts: &Facts, hosts: Vec<Uuid>) -> Self {
        let facts = facts.clone();
        let truth = task::spawn_for_result("consumers", async move {
            let read = hosts.into_iter().map(|host| facts.providers.snapshot(host));
            try_join_all(read).await
        });
        Self { truth }
    }

    /// Confirms a plan that was made with what was read ahead (`kept`). The error says what has
    /// changed since.
    pub(super) async fn confirms(
        self,
        facts: &Facts,
        mut plan: PreemptionPlan,
        kept: &[ProviderSnapshot],
    ) -> Result<(), String> {
        let truth = self.truth.await.map_err(|error| error.to_string())?;
        let mut truth = truth.map_err(|error| error.to_string())?;
        let newcomers: BTreeSet<Uuid> = plan.instances.iter().map(|i| i.uuid).collect();
        let victims: BTreeSet<Uuid> = plan.victims.iter().map(|v| v.uuid).collect();
        for now in &mut truth {
            let before = kept.iter().find(|kept| kept.provider == now.provider);
            let before = before.ok_or("the consumers of another host are needed")?;
            let is_victim = |uuid: &Uuid| victims.contains(uuid);
            if now.consumers.iter().any(|c| newcomers.contains(&c.uuid)) {
                // The swap was faster than this reading. Placement has taken it, so the victims
                // had the generations that it named, and held what was read with them.
                let others = |uuid: &Uuid| !is_victim(uuid) && !newcomers.contains(uuid);
                now.consumers.retain(|consumer| others(&consumer.uuid));
                let had = before.consumers.iter();
                let had = had.filter(|consumer| is_victim(&consumer.uuid));
                now.consumers.extend(had.cloned());
            }
            let unchanged = before
                .consumers
                .iter()
                .filter(|consumer| is_victim(&consumer.uuid))
                .all(|consumer| now.consumers.contains(consumer));
            if !unchanged {
                return Err("a victim has changed since it was read".to_owned());
            }
        }
        match facts.read(|cloud| cloud.verify(&mut plan, &truth)) {
            VerifyResult::Good => Ok(()),
            VerifyResult::Changed(why) => Err(why),
        }
    }
}

impl Selector {
    /// What was read ahead of a plan's hosts, and its second reading. `None`: not all of it was.
    pub(super) fn read_before(
        &self,
        request: &SelectRequest,
        plan: &PreemptionPlan,
    ) -> Option<(PlacementSnapshot, SecondReading)> {
        let (hosts, newcomers) = self.concerned(request, plan);
        // What a newcomer holds elsewhere is not kept.
        if !newcomers.is_empty() {
            return None;
        }
        let truth = hosts
            .iter()
            .map(|host| self.read_ahead.of(&self.facts, *host));
        let truth: Option<Vec<ProviderSnapshot>> = truth.collect();
        let snapshot = PlacementSnapshot::of_cached(truth?, plan)?;
        let reading = SecondReading::begin(&self.facts, hosts.into_iter().collect());
        Some((snapshot, reading))
    }

    /// Reads the consumers that a further request like this one would need, after its answer,
    /// unless others wait for Placement.
    pub(super) fn read_for_the_next(
        &self,
        request: &SelectRequest,
        asked: &PlacementQuery,
        evacuations: &Evacuations,
    ) {
        if request.schedule.spec.instance_group.is_some() || evacuations.has_budgets() {
            return;
        }
        let (selector, asked) = (self.clone(), asked.clone());
        let (spec, call) = (request.schedule.spec.clone(), request.call.clone());
        let options = super::preempt::plan_options(request);
        let seed = Some(request.seed);
        evacuations.spawn("read-ahead", async move {
            if selector.read_ahead.busy.load(Ordering::Relaxed) > 1 {
                return;
            }
            let plan = selector.reservations.plan_without(|reserved| {
                let mut options = options.clone();
                options.spared.extend(reserved);
                let plan = |cloud: &Cloud| {
                    let now = clock::unix_micros();
                    cloud.decide_once(&spec, &call, &asked, now, seed, Some(&options))
                };
                let pass = selector.facts.read(plan);
                let victims = pass.ok().and_then(|pass| pass.victims);
                victims.unwrap_or_else(|| {
                    Err(NoPlan {
                        reason: NoPlanReason::NoHost,
                        text: String::new(),
                        explanation: None,
                    })
                })
            });
            let Ok(plan) = plan else { return };
            let victims = plan.victims.iter();
            let hosts: BTreeSet<Uuid> = victims.map(|victim| victim.host.uuid).collect();
            for host in hosts {
                selector.read_host_ahead(host).await;
            }
        });
    }

    async fn read_host_ahead(&self, host: Uuid) {
        if self.read_ahead.of(&self.facts, host).is_some() {
            return;
        }
        let Some(writes) = self.facts.providers.writes_at_rest(host) else {
            return;
        };
        match self.facts.providers.snapshot(host).await {
            Ok(truth) => {
                let (generation, consumers) = (truth.generation, &truth.consumers);
                self.facts
                    .write(|cloud| cloud.consumers_of(host, generation, consumers));
                self.read_ahead.keep(truth, writes);
            }
            // The request that needs it reads it.
            Err(error) => tracing::debug!(code = error.code(), %host, "{error}"),
        }
    }
}

//! The scheduler's copy of Placement's data. It may be out of date; every claim verifies it.
//!
//! At the start the scheduler reads one list of all providers. One query for the smallest amount of
//! each usual resource class returns capacity, usage and traits of all providers with free
//! capacity. One query for each of Nova's aggregates returns its members. The scheduler then
//! follows changes: Placement increments a provider's generation when its inventory, traits,
//! aggregates or allocations change. Usage that falls without a new generation (Nova deletes a
//! server) is reported by Nova's computes. The scheduler reads the rest, which is details of
//! inventories and hosts without free capacity, one by one and slowly, because Placement also
//! serves other clients.

use super::SharedCloud;
use super::claim_writes::{ClaimWrite, ClaimWrites};
use super::provider_locks::{ProviderGuard, ProviderLocks};
use crate::Tasks;
use crate::error::NovaServiceError;
use ebbtide_nova_cloud::{
    Allocations, Cloud, Consumer, Counts, Inventory, ProviderFacts, ProviderLine, ProviderSnapshot,
};
use ebbtide_openstack::{NewClaim, OpenStackError, Placement, Session};
use ebbtide_runtime::clock::Stopwatch;
use ebbtide_runtime::task::pause;
use futures::StreamExt;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// Providers that are read in parallel. The limit keeps the start from overloading Placement, which
/// also serves other clients.
const AT_ONCE: usize = 4;
/// Nearly every host has one of these classes. A host with no free capacity in any of them is read
/// individually.
const USUAL: [&str; 3] = ["VCPU:1", "MEMORY_MB:1", "DISK_GB:1"];
/// Pause after a background read, as a multiple of its duration: background reads use at most a
/// tenth of one Placement worker.
const REST: u32 = 9;
/// How long a change of a provider by another writer counts as a sign that more will follow.
const OTHER_WRITERS: Duration = Duration::from_secs(30);
/// How long a release that the cloud in memory has missed counts as a sign that it misses more.
const MISSED_RELEASES: Duration = Duration::from_secs(30);
/// Pause of the background reader when there is nothing to read.
const IDLE: Duration = Duration::from_secs(5);

/// Keeps the copy of Placement's data up to date.
pub(crate) struct Providers {
    placement: Placement,
    cloud: SharedCloud,
    /// Providers that have changed since the scheduler last read them. True: read everything;
    /// false: read usage only.
    stale: Mutex<HashMap<Uuid, bool>>,
    wake: tokio::sync::Notify,
    /// Providers that the scheduler has never read completely and that no request is waiting for.
    unread: Mutex<BTreeSet<Uuid>>,
    /// This scheduler's claims for each provider.
    writes: ClaimWrites,
    locks: ProviderLocks,
    /// Since another writer was last seen to change a provider.
    other_writer: Mutex<Option<Stopwatch>>,
    /// Since Placement was last seen to have capacity that the cloud in memory did not know.
    missed_release: Mutex<Option<Stopwatch>>,
    /// The compute nodes (root providers) of each host.
    nodes: Mutex<HashMap<String, BTreeSet<Uuid>>>,
}

impl Providers {
    /// The session of Placement's client.
    pub(crate) fn session(&self) -> &Session {
        self.placement.session()
    }

    pub(crate) fn new(placement: Placement, cloud: SharedCloud) -> Self {
        Self {
            placement,
            cloud,
            stale: Mutex::default(),
            wake: tokio::sync::Notify::new(),
            unread: Mutex::default(),
            writes: ClaimWrites::default(),
            locks: ProviderLocks::default(),
            other_writer: Mutex::default(),
            missed_release: Mutex::default(),
            nodes: Mutex::default(),
        }
    }

    /// Records that a host has this compute node.
    pub(crate) fn know_node(&self, host: &str, node: Uuid) {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        match nodes.get_mut(host) {
            Some(of) => drop(of.insert(node)),
            None => drop(nodes.insert(host.to_owned(), BTreeSet::from([node]))),
        }
    }

    /// Schedules a read of a host's usage after a change that does not increment the provider's
    /// generation.
    pub(crate) fn mark_usage(&self, host: &str) {
        self.mark_nodes(host, false);
    }

    /// Schedules a complete read of a host's providers.
    pub(crate) fn mark_host(&self, host: &str) {
        self.mark_nodes(host, true);
    }

    fn mark_nodes(&self, host: &str, whole: bool) {
        let nodes = self
            .nodes
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(host)
            .cloned();
        let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
        for node in nodes.into_iter().flatten() {
            *stale.entry(node).or_insert(whole) |= whole;
        }
        drop(stale);
        self.wake.notify_one();
    }

    /// The Placement client that sends this request id.
    pub(crate) fn placement(&self, request_id: &str) -> Placement {
        self.placement.for_request(request_id)
    }

    /// Learns of all providers. Providers that are read only in the background take their values
    /// from Nova's rows until then.
    pub(crate) async fn load(&self) -> Result<(), NovaServiceError> {
        let lines = self.lines().await?;
        self.take_list(&lines);
        for class in USUAL {
            // Stops after the first query for which all hosts have an answer.
            let counts = self.counts();
            if counts.unread_hosts == 0 && counts.hosts > 0 {
                break;
            }
            let answer = self
                .placement
                .allocation_candidates_json(&format!("resources={}", class.replace(':', "%3A")))
                .await?;
            let known = self.write(|cloud| cloud.put_summaries(&answer))?;
            tracing::info!(class, known, "read what providers have and have given");
        }
        let aggregates = self
            .cloud
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .aggregate_uuids();
        let mut members = BTreeMap::new();
        for aggregate in aggregates {
            let providers = self
                .placement
                .providers(&format!("member_of={aggregate}"))
                .await?;
            let uuids: BTreeSet<Uuid> = providers.into_iter().map(|p| p.uuid).collect();
            members.insert(aggregate, uuids);
        }
        self.write(|cloud| cloud.put_memberships(&members));
        self.take_list(&lines);
        Ok(())
    }

    fn counts(&self) -> Counts {
        let cloud = self.cloud.read().unwrap_or_else(PoisonError::into_inner);
        cloud.counts()
    }

    /// Follows Placement's changes until the scheduler stops.
    pub(crate) fn follow(self: &Arc<Self>, every: Duration, tasks: &Tasks) {
        let lister = Arc::clone(self);
        let stop = tasks.stop().clone();
        tasks.spawn("placement-list", async move {
            let mut rest = every;
            while pause(&stop, rest).await {
                let watch = Stopwatch::start();
                if let Err(error) = lister.list().await {
                    tracing::warn!(code = error.code(), "{error}");
                }
                rest = every.max(watch.elapsed() * REST);
            }
        });
        let slow = Arc::clone(self);
        let stop = tasks.stop().clone();
        tasks.spawn("placement-slow-read", async move {
            let mut rest = IDLE;
            while pause(&stop, rest).await {
                rest = slow.read_one_unread().await;
            }
        });
        let reader = Arc::clone(self);
        let stop = tasks.stop().clone();
        tasks.spawn("placement-read", async move {
            loop {
                tokio::select! {
                    () = reader.wake.notified() => {}
                    () = stop.cancelled() => return,
                }
                reader.read_stale(&stop).await;
            }
        });
    }

    /// Schedules a complete read of a changed provider.
    pub(crate) fn mark(&self, provider: Uuid) {
        self.stale
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(provider, true);
        self.wake.notify_one();
    }

    async fn list(&self) -> Result<(), OpenStackError> {
        let lines = self.lines().await?;
        self.take_list(&lines);
        Ok(())
    }

    async fn lines(&self) -> Result<Vec<ProviderLine>, OpenStackError> {
        Ok(self
            .placement
            .providers("")
            .await?
            .into_iter()
            .map(|provider| ProviderLine {
                uuid: provider.uuid,
                name: provider.name,
                generation: signed(provider.generation.0),
                parent: provider.parent_provider_uuid,
                root: provider.root_provider_uuid.unwrap_or(provider.uuid),
            })
            .collect())
    }

    fn take_list(&self, lines: &[ProviderLine]) {
        let to_read = self.write(|cloud| cloud.provider_list(lines));
        *self.unread.lock().unwrap_or_else(PoisonError::into_inner) =
            to_read.unread.into_iter().collect();
        if !to_read.changed.is_empty() {
            self.note_other_writer();
            self.stale
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .extend(to_read.changed.into_iter().map(|provider| (provider, true)));
            self.wake.notify_one();
        }
    }

    /// Reads one provider in the background and returns how long to pause afterwards.
    async fn read_one_unread(&self) -> Duration {
        let next = self
            .unread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop_first();
        let watch = Stopwatch::start();
        let Some(provider) = next else {
            let below = self.read(|cloud| cloud.unread_below(1));
            if below.is_empty() {
                return IDLE;
            }
            self.read_trees(below).await;
            return watch.elapsed() * REST;
        };
        if let Err(error) = self.refresh(provider).await {
            // The provider is still incomplete, so the next list schedules it again.
            tracing::debug!(code = error.code(), %provider, "{error}");
        }
        watch.elapsed() * REST
    }

    async fn read_stale(&self, stop: &tokio_util::sync::CancellationToken) {
        let stale: Vec<(Uuid, bool)> = {
            let mut stale = self.stale.lock().unwrap_or_else(PoisonError::into_inner);
            stale.drain().collect()
        };
        let many = stale.len() > 100;
        if many {
            tracing::info!(providers = stale.len(), "reading providers one by one");
        }
        let mut reads = futures::stream::iter(stale)
            .map(|(provider, whole)| async move {
                let read = if whole {
                    self.refresh(provider).await
                } else {
                    self.refresh_usage(provider).await
                };
                (provider, read)
            })
            .buffer_unordered(AT_ONCE);
        while let Some((provider, read)) = tokio::select! {
            next = reads.next() => next,
            () = stop.cancelled() => None,
        } {
            if let Err(error) = read {
                // The provider is still out of date, so the next list schedules it again.
                tracing::debug!(code = error.code(), %provider, "{error}");
            }
        }
        if many {
            tracing::info!("providers are read");
        }
    }

    /// Reads everything about a provider now.
    pub(crate) async fn refresh(&self, uuid: Uuid) -> Result<(), OpenStackError> {
        self.read_whole(uuid).await.map(drop)
    }

    /// The same, and returns it; `None`: the provider is gone.
    pub(crate) async fn read_whole(
        &self,
        uuid: Uuid,
    ) -> Result<Option<ProviderFacts>, OpenStackError> {
        let read = tokio::try_join!(
            self.placement.inventories(uuid),
            self.placement.usages(uuid),
            self.placement.traits(uuid),
            self.placement.aggregates(uuid),
        );
        let (inventories, usages, traits, aggregates) = match read {
            Err(OpenStackError::NotFound { .. }) => {
                self.write(|cloud| cloud.remove_provider(uuid));
                return Ok(None);
            }
            read => read?,
        };
        // The four reads run in parallel. The oldest generation is the safe one: if anything
        // changed between them, the next list shows a newer generation and the scheduler reads the
        // provider again.
        let generation = [
            inventories.generation,
            usages.generation,
            traits.generation,
            aggregates.generation,
        ]
        .into_iter()
        .min()
        .map(|generation| signed(generation.0));
        let used = usages.usages.into_iter();
        let facts = ProviderFacts {
            uuid,
            generation,
            inventories: Some(inventories_of(inventories.inventories)),
            used: Some(used.map(|(class, used)| (class, signed(used))).collect()),
            traits: Some(traits.traits.into_iter().collect()),
            aggregates: Some(aggregates.aggregates.into_iter().collect()),
            ..ProviderFacts::default()
        };
        self.write(|cloud| cloud.put_provider(facts.clone()));
        Ok(Some(facts))
    }

    /// What Placement gives of a provider beyond its capacity, of the classes of a claim that it
    /// has taken: another claim met this one (see `provider_locks.rs`).
    pub(crate) async fn overcommitted(
        &self,
        uuid: Uuid,
        claimed: &BTreeMap<String, u64>,
    ) -> Result<Option<String>, OpenStackError> {
        let (inventories, usages) = tokio::try_join!(
            self.placement.inventories(uuid),
            self.placement.usages(uuid)
        )?;
        let used = usages.usages.into_iter();
        let facts = ProviderFacts {
            inventories: Some(inventories_of(inventories.inventories)),
            used: Some(used.map(|(class, used)| (class, signed(used))).collect()),
            ..ProviderFacts::default()
        };
        Ok(facts.overcommitted(claimed.keys()))
    }

    /// Reads a provider's usage. The known generation stays as it is, because nothing else was
    /// read.
    async fn refresh_usage(&self, uuid: Uuid) -> Result<(), OpenStackError> {
        let usages = match self.placement.usages(uuid).await {
            Err(OpenStackError::NotFound { .. }) => {
                self.write(|cloud| cloud.remove_provider(uuid));
                return Ok(());
            }
            read => read?,
        };
        let used = usages.usages.into_iter();
        let facts = ProviderFacts {
            uuid,
            used: Some(used.map(|(class, used)| (class, signed(used))).collect()),
            ..ProviderFacts::default()
        };
        self.write(|cloud| cloud.put_provider(facts));
        Ok(())
    }

    /// Reads a provider's inventory if it was never read. The background reader reads the rest
    /// later.
    pub(crate) async fn read_if_believed(&self, uuid: Uuid) -> Result<(), OpenStackError> {
        let believed = self
            .cloud
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .only_believed(uuid);
        if !believed {
            return Ok(());
        }
        let read = self.placement.inventories(uuid).await?;
        let facts = ProviderFacts {
            uuid,
            inventories: Some(inventories_of(read.inventories)),
            ..ProviderFacts::default()
        };
        self.write(|cloud| cloud.put_provider(facts));
        Ok(())
    }

    /// Reads what a plan is verified with. A provider that another writer has changed since it was
    /// read is read anew: consumers say nothing of its traits and aggregates.
    pub(crate) async fn snapshot(
        &self,
        provider: Uuid,
    ) -> Result<ProviderSnapshot, OpenStackError> {
        let ((), (generation, consumers)) =
            tokio::try_join!(self.read_if_believed(provider), self.consumers(provider))?;
        if self.known_generation(provider) < Some(generation) {
            self.refresh(provider).await?;
        }
        Ok(ProviderSnapshot {
            provider,
            generation,
            consumers,
        })
    }

    /// Reads the consumers of a provider and what each holds.
    pub(crate) async fn consumers(
        &self,
        provider: Uuid,
    ) -> Result<(i64, Vec<Consumer>), OpenStackError> {
        let read = self.placement.provider_allocations(provider).await?;
        let generation = signed(read.generation.0);
        let consumers = read.consumers.into_iter().map(|(uuid, has)| Consumer {
            uuid,
            generation: signed(has.consumer_generation.0),
            resources: has.resources,
        });
        Ok((generation, consumers.collect()))
    }

    /// Waits until no other task of this scheduler writes allocations of these claims' providers.
    pub(crate) async fn lock_for_write(&self, claims: &[NewClaim]) -> ProviderGuard {
        let amounts = claims.iter().flat_map(|claim| claim.resources.amounts());
        let providers = amounts.map(|(provider, _, _)| provider).collect();
        self.locks.take(&providers).await
    }

    /// Waits until no other task of this scheduler writes allocations of a provider, so that a read
    /// does not fall between two writes of this scheduler.
    pub(crate) async fn lock_for_look(&self, provider: Uuid) -> ProviderGuard {
        self.locks.take(&BTreeSet::from([provider])).await
    }

    /// Marks a claim of this scheduler as being written while the guard lives. Each claim
    /// increments the provider's generation by one.
    pub(crate) fn begin_write(&self, provider: Uuid) -> ClaimWrite<'_> {
        self.writes.begin(provider)
    }

    /// How many claims this scheduler has begun for a provider; `None` while it writes one.
    pub(crate) fn writes_at_rest(&self, provider: Uuid) -> Option<u64> {
        self.writes.at_rest(provider)
    }

    /// The values from before a write that [`Providers::wrote`] needs. The caller holds the
    /// providers' locks.
    pub(crate) fn readings(&self, claims: &[NewClaim]) -> BTreeMap<Uuid, u64> {
        let cloud = self.cloud.read().unwrap_or_else(PoisonError::into_inner);
        let providers = claims.iter().flat_map(|claim| claim.resources.providers());
        providers
            .map(|provider| (provider, cloud.provider_readings(provider)))
            .collect()
    }

    /// Counts a write of this scheduler: it has raised the generation of these providers by one.
    pub(crate) fn wrote(&self, readings: &BTreeMap<Uuid, u64>) {
        self.write(|cloud| {
            for (provider, readings) in readings {
                cloud.own_write(*provider, *readings);
            }
        });
    }

    /// Records that another writer has changed a provider.
    pub(crate) fn note_other_writer(&self) {
        *self.last_other_writer() = Some(Stopwatch::start());
    }

    /// Records that Placement had capacity that the cloud in memory did not know.
    pub(crate) fn note_missed_release(&self) {
        let last = self.missed_release.lock();
        *last.unwrap_or_else(PoisonError::into_inner) = Some(Stopwatch::start());
    }

    /// Whether a preemption may begin before Placement says that no host has capacity: one that is
    /// not confirmed costs more than the wait for the answer.
    pub(crate) fn sees_releases(&self) -> bool {
        let last = self.missed_release.lock();
        let last = last.unwrap_or_else(PoisonError::into_inner);
        last.as_ref()
            .is_none_or(|since| since.elapsed() > MISSED_RELEASES)
    }

    fn last_other_writer(&self) -> MutexGuard<'_, Option<Stopwatch>> {
        self.other_writer
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a claim on a host needs no look at its generation before it: the look after the
    /// claim shows a change from before as well, and then the claim is given back. That is rare
    /// while this scheduler is the only one that writes, so that one of two questions is saved.
    /// With other writers it would be frequent, and a claim that is given back costs more than a
    /// look.
    pub(crate) fn look_after_suffices(&self, host: Uuid) -> bool {
        let last = self.last_other_writer();
        let alone = last
            .as_ref()
            .is_none_or(|since| since.elapsed() > OTHER_WRITERS);
        drop(last);
        alone && self.known_generation(host).is_some()
    }

    /// The last known generation of a provider.
    pub(crate) fn known_generation(&self, provider: Uuid) -> Option<i64> {
        let cloud = self.cloud.read().unwrap_or_else(PoisonError::into_inner);
        cloud.provider_generation(provider)
    }

    /// Records the allocations of a consumer.
    pub(crate) fn claimed(
        &self,
        consumer: Uuid,
        allocations: &Allocations,
        generation: Option<i64>,
    ) {
        self.write(|cloud| cloud.claimed(consumer, allocations, generation));
    }

    /// Records that a consumer holds nothing.
    pub(crate) fn released(&self, consumer: Uuid) {
        self.write(|cloud| cloud.released(consumer));
    }

    fn read<T>(&self, look: impl FnOnce(&Cloud) -> T) -> T {
        look(&self.cloud.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn write<T>(&self, change: impl FnOnce(&mut Cloud) -> T) -> T {
        // No code under this lock can panic halfway, so the cloud behind a poisoned lock is
        // consistent.
        change(&mut self.cloud.write().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Converts inventories to the form of the cloud in memory. Placement's numbers are 32-bit; a
/// larger number counts as infinite.
fn inventories_of(
    read: BTreeMap<String, ebbtide_openstack::placement::Inventory>,
) -> BTreeMap<String, Inventory> {
    let inventory = |(class, has): (String, ebbtide_openstack::placement::Inventory)| {
        let inventory = Inventory {
            total: signed(has.total),
            reserved: signed(has.reserved),
            min_unit: signed(has.min_unit),
            max_unit: signed(has.max_unit),
            step_size: signed(has.step_size),
            allocation_ratio: has.allocation_ratio,
        };
        (class, inventory)
    };
    read.into_iter().map(inventory).collect()
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

//! The ledger's open rows of all schedulers: every decision counts what physically runs, whatever
//! Placement shows.
//!
//! A row is written before its swap, so it is older than any capacity that its newcomer can leave
//! behind. A read of the ledger that begins after a claim therefore sees every victim that may
//! still run in the claimed capacity.

use super::{Evacuations, read};
use crate::facts::other_schedulers::GONE_AFTER;
use crate::preemption::{Preemption, PreemptionState};
use ebbtide_nova_cloud::OpenPreemption;
use ebbtide_openstack::OpenStackError;
use ebbtide_store::ledger::{LedgerError, LedgerHeads};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use tokio::sync::Mutex;
use uuid::Uuid;

/// The rows as last read. Concurrent requests share one query.
#[derive(Default)]
pub(super) struct OpenRows {
    rows: Mutex<HashMap<Uuid, OpenRow>>,
    /// Number of requested reads.
    asked: AtomicU64,
    /// The last of them for which the rows are fresh.
    served: AtomicU64,
    /// There are disruption budgets.
    has_budgets: AtomicBool,
}

impl OpenRows {
    /// Whether there were disruption budgets when the rows were last read.
    pub(super) fn has_budgets(&self) -> bool {
        self.has_budgets.load(Ordering::SeqCst)
    }
}

/// A row as last read.
struct OpenRow {
    version: i64,
    open: OpenPreemption,
    /// Providers whose consumers must be read, because the row's data may differ from what
    /// Placement holds.
    unread: BTreeSet<Uuid>,
}

impl Evacuations {
    /// Returns when every row that was open before this call counts here.
    ///
    /// # Errors
    /// Those of the ledger: then the last known rows count.
    pub(crate) async fn freshen(&self) -> Result<(), LedgerError> {
        let open = &self.shared.open;
        let ticket = open.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut rows = open.rows.lock().await;
        if open.served.load(Ordering::SeqCst) >= ticket {
            return Ok(());
        }
        let up_to = open.asked.load(Ordering::SeqCst);
        let LedgerHeads {
            open: heads,
            has_budgets,
            has_other_schedulers,
        } = self.heads().await?;
        open.has_budgets.store(has_budgets, Ordering::SeqCst);
        let others = &self.shared.facts.others;
        others.set_in_ledger(has_other_schedulers);
        let versions: HashMap<Uuid, i64> = heads.iter().map(|h| (h.id, h.version)).collect();
        let changed: Vec<Uuid> = heads
            .iter()
            .filter(|head| rows.get(&head.id).map(|seen| seen.version) != Some(head.version))
            .map(|head| head.id)
            .collect();
        let read_again = self.shared.ledger.rows_named(&changed).await?;
        rows.retain(|id, _| versions.contains_key(id));
        for row in read_again {
            if row.finished {
                rows.remove(&row.id);
                continue;
            }
            let Some(record) = read(&row) else { continue };
            let seen = OpenRow {
                version: row.version,
                unread: unread(&record),
                open: open_of(&record),
            };
            rows.insert(row.id, seen);
        }
        let all = rows.iter().map(|(id, seen)| (*id, seen.open.clone()));
        let all = all.collect();
        let facts = &self.shared.facts;
        // Most of the time nothing differs, and then decisions that were made stay current.
        if !facts.read(|cloud| cloud.open_preemptions_are(&all)) {
            facts.write(|cloud| cloud.set_open_preemptions(all));
        }
        for provider in rows
            .values_mut()
            .flat_map(|seen| std::mem::take(&mut seen.unread))
        {
            if let Err(error) = self.read_consumers(provider).await {
                // The next claim on it reads it again.
                tracing::debug!(code = error.code(), %provider, "{error}");
            }
        }
        open.served.store(up_to, Ordering::SeqCst);
        Ok(())
    }

    /// What the ledger says for each request. While it does not answer, other schedulers may have
    /// registered.
    pub(super) async fn heads(&self) -> Result<LedgerHeads, LedgerError> {
        let shared = &self.shared;
        let gone = i64::try_from(GONE_AFTER.as_millis()).unwrap_or(i64::MAX);
        let heads = shared.ledger.heads(&shared.owner.name, gone).await;
        if heads.is_err() {
            shared.facts.others.set_in_ledger(true);
        }
        heads
    }

    /// Remembers a row that this scheduler has just written, so that the next read of the ledger
    /// need not read it back. Does nothing during a read, which may have begun before the write.
    pub(super) fn remember(&self, id: Uuid, version: i64, record: &Preemption) {
        if let Ok(mut rows) = self.shared.open.rows.try_lock() {
            let seen = OpenRow {
                version,
                unread: unread(record),
                open: open_of(record),
            };
            rows.insert(id, seen);
        }
    }

    /// Whether more runs on a host than fits, after a claim there; the caller then gives the claim
    /// back. `None`: everything fits. `own`: the preemption that made the claim. Its victims do not
    /// count against its own newcomers, which start when the victims are gone.
    ///
    /// # Errors
    /// Those of Placement.
    pub(crate) async fn overfull(
        &self,
        provider: Uuid,
        own: Option<Uuid>,
    ) -> Result<Option<String>, OpenStackError> {
        // Without the ledger no scheduler begins a preemption, and the known ones count.
        if let Err(error) = self.freshen().await {
            tracing::warn!(
                code = error.code(),
                "{error}; preemptions count as they were last read"
            );
        }
        let facts = &self.shared.facts;
        if !facts.read(|cloud| cloud.is_being_evacuated(provider, own)) {
            return Ok(None);
        }
        facts.providers.read_if_believed(provider).await?;
        let (_, consumers) = facts.providers.consumers(provider).await?;
        Ok(facts.read(|cloud| cloud.overfull(provider, &consumers)))
    }

    /// What Placement gives of a host beyond its capacity, after a write of this scheduler there;
    /// the caller then gives it back. A swap takes free capacity beside that of its victims, so
    /// another scheduler's claim can meet it. No query without other schedulers.
    ///
    /// # Errors
    /// Those of Placement.
    pub(crate) async fn overcommitted(
        &self,
        provider: Uuid,
        claimed: &BTreeMap<String, u64>,
    ) -> Result<Option<String>, OpenStackError> {
        let facts = &self.shared.facts;
        match facts.others.may_claim() {
            true => facts.providers.overcommitted(provider, claimed).await,
            false => Ok(None),
        }
    }

    async fn read_consumers(&self, provider: Uuid) -> Result<(), OpenStackError> {
        let facts = &self.shared.facts;
        let (generation, consumers) = facts.providers.consumers(provider).await?;
        facts.write(|cloud| cloud.consumers_of(provider, generation, &consumers));
        Ok(())
    }
}

/// The part of a record that decisions need.
pub(super) fn open_of(record: &Preemption) -> OpenPreemption {
    let had = |victim: &crate::preemption::Victim| {
        let had = crate::facts::amounts(&victim.had.allocations);
        (victim.server.0, had)
    };
    OpenPreemption {
        victims: record.victims.iter().map(|v| v.server.0).collect(),
        running: record.survivors().map(had).collect(),
        newcomers: record.newcomers.iter().map(|n| n.instance).collect(),
    }
}

/// Providers to read: a withdrawn preemption moves allocations in ways that its row does not show.
fn unread(record: &Preemption) -> BTreeSet<Uuid> {
    if record.state != PreemptionState::Withdrawing {
        return BTreeSet::new();
    }
    let had = record.survivors().map(|v| &v.had.allocations);
    had.flat_map(|had| crate::facts::amounts(had).into_keys())
        .collect()
}

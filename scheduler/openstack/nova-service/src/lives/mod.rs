//! Past lives of preemptible servers, for advice: found in the ledger and in Nova's databases, and
//! recorded in the ledger's database, where they outlive Nova's rows.
//!
//! Nova keeps the rows of deleted servers until the operator archives them. So the first look finds
//! the lives of servers that were gone before the API was switched on, and advice does not begin
//! with nothing. Later looks read what is new. No request for servers waits for a look.

mod run_periods;

use crate::error::NovaServiceError;
use crate::evacuate::PreemptionDriver;
use crate::facts::Facts;
use crate::preemption::Preemption;
use crate::settings::LIVES_KEPT;
use ebbtide_model::{PastLife, Seconds, Server, ServerId, ServerStatus, Timestamp};
use ebbtide_nova_cloud::Cloud;
use ebbtide_nova_db::{CellDb, NovaDbError, ServerHistory};
use ebbtide_runtime::clock::{self, Stopwatch};
use ebbtide_store::ledger::LedgerError;
use ebbtide_store::{LifeStore, StoreError};
use run_periods::{Eviction, evictions, life_of_victim, lives_of, run_periods};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;

/// How long after its end a life may become known: clocks of computes and controllers differ, an
/// agent reports when its victim is gone, and Nova deletes the row at last.
pub const LIVES_LATE: Seconds = Seconds(120);
/// How far a look goes back behind the beginning of the last one.
const OVERLAP_MILLIS: i64 = 600_000;
/// Servers, or preemptions, of one page.
const PAGE: u32 = 500;
/// Most pages of one source in a look: a model takes no more than 10,000 lives, and servers of
/// normal flavors are among those that are gone.
const PAGES: usize = 200;
/// Of so many running servers, the latest launched, the last start is looked up in a look; of the
/// others the launch counts. A model takes no more lives.
const LOOKED_UP: usize = 10_000;
/// Pause between deletions of old lives.
const PURGE_EVERY_MILLIS: u64 = 3_600_000;
/// Most lives that are deleted at a time.
const PURGE_AT_ONCE: u64 = 100_000;

/// Looks for past lives. All clones of a reader share it.
#[derive(Default)]
pub(crate) struct LifeRecorder {
    asked: AtomicU64,
    served: AtomicU64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Since the beginning of the last look into the ledger.
    ledger: Option<Stopwatch>,
    /// Since the beginning of the last look into each cell, by its UUID. A cell that is new here
    /// has a history.
    cells: HashMap<String, Stopwatch>,
    purged: Option<Stopwatch>,
}

impl LifeRecorder {
    /// Records the lives that have ended before this call, as far as they are known anywhere. Calls
    /// that come during a look share the next one.
    pub(crate) async fn record(
        &self,
        facts: &Facts,
        preempting: &PreemptionDriver,
        store: &LifeStore,
    ) -> Result<(), NovaServiceError> {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut state = self.state.lock().await;
        if self.served.load(Ordering::SeqCst) >= ticket {
            return Ok(());
        }
        let up_to = self.asked.load(Ordering::SeqCst);
        let look = Look {
            facts,
            store,
            now: clock::now(),
        };
        let began = Stopwatch::start();
        look.ledger(preempting, how_far(state.ledger)).await?;
        state.ledger = Some(began);
        look.cells(&mut state.cells).await?;
        let purged = state.purged.map(|since| since.elapsed().as_millis());
        if purged.is_none_or(|millis| millis >= u128::from(PURGE_EVERY_MILLIS)) {
            let before = look.now.minus(LIVES_KEPT);
            store
                .purge(before, PURGE_AT_ONCE)
                .await
                .map_err(unwritten)?;
            state.purged = Some(Stopwatch::start());
        }
        self.served.store(up_to, Ordering::SeqCst);
        Ok(())
    }
}

/// How far a look goes back: the whole time that lives are kept, or to the last look.
fn how_far(last: Option<Stopwatch>) -> i64 {
    let all = LIVES_KEPT.as_millis();
    last.map_or(all, |since| {
        let millis = i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
        millis.saturating_add(OVERLAP_MILLIS).min(all)
    })
}

fn unwritten(error: StoreError) -> NovaServiceError {
    LedgerError::from(error).into()
}

/// One look at all sources.
struct Look<'a> {
    facts: &'a Facts,
    store: &'a LifeStore,
    now: Timestamp,
}

impl Look<'_> {
    /// Lives that Ebbtide ended: victims of preemptions that are under way or were finished.
    async fn ledger(
        &self,
        preempting: &PreemptionDriver,
        millis: i64,
    ) -> Result<(), NovaServiceError> {
        let open = preempting.records(None).await?;
        self.victims(&open).await?;
        let mut mark = None;
        for _ in 0..PAGES {
            let (records, next) = preempting.finished(millis, mark, PAGE).await?;
            self.victims(&records).await?;
            mark = next;
            if mark.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn victims(&self, records: &[Preemption]) -> Result<(), NovaServiceError> {
        let evictions: Vec<Eviction> = records.iter().flat_map(evictions).collect();
        let servers: BTreeSet<ServerId> = evictions.iter().map(|one| one.server).collect();
        let histories = histories(self.facts, &servers).await?;
        let lives = evictions
            .iter()
            .filter_map(|eviction| life_of_victim(eviction, histories.get(&eviction.server)));
        self.write(lives.collect()).await
    }

    /// Lives of servers that are gone from each cell. After a cell that does not answer, its next
    /// look goes back as far as this one.
    async fn cells(&self, looked: &mut HashMap<String, Stopwatch>) -> Result<(), NovaServiceError> {
        for cell in self.facts.database.nova().enabled_cells() {
            let began = Stopwatch::start();
            let last = looked.get(cell.uuid()).copied();
            match self.cell(&cell, how_far(last)).await {
                Ok(()) => drop(looked.insert(cell.uuid().to_owned(), began)),
                Err(NovaServiceError::Database(error)) => {
                    tracing::warn!(
                        code = error.code(),
                        "past lives of servers of {} are not known: {error}",
                        cell.label()
                    );
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    async fn cell(&self, cell: &CellDb, millis: i64) -> Result<(), NovaServiceError> {
        let since = self.now.as_millis().saturating_sub(millis);
        let since = since.saturating_mul(1000);
        let mut mark = None;
        for _ in 0..PAGES {
            let (gone, next) = cell.gone_servers(since, mark.as_ref(), PAGE).await?;
            self.write(gone.iter().flat_map(lives_of).collect()).await?;
            mark = next;
            if mark.is_none() {
                break;
            }
        }
        Ok(())
    }

    async fn write(&self, mut lives: Vec<PastLife>) -> Result<(), NovaServiceError> {
        let oldest = self.now.minus(LIVES_KEPT);
        lives.retain(|life| life.ended_at >= oldest);
        if lives.is_empty() {
            return Ok(());
        }
        for error in self.store.record(&lives).await.map_err(unwritten)? {
            tracing::warn!(code = error.code(), "a past life is left out: {error}");
        }
        Ok(())
    }
}

/// What Nova's databases know of servers, wherever they are.
async fn histories(
    facts: &Facts,
    servers: &BTreeSet<ServerId>,
) -> Result<HashMap<ServerId, ServerHistory>, NovaDbError> {
    let uuids: Vec<String> = servers.iter().map(ToString::to_string).collect();
    let mut found = HashMap::new();
    if uuids.is_empty() {
        return Ok(found);
    }
    for cell in facts.database.nova().enabled_cells() {
        for history in cell.server_histories(&uuids).await? {
            if let Ok(server) = history.uuid.parse() {
                found.insert(server, history);
            }
        }
    }
    Ok(found)
}

/// The preemptible servers that run, of one flavor or of all, each with the beginning of its
/// present life: Nova does not write a start into the launch.
pub(crate) async fn running(
    facts: &Facts,
    flavor: Option<&str>,
) -> Result<Vec<(Server, Timestamp)>, NovaServiceError> {
    let mut servers = facts.read(Cloud::servers);
    servers.retain(|server| {
        let runs = matches!(
            server.status,
            ServerStatus::Active | ServerStatus::Evacuating
        );
        let wanted = flavor.is_none_or(|name| server.flavor.name == name);
        runs && wanted && server.flavor.is_preemptible()
    });
    servers.sort_by_key(|server| std::cmp::Reverse(server.launched_at));
    let looked_up = servers.iter().take(LOOKED_UP).map(|server| server.id);
    let histories = histories(facts, &looked_up.collect()).await?;
    let began = |server: Server| {
        let last = histories.get(&server.id).and_then(|h| run_periods(h).pop());
        let goes_on = last.filter(|last| last.ended.is_none());
        let began = goes_on.map(|last| last.began).or(server.launched_at)?;
        Some((server, began))
    };
    Ok(servers.into_iter().filter_map(began).collect())
}

impl crate::reader::CloudReader {
    /// Records the past lives that are not recorded yet: those that Ebbtide ended, from the ledger,
    /// and those of servers that are gone, from Nova's databases. Returns when everything that had
    /// ended before this call and is known anywhere is recorded.
    ///
    /// # Errors
    /// The ledger or its database cannot be used. A cell that does not answer is only logged.
    pub async fn record_lives(&self, store: &LifeStore) -> Result<(), NovaServiceError> {
        let recorder = Arc::clone(&self.lives);
        recorder.record(&self.facts, &self.preempting, store).await
    }

    /// The preemptible servers that run, of one flavor or of all, each with the beginning of its
    /// present life.
    ///
    /// # Errors
    /// Nova's databases cannot be read.
    pub async fn running_lives(
        &self,
        flavor: Option<&str>,
    ) -> Result<Vec<(Server, Timestamp)>, NovaServiceError> {
        running(&self.facts, flavor).await
    }
}

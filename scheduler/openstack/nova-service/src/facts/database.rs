//! Nova's databases: read completely at the start, then followed.
//!
//! A request is decided on rows that were read after it arrived: [`Database::freshen`] reads what
//! has changed since the last time, once for all requests that wait meanwhile. Nova reads every row
//! again instead.

use super::ineffective_settings::LoggedFlavors;
use super::{Providers, SharedCloud, convert};
use crate::Tasks;
use crate::error::NovaServiceError;
use ebbtide_nova_cloud::Cloud;
use ebbtide_nova_db::{CellContent, Changes, FollowOptions, Follower, NovaDb, NovaDbError};
use ebbtide_runtime::clock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex;

/// How long a request waits for the databases before it continues with the known rows. A cell that
/// is silent for longer must not delay the others; Nova waits 60 s and leaves its hosts out.
const POLL_LIMIT: Duration = Duration::from_secs(5);

/// Pause before a cell that could not be read is read again.
const READ_AGAIN: Duration = Duration::from_secs(10);

/// Keeps the rows of Nova's databases up to date.
pub(crate) struct Database {
    db: NovaDb,
    cloud: SharedCloud,
    providers: Arc<Providers>,
    options: FollowOptions,
    unheard: Arc<LoggedFlavors>,
    followers: Mutex<Vec<Follower>>,
    /// Cells that could not be read completely yet.
    unread: Mutex<Vec<Follower>>,
    /// Number of requests that asked for fresh rows.
    asked: AtomicU64,
    /// The last of them for which the rows are fresh.
    served: AtomicU64,
}

impl Database {
    pub(crate) fn new(
        db: NovaDb,
        cloud: SharedCloud,
        providers: Arc<Providers>,
        options: FollowOptions,
    ) -> Self {
        Self {
            db,
            cloud,
            providers,
            options,
            unheard: Arc::default(),
            followers: Mutex::new(Vec::new()),
            unread: Mutex::new(Vec::new()),
            asked: AtomicU64::new(0),
            served: AtomicU64::new(0),
        }
    }

    /// Nova's databases themselves.
    pub(crate) fn nova(&self) -> &NovaDb {
        &self.db
    }

    /// Reads everything: at the start and on SIGHUP.
    pub(crate) async fn load(&self) -> Result<(), NovaServiceError> {
        // Every function locks in this order.
        let mut unread = self.unread.lock().await;
        let mut followers = self.followers.lock().await;
        let cells = self.db.cells().await?;
        let aggregates = self.db.aggregates().await?;
        let lowest = self.db.min_compute_version().await?;
        self.cloud_mut(|cloud| {
            cloud.set_cells(
                &cells
                    .iter()
                    .filter(|cell| !cell.is_cell0())
                    .map(convert::cell)
                    .collect::<Vec<_>>(),
            );
            cloud.set_aggregates(aggregates);
            cloud.set_min_compute_version(lowest);
        });
        unread.clear();
        followers.clear();
        for cell in self.db.enabled_cells() {
            let mut follower = Follower::new(cell, self.options);
            match self.load_cell(&mut follower).await {
                Ok(()) => followers.push(follower),
                // As in Nova: a cell that does not answer is left out, and the others work.
                Err(error) => {
                    tracing::warn!(
                        code = error.code(),
                        "{error}; the cell is left out until it answers"
                    );
                    unread.push(follower);
                }
            }
        }
        Ok(())
    }

    /// Reads cells completely that did not answer before. Requests do not wait for it.
    async fn read_unread(&self) {
        let mut unread = self.unread.lock().await;
        for mut follower in std::mem::take(&mut *unread) {
            match self.load_cell(&mut follower).await {
                Ok(()) => self.followers.lock().await.push(follower),
                Err(error) => {
                    tracing::warn!(code = error.code(), "{error}; the cell is still left out");
                    unread.push(follower);
                }
            }
        }
    }

    /// Regularly retries to read cells that did not answer.
    pub(crate) fn follow(database: &Arc<Self>, tasks: &Tasks) {
        let database = Arc::clone(database);
        tasks.repeat("unread-cells", READ_AGAIN, move || {
            let database = Arc::clone(&database);
            async move { database.read_unread().await }
        });
    }

    async fn load_cell(&self, follower: &mut Follower) -> Result<(), NovaDbError> {
        let cell = follower.cell().uuid().to_owned();
        let cell = cell.as_str();
        let cloud = Arc::clone(&self.cloud);
        let unheard = Arc::clone(&self.unheard);
        let CellContent {
            compute_nodes,
            services,
            instances,
        } = follower
            .load(clock::unix_micros(), move |batch| {
                let mut cloud = cloud.write().unwrap_or_else(PoisonError::into_inner);
                for row in batch.iter().filter_map(convert::instance) {
                    unheard.look(&row.flavor, cloud.settings().grace);
                    cloud.put_instance(row);
                }
            })
            .await?;
        tracing::info!(
            cell,
            compute_nodes = compute_nodes.len(),
            services = services.len(),
            instances,
            "read the cell"
        );
        let changes = Changes {
            compute_nodes,
            services,
            instances: Vec::new(),
        };
        self.apply(cell, &changes);
        Ok(())
    }

    /// Returns when everything that was written before this call is known here, or when the
    /// databases are too slow: then the request uses the known rows.
    pub(crate) async fn freshen(&self) {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        let mut followers = self.followers.lock().await;
        if self.served.load(Ordering::SeqCst) >= ticket {
            return;
        }
        // The reads that begin now serve every request that has asked by now.
        let up_to = self.asked.load(Ordering::SeqCst);
        let polls = followers.iter_mut().map(|follower| async {
            let poll = follower.poll(clock::unix_micros());
            let polled = tokio::time::timeout(POLL_LIMIT, poll).await;
            let cell = follower.cell().uuid().to_owned();
            match polled {
                Ok(Ok(changes)) => self.apply(&cell, &changes),
                Ok(Err(error)) => tracing::warn!(code = error.code(), "{error}"),
                Err(_) => tracing::warn!(
                    code = "EB-DOOR-011",
                    "cell {cell} did not answer within {POLL_LIMIT:?}; its hosts are taken as last known"
                ),
            }
        });
        futures::future::join_all(polls).await;
        self.served.store(up_to, Ordering::SeqCst);
    }

    fn apply(&self, cell: &str, changes: &Changes) {
        if changes.compute_nodes.is_empty()
            && changes.services.is_empty()
            && changes.instances.is_empty()
        {
            return;
        }
        self.cloud_mut(|cloud| {
            for service in &changes.services {
                if service.deleted {
                    cloud.remove_service(&service.host);
                } else if cloud.put_service(convert::service(service)) {
                    // The compute changes a trait of its provider, which the next list of providers
                    // would show only after `placement_poll`.
                    self.providers.mark_host(&service.host);
                }
            }
            for node in &changes.compute_nodes {
                if node.deleted {
                    let uuid = node.uuid.as_deref().and_then(|uuid| uuid.parse().ok());
                    uuid.into_iter().for_each(|uuid| cloud.remove_compute(uuid));
                } else if let Some(facts) = convert::compute(cell, node) {
                    self.providers.know_node(&facts.row.host, facts.uuid);
                    if let Err(error) = cloud.put_compute(facts) {
                        tracing::warn!(code = error.code(), "{error}");
                    }
                }
            }
            for row in &changes.instances {
                match convert::instance(row) {
                    Some(record) if row.deleted => {
                        cloud.remove_instance(record.uuid);
                        // Placement does not increment the generation when allocations are deleted.
                        if let Some(host) = &record.host {
                            self.providers.mark_usage(host);
                        }
                    }
                    Some(record) => {
                        self.unheard.look(&record.flavor, cloud.settings().grace);
                        cloud.put_instance(record);
                    }
                    None => {}
                }
            }
        });
    }

    /// Changes the cloud.
    pub(super) fn cloud_mut<T>(&self, change: impl FnOnce(&mut Cloud) -> T) -> T {
        // No code under this lock can panic halfway, so the cloud behind a poisoned lock is
        // consistent.
        change(&mut self.cloud.write().unwrap_or_else(PoisonError::into_inner))
    }
}

//! The scheduler's knowledge of the cloud, and its sources.

mod claim_writes;
mod convert;
mod database;
mod ineffective_settings;
mod instances;
pub(crate) mod late_claims;
pub(crate) mod other_schedulers;
mod placement;
mod provider_locks;
mod tree_reads;
mod usage_checks;
mod versioned;

pub(crate) use database::Database;
pub(crate) use ebbtide_swap::amounts;
use late_claims::LateClaims;
pub(crate) use other_schedulers::OtherSchedulers;
pub(crate) use placement::Providers;
pub(crate) use provider_locks::ProviderGuard;
use versioned::{SharedCloud, VersionedCloud};

use crate::Tasks;
use ebbtide_live_plugins::ShadowBook;
use ebbtide_nova::model::Options;
use ebbtide_nova_cloud::Cloud;
use ebbtide_nova_db::{FollowOptions, NovaDb};
use ebbtide_openstack::Placement;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// The cloud in memory with its sources. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Facts {
    cloud: SharedCloud,
    /// Nova's databases.
    pub(crate) database: Arc<Database>,
    /// Placement.
    pub(crate) providers: Arc<Providers>,
    /// What plugins in shadow would have decided otherwise.
    pub(crate) shadow: ShadowBook,
    /// Other schedulers of this cloud.
    pub(crate) others: Arc<OtherSchedulers>,
    /// Claims that Placement may still write although their requests have no host.
    pub(crate) late_claims: Arc<LateClaims>,
}

impl Facts {
    /// A cloud with its sources. Nothing is read yet.
    pub(crate) fn of_sources(cloud: Cloud, nova: NovaDb, placement: Placement) -> Self {
        let cloud = VersionedCloud::shared(cloud);
        let providers = Arc::new(Providers::new(placement, Arc::clone(&cloud)));
        let database = Arc::new(Database::new(
            nova,
            Arc::clone(&cloud),
            Arc::clone(&providers),
            FollowOptions::default(),
        ));
        Self {
            cloud,
            database,
            providers,
            shadow: ShadowBook::default(),
            others: Arc::default(),
            late_claims: Arc::default(),
        }
    }

    /// Follows Placement's changes until the scheduler stops.
    pub(crate) fn follow_placement(&self, every: Duration, tasks: &Tasks) {
        self.providers.follow(every, tasks);
        usage_checks::follow(&self.cloud, &self.providers, tasks);
    }

    /// Reads the cloud. `look` must not wait.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Cloud) -> T) -> T {
        versioned::read(&self.cloud, |cloud, _| look(cloud))
    }

    /// Reads the cloud and says how many changes it had had by then.
    pub(crate) fn read_versioned<T>(&self, look: impl FnOnce(&Cloud) -> T) -> (T, u64) {
        versioned::read(&self.cloud, |cloud, changes| (look(cloud), changes))
    }

    /// How many changes the cloud has had.
    pub(crate) fn changes(&self) -> u64 {
        versioned::read(&self.cloud, |_, changes| changes)
    }

    /// Nova's options, as the release that is followed reads them.
    pub(crate) fn nova_options(&self) -> Options {
        self.read(|cloud| cloud.options().clone())
    }

    /// Changes the cloud. `change` must not wait.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&mut Cloud) -> T) -> T {
        change(&mut self.cloud.write().unwrap_or_else(PoisonError::into_inner))
    }
}

//! The scheduler's knowledge of the cloud, and its sources.

mod convert;
mod database;
mod ineffective_settings;
mod instances;
mod placement;
mod provider_locks;

pub(crate) use database::Database;
pub(crate) use ebbtide_swap::amounts;
pub(crate) use placement::Providers;
pub(crate) use provider_locks::ProviderGuard;

use ebbtide_nova_cloud::Cloud;
use std::sync::{Arc, PoisonError, RwLock};

/// The cloud in memory with its sources. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Facts {
    cloud: Arc<RwLock<Cloud>>,
    /// Nova's databases.
    pub(crate) database: Arc<Database>,
    /// Placement.
    pub(crate) providers: Arc<Providers>,
}

impl Facts {
    pub(crate) fn new(
        cloud: Arc<RwLock<Cloud>>,
        database: Arc<Database>,
        providers: Arc<Providers>,
    ) -> Self {
        Self {
            cloud,
            database,
            providers,
        }
    }

    /// Reads the cloud. `look` must not wait.
    pub(crate) fn read<T>(&self, look: impl FnOnce(&Cloud) -> T) -> T {
        look(&self.cloud.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the cloud. `change` must not wait.
    pub(crate) fn write<T>(&self, change: impl FnOnce(&mut Cloud) -> T) -> T {
        change(&mut self.cloud.write().unwrap_or_else(PoisonError::into_inner))
    }
}

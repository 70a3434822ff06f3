//! The cloud in memory with a counter of its changes, so that a decision that was made on it can be
//! recognised as current.

use ebbtide_nova_cloud::Cloud;
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, PoisonError, RwLock};

/// The cloud. Every mutable access counts as a change.
pub(crate) struct VersionedCloud {
    cloud: Cloud,
    changes: u64,
}

/// The cloud that all tasks of a scheduler share.
pub(crate) type SharedCloud = Arc<RwLock<VersionedCloud>>;

impl VersionedCloud {
    pub(crate) fn shared(cloud: Cloud) -> SharedCloud {
        Arc::new(RwLock::new(Self { cloud, changes: 0 }))
    }

    /// How many changes there were.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}

impl Deref for VersionedCloud {
    type Target = Cloud;

    fn deref(&self) -> &Cloud {
        &self.cloud
    }
}

impl DerefMut for VersionedCloud {
    fn deref_mut(&mut self) -> &mut Cloud {
        self.changes += 1;
        &mut self.cloud
    }
}

/// Reads the cloud and the number of its changes. No code under the lock can panic halfway, so the
/// cloud behind a poisoned lock is consistent.
pub(super) fn read<T>(cloud: &SharedCloud, look: impl FnOnce(&Cloud, u64) -> T) -> T {
    let cloud = cloud.read().unwrap_or_else(PoisonError::into_inner);
    look(&cloud, cloud.changes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_nova::model::Options;
    use ebbtide_nova_cloud::CloudSettings;

    #[test]
    fn a_change_counts_and_a_look_does_not() {
        let cloud = Cloud::new(Options::default(), CloudSettings::default()).unwrap();
        let cloud = VersionedCloud::shared(cloud);
        assert_eq!(read(&cloud, |cloud, at| (cloud.counts().hosts, at)), (0, 0));
        cloud.write().unwrap().set_min_compute_version(64);
        assert_eq!(read(&cloud, |_, at| at), 1);
        assert_eq!(read(&cloud, |_, at| at), 1);
    }
}

//! Releases of Nova, as far as their schedulers decide differently.
//!
//! The code follows Nova 34. If the configuration names an older release, later changes are left
//! out, so that answers are those of the installed Nova. The sources compared are Nova 26.2.2 (Zed,
//! Debian 12) and 34. For features that came in between, the release is taken from Nova's release
//! notes.

/// A release by its major version, for example 26 for Zed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release(pub u32);

/// What not every release has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Feature {
    /// `hw:maxphysaddr_mode` asks Placement for a trait.
    AddressSpace,
    /// Devices have traits and a resource class, and `[filter_scheduler] pci_in_placement` exists.
    PciInPlacement,
    /// Aliases may ask for devices that can be migrated live.
    LiveMigratableAlias,
    /// An alias names its devices by vendor and product, or by resource class.
    AliasWithIds,
    /// HypervisorVersionWeigher.
    HypervisorVersionWeigher,
    /// NumInstancesWeigher.
    NumInstancesWeigher,
    /// AggregateMultiTenancyIsolation takes every key that begins with `filter_tenant_id`, not that
    /// one only.
    TenantKeys,
    /// The pre-filter for packed virtqueues.
    PackedVirtqueue,
    /// A vTPM's model asks for a trait beside its version.
    TpmModel,
    /// ImagePropertiesWeigher.
    ImagePropertiesWeigher,
    /// The pre-filter for virtio sound.
    Sound,
    /// Memory encryption asks for the trait of its model.
    MemoryEncryptionModel,
    /// Stateless firmware asks for a trait.
    StatelessFirmware,
    /// The pre-filter for the security of a TPM's secret.
    TpmSecretSecurity,
}

impl Feature {
    /// The first release that has it.
    fn since(self) -> u32 {
        match self {
            Self::AddressSpace | Self::PciInPlacement => 27,
            Self::HypervisorVersionWeigher | Self::NumInstancesWeigher | Self::TenantKeys => 28,
            Self::PackedVirtqueue | Self::TpmModel => 29,
            Self::ImagePropertiesWeigher | Self::LiveMigratableAlias => 31,
            Self::Sound
            | Self::MemoryEncryptionModel
            | Self::StatelessFirmware
            | Self::AliasWithIds => 32,
            Self::TpmSecretSecurity => 33,
        }
    }
}

impl Release {
    /// Zed, the oldest that is supported.
    pub const ZED: Self = Self(26);
    /// The one that everything is written from. Later ones count as this one.
    pub const NEWEST: Self = Self(34);

    /// Whether the release has a feature.
    #[must_use]
    pub fn has(self, feature: Feature) -> bool {
        self.0 >= feature.since()
    }

    /// Whether AvailabilityZoneFilter and `[scheduler] query_placement_for_availability_zone` still
    /// exist.
    #[must_use]
    pub fn has_zone_filter(self) -> bool {
        self.0 < 28
    }
}

impl Default for Release {
    fn default() -> Self {
        Self::NEWEST
    }
}

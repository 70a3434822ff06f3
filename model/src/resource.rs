//! Resource classes, amounts and inventories, as Placement knows them.

use crate::ModelError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The maximum amount of one class in one inventory or request: Placement's columns are signed
/// 32-bit.
pub const MAX_AMOUNT: u64 = i32::MAX as u64;

/// The standard classes that Ebbtide knows by name. Any other standard name of Placement
/// (`os_resource_classes`) and any `CUSTOM_*` is a class like these: the engine treats all alike.
pub const STANDARD: &[&str] = &[
    "VCPU",
    "MEMORY_MB",
    "DISK_GB",
    "PCI_DEVICE",
    "SRIOV_NET_VF",
    "NUMA_SOCKET",
    "NUMA_CORE",
    "NUMA_THREAD",
    "NUMA_MEMORY_MB",
    "IPV4_ADDRESS",
    "VGPU",
    "VGPU_DISPLAY_HEAD",
    "NET_BW_EGR_KILOBIT_PER_SEC",
    "NET_BW_IGR_KILOBIT_PER_SEC",
    "PCPU",
    "MEM_ENCRYPTION_CONTEXT",
    "FPGA",
    "PGPU",
    "NET_PACKET_RATE_KILOPACKET_PER_SEC",
    "NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC",
    "NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC",
];

/// The name of a resource class: one of [`STANDARD`], or `CUSTOM_` and 1 to 248 of `A-Z`, `0-9`,
/// `_`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ResourceClass(String);

/// Placement's rule for names of classes and traits.
pub(crate) fn is_upper_name(name: &str) -> bool {
    (1..=255).contains(&name.len())
        && name
            .bytes()
            .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_')
}

impl ResourceClass {
    /// Shared virtual CPUs.
    #[must_use]
    pub fn vcpu() -> Self {
        Self("VCPU".to_owned())
    }

    /// Dedicated (pinned) physical CPUs.
    #[must_use]
    pub fn pcpu() -> Self {
        Self("PCPU".to_owned())
    }

    /// Memory, in MiB.
    #[must_use]
    pub fn memory_mb() -> Self {
        Self("MEMORY_MB".to_owned())
    }

    /// Local disk, in GiB.
    #[must_use]
    pub fn disk_gb() -> Self {
        Self("DISK_GB".to_owned())
    }

    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ResourceClass {
    type Error = ModelError;

    fn try_from(name: String) -> Result<Self, ModelError> {
        let known = STANDARD.contains(&name.as_str());
        let custom = name
            .strip_prefix("CUSTOM_")
            .is_some_and(|rest| !rest.is_empty());
        if is_upper_name(&name) && (known || custom) {
            Ok(Self(name))
        } else {
            Err(ModelError::ResourceClass(crate::names::shorten(&name)))
        }
    }
}

impl FromStr for ResourceClass {
    type Err = ModelError;

    fn from_str(name: &str) -> Result<Self, ModelError> {
        Self::try_from(name.to_owned())
    }
}

impl From<ResourceClass> for String {
    fn from(class: ResourceClass) -> Self {
        class.0
    }
}

impl fmt::Display for ResourceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Amounts by class, in the class's unit. Classes with zero are omitted: a request for zero is no
/// request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(
    try_from = "BTreeMap<ResourceClass, u64>",
    into = "BTreeMap<ResourceClass, u64>"
)]
pub struct Resources(BTreeMap<ResourceClass, u64>);

impl Resources {
    /// Nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets one class; zero removes it.
    ///
    /// # Errors
    /// [`ModelError::Range`] above [`MAX_AMOUNT`].
    pub fn set(&mut self, class: ResourceClass, amount: u64) -> Result<(), ModelError> {
        if amount > MAX_AMOUNT {
            return Err(ModelError::Range {
                what: class.0,
                value: amount.to_string(),
                allowed: format!("0 to {MAX_AMOUNT}"),
            });
        }
        if amount == 0 {
            self.0.remove(&class);
        } else {
            self.0.insert(class, amount);
        }
        Ok(())
    }

    /// The amount of one class, zero if it is not there.
    #[must_use]
    pub fn get(&self, class: &ResourceClass) -> u64 {
        self.0.get(class).copied().unwrap_or(0)
    }

    /// The amount of a class by its name, zero if it is not there.
    #[must_use]
    pub fn amount(&self, class: &str) -> u64 {
        self.0
            .iter()
            .find(|(c, _)| c.as_str() == class)
            .map_or(0, |(_, n)| *n)
    }

    /// All classes with their amounts, by name of the class.
    pub fn iter(&self) -> impl Iterator<Item = (&ResourceClass, u64)> {
        self.0.iter().map(|(class, amount)| (class, *amount))
    }

    /// True if nothing is asked for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The amount of one class, without all others.
    #[must_use]
    pub fn only(&self, class: &ResourceClass) -> Self {
        let one = self.0.get_key_value(class);
        Self(one.map(|(c, n)| (c.clone(), *n)).into_iter().collect())
    }

    /// The smaller amount of each class.
    #[must_use]
    pub fn at_most(&self, limit: &Self) -> Self {
        let smaller = |(class, amount): (&ResourceClass, &u64)| {
            let amount = limit.get(class).min(*amount);
            (amount > 0).then(|| (class.clone(), amount))
        };
        Self(self.0.iter().filter_map(smaller).collect())
    }

    /// The rest after subtracting `part`; zero for a class of which `part` has more.
    #[must_use]
    pub fn without(&self, part: &Self) -> Self {
        let left = |(class, amount): (&ResourceClass, &u64)| {
            let amount = amount.saturating_sub(part.get(class));
            (amount > 0).then(|| (class.clone(), amount))
        };
        Self(self.0.iter().filter_map(left).collect())
    }
}

impl TryFrom<BTreeMap<ResourceClass, u64>> for Resources {
    type Error = ModelError;

    fn try_from(amounts: BTreeMap<ResourceClass, u64>) -> Result<Self, ModelError> {
        let mut resources = Self::new();
        for (class, amount) in amounts {
            resources.set(class, amount)?;
        }
        Ok(resources)
    }
}

impl From<Resources> for BTreeMap<ResourceClass, u64> {
    fn from(resources: Resources) -> Self {
        resources.0
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, (class, amount)) in self.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{class}={amount}")?;
        }
        Ok(())
    }
}

/// What a host has of one class. The rules are Placement's (`placement/objects/inventory.py`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Inventory {
    /// All there is.
    pub total: u64,
    /// Kept back for the host itself; never given to instances.
    #[serde(default)]
    pub reserved: u64,
    /// The overcommit factor: capacity = (total − reserved) × ratio, rounded down.
    #[serde(default = "one")]
    pub allocation_ratio: f64,
}

fn one() -> f64 {
    1.0
}

/// A ratio above this is probably a typing error.
pub const MAX_ALLOCATION_RATIO: f64 = 10_000.0;

impl Inventory {
    /// An inventory with nothing reserved and no overcommit.
    #[must_use]
    pub fn of(total: u64) -> Self {
        Self {
            total,
            reserved: 0,
            allocation_ratio: 1.0,
        }
    }

    /// Checks the ranges: total within [`MAX_AMOUNT`], reserved not above total, ratio finite and
    /// positive.
    ///
    /// # Errors
    /// [`ModelError::Range`] that names the class and the field.
    pub fn check(&self, class: &ResourceClass) -> Result<(), ModelError> {
        let range = |field: &str, value: String, allowed: String| {
            Err(ModelError::Range {
                what: format!("inventory of {class}: {field}"),
                value,
                allowed,
            })
        };
        if self.total > MAX_AMOUNT {
            return range(
                "total",
                self.total.to_string(),
                format!("0 to {MAX_AMOUNT}"),
            );
        }
        if self.reserved > self.total {
            return range(
                "reserved",
                self.reserved.to_string(),
                format!("0 to total ({})", self.total),
            );
        }
        let ratio = self.allocation_ratio;
        if !(ratio > 0.0 && ratio <= MAX_ALLOCATION_RATIO) {
            return range(
                "allocation_ratio",
                ratio.to_string(),
                "above 0, at most 10000".to_owned(),
            );
        }
        Ok(())
    }

    /// The capacity for instances: (total − reserved) × ratio, rounded down as Placement does.
    #[must_use]
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss
    )]
    pub fn capacity(&self) -> u64 {
        // Exact: both factors are below 2^53, the product below 2^45.
        ((self.total.saturating_sub(self.reserved)) as f64 * self.allocation_ratio) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_those_that_placement_takes() {
        for good in [
            "VCPU",
            "MEMORY_MB",
            "VGPU",
            "CUSTOM_BAREMETAL_GOLD",
            "CUSTOM_9",
        ] {
            assert!(good.parse::<ResourceClass>().is_ok(), "{good} was refused");
        }
        for bad in ["", "vcpu", "CUSTOM_", "CUSTOM_a", "CPU", "MEMORY-MB"] {
            assert!(bad.parse::<ResourceClass>().is_err(), "{bad:?} was taken");
        }
    }

    #[test]
    fn zero_is_not_kept_and_too_much_is_refused() {
        let mut r = Resources::new();
        r.set(ResourceClass::vcpu(), 0).unwrap();
        assert!(r.is_empty());
        assert!(r.set(ResourceClass::vcpu(), MAX_AMOUNT + 1).is_err());
        assert!(serde_json::from_str::<Resources>(r#"{"VCPU":-1}"#).is_err());
        assert!(serde_json::from_str::<Resources>(r#"{"VCPU":1e99}"#).is_err());
        assert_eq!(
            serde_json::from_str::<Resources>(r#"{"VCPU":2,"DISK_GB":0}"#)
                .unwrap()
                .to_string(),
            "VCPU=2"
        );
    }

    #[test]
    fn capacity_is_rounded_down_as_placement_does() {
        let inventory = Inventory {
            total: 10,
            reserved: 3,
            allocation_ratio: 1.5,
        };
        assert_eq!(inventory.capacity(), 10);
    }

    #[test]
    fn absurd_inventories_are_refused() {
        let class = ResourceClass::vcpu();
        for (total, reserved, allocation_ratio) in [
            (1, 2, 1.0),
            (1, 0, 0.0),
            (1, 0, -1.0),
            (1, 0, f64::NAN),
            (1, 0, f64::INFINITY),
            (MAX_AMOUNT + 1, 0, 1.0),
        ] {
            assert!(
                Inventory {
                    total,
                    reserved,
                    allocation_ratio
                }
                .check(&class)
                .is_err()
            );
        }
    }
}

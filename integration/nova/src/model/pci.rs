//! PCI device pools of hosts, and requests for devices.

use std::collections::BTreeMap;

/// Devices of one kind on a host (`PciDevicePool`).
#[derive(Debug, Clone, PartialEq)]
pub struct PciPool {
    /// Vendor, four hex digits.
    pub vendor_id: String,
    /// Product, four hex digits.
    pub product_id: String,
    /// NUMA cell; `None` if unknown.
    pub numa_node: Option<i64>,
    /// Free devices.
    pub count: i64,
    /// All further tags (`dev_type`, `physical_network`, `rp_uuid`, …), as the JSON has them.
    pub tags: BTreeMap<String, serde_json::Value>,
}

/// Devices that a request needs (`InstancePCIRequest`).
#[derive(Debug, Clone, PartialEq)]
pub struct PciRequest {
    pub count: i64,
    /// Alternatives: each a set of tags.
    pub spec: Vec<BTreeMap<String, serde_json::Value>>,
    /// Alias in the flavor.
    pub alias_name: Option<String>,
    pub request_id: Option<String>,
    /// Id of the neutron port's request group.
    pub requester_id: Option<String>,
    /// `required`, `legacy`, `preferred`, `socket`.
    pub numa_policy: Option<String>,
}

/// A device of a host that an instance holds (`PciDevice`), as far as pools tell devices apart.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PciDevice {
    /// For example `0000:81:00.0`.
    pub address: String,
    /// Address of the PF that a VF belongs to.
    pub parent_addr: Option<String>,
    /// Vendor, four hex digits.
    pub vendor_id: String,
    /// Product, four hex digits.
    pub product_id: String,
    /// `type-PCI`, `type-PF`, `type-VF`, `vdpa`.
    pub dev_type: String,
    /// NUMA cell; `None` if unknown.
    pub numa_node: Option<i64>,
    /// `parent_ifname` of its `extra_info`.
    pub parent_ifname: Option<String>,
}

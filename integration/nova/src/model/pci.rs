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

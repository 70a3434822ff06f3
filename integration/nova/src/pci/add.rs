//! A device that comes back to its pool (`PciDeviceStats.add_device`).

use super::spec::text;
use crate::model::{PciDevice, PciPool};
use serde_json::Value;
use std::collections::BTreeMap;

const DEV_TYPE: &str = "dev_type";
const ADDRESS: &str = "address";
const PARENT_IFNAME: &str = "parent_ifname";
const REMOTE_MANAGED: &str = "remote_managed";
/// Tags that tell one device from another one of its kind.
const OWN_TAGS: [&str; 3] = [ADDRESS, PARENT_IFNAME, "rp_uuid"];
/// Types of network devices, which Nova says to be remote-managed or not.
const NETWORK_TYPES: [&str; 3] = ["type-VF", "type-PF", "vdpa"];

/// Adds a device that an instance gives back.
///
/// Nova finds the device's pool by the tags of the compute's `[pci] device_spec`, which no database
/// has. Here it is the pool of its place and kind. If there is none (Nova drops empty pools when a
/// compute restarts), a new one gets the tags that all other devices of the kind have on the host.
pub fn add_device(pools: &mut Vec<PciPool>, device: &PciDevice) {
    if let Some(pool) = pools.iter_mut().find(|pool| is_pool_of(pool, device)) {
        pool.count = pool.count.saturating_add(1);
        return;
    }
    let tags = tags_of(pools, device);
    pools.push(PciPool {
        vendor_id: device.vendor_id.clone(),
        product_id: device.product_id.clone(),
        numa_node: device.numa_node,
        count: 1,
        tags,
    });
    pools.sort_by_key(|pool| pool.tags.len());
}

/// The address by which newer releases of Nova divide pools: all VFs of a PF are in one.
fn pool_address(device: &PciDevice) -> &str {
    device.parent_addr.as_deref().unwrap_or(&device.address)
}

pub(super) fn is_pool_of(pool: &PciPool, device: &PciDevice) -> bool {
    let tag = |name: &str| pool.tags.get(name).and_then(text);
    let address = tag(ADDRESS).is_none_or(|address| address == pool_address(device));
    is_of_kind(pool, device)
        && pool.numa_node == device.numa_node
        && address
        && tag(PARENT_IFNAME).as_deref() == device.parent_ifname.as_deref()
}

fn is_of_kind(pool: &PciPool, device: &PciDevice) -> bool {
    pool.vendor_id == device.vendor_id
        && pool.product_id == device.product_id
        && pool.tags.get(DEV_TYPE).and_then(text).as_deref() == Some(device.dev_type.as_str())
}

fn tags_of(pools: &[PciPool], device: &PciDevice) -> BTreeMap<String, Value> {
    let mut alike = pools.iter().filter(|pool| is_of_kind(pool, device));
    let first = alike.next().map(|pool| pool.tags.clone());
    let mut tags = alike.fold(first.unwrap_or_default(), |mut tags, pool| {
        tags.retain(|name, value| pool.tags.get(name) == Some(value));
        tags
    });
    OWN_TAGS.iter().for_each(|own| drop(tags.remove(*own)));
    let mut put = |name: &str, value: &str| tags.insert(name.to_owned(), value.into());
    put(DEV_TYPE, &device.dev_type);
    if pools.is_empty() || pools.iter().any(|pool| pool.tags.contains_key(ADDRESS)) {
        put(ADDRESS, pool_address(device));
    }
    if let Some(name) = &device.parent_ifname {
        put(PARENT_IFNAME, name);
    }
    if NETWORK_TYPES.contains(&device.dev_type.as_str()) {
        let told = tags.entry(REMOTE_MANAGED.to_owned());
        told.or_insert_with(|| "false".into());
    }
    tags
}

#[cfg(test)]
mod tests {
    use super::*;

    fn device(address: &str, dev_type: &str) -> PciDevice {
        PciDevice {
            address: address.to_owned(),
            parent_addr: None,
            vendor_id: "10de".to_owned(),
            product_id: "1eb8".to_owned(),
            dev_type: dev_type.to_owned(),
            numa_node: Some(1),
            parent_ifname: None,
        }
    }

    fn pool(count: i64, tags: &[(&str, &str)]) -> PciPool {
        let tags = tags.iter();
        PciPool {
            vendor_id: "10de".to_owned(),
            product_id: "1eb8".to_owned(),
            numa_node: Some(1),
            count,
            tags: tags
                .map(|(name, value)| ((*name).to_owned(), Value::from(*value)))
                .collect(),
        }
    }

    #[test]
    fn a_device_comes_back_to_the_pool_of_its_kind_and_place() {
        let mut pools = vec![pool(0, &[("dev_type", "type-PCI"), ("rack", "a")])];
        add_device(&mut pools, &device("0000:81:00.0", "type-PCI"));
        assert_eq!(pools.len(), 1);
        assert_eq!(pools[0].count, 1);
    }

    #[test]
    fn a_pool_of_one_address_takes_no_other_device() {
        let own = [("dev_type", "type-PCI"), ("address", "0000:82:00.0")];
        let mut pools = vec![pool(1, &own)];
        add_device(&mut pools, &device("0000:81:00.0", "type-PCI"));
        let found: Vec<(i64, &Value)> = pools
            .iter()
            .map(|p| (p.count, &p.tags["address"]))
            .collect();
        assert_eq!(
            found,
            [
                (1, &Value::from("0000:82:00.0")),
                (1, &Value::from("0000:81:00.0"))
            ]
        );
    }

    #[test]
    fn a_pool_that_nova_has_dropped_gets_the_tags_that_its_kind_has_in_common() {
        let tags = |address, physnet| {
            pool(
                3,
                &[
                    ("dev_type", "type-VF"),
                    ("address", address),
                    ("physical_network", physnet),
                    ("trusted", "true"),
                ],
            )
        };
        let mut pools = vec![tags("0000:03:00.0", "a"), tags("0000:04:00.0", "b")];
        let freed = PciDevice {
            parent_addr: Some("0000:05:00.0".to_owned()),
            ..device("0000:05:00.3", "type-VF")
        };
        add_device(&mut pools, &freed);
        let added = pools.iter().find(|pool| pool.count == 1);
        let added: Vec<(&str, &Value)> = added
            .into_iter()
            .flat_map(|pool| &pool.tags)
            .map(|(name, value)| (name.as_str(), value))
            .collect();
        assert_eq!(
            added,
            [
                ("address", &Value::from("0000:05:00.0")),
                ("dev_type", &Value::from("type-VF")),
                ("remote_managed", &Value::from("false")),
                ("trusted", &Value::from("true")),
            ]
        );
    }
}

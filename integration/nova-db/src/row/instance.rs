//! A row of `instances` with what belongs to it.

use super::primitive::fields;
use crate::dialect::{Dialect, RowReader};
use crate::track::Mark;
use ebbtide_nova::fault::NovaException;
use ebbtide_nova::fields::{
    dict, get, integer, key, map, nullable_integer, nullable_string, string,
};
use ebbtide_nova::model::{Flavor, OrderedMap, PciDevice};
use ebbtide_nova::python::{Value as Python, json};
use sea_orm::{DbErr, QueryResult};
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

/// The flavor that an instance carries (`instance_extra.flavor`). Instances of one flavor share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceFlavor {
    /// The flavor that counts now.
    pub current: Flavor,
    /// While it is resized: the flavor that it will get.
    pub new: Option<Flavor>,
    /// After a resize until it is confirmed: the flavor that it had.
    pub old: Option<Flavor>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Instance {
    pub uuid: String,
    /// Host of the service, once it has one.
    pub host: Option<String>,
    /// Hypervisor's host name.
    pub node: Option<String>,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    /// Name that its user gave it.
    pub display_name: Option<String>,
    /// Microseconds since 1970, UTC.
    pub launched_at: Option<i64>,
    /// Microseconds since 1970, UTC.
    pub created_at: Option<i64>,
    /// Microseconds since 1970, UTC.
    pub updated_at: Option<i64>,
    /// For example `active`, `stopped`, `resized`, `shelved_offloaded`. `soft-delete` still has its
    /// room.
    pub vm_state: Option<String>,
    /// What is being done to it; `None`: nothing.
    pub task_state: Option<String>,
    /// libvirt's number of the power state; 1 is running, 4 shut down.
    pub power_state: Option<i64>,
    /// CPUs.
    pub vcpus: i64,
    /// Memory, MiB.
    pub memory_mb: i64,
    /// Root disk, GiB.
    pub root_gb: i64,
    /// Ephemeral disk, GiB.
    pub ephemeral_gb: i64,
    /// Locked against its user's or everybody's changes.
    pub locked: bool,
    /// Flavor; `None` if the row has none or one that cannot be read.
    pub flavor: Option<Arc<InstanceFlavor>>,
    /// Its root disk is a volume: it has no image of its own.
    pub boots_from_volume: bool,
    /// Its NUMA topology (pinned CPUs, huge pages) as JSON: an `InstanceNUMATopology`.
    pub numa_topology: Option<String>,
    /// Has PCI devices.
    pub has_pci_requests: bool,
    /// The devices that are claimed for it or allocated to it, by address, or why a row cannot be
    /// read. Read only if it has PCI requests.
    pub pci_devices: Result<Vec<PciDevice>, String>,
    /// UUID of its server group.
    pub server_group: Option<String>,
    /// Metadata whose keys begin with `ebbtide:`.
    pub metadata: BTreeMap<String, String>,
    /// `system_metadata` whose keys begin with `image_`, under the names without that prefix, as
    /// stored. Only where asked for.
    pub image_properties: BTreeMap<String, Value>,
    /// Gone: deleted, or hidden because it is the other end of a move between cells. Only changes
    /// and look-ups by UUID report such rows.
    pub deleted: bool,
}

/// What is selected of `instances AS i` and `instance_extra AS e`.
pub(crate) fn columns(dialect: Dialect) -> String {
    let mut columns = vec![
        dialect.int("i.id"),
        dialect.int("i.deleted"),
        dialect.truth("i.hidden"),
    ];
    columns.extend(
        [
            "uuid",
            "host",
            "node",
            "project_id",
            "user_id",
            "display_name",
            "vm_state",
            "task_state",
        ]
        .map(|name| format!("i.{name}")),
    );
    columns.extend(
        ["launched_at", "created_at", "updated_at", "deleted_at"]
            .map(|name| dialect.moment(&format!("i.{name}"))),
    );
    columns.extend(
        [
            "power_state",
            "vcpus",
            "memory_mb",
            "root_gb",
            "ephemeral_gb",
        ]
        .map(|name| dialect.int(&format!("i.{name}"))),
    );
    columns.push(dialect.truth("i.locked"));
    columns.push(dialect.truth("(i.image_ref IS NULL OR i.image_ref = '')"));
    columns.push("e.flavor".to_owned());
    columns.push("e.numa_topology".to_owned());
    columns.push(
        dialect.truth("(e.pci_requests IS NOT NULL AND e.pci_requests NOT IN ('', '[]', 'null'))"),
    );
    columns.join(", ")
}

/// Join with `instance_extra`. Nova deletes these rows together with the instance, and Ebbtide
/// needs none of a deleted instance.
pub(crate) const JOIN_EXTRA: &str =
    "LEFT JOIN instance_extra e ON e.instance_uuid = i.uuid AND e.deleted = 0";

/// A row whose flavor is text still.
pub(crate) struct RawInstance {
    mark: Mark,
    flavor: Option<String>,
    instance: Instance,
}

impl RawInstance {
    pub(crate) fn read(row: &QueryResult) -> Result<Self, DbErr> {
        let mut columns = RowReader::new(row);
        let id = columns.int()?.unwrap_or_default();
        let (deleted, hidden) = (columns.truth()?, columns.truth()?);
        let uuid = columns.text()?.unwrap_or_default();
        let (host, node) = (columns.text()?, columns.text()?);
        let (project_id, user_id) = (columns.text()?, columns.text()?);
        let display_name = columns.text()?;
        let (vm_state, task_state) = (columns.text()?, columns.text()?);
        let (launched_at, created_at) = (columns.moment()?, columns.moment()?);
        let (updated_at, deleted_at) = (columns.moment()?, columns.moment()?);
        let power_state = columns.int()?;
        // Room cannot be negative, whatever the row says.
        let mut amount = || Ok::<_, DbErr>(columns.int()?.unwrap_or(0).max(0));
        let (vcpus, memory_mb, root_gb, ephemeral_gb) =
            (amount()?, amount()?, amount()?, amount()?);
        let locked = columns.truth()?;
        let boots_from_volume = columns.truth()?;
        let flavor = columns.text()?;
        let (numa_topology, has_pci_requests) = (columns.text()?, columns.truth()?);
        let gone = deleted || hidden || vm_state.as_deref() == Some("deleted");
        let instance = Instance {
            uuid,
            host,
            node,
            project_id,
            user_id,
            display_name,
            launched_at,
            created_at,
            updated_at,
            vm_state,
            task_state,
            power_state,
            vcpus,
            memory_mb,
            root_gb,
            ephemeral_gb,
            locked,
            flavor: None,
            boots_from_volume,
            numa_topology,
            has_pci_requests,
            pci_devices: Ok(Vec::new()),
            server_group: None,
            metadata: BTreeMap::new(),
            image_properties: BTreeMap::new(),
            deleted: gone,
        };
        let mut hasher = DefaultHasher::new();
        (
            gone,
            updated_at,
            &instance.uuid,
            &instance.host,
            &instance.node,
        )
            .hash(&mut hasher);
        (
            &instance.vm_state,
            &instance.task_state,
            power_state,
            locked,
        )
            .hash(&mut hasher);
        (
            vcpus,
            memory_mb,
            root_gb,
            ephemeral_gb,
            launched_at,
            &flavor,
        )
            .hash(&mut hasher);
        let held = (&instance.numa_topology, has_pci_requests);
        (held, &instance.project_id).hash(&mut hasher);
        let at = [created_at, updated_at, deleted_at]
            .into_iter()
            .flatten()
            .max();
        Ok(Self {
            mark: Mark {
                id,
                at: at.unwrap_or_default(),
                digest: hasher.finish(),
            },
            flavor,
            instance,
        })
    }

    pub(crate) fn mark(&self) -> Mark {
        self.mark
    }

    pub(crate) fn take_in(mut self, flavors: &Flavors) -> Instance {
        self.instance.flavor = self.flavor.as_deref().and_then(|text| flavors.get(text));
        self.instance
    }
}

/// Flavors that were read, by their JSON: a cloud has few of them and a hundred thousand instances.
#[derive(Debug, Default)]
pub(crate) struct Flavors {
    known: Mutex<HashMap<String, Option<Arc<InstanceFlavor>>>>,
}

/// Most texts that are kept; a cloud with more flavors than that reads them again.
const MOST_FLAVORS: usize = 4096;

impl Flavors {
    pub(crate) fn get(&self, text: &str) -> Option<Arc<InstanceFlavor>> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flavor) = known.get(text) {
            return flavor.clone();
        }
        if known.len() >= MOST_FLAVORS {
            known.clear();
        }
        let flavor = match InstanceFlavor::from_json(text) {
            Ok(flavor) => Some(Arc::new(flavor)),
            Err(fault) => {
                tracing::warn!(%fault, "the flavor of an instance cannot be read");
                None
            }
        };
        known.insert(text.to_owned(), flavor.clone());
        flavor
    }
}

impl InstanceFlavor {
    /// Takes the column `instance_extra.flavor` in (`Instance._flavor_from_db`).
    ///
    /// # Errors
    /// What Nova raises.
    pub fn from_json(text: &str) -> Result<Self, NovaException> {
        let value = json::loads(text)?;
        let flavors = dict(&value)?;
        let optional = |name: &str| get(flavors, name).map(flavor).transpose();
        Ok(Self {
            current: flavor(key(flavors, "cur")?)?,
            new: optional("new")?,
            old: optional("old")?,
        })
    }
}

fn flavor(value: &Python) -> Result<Flavor, NovaException> {
    let data = fields(value, "Flavor", (1, 2))?;
    let or_zero =
        |name: &str| Ok::<_, NovaException>(nullable_integer(data.get(name))?.unwrap_or(0));
    let extra_specs = match data.get("extra_specs") {
        None => None,
        Some(specs) => {
            let pairs: Vec<(String, String)> = map(specs, string)?;
            let mut ordered = OrderedMap::default();
            for (name, value) in pairs {
                ordered.insert(name, value);
            }
            Some(ordered)
        }
    };
    Ok(Flavor {
        name: nullable_string(data.get("name"))?.unwrap_or_default(),
        flavorid: nullable_string(data.get("flavorid"))?.unwrap_or_default(),
        vcpus: integer(key(data, "vcpus")?)?,
        memory_mb: integer(key(data, "memory_mb")?)?,
        root_gb: or_zero("root_gb")?,
        ephemeral_gb: or_zero("ephemeral_gb")?,
        swap: or_zero("swap")?,
        extra_specs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAVOR: &str = r#"{"nova_object.name": "Flavor", "nova_object.namespace": "nova", "nova_object.version": "1.2",
        "nova_object.data": {"id": 3, "name": "small", "memory_mb": 512, "vcpus": 1, "root_gb": 1, "ephemeral_gb": 0,
        "flavorid": "f-1", "swap": 0, "extra_specs": {"ebbtide:preemptible": "true", "a": "b"}}}"#;

    #[test]
    fn a_flavor_is_read_once_and_shared() {
        let text = format!(r#"{{"cur": {FLAVOR}, "old": null, "new": null}}"#);
        let flavors = Flavors::default();
        let first = flavors.get(&text).unwrap();
        assert_eq!(
            (first.current.name.as_str(), first.current.memory_mb),
            ("small", 512)
        );
        let specs = first.current.extra_specs.as_ref().unwrap();
        assert_eq!(
            specs.get("ebbtide:preemptible").map(String::as_str),
            Some("true")
        );
        assert!(Arc::ptr_eq(&first, &flavors.get(&text).unwrap()));
        assert_eq!((&first.old, &first.new), (&None, &None));
    }

    #[test]
    fn a_flavor_that_cannot_be_read_is_none_and_hurts_no_other_row() {
        let flavors = Flavors::default();
        let newer = FLAVOR.replace("\"1.2\"", "\"2.0\"");
        for bad in [
            "",
            "null",
            "{}",
            "[1",
            r#"{"cur": 7}"#,
            &format!(r#"{{"cur": {newer}}}"#),
        ] {
            assert_eq!(flavors.get(bad), None, "{bad}");
        }
    }
}

//! What computes tell about their instances: the fan-out casts `update_instance_info`,
//! `sync_instance_info` and `delete_instance_info`.

use crate::error::Result;
use crate::object::{self, Object};
use crate::read::{self, member};
use crate::request::flavor;
use ebbtide_nova::model::{Flavor, InstanceFacts};
use ebbtide_nova::python::Value;
use std::collections::BTreeMap;

/// An instance as a compute tells it (`Instance`, 2.x). Times are microseconds since 1970, UTC.
/// What the message leaves unset is `None` or empty.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Instance {
    pub uuid: String,
    /// Host name.
    pub host: Option<String>,
    /// Node name.
    pub node: Option<String>,
    pub project_id: Option<String>,
    pub user_id: Option<String>,
    /// Name as the user sees it.
    pub display_name: Option<String>,
    pub availability_zone: Option<String>,
    /// For example `active`, `building`, `stopped`.
    pub vm_state: Option<String>,
    /// What is being done to it.
    pub task_state: Option<String>,
    /// As the hypervisor sees it: 1 is running.
    pub power_state: Option<i64>,
    pub flavor: Option<Flavor>,
    /// The flavor that a resize goes to.
    pub new_flavor: Option<Flavor>,
    /// CPUs.
    pub vcpus: i64,
    /// Memory in MiB.
    pub memory_mb: i64,
    /// Root disk in GiB.
    pub root_gb: i64,
    /// Ephemeral disk in GiB.
    pub ephemeral_gb: i64,
    /// Image; empty text for a server that boots from a volume.
    pub image_ref: Option<String>,
    /// When it was first running on this host.
    pub launched_at: Option<i64>,
    /// When it was asked for.
    pub created_at: Option<i64>,
    /// When its row changed last.
    pub updated_at: Option<i64>,
    /// When it ended.
    pub terminated_at: Option<i64>,
    /// Deleted, softly or not.
    pub deleted: bool,
    /// In more than one cell while it moves; this one is not to be seen.
    pub hidden: bool,
    /// What the user gave.
    pub metadata: BTreeMap<String, String>,
    /// What Nova keeps.
    pub system_metadata: BTreeMap<String, String>,
}

/// `update_instance_info`: instances that changed on a host. A compute service sends all of its
/// instances at its start, and later each one that changed. In both cases the instances in the
/// message replace the known ones, and all others stay. If the host was unknown and the message
/// names more than one instance, the list counts as complete (`HostManager.update_instance_info`).
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateInstanceInfo {
    /// Host name.
    pub host: String,
    pub instances: Vec<Instance>,
}

/// `sync_instance_info`: what is on a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncInstanceInfo {
    /// Host name.
    pub host: String,
    /// UUIDs of all its instances.
    pub uuids: Vec<String>,
}

/// `delete_instance_info`: an instance that left a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeleteInstanceInfo {
    /// Host name.
    pub host: String,
    pub uuid: String,
}

impl Instance {
    /// Reads an Instance object, versions 2.x.
    ///
    /// # Errors
    /// What is wrong, with the path to it.
    pub fn read(value: &Value) -> Result<Self> {
        let instance = Object::open(value, "Instance", 2)?;
        let text = |name: &str| instance.optional(name, read::text);
        let number = |name: &str| instance.or_default(name, read::quantity);
        let time = |name: &str| instance.optional(name, read::time);
        let flag = |name: &str| instance.or_default(name, read::boolean);
        let map = |name: &str| {
            let map = instance.optional(name, |map| {
                read::map(map, |value| {
                    Ok(read::nullable(value, read::text)?.unwrap_or_default())
                })
            });
            Ok(map?.unwrap_or_default())
        };
        Ok(Self {
            uuid: instance.required("uuid", read::text)?,
            host: text("host")?,
            node: text("node")?,
            project_id: text("project_id")?,
            user_id: text("user_id")?,
            display_name: text("display_name")?,
            availability_zone: text("availability_zone")?,
            vm_state: text("vm_state")?,
            task_state: text("task_state")?,
            power_state: instance.optional("power_state", read::integer)?,
            flavor: instance.optional("flavor", flavor::flavor)?,
            new_flavor: instance.optional("new_flavor", flavor::flavor)?,
            vcpus: number("vcpus")?,
            memory_mb: number("memory_mb")?,
            root_gb: number("root_gb")?,
            ephemeral_gb: number("ephemeral_gb")?,
            image_ref: text("image_ref")?,
            launched_at: time("launched_at")?,
            created_at: time("created_at")?,
            updated_at: time("updated_at")?,
            terminated_at: time("terminated_at")?,
            deleted: flag("deleted")?,
            hidden: flag("hidden")?,
            metadata: map("metadata")?,
            system_metadata: map("system_metadata")?,
        })
    }

    /// What weighers read of it: its image properties, under the names without `image_`.
    #[must_use]
    pub fn facts(&self) -> InstanceFacts {
        let properties = self.system_metadata.iter().filter_map(|(name, value)| {
            let name = name.strip_prefix("image_")?;
            Some((name.to_owned(), value.as_str().into()))
        });
        InstanceFacts {
            image_properties: properties.collect(),
            orphan: false,
        }
    }
}

impl UpdateInstanceInfo {
    /// Reads the arguments of the cast.
    ///
    /// # Errors
    /// What is wrong, with the path to it.
    pub fn read(args: &Value) -> Result<Self> {
        let args = read::dict(args)?;
        Ok(Self {
            host: required(args, "host_name", read::text)?,
            instances: required(args, "instance_info", |info| {
                object::items(info, "InstanceList", 2, Instance::read)
            })?,
        })
    }
}

impl SyncInstanceInfo {
    /// Reads the arguments of the cast.
    ///
    /// # Errors
    /// What is wrong, with the path to it.
    pub fn read(args: &Value) -> Result<Self> {
        let args = read::dict(args)?;
        Ok(Self {
            host: required(args, "host_name", read::text)?,
            uuids: required(args, "instance_uuids", read::texts)?,
        })
    }
}

impl DeleteInstanceInfo {
    /// Reads the arguments of the cast.
    ///
    /// # Errors
    /// What is wrong, with the path to it.
    pub fn read(args: &Value) -> Result<Self> {
        let args = read::dict(args)?;
        Ok(Self {
            host: required(args, "host_name", read::text)?,
            uuid: required(args, "instance_uuid", read::text)?,
        })
    }
}

/// An argument that has to be there.
pub(crate) fn required<T>(
    args: &ebbtide_nova::python::Dict<Value>,
    name: &str,
    read: impl FnOnce(&Value) -> Result<T>,
) -> Result<T> {
    member(args, name, read)?.ok_or_else(|| {
        crate::error::ObjectError::here(crate::error::ObjectProblem::Missing).within(name)
    })
}

//! Flavor, image and server group of a request.

use crate::error::{ObjectError, Result};
use crate::object::Object;
use crate::read;
use ebbtide_nova::image::{Image, ImageProps};
use ebbtide_nova::model::{Flavor, InstanceGroup};
use ebbtide_nova::python::Value;

/// A Flavor object, of a request or of an instance.
pub(crate) fn flavor(value: &Value) -> Result<Flavor> {
    let flavor = Object::open(value, "Flavor", 1)?;
    Ok(Flavor {
        name: flavor.required("name", read::text)?,
        flavorid: flavor.or_default("flavorid", read::text)?,
        vcpus: flavor.required("vcpus", read::quantity)?,
        memory_mb: flavor.required("memory_mb", read::quantity)?,
        root_gb: flavor.required("root_gb", read::quantity)?,
        ephemeral_gb: flavor
            .optional("ephemeral_gb", read::quantity)?
            .unwrap_or(0),
        swap: flavor.optional("swap", read::quantity)?.unwrap_or(0),
        extra_specs: flavor.optional("extra_specs", |specs| read::map(specs, read::text))?,
    })
}

/// An ImageMeta object.
pub(crate) fn image(value: &Value) -> Result<Image> {
    let image = Object::open(value, "ImageMeta", 1)?;
    let properties = image.optional("properties", |value| {
        let properties = Object::open(value, "ImageMetaProps", 1)?;
        ImageProps::from_fields(properties.data).map_err(ObjectError::refused)
    })?;
    for number in ["min_ram", "min_disk"] {
        image.optional(number, read::integer)?;
    }
    Ok(Image {
        id: image.set("id", read::text)?,
        name: image.optional("name", read::text)?,
        disk_format: image.optional("disk_format", read::text)?,
        properties: properties.unwrap_or_default(),
    })
}

/// An InstanceGroup object, and whether its hosts are set: where not, Nova loads them from the
/// database when it needs them.
pub(crate) fn group(value: &Value) -> Result<(InstanceGroup, bool)> {
    let group = Object::open(value, "InstanceGroup", 1)?;
    let hosts = group.optional("hosts", read::texts)?;
    let hosts_set = hosts.is_some();
    // `policy` is there since 1.11; before that there is a list of just one in `policies`.
    let policy = match group.optional("policy", read::text)? {
        Some(policy) => policy,
        None => group
            .optional("policies", read::texts)?
            .and_then(|policies| policies.into_iter().next())
            .unwrap_or_default(),
    };
    let rules = group.optional("_rules", |rules| read::map(rules, read::text))?;
    let group = InstanceGroup {
        uuid: group.or_default("uuid", read::text)?,
        policy,
        rules: rules.unwrap_or_default(),
        members: group.or_default("members", read::texts)?,
        hosts: hosts.unwrap_or_default(),
    };
    Ok((group, hosts_set))
}

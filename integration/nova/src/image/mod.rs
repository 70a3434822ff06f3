//! An image as Nova reads it (`nova/objects/image_meta.py`, `ImageMeta.from_dict`): known
//! properties only, each with its type, old names first.

mod coerce;
mod fields;
mod version;

use crate::fault::NovaException;
use crate::python::{Dict, Value};

pub(crate) use coerce::{MOST_CPUS, cell_cpus};
pub use coerce::{architecture, cpu_spec, hv_type, vm_mode};
pub use version::{Predicate, Version};

/// An image (`ImageMeta`).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Image {
    /// Id; `None`: not set.
    pub id: Option<String>,
    /// Name; `None`: not set, which turns some of Nova's own error messages into another error.
    pub name: Option<String>,
    /// For example `qcow2`; `None`: not set, which is not the same as null (that reads as empty
    /// text).
    pub disk_format: Option<String>,
    /// Properties that Nova knows.
    pub properties: ImageProps,
}

/// Image properties (`ImageMetaProps`): those that are set, read as Nova reads them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImageProps(Dict<Value>);

/// Fields of ImageMeta that are text; null reads as empty for those marked.
const TEXT: [(&str, bool); 10] = [
    ("id", false),
    ("name", true),
    ("status", false),
    ("visibility", false),
    ("checksum", true),
    ("owner", true),
    ("container_format", true),
    ("disk_format", true),
    ("direct_url", false),
    ("protected", false),
];

impl Image {
    /// Reads an image from a request, null left aside.
    ///
    /// # Errors
    /// What `ImageMeta.from_dict` raises: ValueError, TypeError, AttributeError, Invalid.
    pub fn read(image: &Value) -> Result<Self, NovaException> {
        let Value::Dict(image) = image else {
            return Err(NovaException::new("TypeError", "an image is a dict"));
        };
        let empty = Value::Dict(Dict::default());
        let properties = match image.get("properties").unwrap_or(&empty) {
            Value::Dict(properties) => ImageProps::from_dict(properties)?,
            _ => {
                return Err(NovaException::new(
                    "TypeError",
                    "image properties are a dict",
                ));
            }
        };
        let mut read = Self {
            properties,
            ..Self::default()
        };
        for (name, value) in image.iter() {
            if let Some((_, nullable)) = TEXT.iter().find(|(text, _)| text == name) {
                let text = match value {
                    Value::None if *nullable => String::new(),
                    Value::None => {
                        return Err(NovaException::new("ValueError", format!("{name} is null")));
                    }
                    value if matches!(name.as_str(), "id" | "protected") => value.text(),
                    value => coerce::text(value)?,
                };
                match name.as_str() {
                    "id" => read.id = Some(text),
                    "name" => read.name = Some(text),
                    "disk_format" => read.disk_format = Some(text),
                    _ => {}
                }
            } else if matches!(
                name.as_str(),
                "size" | "virtual_size" | "min_ram" | "min_disk"
            ) {
                let nullable = name.ends_with("size");
                match value {
                    Value::None if nullable => {}
                    Value::None => {
                        return Err(NovaException::new("ValueError", format!("{name} is null")));
                    }
                    value => crate::options::int_of(value).map(drop)?,
                }
            }
        }
        Ok(read)
    }
}

impl ImageProps {
    /// Reads properties, as of a request's image or an instance's `image_*` system metadata.
    ///
    /// # Errors
    /// ValueError, TypeError, AttributeError, Invalid: what the field of a property raises.
    pub fn read(properties: &Value) -> Result<Self, NovaException> {
        match properties {
            Value::Dict(properties) => Self::from_dict(properties),
            _ => Err(NovaException::new(
                "TypeError",
                "image properties are a dict",
            )),
        }
    }

    /// Reads properties: old names, then present ones, then traits.
    ///
    /// # Errors
    /// See [`Self::read`].
    pub fn from_dict(given: &Dict<Value>) -> Result<Self, NovaException> {
        let mut read = Self::default();
        for (old, name) in fields::LEGACY {
            if let Some(value) = given.get(old) {
                read.set(name, value)?;
            }
        }
        match given.get("vmware_adaptertype") {
            Some(Value::Str(adapter)) if adapter == "ide" => {
                read.set("hw_disk_bus", &"ide".into())?
            }
            Some(adapter) if adapter.truth() => {
                read.set("hw_disk_bus", &"scsi".into())?;
                read.set("hw_scsi_model", adapter)?;
            }
            _ => {}
        }
        for (name, kind) in fields::FIELDS {
            match kind {
                fields::Kind::NumaMem => read.set_cells(name, given, |value| {
                    crate::options::int_of(value).map(Value::Int)
                })?,
                fields::Kind::NumaCpus => read.set_cells(name, given, coerce::cpus)?,
                fields::Kind::Traits => {}
                _ => {
                    if let Some(value) = given.get(name) {
                        read.set(name, value)?;
                    }
                }
            }
        }
        let required = |(key, value): (&String, &Value)| {
            let name = key.strip_prefix("trait:")?;
            (value.text() == "required").then(|| Value::from(name))
        };
        let traits: Vec<Value> = given.iter().filter_map(required).collect();
        if !traits.is_empty() {
            read.0.insert("traits_required", Value::List(traits));
        }
        Ok(read)
    }

    /// Reads the fields of an ImageMetaProps object as RPC messages carry them: each property under
    /// its present name, with its type; lists for the NUMA cells and the traits. Fields that are
    /// not known are dropped.
    ///
    /// # Errors
    /// See [`Self::read`].
    pub fn from_fields(given: &Dict<Value>) -> Result<Self, NovaException> {
        let mut read = Self::default();
        for (name, kind) in fields::FIELDS {
            let Some(value) = given.get(name) else {
                continue;
            };
            let of_list = |one: fn(&Value) -> Result<Value, NovaException>| match value {
                Value::List(items) => items.iter().map(one).collect(),
                other => Err(coerce::refused(other)),
            };
            let items = match kind {
                fields::Kind::NumaMem => {
                    of_list(|item| crate::options::int_of(item).map(Value::Int))
                }
                fields::Kind::NumaCpus => of_list(coerce::cpu_list),
                fields::Kind::Traits => of_list(|item| coerce::text(item).map(Value::Str)),
                _ => {
                    read.set(name, value)?;
                    continue;
                }
            };
            read.0.insert(name, Value::List(items?));
        }
        Ok(read)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), NovaException> {
        if let Some((_, kind)) = fields::FIELDS.iter().find(|(field, _)| *field == name) {
            self.0.insert(name, coerce::coerce(*kind, value)?);
        }
        Ok(())
    }

    /// `NAME.0`, `NAME.1`, … up to the first that is missing, 128 at most.
    fn set_cells(
        &mut self,
        name: &str,
        given: &Dict<Value>,
        read: impl Fn(&Value) -> Result<Value, NovaException>,
    ) -> Result<(), NovaException> {
        let mut cells = Vec::new();
        while cells.len() < 128 {
            let Some(value) = given.get(&format!("{name}.{}", cells.len())) else {
                break;
            };
            cells.push(read(value)?);
        }
        if !cells.is_empty() {
            self.0.insert(name, Value::List(cells));
        }
        Ok(())
    }

    /// The value of a property, if it is set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// The value of a property that is text.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(Value::Str(text)) => Some(text),
            _ => None,
        }
    }

    /// Whether a property is a boolean that is true.
    #[must_use]
    pub fn is_true(&self, name: &str) -> bool {
        matches!(self.0.get(name), Some(Value::Bool(true)))
    }

    /// Whether Nova knows a property of this name (asking ImageMetaProps for another is an
    /// AttributeError).
    #[must_use]
    pub fn is_known(name: &str) -> bool {
        fields::FIELDS.iter().any(|(field, _)| *field == name)
    }

    /// The properties that are set, by name, in Nova's order of fields.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        fields::FIELDS
            .iter()
            .filter_map(|(name, _)| self.0.get(name).map(|value| (*name, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(properties: &serde_json::Value) -> Result<Vec<(String, String)>, &'static str> {
        ImageProps::read(&properties.into())
            .map(|read| {
                read.iter()
                    .map(|(name, value)| (name.to_owned(), value.text()))
                    .collect()
            })
            .map_err(|fault| fault.class)
    }

    fn one(name: &str, value: &str) -> Result<Vec<(String, String)>, &'static str> {
        Ok(vec![(name.to_owned(), value.to_owned())])
    }

    #[test]
    fn the_present_name_wins_over_the_old_one_and_unknown_names_are_dropped() {
        assert_eq!(
            read(&json!({"architecture": "i386", "hw_architecture": "AMD64", "made_up": 1})),
            one("hw_architecture", "x86_64")
        );
        assert_eq!(read(&json!({"vm_mode": "hv"})), one("hw_vm_mode", "hvm"));
        // A bad value under the old name fails even if the present name is good.
        assert_eq!(
            read(&json!({"architecture": "z80", "hw_architecture": "x86_64"})),
            Err("ValueError")
        );
    }

    #[test]
    fn many_ranges_of_cpus_take_no_more_memory_than_one() {
        let many: Vec<String> = (0..3_000_u64)
            .map(|n| format!("{}-{}", n * 2_000_000, n * 2_000_000 + 900_000))
            .collect();
        let fault = cpu_spec(&many.join(",")).unwrap_err();
        assert_eq!(fault.class, "MemoryError");
        assert_eq!(cpu_spec("0-1000000").unwrap().len(), 1_000_001);
    }

    #[test]
    fn each_kind_reads_as_its_field_does() {
        assert_eq!(
            read(&json!({"hw_boot_menu": " Yes "})),
            one("hw_boot_menu", "True")
        );
        assert_eq!(
            read(&json!({"hw_boot_menu": "perhaps"})),
            one("hw_boot_menu", "False")
        );
        assert_eq!(
            read(&json!({"hw_cpu_cores": "4"})),
            one("hw_cpu_cores", "4")
        );
        assert_eq!(read(&json!({"hw_cpu_cores": "4.0"})), Err("ValueError"));
        assert_eq!(read(&json!({"hw_cpu_cores": null})), Err("ValueError"));
        assert_eq!(read(&json!({"hw_disk_bus": "VIRTIO"})), Err("ValueError"));
        assert_eq!(read(&json!({"hw_architecture": 5})), Err("AttributeError"));
        assert_eq!(read(&json!({"os_distro": 5.0})), one("os_distro", "5.0"));
        assert_eq!(read(&json!({"os_distro": ["a"]})), Err("ValueError"));
        assert_eq!(
            read(&json!({"img_hv_requested_version": "2.6"})),
            Err("ValueError")
        );
        assert_eq!(
            read(&json!({"hw_numa_mem.0": "512", "hw_numa_mem.2": 1})),
            one("hw_numa_mem", "[512]")
        );
        assert_eq!(read(&json!({"hw_numa_cpus.0": "3-1"})), Err("Invalid"));
        assert_eq!(
            read(&json!({"trait:A": "required", "trait:B": "forbidden"})),
            one("traits_required", "['A']")
        );
    }

    #[test]
    fn null_reads_as_empty_only_for_what_glance_may_leave_null() {
        assert_eq!(
            Image::read(&(&json!({"disk_format": null})).into())
                .unwrap()
                .disk_format,
            Some(String::new())
        );
        assert_eq!(
            Image::read(&(&json!({"id": null})).into())
                .unwrap_err()
                .class,
            "ValueError"
        );
    }
}

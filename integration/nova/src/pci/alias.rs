//! PCI requests of a flavor (`nova/pci/request.py`): the aliases of `[pci] alias`, and what
//! `pci_passthrough:alias` asks for.

use crate::fault::NovaException;
use crate::model::{Options, PciRequest};
use crate::python::{Dict, Value, json, number, text};
use crate::release::{Feature, Release};
use std::collections::BTreeMap;

/// The class of every error in an alias.
const INVALID: &str = "PciInvalidAlias";
/// Types of devices that an alias may name. vDPA devices are for ports only.
const DEVICE_TYPES: [&str; 3] = ["type-PCI", "type-PF", "type-VF"];
/// Ways to be near to a cell.
pub(crate) const NUMA_POLICIES: [&str; 4] = ["required", "legacy", "preferred", "socket"];
/// Longest name of an alias.
const MOST_NAME: usize = 256;
/// Most devices of one entry of a flavor. Nova has no limit, and no host has as many.
const MOST_DEVICES: i128 = 1 << 31;

/// One alternative: tags that a device must have.
type Spec = BTreeMap<String, serde_json::Value>;

/// An alias: its policy and its alternatives.
struct Alias {
    name: String,
    numa_policy: String,
    specs: Vec<Spec>,
}

fn invalid(reason: impl Into<String>) -> NovaException {
    NovaException::new(INVALID, reason)
}

/// Text of one of the alias's fields, if it is there.
fn field<'a>(alias: &'a Dict<Value>, name: &str) -> Result<Option<&'a str>, NovaException> {
    match alias.get(name) {
        None => Ok(None),
        Some(Value::Str(text)) => Ok(Some(text)),
        Some(_) => Err(invalid(format!("{name} is no text"))),
    }
}

/// `_ALIAS_SCHEMA`.
fn check(alias: &Dict<Value>, release: Release) -> Result<(), NovaException> {
    for name in alias.keys() {
        let known = match name.as_str() {
            "resource_class" | "traits" => release.has(Feature::PciInPlacement),
            "live_migratable" => release.has(Feature::LiveMigratableAlias),
            "name" | "capability_type" | "product_id" | "vendor_id" | "device_type"
            | "numa_policy" => true,
            _ => false,
        };
        if !known {
            return Err(invalid(format!("an alias has no field {name:?}")));
        }
        field(alias, name)?;
    }
    let name = field(alias, "name")?.ok_or_else(|| invalid("an alias without a name"))?;
    if name.is_empty() || name.chars().count() > MOST_NAME {
        return Err(invalid("the name of an alias has 1 to 256 characters"));
    }
    for (name, words) in [
        ("capability_type", ["pci"].as_slice()),
        ("device_type", &DEVICE_TYPES),
        ("numa_policy", &NUMA_POLICIES),
    ] {
        if field(alias, name)?.is_some_and(|word| !words.contains(&word)) {
            return Err(invalid(format!("{name} is none of {}", words.join(", "))));
        }
    }
    for name in ["vendor_id", "product_id"] {
        let is_id = |id: &str| {
            // Python's `$` stands before a last line feed, too.
            let id = id.strip_suffix('\n').unwrap_or(id);
            id.len() == 4 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        if field(alias, name)?.is_some_and(|id| !is_id(id)) {
            return Err(invalid(format!("{name} is no four hexadecimal digits")));
        }
    }
    Ok(())
}

/// `get_alias_from_config`.
fn aliases(options: &Options) -> Result<Vec<Alias>, NovaException> {
    let mut read: Vec<Alias> = Vec::new();
    for given in &options.pci_alias {
        let alias = json::loads(given).map_err(|fault| invalid(fault.message))?;
        let Value::Dict(alias) = alias else {
            return Err(invalid("an alias is a JSON object"));
        };
        check(&alias, options.release)?;
        let word = |name| field(&alias, name).map(Option::unwrap_or_default);
        let name = text::strip(word("name")?).to_owned();
        let numa_policy = match word("numa_policy")? {
            "" => "legacy",
            policy => policy,
        };
        let mut spec = Spec::new();
        for key in [
            "capability_type",
            "product_id",
            "vendor_id",
            "resource_class",
            "traits",
        ] {
            if let Some(value) = field(&alias, key)? {
                spec.insert(key.to_owned(), value.into());
            }
        }
        if let Some(movable) = field(&alias, "live_migratable")? {
            let movable = strict_bool(movable)?;
            spec.insert("live_migratable".to_owned(), movable.to_string().into());
        }
        let dev_type = word("device_type")?;
        if !dev_type.is_empty() {
            spec.insert("dev_type".to_owned(), dev_type.into());
        }
        let Some(before) = read.iter_mut().find(|alias| alias.name == name) else {
            read.push(Alias {
                name,
                numa_policy: numa_policy.to_owned(),
                specs: vec![spec],
            });
            continue;
        };
        if before.numa_policy != numa_policy {
            return Err(invalid(format!("the NUMA policies of {name} differ")));
        }
        // Nova asks both for their type, and stumbles (KeyError) where one has none.
        let types = [before.specs.first(), Some(&spec)].map(|spec| spec?.get("dev_type"));
        if types[0].is_none() || types[0] != types[1] {
            return Err(invalid(format!("the device types of {name} differ")));
        }
        before.specs.push(spec);
    }
    if options.release.has(Feature::AliasWithIds) {
        check_ids(&read, options.pci_in_placement)?;
    }
    Ok(read)
}

/// `_validate_aliases`.
fn check_ids(aliases: &[Alias], in_placement: bool) -> Result<(), NovaException> {
    if in_placement && aliases.iter().any(|alias| alias.specs.len() > 1) {
        let why = "several alternatives of one alias beside [filter_scheduler] pci_in_placement";
        return Err(invalid(why));
    }
    let names_devices = |spec: &Spec| {
        let ids = spec.contains_key("vendor_id") && spec.contains_key("product_id");
        ids || (in_placement && spec.contains_key("resource_class"))
    };
    let bad = aliases
        .iter()
        .find(|alias| !alias.specs.iter().all(names_devices));
    bad.map_or(Ok(()), |alias| {
        Err(invalid(format!(
            "{} has no vendor_id and product_id",
            alias.name
        )))
    })
}

/// `bool_from_string(strict=True)`, whose ValueError makes the alias invalid.
fn strict_bool(word: &str) -> Result<bool, NovaException> {
    match text::strip(word).to_lowercase().as_str() {
        "1" | "t" | "true" | "on" | "y" | "yes" => Ok(true),
        "0" | "f" | "false" | "off" | "n" | "no" => Ok(false),
        _ => Err(invalid(format!("{word:?} is neither true nor false"))),
    }
}

/// The PCI requests of `pci_passthrough:alias` (`get_pci_requests_from_flavor`). `policy` is what
/// flavor or image say for all devices.
///
/// # Errors
/// `PciInvalidAlias` for any alias of the configuration, `PciRequestAliasNotDefined`, `ValueError`
/// for what is no list of `NAME:COUNT`.
pub(crate) fn requests_of_flavor(
    asked: &str,
    policy: Option<&str>,
    options: &Options,
) -> Result<Vec<PciRequest>, NovaException> {
    let aliases = aliases(options)?;
    let bad = |entry: &str| {
        let text = format!("{entry:?} of pci_passthrough:alias is not NAME:COUNT");
        NovaException::new("ValueError", text)
    };
    let mut requests = Vec::new();
    for entry in asked.split(',') {
        let mut parts = entry.split(':');
        let (Some(name), Some(count), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(bad(entry));
        };
        let name = text::strip(name);
        let Some(alias) = aliases.iter().find(|alias| alias.name == name) else {
            let text = format!("[pci] alias defines no {name:?}");
            return Err(NovaException::new("PciRequestAliasNotDefined", text));
        };
        let count = number::int(count).ok_or_else(|| bad(entry))?;
        let count = count.clamp(-MOST_DEVICES, MOST_DEVICES);
        // Nova draws a UUID. Any that tells the requests of one instance apart will do.
        let id = format!("00000000-0000-4000-8000-{:012x}", requests.len() + 1);
        requests.push(PciRequest {
            count: i64::try_from(count).unwrap_or_default(),
            spec: alias.specs.clone(),
            alias_name: Some(name.to_owned()),
            request_id: Some(id),
            requester_id: None,
            numa_policy: Some(policy.unwrap_or(&alias.numa_policy).to_owned()),
        });
    }
    Ok(requests)
}

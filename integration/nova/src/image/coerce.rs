//! How the fields of versioned objects read a value (`oslo_versionedobjects/fields.py`,
//! `nova/objects/fields.py`).

use super::fields::{ARCHITECTURES, HV_TYPES, Kind, SCSI_MODELS, VIF_MODELS, VM_MODES};
use super::version::Predicate;
use crate::fault::NovaException;
use crate::options::int_of;
use crate::python::{Dict, Object, Value, number, text as python_text};
use std::collections::BTreeSet;

/// Reads a value as a field of some kind does.
pub(super) fn coerce(kind: Kind, value: &Value) -> Result<Value, NovaException> {
    if matches!(value, Value::None) {
        return Err(NovaException::new("ValueError", "the field cannot be null"));
    }
    match kind {
        Kind::Text => text(value).map(Value::Str),
        Kind::Int => int_of(value).map(Value::Int),
        Kind::Bool => Ok(Value::Bool(boolean(value))),
        Kind::OneOf(words) => match value {
            Value::Str(word) if words.contains(&word.as_str()) => Ok(value.clone()),
            _ => Err(refused(value)),
        },
        Kind::Architecture => canonical(value, architecture),
        Kind::HvType => canonical(value, hv_type),
        Kind::VmMode => canonical(value, vm_mode),
        Kind::OsType => canonical(value, |name| chosen(name, &["linux", "windows"])),
        Kind::ScsiModel => canonical(value, scsi_model),
        Kind::VifModel => canonical(value, vif_model),
        Kind::Uuid => Ok(Value::Str(value.text())),
        Kind::Version => match value {
            Value::Str(conditions) if Predicate::read(conditions).is_some() => Ok(value.clone()),
            _ => Err(refused(value)),
        },
        Kind::Dicts => dicts(value),
        // These are put together from several keys and never read as one value.
        Kind::NumaCpus | Kind::NumaMem | Kind::Traits => Ok(value.clone()),
    }
}

pub(super) fn refused(value: &Value) -> NovaException {
    NovaException::new("ValueError", format!("{} is not allowed", value.repr()))
}

/// A text field: numbers become text, lists and dicts are refused.
pub(super) fn text(value: &Value) -> Result<String, NovaException> {
    match value {
        Value::Str(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) => Ok(value.text()),
        _ => Err(refused(value)),
    }
}

/// `strutils.bool_from_string`.
fn boolean(value: &Value) -> bool {
    let word = value.text();
    let word = python_text::strip(&word).to_lowercase();
    matches!(word.as_str(), "1" | "t" | "true" | "on" | "y" | "yes")
}

/// A name that is lowered first: what is no text has no `lower`.
fn canonical(
    value: &Value,
    read: impl Fn(&str) -> Option<&'static str>,
) -> Result<Value, NovaException> {
    match value {
        Value::Str(name) => read(name).map(Value::from).ok_or_else(|| refused(value)),
        _ => Err(NovaException::new(
            "AttributeError",
            format!("{} is no text", value.repr()),
        )),
    }
}

fn chosen(name: &str, from: &[&'static str]) -> Option<&'static str> {
    let name = name.to_lowercase();
    from.iter().copied().find(|known| *known == name)
}

/// `Architecture.canonicalize`; `None`: no such architecture.
#[must_use]
pub fn architecture(name: &str) -> Option<&'static str> {
    match name.to_lowercase().as_str() {
        "i386" | "i486" | "i586" | "x86_32" | "x86_32p" => Some("i686"),
        "amd64" => Some("x86_64"),
        lower => chosen(lower, &ARCHITECTURES),
    }
}

/// `HVType.canonicalize`.
#[must_use]
pub fn hv_type(name: &str) -> Option<&'static str> {
    match name.to_lowercase().as_str() {
        "xapi" => Some("xen"),
        lower => chosen(lower, &HV_TYPES),
    }
}

/// `VMMode.canonicalize`.
#[must_use]
pub fn vm_mode(name: &str) -> Option<&'static str> {
    match name.to_lowercase().as_str() {
        "pv" => Some("xen"),
        "hv" | "baremetal" => Some("hvm"),
        lower => chosen(lower, &VM_MODES),
    }
}

fn scsi_model(name: &str) -> Option<&'static str> {
    match name.to_lowercase().as_str() {
        "lsilogicsas" => Some("lsisas1068"),
        "paravirtual" => Some("vmpvscsi"),
        lower => chosen(lower, &SCSI_MODELS),
    }
}

fn vif_model(name: &str) -> Option<&'static str> {
    match name.to_lowercase().as_str() {
        "virtuale1000" => Some("e1000"),
        "virtuale1000e" => Some("e1000e"),
        "virtualpcnet32" => Some("pcnet"),
        "virtualsriovethernetcard" => Some("sriov"),
        "virtualvmxnet" => Some("vmxnet"),
        "virtualvmxnet3" => Some("vmxnet3"),
        lower => chosen(lower, &VIF_MODELS),
    }
}

/// A list of dicts whose values are text or null.
fn dicts(value: &Value) -> Result<Value, NovaException> {
    let Value::List(items) = value else {
        return Err(refused(value));
    };
    let one = |item: &Value| match item {
        Value::Dict(entries) => entries
            .iter()
            .map(|(key, value)| match value {
                Value::None => Ok((key.clone(), Value::None)),
                value => text(value).map(|text| (key.clone(), Value::Str(text))),
            })
            .collect::<Result<Dict<Value>, NovaException>>()
            .map(Value::Dict),
        _ => Err(refused(item)),
    };
    items
        .iter()
        .map(one)
        .collect::<Result<_, _>>()
        .map(Value::List)
}

/// The CPUs of one cell, from text such as `0-3,^1`.
pub(super) fn cpus(value: &Value) -> Result<Value, NovaException> {
    let Value::Str(spec) = value else {
        return Err(NovaException::new(
            "AttributeError",
            format!("{} is no text", value.repr()),
        ));
    };
    let set = cpu_spec(spec)?;
    let items: Vec<String> = set.iter().map(i128::to_string).collect();
    // The text is that of Nova's set type; the order of its elements is Python's for small numbers,
    // ascending.
    let text = if items.is_empty() {
        "CoercedSet()".to_owned()
    } else {
        format!("CoercedSet({{{}}})", items.join(", "))
    };
    Ok(Value::Object(Box::new(Object {
        text,
        attributes: Dict::default(),
        mapping: false,
        len: Some(items.len()),
    })))
}

/// The CPUs of one cell that [`cpus`] has read; `None`: no such value.
pub(crate) fn cell_cpus(value: &Value) -> Option<BTreeSet<i128>> {
    let Value::Object(set) = value else {
        return None;
    };
    let items = set.text.strip_prefix("CoercedSet(")?.strip_suffix(')')?;
    let items = items.trim_matches(['{', '}']).split(", ");
    items
        .filter(|item| !item.is_empty())
        .map(number::int)
        .collect()
}

/// The CPUs of one cell, from a list of numbers as a message carries it.
pub(super) fn cpu_list(value: &Value) -> Result<Value, NovaException> {
    let Value::List(items) = value else {
        return Err(refused(value));
    };
    let numbers = items.iter().map(|item| int_of(item).map(|n| n.to_string()));
    cpus(&Value::Str(
        numbers.collect::<Result<Vec<_>, _>>()?.join(","),
    ))
}

/// Longest ranges of CPUs that are taken, all of a text together; Nova would run out of memory at
/// some point.
pub(crate) const MOST_CPUS: i128 = 1_000_000;

/// Numbers of CPUs (`hardware.parse_cpu_spec`): numbers and ranges with commas between, `^` takes
/// out.
///
/// # Errors
/// Invalid.
pub fn cpu_spec(spec: &str) -> Result<BTreeSet<i128>, NovaException> {
    let (mut taken, mut rejected) = (BTreeSet::new(), BTreeSet::new());
    let mut left = MOST_CPUS;
    let bad = |rule: &str| NovaException::new("Invalid", format!("{rule:?} is no range of CPUs"));
    for rule in spec
        .split(',')
        .map(python_text::strip)
        .filter(|rule| !rule.is_empty())
    {
        if let Some((start, end)) = rule.split_once('-') {
            let start_number = start.strip_prefix('^').unwrap_or(start);
            let bounds = number::int(start_number)
                .zip(number::int(end))
                .filter(|(start, end)| start <= end);
            let (first, last) = bounds.ok_or_else(|| bad(rule))?;
            left = left.saturating_sub(last.saturating_sub(first));
            if left < 0 {
                return Err(NovaException::new(
                    "MemoryError",
                    format!("{rule:?} names more CPUs than can be held"),
                ));
            }
            let set = if start.starts_with('^') {
                &mut rejected
            } else {
                &mut taken
            };
            set.extend(first..=last);
        } else if let Some(excluded) = rule.strip_prefix('^') {
            rejected.insert(number::int(excluded).ok_or_else(|| bad(rule))?);
        } else {
            taken.insert(number::int(rule).ok_or_else(|| bad(rule))?);
        }
    }
    Ok(taken.difference(&rejected).copied().collect())
}

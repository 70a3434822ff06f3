//! Versioned objects as JSON in a column (`oslo_versionedobjects/base.py`, `obj_from_primitive`).

use ebbtide_nova::fault::NovaException;
use ebbtide_nova::fields::{dict, key};
use ebbtide_nova::python::{Dict, Value};

/// Takes the fields out of a primitive of the class `name`, whose newest version that we know is
/// `major.minor`.
///
/// # Errors
/// KeyError for what is no primitive, UnsupportedObjectError for another class,
/// IncompatibleObjectVersion for a newer version.
pub(crate) fn fields<'v>(
    value: &'v Value,
    name: &str,
    newest: (u64, u64),
) -> Result<&'v Dict<Value>, NovaException> {
    let primitive = dict(value)?;
    let text = |field: &str| Ok::<_, NovaException>(key(primitive, field)?.text());
    let namespace = text("nova_object.namespace")?;
    let class = text("nova_object.name")?;
    let version = text("nova_object.version")?;
    if namespace != "nova" || class != name {
        return Err(NovaException::new(
            "UnsupportedObjectError",
            format!("{namespace}.{class} stands where nova.{name} belongs"),
        ));
    }
    let known = version
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse::<u64>().ok()?, minor.parse::<u64>().ok()?)))
        .is_some_and(|(major, minor)| major == newest.0 && minor <= newest.1);
    if !known {
        return Err(NovaException::new(
            "IncompatibleObjectVersion",
            format!(
                "{name} {version:?} is not among the versions up to {}.{}",
                newest.0, newest.1
            ),
        ));
    }
    dict(key(primitive, "nova_object.data")?)
}

//! Query and path parameters as fields of a request.

use crate::contract::{BoundRoute, PathParameter};
use crate::error::RestError;
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, Value};

/// The pairs of a query, decoded.
pub(crate) fn pairs(query: Option<&str>) -> Vec<(String, String)> {
    form_urlencoded::parse(query.unwrap_or_default().as_bytes())
        .into_owned()
        .collect()
}

/// The fields that a query sets.
///
/// # Errors
/// [`RestError::Parameter`] for a parameter that is unknown, invalid or there twice.
pub(crate) fn fields(
    route: &BoundRoute,
    pairs: &[(String, String)],
) -> Result<Vec<(FieldDescriptor, Value)>, RestError> {
    let mut found: Vec<(FieldDescriptor, Value)> = Vec::new();
    for (name, text) in pairs {
        let refused = |problem: String| RestError::Parameter {
            name: name.chars().take(100).collect(),
            problem,
        };
        let field = route.query.iter().find(|field| is_called(field, name));
        let Some(field) = field else {
            let known: Vec<&str> = route.query.iter().map(FieldDescriptor::name).collect();
            return Err(refused(match known.as_slice() {
                [] => "unknown; this request takes no query".to_owned(),
                known => format!("unknown; this request takes {}", known.join(", ")),
            }));
        };
        let value = value(&field.kind(), text).map_err(refused)?;
        match found.iter_mut().find(|(known, _)| known == field) {
            Some((_, Value::List(values))) => values.push(value),
            Some(_) => return Err(refused("given twice".to_owned())),
            None if field.is_list() => found.push((field.clone(), Value::List(vec![value]))),
            None => found.push((field.clone(), value)),
        }
    }
    Ok(found)
}

/// True if a query parameter of this name is the field: by the name of the contract, in lower camel
/// case, or without `_id` (`project` for `project_id`, as OpenStack's users write).
fn is_called(field: &FieldDescriptor, name: &str) -> bool {
    field.name() == name
        || field.json_name() == name
        || field.name().strip_suffix("_id") == Some(name)
}

/// Sets the field of a path parameter.
///
/// # Errors
/// [`RestError::Parameter`] if the value does not fit, or if the body says another one.
pub(crate) fn set(
    message: &mut DynamicMessage,
    parameter: &PathParameter,
    text: &str,
) -> Result<(), RestError> {
    let refused = |problem: String| RestError::Parameter {
        name: parameter.name.clone(),
        problem,
    };
    let Some((last, parents)) = parameter.fields.split_last() else {
        return Ok(());
    };
    let mut inner = message;
    for parent in parents {
        let Value::Message(next) = inner.get_field_mut(parent) else {
            return Err(refused("is no field of a message".to_owned()));
        };
        inner = next;
    }
    let value = value(&last.kind(), text).map_err(refused)?;
    let before = inner.get_field(last).into_owned();
    if !before.is_default_for_field(last) && before != value {
        let problem = format!("is {text:?} in the path, and another one in the body");
        return Err(refused(problem));
    }
    inner.set_field(last, value);
    Ok(())
}

fn value(kind: &Kind, text: &str) -> Result<Value, String> {
    let shown = || text.chars().take(100).collect::<String>();
    let number = |what: &str| format!("{:?} is no {what}", shown());
    match kind {
        Kind::String => Ok(Value::String(text.to_owned())),
        Kind::Bool => match text {
            "true" | "1" => Ok(Value::Bool(true)),
            "false" | "0" => Ok(Value::Bool(false)),
            _ => Err(format!("{:?} is neither true nor false", shown())),
        },
        Kind::Uint32 | Kind::Fixed32 => text
            .parse()
            .map(Value::U32)
            .map_err(|_| number("whole number from 0 to 4294967295")),
        Kind::Uint64 | Kind::Fixed64 => text
            .parse()
            .map(Value::U64)
            .map_err(|_| number("whole number of 64 bits")),
        Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => text
            .parse()
            .map(Value::I32)
            .map_err(|_| number("whole number of 32 bits")),
        Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => text
            .parse()
            .map(Value::I64)
            .map_err(|_| number("whole number of 64 bits")),
        Kind::Double => text.parse().map(Value::F64).map_err(|_| number("number")),
        Kind::Float => text.parse().map(Value::F32).map_err(|_| number("number")),
        // The table's test holds that no such field is a parameter.
        Kind::Bytes | Kind::Message(_) | Kind::Enum(_) => {
            Err("cannot be given as a parameter".to_owned())
        }
    }
}

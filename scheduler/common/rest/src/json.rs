//! Messages as proto3 JSON, by reflection.
//!
//! Names are those of the contract (`project_id`), in requests also in lower camel case. 64-bit
//! integers are strings, as proto3 JSON asks for. Fields without presence are always written.

use crate::error::RestError;
use prost_reflect::{DynamicMessage, MessageDescriptor, SerializeOptions};
use serde_json::Value;

/// How prost-reflect words a field that the message does not have. A test holds it.
const UNKNOWN_FIELD: &str = "unrecognized field name '";

/// Reads a message.
///
/// # Errors
/// [`RestError::Body`] with the path of the field that does not fit.
pub(crate) fn read(
    descriptor: MessageDescriptor,
    text: &[u8],
) -> Result<DynamicMessage, RestError> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let mut track = serde_path_to_error::Track::new();
    let reader = serde_path_to_error::Deserializer::new(&mut json, &mut track);
    let read = DynamicMessage::deserialize(descriptor, reader);
    let message = read.map_err(|error| {
        let problem = error.to_string();
        let path = track.path().to_string();
        // `.` is the top, `?` a place that the reader has not reached.
        let parent = path.trim_end_matches('?').trim_end_matches('.');
        let unknown = problem
            .strip_prefix(UNKNOWN_FIELD)
            .and_then(|rest| rest.split_once('\''));
        match unknown {
            Some((name, _)) if parent.is_empty() => body(name, "there is no such field"),
            Some((name, _)) => body(&format!("{parent}.{name}"), "there is no such field"),
            None => body(parent, &problem),
        }
    })?;
    json.end().map_err(|error| body("", &error.to_string()))?;
    Ok(message)
}

fn body(field: &str, problem: &str) -> RestError {
    RestError::Body {
        field: field.to_owned(),
        problem: problem.to_owned(),
    }
}

/// Writes a message. The keys are sorted, so that equal messages give equal bytes.
///
/// # Errors
/// [`RestError::Answer`].
pub(crate) fn write(message: &DynamicMessage) -> Result<Value, RestError> {
    let options = SerializeOptions::new()
        .use_proto_field_name(true)
        .skip_default_fields(false);
    let mut value = message
        .serialize_with_options(serde_json::value::Serializer, &options)
        .map_err(|error| RestError::Answer(error.to_string()))?;
    value.sort_all_objects();
    Ok(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::pool;
    use proptest::prelude::*;
    use serde_json::json;

    fn named(name: &str) -> MessageDescriptor {
        let name = format!("ebbtide.v1.{name}");
        pool().unwrap().get_message_by_name(&name).unwrap()
    }

    fn refused(name: &str, text: &str) -> (String, String) {
        match read(named(name), text.as_bytes()) {
            Err(RestError::Body { field, problem }) => (field, problem),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_unknown_field_is_named_with_its_path() {
        let (field, problem) = refused("CreateServersRequest", r#"{"title": "a"}"#);
        assert_eq!(
            (field.as_str(), problem.as_str()),
            ("title", "there is no such field")
        );
        let (field, _) = refused("CreateServersRequest", r#"{"request": {"flavour": "a"}}"#);
        assert_eq!(field, "request.flavour");
    }

    #[test]
    fn a_value_of_another_type_names_its_field() {
        let text = r#"{"request": {"count": true}}"#;
        let (field, problem) = refused("CreateServersRequest", text);
        assert_eq!(field, "request.count");
        assert!(problem.contains("32-bit unsigned"), "{problem}");
        let text = r#"{"request": {"ignore_hosts": ["a", 1]}}"#;
        let (field, _) = refused("CreateServersRequest", text);
        assert_eq!(field, "request.ignore_hosts[1]");
        let (field, _) = refused("CreateServersRequest", "[]");
        assert_eq!(field, "");
        refused("CreateServersRequest", "{} {}");
        refused("CreateServersRequest", "{");
    }

    #[test]
    fn both_spellings_of_a_name_are_read_and_the_contracts_is_written() {
        for text in [r#"{"projectId": "a"}"#, r#"{"project_id": "a"}"#] {
            let message = read(named("WatchRequest"), text.as_bytes()).unwrap();
            assert_eq!(write(&message).unwrap(), json!({"project_id": "a"}));
        }
    }

    #[test]
    fn a_64_bit_number_is_a_string_and_a_number_is_read_too() {
        let text = r#"{"sequence": 18446744073709551615, "lagged": "7"}"#;
        let message = read(named("WatchEvent"), text.as_bytes()).unwrap();
        let written = write(&message).unwrap();
        // Members of a oneof that are not set are left out, other fields are not.
        let expected = json!({"at": "", "sequence": "18446744073709551615", "lagged": "7"});
        assert_eq!(written, expected);
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in ".{0,60}") {
            let _ = read(named("CreateServersRequest"), text.as_bytes());
        }
    }
}

//! Messages of the API as JSON, by reflection over the contract.
//!
//! The keys are the contract's field names, in the order of the field numbers, all of them on every
//! object: a script can rely on a key being there. Numbers are numbers (64-bit ones too), maps are
//! sorted by key, messages that are not set are `null`; of a `oneof` only the member that is set is
//! written. Nothing here knows any single message, so the JSON cannot drift from the contract.

use ebbtide_proto::v1;
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, MapKey, Value};
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use std::sync::LazyLock;

/// A JSON value that keeps the order of its keys.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// Not set, or a number that JSON cannot write (NaN, infinite).
    Null,
    /// True or false.
    Bool(bool),
    /// Any finite number.
    Number(serde_json::Number),
    /// Text.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// An object, keys in the order in which they are written.
    Object(Vec<(String, Json)>),
}

impl Json {
    /// An object from pairs.
    pub fn object<K: Into<String>>(pairs: impl IntoIterator<Item = (K, Json)>) -> Self {
        Self::Object(pairs.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }

    /// Adds a key at the end of an object; anything else stays as it is.
    #[must_use]
    pub fn with(mut self, key: &str, value: impl Into<Json>) -> Self {
        if let Self::Object(pairs) = &mut self {
            pairs.push((key.to_owned(), value.into()));
        }
        self
    }

    /// Keeps only some keys of an object, or of each object of a list, in the order asked for.
    #[must_use]
    pub fn only(self, keys: &[&str]) -> Self {
        match self {
            Self::Object(pairs) => {
                let find = |key: &&str| pairs.iter().find(|(k, _)| k == key).cloned();
                Self::Object(keys.iter().filter_map(find).collect())
            }
            Self::List(items) => Self::List(items.into_iter().map(|i| i.only(keys)).collect()),
            other => other,
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Json {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<u64> for Json {
    fn from(value: u64) -> Self {
        Self::Number(value.into())
    }
}

impl From<u32> for Json {
    fn from(value: u32) -> Self {
        Self::Number(value.into())
    }
}

impl From<f64> for Json {
    fn from(value: f64) -> Self {
        serde_json::Number::from_f64(value).map_or(Self::Null, Self::Number)
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Self {
        use serde_json::Value as Other;
        match value {
            Other::Null => Self::Null,
            Other::Bool(value) => Self::Bool(value),
            Other::Number(number) => Self::Number(number),
            Other::String(text) => Self::Text(text),
            Other::Array(list) => Self::List(list.into_iter().map(Self::from).collect()),
            Other::Object(pairs) => {
                Self::Object(pairs.into_iter().map(|(k, v)| (k, Self::from(v))).collect())
            }
        }
    }
}

impl From<Vec<Json>> for Json {
    fn from(items: Vec<Json>) -> Self {
        Self::List(items)
    }
}

impl Serialize for Json {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(value) => serializer.serialize_bool(*value),
            Self::Number(value) => value.serialize(serializer),
            Self::Text(value) => serializer.serialize_str(value),
            Self::List(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                items
                    .iter()
                    .try_for_each(|item| list.serialize_element(item))?;
                list.end()
            }
            Self::Object(pairs) => {
                let mut map = serializer.serialize_map(Some(pairs.len()))?;
                pairs
                    .iter()
                    .try_for_each(|(key, value)| map.serialize_entry(key, value))?;
                map.end()
            }
        }
    }
}

/// Any JSON, keys in the order in which they come.
impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyJson)
    }
}

struct AnyJson;

impl<'de> Visitor<'de> for AnyJson {
    type Value = Json;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value.into()))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = entries.next_entry()? {
            pairs.push(pair);
        }
        Ok(Json::Object(pairs))
    }
}

/// A message whose name in the contract is known.
pub trait Contract: prost::Message {
    /// Its full name.
    const NAME: &'static str;
}

macro_rules! contract {
    ($($message:ident),+ $(,)?) => {
        $(impl Contract for v1::$message {
            const NAME: &'static str = concat!("ebbtide.v1.", stringify!($message));
        })+

        #[cfg(test)]
        const NAMES: &[&str] = &[$(<v1::$message as Contract>::NAME),+];
    };
}

contract!(
    Aggregate,
    AuditResponse,
    Decision,
    DisruptionBudget,
    Evacuation,
    Flavor,
    FlavorPrice,
    GetAdviceResponse,
    GetHostResponse,
    Host,
    HostReclaim,
    Life,
    Plugin,
    PriceRecord,
    ReconcileResponse,
    RegionSummaryResponse,
    Server,
    ServerGroup,
    ShadowMove,
    ShadowReportResponse,
    WatchEvent,
);

/// The contract, parsed once.
static POOL: LazyLock<Option<DescriptorPool>> =
    LazyLock::new(|| DescriptorPool::decode(v1::DESCRIPTORS).ok());

/// One message as JSON.
#[must_use]
pub fn message<M: Contract>(message: &M) -> Json {
    let Some(descriptor) = POOL
        .as_ref()
        .and_then(|pool| pool.get_message_by_name(M::NAME))
    else {
        return Json::Null;
    };
    match DynamicMessage::decode(descriptor, message.encode_to_vec().as_slice()) {
        Ok(dynamic) => object(&dynamic),
        Err(_) => Json::Null,
    }
}

/// Several texts as a JSON list.
#[must_use]
pub fn texts(texts: &[String]) -> Json {
    Json::List(texts.iter().map(|text| text.as_str().into()).collect())
}

/// Several messages as a JSON list.
#[must_use]
pub fn list<M: Contract>(messages: &[M]) -> Json {
    Json::List(messages.iter().map(message).collect())
}

fn object(dynamic: &DynamicMessage) -> Json {
    let descriptor = prost_reflect::ReflectMessage::descriptor(dynamic);
    let mut fields: Vec<FieldDescriptor> = descriptor.fields().collect();
    fields.sort_by_key(FieldDescriptor::number);
    let written = fields.iter().filter(|field| {
        let in_oneof = field
            .containing_oneof()
            .is_some_and(|oneof| !oneof.is_synthetic());
        !in_oneof || dynamic.has_field(field)
    });
    Json::object(written.map(|field| {
        let unset = field.supports_presence() && !dynamic.has_field(field);
        let json = if unset {
            Json::Null
        } else {
            value(&dynamic.get_field(field))
        };
        (field.name().to_owned(), json)
    }))
}

fn value(value_: &Value) -> Json {
    match value_ {
        Value::Bool(b) => Json::Bool(*b),
        Value::I32(n) => Json::Number((*n).into()),
        Value::I64(n) => Json::Number((*n).into()),
        Value::U32(n) => Json::Number((*n).into()),
        Value::U64(n) => Json::Number((*n).into()),
        Value::F32(x) => Json::from(f64::from(*x)),
        Value::F64(x) => Json::from(*x),
        Value::String(text) => Json::Text(text.clone()),
        Value::Bytes(bytes) => Json::Text(String::from_utf8_lossy(bytes).into_owned()),
        Value::EnumNumber(n) => Json::Number((*n).into()),
        Value::Message(message) => object(message),
        Value::List(items) => Json::List(items.iter().map(value).collect()),
        Value::Map(entries) => {
            let mut pairs: Vec<(String, Json)> = entries
                .iter()
                .map(|(key, v)| (key_text(key), value(v)))
                .collect();
            pairs.sort_by(|a, b| a.0.cmp(&b.0));
            Json::Object(pairs)
        }
    }
}

fn key_text(key: &MapKey) -> String {
    match key {
        MapKey::Bool(b) => b.to_string(),
        MapKey::I32(n) => n.to_string(),
        MapKey::I64(n) => n.to_string(),
        MapKey::U32(n) => n.to_string(),
        MapKey::U64(n) => n.to_string(),
        MapKey::String(text) => text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(json: &Json) -> String {
        serde_json::to_string(json).unwrap()
    }

    #[test]
    fn every_message_that_is_printed_is_in_the_contract() {
        let pool = POOL.as_ref().expect("the contract does not decode");
        for name in NAMES {
            assert!(pool.get_message_by_name(name).is_some(), "{name}");
        }
    }

    #[test]
    fn keys_are_the_fields_of_the_contract_and_numbers_are_numbers() {
        let flavor = v1::Flavor {
            name: "m1".into(),
            vcpus: 2,
            extra_specs: [("b", "2"), ("a", "1")]
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .into(),
            ..Default::default()
        };
        assert_eq!(
            text(&message(&flavor)),
            r#"{"id":"","name":"m1","vcpus":2,"ram_mb":0,"disk_gb":0,"extra_specs":{"a":"1","b":"2"},"preemptible":false}"#
        );
        let usage = v1::ResourceUsage {
            capacity: u64::MAX,
            free_full: -3,
            ..Default::default()
        };
        let host = v1::Host {
            resources: vec![usage],
            ..Default::default()
        };
        let written = text(&message(&host));
        assert!(
            written.contains(r#""capacity":18446744073709551615"#),
            "{written}"
        );
        assert!(written.contains(r#""free_full":-3"#), "{written}");
    }

    #[test]
    fn what_is_not_set_is_null_and_of_a_oneof_only_one_is_written() {
        let decision = v1::Decision::default();
        assert!(text(&message(&decision)).contains(r#""no_valid_host":null"#));
        let event = v1::WatchEvent {
            at: "t".into(),
            sequence: 7,
            event: Some(v1::watch_event::Event::Lagged(3)),
        };
        assert_eq!(
            text(&message(&event)),
            r#"{"at":"t","sequence":7,"lagged":3}"#
        );
    }
}

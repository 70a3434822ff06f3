//! Every captured message is understood, and what we would say in its place is the same.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::collections::BTreeMap;
use std::fmt;
use std::io::Read;
use std::sync::OnceLock;

use flate2::read::GzDecoder;
use oslo_messaging::Map;
use oslo_messaging::wire::{
    NotificationFields, Properties, RequestFields, decode_reply, decode_request, encode_failure,
    encode_heartbeat, encode_notification, encode_request, encode_result, open, to_python_json,
};
use proptest::prelude::*;
use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

const LIMIT: usize = 16 << 20;

/// JSON that keeps the order of its keys, to compare bytes.
#[derive(Clone, Debug)]
enum Ordered {
    Scalar(Value),
    List(Vec<Ordered>),
    Object(Vec<(String, Ordered)>),
}

impl<'de> Deserialize<'de> for Ordered {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Read;
        impl<'de> Visitor<'de> for Read {
            type Value = Ordered;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("JSON")
            }
            fn visit_unit<E>(self) -> Result<Ordered, E> {
                Ok(Ordered::Scalar(Value::Null))
            }
            fn visit_bool<E>(self, v: bool) -> Result<Ordered, E> {
                Ok(Ordered::Scalar(v.into()))
            }
            fn visit_i64<E>(self, v: i64) -> Result<Ordered, E> {
                Ok(Ordered::Scalar(v.into()))
            }
            fn visit_u64<E>(self, v: u64) -> Result<Ordered, E> {
                Ok(Ordered::Scalar(v.into()))
            }
            fn visit_f64<E>(self, v: f64) -> Result<Ordered, E> {
                Ok(Ordered::Scalar(v.into()))
            }
            fn visit_str<E>(self, v: &str) -> Result<Ordered, E> {
                Ok(Ordered::Scalar(v.into()))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Ordered, A::Error> {
                let mut list = Vec::new();
                while let Some(item) = seq.next_element()? {
                    list.push(item);
                }
                Ok(Ordered::List(list))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ordered, A::Error> {
                let mut object = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    object.push(entry);
                }
                Ok(Ordered::Object(object))
            }
        }
        deserializer.deserialize_any(Read)
    }
}

impl Serialize for Ordered {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Scalar(value) => value.serialize(serializer),
            Self::List(list) => list.serialize(serializer),
            Self::Object(object) => {
                let mut map = serializer.serialize_map(Some(object.len()))?;
                for (key, value) in object {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}

impl Ordered {
    fn get(&self, key: &str) -> &Self {
        let Self::Object(object) = self else {
            panic!("{key} of something that is no object")
        };
        &object.iter().find(|(name, _)| name == key).unwrap().1
    }
}

#[derive(serde::Deserialize)]
struct Message {
    scenario: String,
    seq: u32,
    what: String,
    exchange: String,
    routing_key: String,
    properties: Map,
    body: String,
}

impl Message {
    fn name(&self) -> String {
        format!("{} #{} ({})", self.scenario, self.seq, self.what)
    }

    fn opened(&self) -> Map {
        open(self.body.as_bytes(), json(), LIMIT).unwrap()
    }
}

fn json() -> Properties<'static> {
    Properties {
        content_type: Some("application/json"),
        compression: None,
    }
}

fn unpack(name: &str) -> String {
    let path = format!("{}/tests/vectors/{name}", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    text
}

fn messages() -> Vec<Message> {
    unpack("messages.jsonl.gz")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn text<'a>(message: &'a Map, key: &str) -> &'a str {
    message[key].as_str().unwrap()
}

#[test]
fn every_captured_message_is_decoded_and_encoded_again_to_the_same() {
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for message in messages() {
        let kind = if message.routing_key.starts_with("reply_") {
            reply(&message)
        } else if message.routing_key.contains("notifications.") {
            notification(&message)
        } else {
            request(&message)
        };
        *kinds.entry(kind).or_default() += 1;
    }
    // What the captures hold; none may be passed over.
    let expected = [
        "call",
        "cast",
        "failure",
        "heartbeat",
        "notification",
        "result",
    ];
    assert_eq!(kinds.keys().copied().collect::<Vec<_>>(), expected);
    assert_eq!(kinds["heartbeat"], 2);
    assert!(kinds.values().sum::<usize>() > 100, "{kinds:?}");
}

/// Replies are equal byte for byte.
fn reply(message: &Message) -> &'static str {
    assert_eq!(message.exchange, "", "{}", message.name());
    let reply = decode_reply(message.body.as_bytes(), json(), LIMIT).unwrap();
    let unique_id = reply.unique_id.as_deref().unwrap();
    let (kind, encoded) = match &reply.failure {
        Some(failure) => {
            // The order of the keyword arguments is Python's; ours is sorted. Everything else is
            // compared as bytes.
            let sorted = sort_kwargs(&message.body);
            let encoded = encode_failure(failure, &reply.message_id, unique_id).unwrap();
            assert_eq!(
                String::from_utf8(encoded).unwrap(),
                sorted,
                "{}",
                message.name()
            );
            return "failure";
        }
        None if !reply.ending => (
            "heartbeat",
            encode_heartbeat(&reply.message_id, unique_id).unwrap(),
        ),
        None => {
            let inner: Ordered = serde_json::from_str(&inner(&message.body)).unwrap();
            let result = inner.get("result");
            (
                "result",
                encode_result(result, &reply.message_id, unique_id).unwrap(),
            )
        }
    };
    assert_eq!(
        String::from_utf8(encoded).unwrap(),
        message.body,
        "{}",
        message.name()
    );
    kind
}

fn inner(body: &str) -> String {
    let outer: Value = serde_json::from_str(body).unwrap();
    outer["oslo.message"].as_str().unwrap().to_owned()
}

fn sort_kwargs(body: &str) -> String {
    let message: Ordered = serde_json::from_str(&inner(body)).unwrap();
    let Ordered::Scalar(Value::String(failure)) = message.get("failure") else {
        panic!("no failure")
    };
    let Ordered::Object(mut fields) = serde_json::from_str(failure).unwrap() else {
        panic!("no object")
    };
    for (key, value) in &mut fields {
        if key == "kwargs" {
            let Ordered::Object(kwargs) = value else {
                panic!("no object")
            };
            kwargs.sort_by(|a, b| a.0.cmp(&b.0));
        }
    }
    let failure = to_python_json(&Ordered::Object(fields)).unwrap();
    let Ordered::Object(mut message) = message else {
        panic!("no object")
    };
    for (key, value) in &mut message {
        if key == "failure" {
            *value = Ordered::Scalar(failure.clone().into());
        }
    }
    let message = to_python_json(&Ordered::Object(message)).unwrap();
    let envelope = [("oslo.version", "2.0"), ("oslo.message", message.as_str())]
        .map(|(k, v)| (k.to_owned(), Ordered::Scalar(v.into())));
    to_python_json(&Ordered::Object(envelope.to_vec())).unwrap()
}

/// Requests are equal as JSON, and in the order of the keys up to the context.
fn request(message: &Message) -> &'static str {
    let request = decode_request(message.body.as_bytes(), json(), LIMIT)
        .unwrap_or_else(|bad| panic!("{}: {}", message.name(), bad.error));
    let reply_to = request
        .reply_to
        .as_ref()
        .map(|to| (to.message_id.as_str(), to.queue.as_str()));
    let encoded = encode_request(&RequestFields {
        method: &request.method,
        args: &request.args,
        namespace: request.namespace.as_deref(),
        version: request.version.as_deref(),
        reply_to,
        call_monitor_timeout: request.call_monitor_timeout,
        unique_id: request.unique_id.as_deref().unwrap(),
        context: &request.context,
    })
    .unwrap();
    assert_eq!(
        open(&encoded, json(), LIMIT).unwrap(),
        message.opened(),
        "{}",
        message.name()
    );
    let order = |body: &str| -> Vec<String> {
        let Ordered::Object(fields) = serde_json::from_str(&inner(body)).unwrap() else {
            panic!("no object")
        };
        let keys = fields.into_iter().map(|(key, _)| key);
        keys.filter(|key| !key.starts_with("_context_")).collect()
    };
    assert_eq!(
        order(std::str::from_utf8(&encoded).unwrap()),
        order(&message.body)
    );
    if reply_to.is_some() {
        assert!(
            message.properties["expiration"]
                .as_str()
                .unwrap()
                .parse::<u64>()
                .unwrap()
                >= 1000
        );
        "call"
    } else {
        "cast"
    }
}

fn notification(message: &Message) -> &'static str {
    let sent = message.opened();
    let context: Map = sent
        .iter()
        .filter_map(|(key, value)| Some((key.strip_prefix("_context_")?.to_owned(), value.clone())))
        .collect();
    let encoded = encode_notification(
        &NotificationFields {
            message_id: text(&sent, "message_id"),
            publisher_id: text(&sent, "publisher_id"),
            event_type: text(&sent, "event_type"),
            priority: text(&sent, "priority"),
            payload: &sent["payload"],
            timestamp: text(&sent, "timestamp"),
            unique_id: text(&sent, "_unique_id"),
            context: &context,
        },
        true,
    )
    .unwrap();
    assert_eq!(
        open(&encoded, json(), LIMIT).unwrap(),
        sent,
        "{}",
        message.name()
    );
    "notification"
}

#[test]
fn captured_failures_have_the_class_that_the_conductor_looks_for() {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for message in messages() {
        if !message.routing_key.starts_with("reply_") {
            continue;
        }
        let reply = decode_reply(message.body.as_bytes(), json(), LIMIT).unwrap();
        if let Some(failure) = reply.failure {
            assert!(failure.traceback.len() >= 2);
            seen.insert(
                message.scenario,
                format!("{}.{}", failure.module, failure.class),
            );
        }
    }
    assert_eq!(
        seen["09-boot-novalidhost-placement"],
        "nova.exception.NoValidHost"
    );
    assert_eq!(
        seen["29-rpc-unknown-method"],
        "oslo_messaging.rpc.dispatcher.NoSuchMethod"
    );
    assert_eq!(
        seen["28-rpc-unsupported-minor"],
        "oslo_messaging.rpc.dispatcher.UnsupportedVersion"
    );
    assert_eq!(seen["30-rpc-bad-arguments"], "builtins.TypeError");
}

/// JSON-like rubbish around the keys that mean something.
fn almost_a_message() -> impl Strategy<Value = String> {
    let key = prop::sample::select(vec![
        "oslo.version",
        "oslo.message",
        "method",
        "args",
        "namespace",
        "version",
        "_msg_id",
        "_reply_q",
        "_timeout",
        "_unique_id",
        "_context_x",
        "failure",
        "result",
        "ending",
    ]);
    let scalar = prop::sample::select(vec![
        "null",
        "true",
        "\"2.0\"",
        "\"\"",
        "1e999",
        "-1",
        "{}",
        "[]",
        "\"{\\\"method\\\": 1}\"",
        "\"{\\\"_msg_id\\\": \\\"i\\\"}\"",
        "NaN",
        "\"\\ud800\"",
    ]);
    prop::collection::vec((key, scalar), 0..8).prop_map(|pairs| {
        let inside: Vec<String> = pairs.iter().map(|(k, v)| format!("\"{k}\": {v}")).collect();
        format!("{{{}}}", inside.join(", "))
    })
}

proptest! {
    #[test]
    fn no_bytes_make_the_decoder_panic(body in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = decode_request(&body, json(), 200);
        let _ = decode_reply(&body, Properties::default(), 200);
        let _ = decode_reply(&body, Properties { content_type: None, compression: Some("application/x-gzip") }, 200);
    }

    #[test]
    fn no_rubbish_in_the_right_places_makes_the_decoder_panic(inside in almost_a_message(), version in "[0-9.]{0,4}") {
        let _ = decode_request(inside.as_bytes(), json(), LIMIT);
        let _ = decode_reply(inside.as_bytes(), json(), LIMIT);
        let sealed = serde_json::json!({"oslo.version": version, "oslo.message": inside}).to_string();
        let _ = decode_request(sealed.as_bytes(), json(), LIMIT);
        let _ = decode_reply(sealed.as_bytes(), json(), LIMIT);
    }

    #[test]
    fn a_captured_message_with_a_wrong_byte_is_refused_or_read_but_never_a_panic(at: prop::sample::Index, byte: u8, cut: prop::sample::Index) {
        static FIRST: OnceLock<String> = OnceLock::new();
        let mut body = FIRST.get_or_init(|| messages().swap_remove(0).body).clone().into_bytes();
        let place = at.index(body.len());
        body[place] = byte;
        let _ = decode_request(&body, json(), LIMIT);
        body.truncate(cut.index(body.len()));
        prop_assert!(decode_request(&body, json(), LIMIT).is_err(), "half a message was taken for a whole one");
    }
}

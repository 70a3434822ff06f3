//! The many small texts that come in columns, fields and options. The first byte says as what the
//! rest is read; what is written of it is read as the same.

use ebbtide_model::{
    EvacuationState, GroupPolicy, InterruptionBehaviour, Money, ResourceClass, ServerStatus,
    Timestamp, Trait,
};
use ebbtide_nova::image::cpu_spec;
use ebbtide_nova::python::datetime;
use ebbtide_nova::python::{Value, json, number};
use std::fmt::{Debug, Display};
use std::str::FromStr;

fn round<T: FromStr + Display + PartialEq + Debug>(text: &str)
where
    T::Err: Debug,
{
    if let Ok(read) = text.parse::<T>() {
        let again = read.to_string().parse::<T>();
        assert_eq!(again.expect("its own text"), read);
    }
}

pub(super) fn run(bytes: &[u8]) {
    let Some((kind, rest)) = bytes.split_first() else {
        return;
    };
    let Ok(text) = std::str::from_utf8(rest) else {
        return;
    };
    match kind % 8 {
        0 => round::<Timestamp>(text),
        1 => round::<Money>(text),
        2 => {
            round::<ResourceClass>(text);
            round::<Trait>(text);
            round::<GroupPolicy>(text);
            round::<ServerStatus>(text);
            round::<EvacuationState>(text);
            round::<InterruptionBehaviour>(text);
        }
        3 => {
            round::<ebbtide_openstack::Microversion>(text);
            round::<oslo_messaging::RpcVersion>(text);
        }
        4 => {
            let _ = datetime::read(text);
        }
        5 => {
            if let Ok(cpus) = cpu_spec(text) {
                assert!(cpus.len() <= 1 << 21, "{} CPUs", cpus.len());
            }
        }
        6 => {
            let _ = number::float(text);
            let _ = number::int(text);
        }
        _ => python_json(text),
    }
}

/// Python's JSON: whatever `serde_json` takes, Python takes, and finds the same in it.
fn python_json(text: &str) {
    let ours = json::loads(text);
    let Ok(theirs) = serde_json::from_str::<serde_json::Value>(text) else {
        return;
    };
    let ours = ours.expect("JSON");
    match (&ours, &theirs) {
        (Value::List(ours), serde_json::Value::Array(theirs)) => {
            assert_eq!(ours.len(), theirs.len());
        }
        (Value::Str(ours), serde_json::Value::String(theirs)) => assert_eq!(ours, theirs),
        (Value::Dict(_), serde_json::Value::Object(_)) => {}
        (Value::Bool(ours), serde_json::Value::Bool(theirs)) => assert_eq!(ours, theirs),
        (Value::None, serde_json::Value::Null) => {}
        (Value::Float(ours), serde_json::Value::Number(theirs)) => {
            assert_eq!(Some(ours.to_bits()), theirs.as_f64().map(f64::to_bits));
        }
        (Value::Int(ours), serde_json::Value::Number(theirs)) => {
            assert!(theirs.as_i128() == Some(*ours) || theirs.is_f64());
        }
        (ours, theirs) => panic!("{ours:?} for {theirs:?}"),
    }
}

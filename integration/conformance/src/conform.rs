//! Whether an answer is the oracle's.
//!
//! Compared is everything that the oracle defines: text and whole numbers as they are, floats to
//! the bit (-0.0 is not 0.0). Left out are messages of errors; the order of hosts where a total is
//! NaN, which Python's sort leaves open; and what follows from `random` where it had more than one
//! host to choose from. Of several availability zones of a host any is good.

use ebbtide_nova::python::{Dict, Value};

/// One place where two answers differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerDifference {
    /// What is compared, for counting: `order`, `isolated.ComputeFilter`, `schedule.claims`, …
    pub field: String,
    /// Where exactly.
    pub path: String,
    /// The oracle's, as text.
    pub expected: String,
    /// Ours, as text.
    pub ours: String,
}

/// What stands for something that is not there.
const NOTHING: &str = "(nothing)";
/// Longest text of a value that is shown.
const SHOWN: usize = 200;

/// Compares an answer with the oracle's.
#[must_use]
pub fn compare(expected: &Dict<Value>, ours: &Dict<Value>) -> Vec<AnswerDifference> {
    let mut found = Vec::new();
    let open_order = expected.contains_key("nan_total") && ours.contains_key("nan_total");
    let by_chance = |schedule: &Value| match schedule {
        Value::Dict(schedule) => schedule.contains_key("by_chance"),
        _ => false,
    };
    let chance = ours.get("schedule").is_some_and(by_chance);
    for name in keys(expected, ours) {
        let skipped = match name.as_str() {
            "order" | "choosable" => open_order,
            "schedule" => chance,
            _ => false,
        };
        if skipped {
            continue;
        }
        let (theirs, own) = (expected.get(&name), ours.get(&name));
        match (name.as_str(), theirs, own) {
            (
                "isolated" | "weighers" | "schedule" | "placement",
                Some(Value::Dict(theirs)),
                Some(Value::Dict(own)),
            ) => {
                for part in keys(theirs, own) {
                    let field = format!("{name}.{part}");
                    let (theirs, own) = (theirs.get(&part), own.get(&part));
                    different(&field, &field, theirs, own, &mut found);
                }
            }
            _ => different(&name, &name, theirs, own, &mut found),
        }
    }
    found
}

fn keys(left: &Dict<Value>, right: &Dict<Value>) -> Vec<String> {
    let mut keys: Vec<String> = left.keys().cloned().collect();
    keys.extend(right.keys().filter(|key| !left.contains_key(key)).cloned());
    keys
}

fn different(
    field: &str,
    path: &str,
    expected: Option<&Value>,
    ours: Option<&Value>,
    found: &mut Vec<AnswerDifference>,
) {
    match (expected, ours) {
        (Some(Value::Dict(left)), Some(Value::Dict(right))) => {
            for key in keys(left, right).iter().filter(|key| *key != "msg") {
                let path = format!("{path}.{key}");
                different(field, &path, left.get(key), right.get(key), found);
            }
        }
        (Some(Value::List(left)), Some(Value::List(right))) => {
            if left.len() == right.len() {
                for (at, (left, right)) in left.iter().zip(right).enumerate() {
                    different(
                        field,
                        &format!("{path}[{at}]"),
                        Some(left),
                        Some(right),
                        found,
                    );
                }
            } else {
                push(field, path, expected, ours, found);
            }
        }
        // A host that is in several zones: Nova takes one of them by the order of a set.
        (Some(one), Some(Value::List(zones))) if path.ends_with(".az") => {
            if !zones.iter().any(|zone| same(one, zone)) {
                push(field, path, expected, ours, found);
            }
        }
        // The oracle writes a list whose entries are all equal as one of them; only our lists of
        // numbers meet a single number.
        (Some(one), Some(Value::List(many))) if !matches!(one, Value::Dict(_)) => {
            for (at, own) in many.iter().enumerate() {
                different(field, &format!("{path}[{at}]"), Some(one), Some(own), found);
            }
        }
        (Some(left), Some(right)) if same(left, right) => {}
        (None, None) => {}
        _ => push(field, path, expected, ours, found),
    }
}

fn push(
    field: &str,
    path: &str,
    expected: Option<&Value>,
    ours: Option<&Value>,
    found: &mut Vec<AnswerDifference>,
) {
    let text = |value: Option<&Value>| match value {
        None => NOTHING.to_owned(),
        Some(value) => {
            let text = value.repr();
            match text.char_indices().nth(SHOWN) {
                None => text,
                Some((end, _)) => format!("{}…", &text[..end]),
            }
        }
    };
    found.push(AnswerDifference {
        field: field.to_owned(),
        path: path.to_owned(),
        expected: text(expected),
        ours: text(ours),
    });
}

/// Floats to the bit; a whole number is the float of the same size.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Float(left), Value::Float(right)) => left.to_bits() == right.to_bits(),
        (Value::Int(left), Value::Float(right)) | (Value::Float(right), Value::Int(left)) => {
            (*left as f64).to_bits() == right.to_bits()
        }
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Bool(_), _) | (_, Value::Bool(_)) => false,
        _ => left.equals(right),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_nova::python::json::loads;

    fn differences(expected: &str, ours: &str) -> Vec<String> {
        let (Ok(Value::Dict(expected)), Ok(Value::Dict(ours))) = (loads(expected), loads(ours))
        else {
            panic!("not two objects");
        };
        compare(&expected, &ours)
            .into_iter()
            .map(|d| format!("{} {} {} {}", d.field, d.path, d.expected, d.ours))
            .collect()
    }

    #[test]
    fn floats_are_compared_to_the_bit_and_one_number_may_stand_for_many() {
        let ours = r#"{"weighers":{"W":{"raw":[0.0,0.0]}}}"#;
        assert!(differences(r#"{"weighers":{"W":{"raw":0}}}"#, ours).is_empty());
        assert_eq!(
            differences(r#"{"weighers":{"W":{"raw":-0.0}}}"#, ours)[0],
            "weighers.W weighers.W.raw[0] -0.0 0.0"
        );
        assert_eq!(
            differences(r#"{"total":[0.1]}"#, r#"{"total":[0.10000000000000002]}"#).len(),
            1
        );
    }

    #[test]
    fn messages_and_what_chance_decides_are_left_out() {
        let expected = r#"{"error":{"type":"ValueError","msg":"a"},"schedule":{"claims":[1]}}"#;
        let ours = r#"{"error":{"type":"ValueError","msg":"b"},"schedule":{"claims":[],"by_chance":true}}"#;
        assert!(differences(expected, ours).is_empty());
        let theirs = r#"{"nan_total":true,"order":[0,1],"total":["NaN"]}"#;
        let open = r#"{"nan_total":true,"order":[1,0],"total":["NaN"]}"#;
        assert!(differences(theirs, open).is_empty());
    }

    #[test]
    fn of_several_zones_any_is_good_but_no_other() {
        let ours = r#"{"selections":[[{"az":["az1","az2"]}]]}"#;
        assert!(differences(r#"{"selections":[[{"az":"az2"}]]}"#, ours).is_empty());
        assert_eq!(
            differences(r#"{"selections":[[{"az":"az3"}]]}"#, ours).len(),
            1
        );
    }

    #[test]
    fn what_one_side_lacks_is_a_difference() {
        assert_eq!(differences(r#"{"a":1}"#, "{}"), ["a a 1 (nothing)"]);
        assert_eq!(differences("{}", r#"{"a":true}"#), ["a a (nothing) True"]);
        assert_eq!(differences(r#"{"a":1}"#, r#"{"a":true}"#).len(), 1);
        assert_eq!(differences(r#"{"a":[1,2]}"#, r#"{"a":[1]}"#).len(), 1);
    }
}

//! What differs between two readings of a configuration.

use super::{Applies, Key};
use serde_json::Value;

/// The paths of changed values that only a restart applies, in alphabetical order. A path that no
/// key declares applies at a restart. Lists are compared as a whole. Only names are given: a value
/// may be a secret.
#[must_use]
pub fn changes_for_next_start(before: &Value, after: &Value, keys: &[Key]) -> Vec<String> {
    let mut paths = Vec::new();
    collect("", before, after, &mut paths);
    paths.retain(|path| !applies_on_sighup(path, keys));
    paths.sort_unstable();
    paths
}

fn collect(path: &str, before: &Value, after: &Value, changed: &mut Vec<String>) {
    if before == after {
        return;
    }
    let none = serde_json::Map::new();
    let (before, after) = match (before, after) {
        (Value::Object(before), Value::Object(after)) => (before, after),
        // A table that is there in one of them only.
        (Value::Object(before), Value::Null) => (before, &none),
        (Value::Null, Value::Object(after)) => (&none, after),
        _ => return changed.push(path.to_owned()),
    };
    let added = after.keys().filter(|name| !before.contains_key(*name));
    for name in before.keys().chain(added) {
        let below = match path {
            "" => name.clone(),
            path => format!("{path}.{name}"),
        };
        let value = |table: &serde_json::Map<String, Value>| {
            table.get(name).cloned().unwrap_or(Value::Null)
        };
        collect(&below, &value(before), &value(after), changed);
    }
}

fn applies_on_sighup(path: &str, keys: &[Key]) -> bool {
    let rows = format!("{path}[].");
    let of_path = |key: &&Key| key.path == path || key.path.starts_with(&rows);
    let declared = keys.iter().find(of_path).or_else(|| {
        let within = keys
            .iter()
            .filter(|key| path.starts_with(&format!("{}.", key.path)));
        within.max_by_key(|key| key.path.len())
    });
    declared.is_some_and(|key| key.applies == Applies::Sighup)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{Setting, Shape, Type};
    use serde_json::json;

    crate::settings! {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Part: Default {
            /// A name.
            name: String = String::new() => key("a");
        }
    }

    crate::settings! {
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        struct Whole: Default {
            /// Where it is.
            url: String = String::new() => key("x").secret().sighup();
            /// How many.
            most: u32 = 1 => key("2");
            /// Some.
            parts: Vec<Part> = Vec::new() => section().sighup();
            /// One.
            part: Part = Part::default();
        }
    }

    #[test]
    fn what_a_restart_applies_is_named_without_its_value() {
        let Shape::Section(keys) = Whole::shape() else {
            panic!("no section: {:?}", Type::Text);
        };
        let before = json!({"url": "a", "most": 1, "parts": [], "part": {"name": "x"}});
        let after = json!({"url": "b", "most": 2, "parts": [{"name": "y"}], "own": {"k": 1}});
        let names = changes_for_next_start(&before, &after, &keys());
        assert_eq!(names, ["most", "own.k", "part.name"]);
        assert!(changes_for_next_start(&before, &before, &keys()).is_empty());
    }
}

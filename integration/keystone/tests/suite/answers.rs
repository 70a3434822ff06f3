//! Recorded answers of a real Keystone, and what they are read as.
//!
//! `EBBTIDE_RECORD=1 cargo nextest run -p ebbtide-keystone a_real_keystone` records them anew.

use ebbtide_keystone::{AccessPolicy, ApiRole, Scope, ValidatedToken};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

const FILE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/recorded/keystone-22.json"
);

fn recorded() -> BTreeMap<String, Value> {
    serde_json::from_str(&std::fs::read_to_string(FILE).unwrap()).unwrap()
}

/// Every path through objects and lists, without the values.
fn shape(value: &Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                shape(field, &format!("{path}/{name}"), into);
            }
        }
        Value::Array(items) => {
            for item in items {
                shape(item, &format!("{path}/*"), into);
            }
        }
        _ => {
            into.insert(path.to_owned());
        }
    }
}

/// The recorded answers have the form of those of the Keystone that runs.
pub(crate) fn compare_or_record(real: &BTreeMap<String, Value>) {
    if std::env::var_os("EBBTIDE_RECORD").is_some() {
        let text = serde_json::to_string_pretty(real).unwrap();
        std::fs::write(FILE, text + "\n").unwrap();
    }
    let recorded = recorded();
    assert!(recorded.keys().eq(real.keys()));
    for (name, answer) in real {
        let (mut seen, mut known) = (BTreeSet::new(), BTreeSet::new());
        shape(answer, "", &mut seen);
        shape(&recorded[name], "", &mut known);
        assert_eq!(seen, known, "{name}");
        assert_eq!(answer["status"], recorded[name]["status"], "{name}");
    }
}

fn token(name: &str) -> ValidatedToken {
    let answer = recorded()[name]["body"].clone();
    ValidatedToken::from_answer(answer, &["preemption"]).unwrap()
}

#[test]
fn recorded_tokens_are_read_with_scope_and_role() {
    assert_eq!(
        AccessPolicy::default().api_role(&token("member")),
        Ok(ApiRole::ProjectMember)
    );
    assert_eq!(
        AccessPolicy::default().api_role(&token("admin")),
        Ok(ApiRole::Admin)
    );
    assert_eq!(token("system").scope, Scope::System);
    assert_eq!(
        AccessPolicy::default().api_role(&token("system")),
        Ok(ApiRole::Admin)
    );
    assert_eq!(token("unscoped").scope, Scope::Unscoped);
    assert!(token("member").catalog.unwrap().has("preemption"));
}

#[test]
fn recorded_application_credentials_have_their_access_rules() {
    let rules = |name| token(name).application_credential.unwrap().access_rules;
    let restricted = rules("restricted").unwrap();
    assert!(restricted[0].allows("preemption", "GET", "/v1/servers/a"));
    assert_eq!(rules("free"), None);
}

#[test]
fn a_recorded_refusal_is_no_token() {
    let revoked = recorded()["revoked"].clone();
    assert_eq!(revoked["status"], 404);
    assert!(ValidatedToken::from_answer(revoked["body"].clone(), &[]).is_err());
}

//! What tenants hand in.

use ebbtide_batch::{MemberId, Work};
use serde_json::{Value, json};

fn refused(document: &Value, key: &str) {
    let error = Work::read(document).unwrap_err();
    assert_eq!(error.code(), "EB-BATCH-002");
    assert!(error.to_string().contains(key), "{error}: {key}");
}

#[test]
fn a_sweep_has_a_member_for_each_combination() {
    let work = Work::read(&json!({"name": "sweep", "dir": "/d", "command": "true",
        "parameters": {"ALPHA": [1, 2.5], "MODE": ["fast", "slow", "exact"]}}))
    .unwrap();
    assert_eq!(work.members().count(), 6);
    let last = &work.stages[0].members[5];
    assert_eq!(
        (last["ALPHA"].as_str(), last["MODE"].as_str()),
        ("2.5", "exact")
    );
    assert_eq!(work.member_name(MemberId { stage: 0, index: 5 }), "main.5");
}

#[test]
fn what_is_not_understood_is_refused_with_its_key() {
    let good = json!({"name": "w", "dir": "/d", "command": "true"});
    Work::read(&good).unwrap();
    let with = |key: &str, value: Value| {
        let mut document = good.clone();
        document[key] = value;
        document
    };
    refused(&with("name", json!("a b")), "name");
    refused(&with("dir", json!("relative")), "dir");
    refused(&with("dir", json!("/it's")), "dir");
    refused(&with("deadline", json!("0s")), "deadline");
    refused(&with("count", json!(0)), "count");
    refused(&with("cpus", json!(0)), "cpus");
    refused(&with("odd", json!(1)), "odd");
    refused(&with("command", json!(" ")), "command");
    refused(&with("checkpoint", json!({})), "checkpoint");
    refused(
        &with("checkpoint", json!({"criu": true, "command": "x"})),
        "checkpoint",
    );
    refused(&with("stages", json!([{"command": "true"}])), "command");
    refused(&with("parameters", json!({"PATH": ["x"]})), "PATH");
    refused(
        &with("parameters", json!({"EBBTIDE_STAGE": ["x"]})),
        "EBBTIDE_STAGE",
    );
    refused(&with("parameters", json!({"A": []})), "A");
    refused(&with("parameters", json!({"A": ["x\ny"]})), "one line");
    refused(&json!({"name": "w", "dir": "/d"}), "stages");
    let stages = json!({"name": "w", "dir": "/d", "stages": [
        {"name": "b", "command": "true", "after": ["a"]}, {"name": "a", "command": "true"}]});
    refused(&stages, "stages.b.after");
}

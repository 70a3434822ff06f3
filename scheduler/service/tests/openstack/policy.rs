//! The operator's policy file, with tokens of a real Keystone.

use super::kit::OpenStack;
use crate::curl::{HttpAnswer, ask};
use std::time::Duration;

fn refusal(answer: &HttpAnswer) -> (u16, String) {
    let problem = answer.json();
    let code = problem["code"].as_str();
    (answer.status, code.unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_policy_file_opens_and_closes_calls_without_a_restart() {
    let cloud = OpenStack::start("").await;
    let reader = cloud.keystone.token_of("rita").await;
    let member = cloud.keystone.token_of("ada").await;
    let get = async |token: &str, path: &str| refusal(&ask(&cloud, token, path, &[]).await);
    let forbidden = || (403, "EB-ACCESS-004".to_owned());
    let allowed = || (200, String::new());
    assert_eq!(get(&reader, "/v1/servers").await, allowed());
    assert_eq!(get(&reader, "/v1/hosts").await, forbidden());

    let rules = "preemption:ListServers: role:member\n\
                 preemption:ListHosts: role:reader and not role:member\n";
    std::fs::write(&cloud.policy, rules).unwrap();
    let obeyed = async || match get(&reader, "/v1/hosts").await {
        answer if answer == allowed() => Ok(()),
        answer => Err(format!("{answer:?}")),
    };
    ebbtide_harness::eventually(Duration::from_secs(60), obeyed).await;
    assert_eq!(get(&reader, "/v1/servers").await, forbidden());
    assert_eq!(get(&member, "/v1/servers").await, allowed());
    assert_eq!(get(&member, "/v1/hosts").await, forbidden());

    // Who sees all projects: here the token of an admin no longer does.
    let rules = "preemption:admin: \"!\"\npreemption:global_reader: role:admin\n\
                 preemption:change: rule:preemption:admin\n";
    std::fs::write(&cloud.policy, rules).unwrap();
    let admin = &cloud.keystone.admin;
    let taken = async || {
        let group = "{\"name\": \"g\", \"policy\": \"affinity\"}";
        let made = ask(&cloud, admin, "/v1/server-groups", &["--json", group]).await;
        match refusal(&made) {
            answer if answer == forbidden() => Ok(()),
            answer => Err(format!("{answer:?}")),
        }
    };
    ebbtide_harness::eventually(Duration::from_secs(60), taken).await;
    assert_eq!(get(admin, "/v1/hosts").await, allowed());
    cloud.end().await;
}

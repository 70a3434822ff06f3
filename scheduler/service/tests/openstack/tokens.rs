//! Tokens of a real Keystone: who they admit, and what happens without it.

use super::kit::{OpenStack, server};
use crate::curl::{HttpAnswer, ask};
use serde_json::json;
use std::time::Duration;

fn refusal(answer: &HttpAnswer) -> (u16, String) {
    let problem = answer.json();
    let code = problem["code"].as_str();
    (answer.status, code.unwrap_or_default().to_owned())
}

async fn servers(cloud: &OpenStack, token: &str) -> (u16, String) {
    refusal(&ask(cloud, token, "/v1/servers", &[]).await)
}

/// One test, because a start of Keystone takes seconds.
#[tokio::test]
async fn tokens_are_taken_for_what_they_are() {
    // A second, so that a revocation is seen in time.
    let cloud = OpenStack::start("token_cache_time = 1").await;
    let keystone = &cloud.keystone;

    let none = ask(&cloud, "", "/v1/servers", &[]).await;
    assert_eq!(refusal(&none), (401, "EB-KEYSTONE-002".to_owned()));
    let challenge = format!("keystone uri=\"{}\"", keystone.url());
    assert_eq!(none.header("www-authenticate"), Some(challenge.as_str()));

    let foreign = servers(&cloud, "gAAAAABnot-a-token-of-this-cloud").await;
    assert_eq!(foreign, (401, "EB-KEYSTONE-004".to_owned()));
    let odd = ["--header", "authorization: Basic YTpi"];
    let odd = ask(&cloud, "", "/v1/servers", &odd).await;
    assert_eq!(refusal(&odd), (401, "EB-KEYSTONE-002".to_owned()));
    let unscoped = keystone.log_in("eve", json!("unscoped")).await;
    assert_eq!(
        servers(&cloud, &unscoped).await,
        (403, "EB-KEYSTONE-006".to_owned())
    );
    // Another service of the cloud has the role `service` alone.
    let project = json!({"project": {"name": "service", "domain": {"id": "default"}}});
    let service = keystone.log_in("nova", project).await;
    assert_eq!(
        servers(&cloud, &service).await,
        (403, "EB-KEYSTONE-013".to_owned())
    );

    let member = keystone.token_of("ada").await;
    assert_eq!(servers(&cloud, &member).await.0, 200);
    let header = format!("x-auth-token: {member}");
    let answer = ask(&cloud, "", "/v1/servers", &["--header", &header]).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let system = keystone
        .log_in("admin", json!({"system": {"all": true}}))
        .await;
    let hosts = ask(&cloud, &system, "/v1/hosts", &[]).await;
    assert_eq!(hosts.status, 200, "{}", hosts.body);

    keystone.revoke(&member).await;
    tokio::time::sleep(Duration::from_millis(1_100)).await; // The cache time, which is a promise.
    assert_eq!(
        servers(&cloud, &member).await,
        (401, "EB-KEYSTONE-004".to_owned())
    );
    cloud.end().await;
}

#[tokio::test]
async fn a_deleted_project_has_no_callers_and_stays_visible_to_operators() {
    // A second, so that the deletion is seen in time.
    let cloud = OpenStack::start("token_cache_time = 1").await;
    let (keystone, admin) = (&cloud.keystone, &cloud.keystone.admin);
    let member = keystone.token_of("ada").await;
    assert_eq!(servers(&cloud, &member).await.0, 200);
    let budget = json!({
        "project_id": keystone.project, "max_victims": 1, "window_seconds": 3600,
    });
    let budget = ["--request", "PUT", "--json", &budget.to_string()];
    let made = ask(&cloud, admin, "/v1/budgets", &budget).await;
    assert_eq!(made.status, 200, "{}", made.body);

    let path = format!("/v3/projects/{}", keystone.project);
    keystone.call_as(admin, "DELETE", &path, None).await;
    let refused = async || match servers(&cloud, &member).await {
        (401, code) if code == "EB-KEYSTONE-004" => Ok(()),
        (status, code) => Err(format!("{status} {code}")),
    };
    ebbtide_harness::eventually(Duration::from_secs(10), refused).await;

    // Its servers and its budget stay until an operator deletes them.
    let path = format!("/v1/servers?project_id={}", keystone.project);
    let listed = ask(&cloud, admin, &path, &[]).await.json();
    let mut ids: Vec<&str> = listed["servers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|server| server["id"].as_str().unwrap())
        .collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2].map(|n| server(n).to_string()), "{listed}");
    let path = format!("/v1/budgets?project_id={}", keystone.project);
    let deleted = ask(&cloud, admin, &path, &["--request", "DELETE"]).await;
    assert_eq!(deleted.status, 204, "{}", deleted.body);
    cloud.end().await;
}

#[tokio::test]
async fn a_reader_reads_and_an_application_credential_keeps_its_access_rules() {
    let cloud = OpenStack::start("").await;
    let keystone = &cloud.keystone;
    let reader = keystone.token_of("rita").await;
    assert_eq!(servers(&cloud, &reader).await.0, 200);
    let group = json!({"name": "g", "policy": "anti-affinity"}).to_string();
    let made = ask(&cloud, &reader, "/v1/server-groups", &["--json", &group]).await;
    assert_eq!(refusal(&made), (403, "EB-ACCESS-004".to_owned()));

    let member = keystone.token_of("ada").await;
    let user = keystone.describe(&member).await.body["token"]["user"]["id"].clone();
    let path = format!(
        "/v3/users/{}/application_credentials",
        user.as_str().unwrap()
    );
    let rule = json!([{"method": "GET", "path": "/v1/servers", "service": "preemption"}]);
    let given = json!({"application_credential": {
        "name": "narrow", "secret": "pw", "access_rules": rule,
    }});
    let made = keystone.call_as(&member, "POST", &path, Some(given)).await;
    let credential = json!({"id": made["application_credential"]["id"], "secret": "pw"});
    let narrow = keystone
        .issue(json!({"identity": {
            "methods": ["application_credential"], "application_credential": credential,
        }}))
        .await;
    assert_eq!(servers(&cloud, &narrow).await.0, 200);
    let beside = ask(&cloud, &narrow, "/v1/evacuations", &[]).await;
    assert_eq!(refusal(&beside), (401, "EB-KEYSTONE-007".to_owned()));
    cloud.end().await;
}

#[tokio::test]
async fn cached_tokens_go_on_while_keystone_is_away() {
    let mut cloud = OpenStack::start("").await;
    let (known, new) = (
        cloud.keystone.token_of("ada").await,
        cloud.keystone.token_of("rita").await,
    );
    assert_eq!(servers(&cloud, &known).await.0, 200);
    cloud.keystone.keystone.kill();
    assert_eq!(servers(&cloud, &known).await.0, 200);
    let answer = ask(&cloud, &new, "/v1/servers", &[]).await;
    assert_eq!(refusal(&answer), (503, "EB-KEYSTONE-010".to_owned()));
    let detail = answer.json()["detail"].as_str().unwrap().to_owned();
    // Where Keystone is, and why it does not answer, is for the log.
    assert!(!detail.contains("127.0.0.1"), "{detail}");
    cloud.keystone.keystone.restart().await.unwrap();
    let answers = async || match servers(&cloud, &new).await.0 {
        200 => Ok(()),
        status => Err(status),
    };
    ebbtide_harness::eventually(Duration::from_secs(60), answers).await;
    cloud.end().await;
}

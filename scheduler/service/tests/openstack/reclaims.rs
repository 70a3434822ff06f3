//! Reclaimed hosts over both transports: who may call, and what is answered without a ledger or
//! Nova's API.

use super::kit::OpenStack;
use crate::curl::ask;
use serde_json::{Value, json};

async fn post(cloud: &OpenStack, token: &str, path: &str, body: &Value) -> (u16, Value) {
    let body = body.to_string();
    let options = ["--json", &body, "--request", "POST"];
    let answer = ask(cloud, token, path, &options).await;
    (answer.status, answer.json())
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["code"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn operators_reclaim_hosts_and_tenants_neither_do_nor_see_it() {
    let cloud = OpenStack::start("").await;
    let operator = &cloud.keystone.admin;
    let tenant = cloud.keystone.token_of("ada").await;
    let terms = json!({"owner": "slurm:1", "reason": "job 7", "dry_run": true});
    for (path, body) in [
        ("/v1/hosts/node1/reclaim", &terms),
        ("/v1/hosts/node1/return", &json!({})),
    ] {
        let refused = post(&cloud, &tenant, path, body).await;
        assert_eq!(code(&refused), (403, "EB-ACCESS-004"), "{refused:?}");
    }
    let refused = ask(&cloud, &tenant, "/v1/reclaims", &[]).await;
    assert_eq!(refused.status, 403);

    let unknown = post(&cloud, operator, "/v1/hosts/nowhere/reclaim", &terms).await;
    assert_eq!(code(&unknown), (404, "EB-SERVICE-001"), "{unknown:?}");
    let wrong = json!({"owner": "slurm:1", "reason": "job 7", "deadline_seconds": 5,
                       "deadline": "2036-01-01T00:00:00Z"});
    let wrong = post(&cloud, operator, "/v1/hosts/nowhere/reclaim", &wrong).await;
    assert_eq!(code(&wrong), (400, "EB-SERVICE-002"), "{wrong:?}");
    let unsaid = json!({"owner": "slurm:1"});
    let unsaid = post(&cloud, operator, "/v1/hosts/nowhere/reclaim", &unsaid).await;
    assert_eq!(unsaid.0, 400, "{unsaid:?}");
    let none = ask(&cloud, operator, "/v1/reclaims", &[]).await;
    assert_eq!((none.status, none.json()), (200, json!({"reclaims": []})));
}

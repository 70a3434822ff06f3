//! Disruption budgets over both transports: operators change them, what-ifs keep to them, tenants
//! see those of their projects.

use super::kit::{OTHER_PROJECT, OpenStack};
use crate::curl::{HttpService, ask};
use crate::region::with;
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_client::AdminClient;
use serde_json::{Value, json};
use tonic::Code;
use tonic::transport::Channel;

/// A request over REST: status and body.
async fn call(cloud: &OpenStack, token: &str, method: &str, path: &str) -> (u16, Value) {
    let answer = ask(cloud, token, path, &["--request", method]).await;
    let body = match answer.body.is_empty() {
        true => Value::Null,
        false => answer.json(),
    };
    (answer.status, body)
}

async fn put(cloud: &OpenStack, token: &str, budget: &Value) -> (u16, Value) {
    let body = budget.to_string();
    let options = ["--json", &body, "--request", "PUT"];
    let answer = ask(cloud, token, "/v1/budgets", &options).await;
    (answer.status, answer.json())
}

fn code(answer: &(u16, Value)) -> (u16, &str) {
    (answer.0, answer.1["code"].as_str().unwrap_or_default())
}

fn of_project(project: &str, most: u32) -> Value {
    json!({"project_id": project, "max_victims": most, "window_seconds": 600})
}

async fn admin(cloud: &OpenStack) -> AdminClient<Channel> {
    let address = format!("http://{}", cloud.address());
    let channel = Channel::from_shared(address).unwrap().connect().await;
    AdminClient::new(channel.unwrap())
}

async fn listed(cloud: &OpenStack, token: &str) -> Vec<v1::DisruptionBudget> {
    let request = with(v1::ListBudgetsRequest {}, token);
    let list = admin(cloud).await.list_budgets(request).await.unwrap();
    list.into_inner().budgets
}

#[tokio::test]
async fn operators_set_budgets_and_tenants_see_those_of_their_projects() {
    let cloud = OpenStack::start("").await;
    let operator = &cloud.keystone.admin;
    let tenant = cloud.keystone.token_of("ada").await;
    let own = &cloud.keystone.project;
    let (_, none) = call(&cloud, operator, "GET", "/v1/budgets").await;
    assert_eq!(none, json!({"budgets": []}));
    let (status, set) = put(&cloud, operator, &of_project(own, 3)).await;
    assert_eq!(
        (status, &set["budget"]["max_victims"]),
        (200, &json!(3)),
        "{set}"
    );
    put(&cloud, operator, &of_project(OTHER_PROJECT, 1)).await;
    let group = cloud.group(1, "web", own).await;
    let of_group = json!({"group_id": group, "max_victims": 0, "window_seconds": 60});
    assert_eq!(put(&cloud, operator, &of_group).await.0, 200);
    let all = listed(&cloud, operator).await;
    let projects: Vec<&str> = all.iter().map(|b| b.project_id.as_str()).collect();
    assert_eq!(all.len(), 3, "{all:?}");
    assert!(projects.contains(&own.as_str()) && projects.contains(&OTHER_PROJECT));
    assert!(
        all.iter()
            .any(|b| b.group_id == group && b.window_seconds == 60)
    );

    let seen = listed(&cloud, &tenant).await;
    let seen: Vec<&str> = seen.iter().map(|b| b.project_id.as_str()).collect();
    assert_eq!(seen, [own.as_str()]);
    let (_, over_rest) = call(&cloud, &tenant, "GET", "/v1/budgets").await;
    assert_eq!(
        over_rest["budgets"].as_array().unwrap().len(),
        1,
        "{over_rest}"
    );
    let role = (403, "EB-ACCESS-004");
    assert_eq!(code(&put(&cloud, &tenant, &of_project(own, 0)).await), role);
    let path = format!("/v1/budgets?project_id={own}");
    assert_eq!(code(&call(&cloud, &tenant, "DELETE", &path).await), role);

    let invented = json!({"group_id": "01234567-89ab-4cde-8f01-23456789abcd", "window_seconds": 1});
    let missing = (404, "EB-SERVICE-001");
    assert_eq!(code(&put(&cloud, operator, &invented).await), missing);
    let nothing = json!({"max_victims": 1, "window_seconds": 1});
    let both = json!({"project_id": "p", "group_id": group, "window_seconds": 1});
    let long = json!({"project_id": "p", "window_seconds": 2_592_001});
    for wrong in [nothing, both, long] {
        let field = (400, "EB-SERVICE-002");
        assert_eq!(code(&put(&cloud, operator, &wrong).await), field, "{wrong}");
    }

    assert_eq!(call(&cloud, operator, "DELETE", &path).await.0, 204);
    let gone = (404, "EB-REGION-002");
    assert_eq!(code(&call(&cloud, operator, "DELETE", &path).await), gone);
    let delete = v1::DeleteBudgetRequest {
        group_id: group,
        ..Default::default()
    };
    let mut grpc = admin(&cloud).await;
    grpc.delete_budget(with(delete.clone(), operator))
        .await
        .unwrap();
    let again = grpc.delete_budget(with(delete, operator)).await;
    assert_eq!(again.unwrap_err().code(), Code::NotFound);
    assert_eq!(listed(&cloud, operator).await.len(), 1);
    cloud.end().await;
}

/// One server of the other project is leaving already, and a second one would have to.
#[tokio::test]
async fn a_what_if_says_that_a_budget_is_in_the_way() {
    let cloud = OpenStack::start("").await;
    cloud.sell(1, "large", 4, ("quota:cpu_shares", "1")).await;
    let operator = &cloud.keystone.admin;
    let question = json!({"request": {"flavor": "large", "project_id": cloud.keystone.project}});
    let question = question.to_string();
    let asked = async || {
        let answer = ask(&cloud, operator, "/v1/what-if", &["--json", &question]).await;
        answer.json()
    };
    let said = |answer: &Value| answer.to_string().contains("beyond a disruption budget");
    let free = asked().await;
    assert!(
        free["decision"]["placements"][0]["host"].is_string(),
        "{free}"
    );
    put(&cloud, operator, &of_project(OTHER_PROJECT, 1)).await;
    let protected = asked().await;
    assert!(
        protected["decision"]["no_valid_host"].is_object(),
        "{protected}"
    );
    assert!(said(&protected), "{protected}");
    put(&cloud, operator, &of_project(OTHER_PROJECT, 2)).await;
    let allowed = asked().await;
    assert!(
        allowed["decision"]["placements"][0]["host"].is_string(),
        "{allowed}"
    );
    cloud.end().await;
}

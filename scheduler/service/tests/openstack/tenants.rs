//! What a tenant sees of others, the same on both clouds and over both transports.

use super::kit::{OTHER_PROJECT, OpenStack, server};
use crate::curl::{HttpService, ask};
use crate::region::{Region, create, with};
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::servers_client::ServersClient;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tonic::transport::Channel;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// An API with servers of two projects.
struct TwoTenants<'a, S> {
    api: &'a S,
    operator: &'a str,
    tenant: &'a str,
    /// The ids of the tenant's servers.
    own: BTreeSet<String>,
    /// One of the other project.
    other: String,
    other_project: &'a str,
}

fn ids(list: &Value) -> BTreeSet<String> {
    let servers = list["servers"]
        .as_array()
        .unwrap_or_else(|| panic!("{list}"));
    let id = |server: &Value| server["id"].as_str().unwrap().to_owned();
    servers.iter().map(id).collect()
}

fn code(status: &Status) -> (Code, String) {
    let details = status.get_error_details();
    let reason = details.error_info().map(|info| info.reason.clone());
    (status.code(), reason.unwrap_or_default())
}

impl<S: HttpService> TwoTenants<'_, S> {
    async fn get(&self, token: &str, path: &str) -> (u16, Value) {
        let answer = ask(self.api, token, path, &[]).await;
        (answer.status, answer.json())
    }

    /// The status and the code of a refusal of the tenant over REST.
    async fn refused(&self, path: &str, options: &[&str]) -> (u16, String) {
        let answer = ask(self.api, self.tenant, path, options).await;
        let code = answer.json()["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        (answer.status, code)
    }

    async fn channel(&self) -> Channel {
        let address = format!("http://{}", self.api.address());
        let endpoint = Channel::from_shared(address).unwrap();
        endpoint.connect().await.unwrap()
    }

    async fn rest_is_tight(&self) {
        let (status, list) = self.get(self.tenant, "/v1/servers").await;
        assert_eq!((status, ids(&list)), (200, self.own.clone()));
        let (_, all) = self.get(self.operator, "/v1/servers").await;
        assert!(ids(&all).contains(&self.other) && ids(&all).is_superset(&self.own));

        let own = format!("/v1/servers/{}", self.own.first().unwrap());
        assert_eq!(self.get(self.tenant, &own).await.0, 200);
        // A server of another project is as one that was never there.
        let invented = "01234567-89ab-4cde-8f01-23456789abcd";
        for id in [self.other.as_str(), invented] {
            let missing = (404, "EB-SERVICE-001".to_owned());
            let path = format!("/v1/servers/{id}");
            assert_eq!(self.refused(&path, &[]).await, missing, "{id}");
            let delete = ["--request", "DELETE"];
            assert_eq!(self.refused(&path, &delete).await, missing, "{id}");
            let path = format!("/v1/decisions/{id}");
            assert_eq!(self.refused(&path, &[]).await, missing, "{id}");
        }
        let list = format!("/v1/servers?project_id={}", self.other_project);
        let other_project = (403, "EB-ACCESS-005".to_owned());
        assert_eq!(self.refused(&list, &[]).await, other_project);
        for path in ["/v1/hosts", "/v1/region", "/v1/aggregates", "/v1/audit"] {
            let role = (403, "EB-ACCESS-004".to_owned());
            assert_eq!(self.refused(path, &[]).await, role, "{path}");
        }
        let without = ask(self.api, "", "/v1/servers", &[]).await;
        assert_eq!(without.status, 401, "{}", without.body);
        assert!(without.header("www-authenticate").is_some());
    }

    async fn grpc_is_tight(&self) {
        let mut servers = ServersClient::new(self.channel().await);
        let list = v1::ListServersRequest::default();
        let listed = servers.list_servers(with(list, self.tenant)).await.unwrap();
        let listed = listed.into_inner().servers.into_iter();
        assert_eq!(listed.map(|s| s.id).collect::<BTreeSet<_>>(), self.own);
        let get = |id: &str| v1::GetServerRequest { id: id.to_owned() };
        let foreign = servers
            .get_server(with(get(&self.other), self.tenant))
            .await;
        let missing = (Code::NotFound, "EB-SERVICE-001".to_owned());
        assert_eq!(code(&foreign.unwrap_err()), missing);
        let all = v1::ListServersRequest {
            project_id: self.other_project.to_owned(),
            ..Default::default()
        };
        let refused = servers
            .list_servers(with(all, self.tenant))
            .await
            .unwrap_err();
        let other_project = (Code::PermissionDenied, "EB-ACCESS-005".to_owned());
        assert_eq!(code(&refused), other_project);
        let mut admin = AdminClient::new(self.channel().await);
        let hosts = admin
            .list_hosts(with(v1::ListHostsRequest {}, self.tenant))
            .await;
        let role = (Code::PermissionDenied, "EB-ACCESS-004".to_owned());
        assert_eq!(code(&hosts.unwrap_err()), role);
        let without = servers
            .list_servers(v1::ListServersRequest::default())
            .await;
        assert_eq!(without.unwrap_err().code(), Code::Unauthenticated);
    }
}

#[tokio::test]
async fn a_tenant_of_a_standalone_region_sees_its_own_projects_only() {
    let region = Region::start("").await;
    let mut servers = ServersClient::new(region.channel().await.unwrap());
    let mut made = async |token: &str| {
        let made = create(&mut servers, token, 1).await.unwrap();
        made.servers[0].id.clone()
    };
    let two = TwoTenants {
        own: BTreeSet::from([made(&region.greedy).await]),
        other: made(&region.modest).await,
        api: &region,
        operator: &region.operator,
        tenant: &region.greedy,
        other_project: "modest",
    };
    two.rest_is_tight().await;
    two.grpc_is_tight().await;
    region.end().await;
}

#[tokio::test]
async fn a_tenant_of_an_openstack_sees_its_own_project_only() {
    let cloud = OpenStack::start("").await;
    let tenant = cloud.keystone.token_of("ada").await;
    let two = TwoTenants {
        own: [1, 2].map(|n| server(n).to_string()).into(),
        other: server(3).to_string(),
        api: &cloud,
        operator: &cloud.keystone.admin,
        tenant: &tenant,
        other_project: OTHER_PROJECT,
    };
    two.rest_is_tight().await;
    two.grpc_is_tight().await;
    an_evacuation_does_not_name_its_preemptor(&two, &cloud).await;
    cloud.end().await;
}

async fn an_evacuation_does_not_name_its_preemptor(
    two: &TwoTenants<'_, OpenStack>,
    cloud: &OpenStack,
) {
    let (_, seen) = two.get(two.tenant, "/v1/evacuations").await;
    let [own, other] = cloud.evacuations.map(|id| id.to_string());
    let seen = seen["evacuations"].as_array().unwrap();
    assert_eq!(seen.len(), 1, "{seen:?}");
    assert_eq!(
        (
            &seen[0]["id"],
            &seen[0]["preemptor_id"],
            &seen[0]["reclaim_owner"],
            &seen[0]["decision_id"],
            &seen[0]["deadline_at"]
        ),
        (
            &json!(own),
            &json!(""),
            &json!(""),
            &json!(""),
            &json!(cloud.deadline.to_string())
        )
    );
    let path = format!("/v1/evacuations/{other}");
    assert_eq!(
        two.refused(&path, &[]).await,
        (404, "EB-SERVICE-001".to_owned())
    );
    let (_, all) = two
        .get(two.operator, "/v1/evacuations?active_only=true")
        .await;
    assert_eq!(all["evacuations"].as_array().unwrap().len(), 2, "{all}");
    let (_, whole) = two.get(two.operator, &path).await;
    let preemptor = super::kit::NEWCOMER.to_string();
    assert_eq!(
        whole["evacuation"]["preemptor_id"],
        json!(preemptor),
        "{whole}"
    );
    let of = |field: &str| &whole["evacuation"][field];
    assert_eq!(of("victim_name"), &json!("server 3"), "{whole}");
    assert_eq!(of("cost"), &json!(2.5), "{whole}");
    assert_eq!(of("reclaim_owner"), &json!("slurm:7"), "{whole}");
    let decision = super::kit::DECISION.to_string();
    assert_eq!(of("decision_id"), &json!(decision), "{whole}");
}

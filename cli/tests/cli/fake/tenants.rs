//! What tenants ask of the fake region.

use super::{Answer, Fake, id, refuse};
use ebbtide_proto::v1::servers_server::Servers;
use ebbtide_proto::v1::*;
use std::time::Duration;
use tonic::{Code, Request, Response, Status};

#[tonic::async_trait]
impl Servers for Fake {
    async fn create_servers(
        &self,
        request: Request<CreateServersRequest>,
    ) -> Answer<CreateServersResponse> {
        let CreateServersRequest {
            name,
            request,
            max_price,
        } = request.into_inner();
        let request = request.unwrap();
        let pause = self.with(|state| {
            state.creating += 1;
            state.most_creating = state.most_creating.max(state.creating);
            state.create_takes
        });
        // The fake completes a request even if its client is gone.
        let fake = self.clone();
        let made = tokio::spawn(async move {
            tokio::time::sleep(pause).await;
            fake.with(|state| {
                state.creating -= 1;
                let bid = match max_price.as_str() {
                    "" => String::new(),
                    most => format!(" at most {most}"),
                };
                state
                    .log
                    .push(format!("create {name} {}{bid}", request.flavor));
                let decision = state.decide(&request, true)?;
                let mut servers = Vec::new();
                for (number, server_id) in decision.server_ids.iter().enumerate() {
                    let placement = decision.placements.get(number);
                    let suffix = if request.count > 1 {
                        format!("-{}", number + 1)
                    } else {
                        String::new()
                    };
                    let status = match placement {
                        None => "error",
                        Some(p) if p.waits_for_room => "waiting",
                        Some(_) => state.new_status.as_str(),
                    };
                    state.made += 1;
                    servers.push(Server {
                        id: server_id.clone(),
                        name: format!("{name}{suffix}"),
                        project_id: request.project_id.clone(),
                        flavor_name: request.flavor.clone(),
                        preemptible: decision.preemptible,
                        status: status.into(),
                        host: placement.map(|p| p.host.clone()).unwrap_or_default(),
                        decision_id: decision.id.clone(),
                        created_at: "2026-11-20T20:37:00Z".into(),
                        fault_code: if placement.is_none() {
                            "no-valid-host".into()
                        } else {
                            String::new()
                        },
                        ..Default::default()
                    });
                }
                state.servers.extend(servers.clone());
                state.decisions.push(decision.clone());
                Ok::<_, Status>(CreateServersResponse {
                    servers,
                    decision: Some(decision),
                    warnings: Vec::new(),
                })
            })
        });
        Ok(Response::new(made.await.unwrap()?))
    }

    async fn get_server(&self, request: Request<GetServerRequest>) -> Answer<GetServerResponse> {
        let id = request.into_inner().id;
        let server = self.with(|s| s.servers.iter().find(|server| server.id == id).cloned());
        let server = server
            .ok_or_else(|| refuse(Code::NotFound, "EB-API-005", &format!("no server {id:?}")))?;
        Ok(Response::new(GetServerResponse {
            server: Some(server),
        }))
    }

    async fn list_servers(
        &self,
        request: Request<ListServersRequest>,
    ) -> Answer<ListServersResponse> {
        let r = request.into_inner();
        let matches = |server: &&Server| {
            let gone = matches!(server.status.as_str(), "deleted" | "preempted");
            (r.project_id.is_empty() || server.project_id == r.project_id)
                && (r.status.is_empty() || server.status == r.status)
                && (r.host.is_empty() || server.host == r.host)
                && (r.name.is_empty() || server.name == r.name)
                && (r.include_gone || !gone)
        };
        let all: Vec<Server> = self.with(|s| s.servers.iter().filter(matches).cloned().collect());
        let start = all
            .iter()
            .position(|s| s.id == r.marker)
            .map_or(0, |at| at + 1);
        let limit = if r.limit == 0 { 1000 } else { r.limit as usize };
        let servers = all.into_iter().skip(start).take(limit).collect();
        Ok(Response::new(ListServersResponse { servers }))
    }

    async fn delete_server(
        &self,
        request: Request<DeleteServerRequest>,
    ) -> Answer<DeleteServerResponse> {
        let id = request.into_inner().id;
        let server = self.with(|state| {
            let at = state.servers.iter().position(|server| server.id == id);
            let at = at.ok_or_else(|| {
                refuse(Code::NotFound, "EB-API-005", &format!("no server {id:?}"))
            })?;
            if state.servers[at].status == "preempted" {
                let message = "the server is gone: it was preempted";
                return Err(refuse(Code::FailedPrecondition, "EB-API-006", message));
            }
            state.servers[at].status = "deleting".into();
            state.log.push(format!("delete {}", state.servers[at].name));
            Ok(state.servers[at].clone())
        })?;
        // The room is free a little later, as with a real agent.
        let (fake, late) = (self.clone(), server.clone());
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_millis(2)).await;
            fake.with(|state| {
                state.free(&late);
                state.log.push(format!("gone {}", late.name));
            });
            fake.set_status(&late.id, "deleted");
        });
        Ok(Response::new(DeleteServerResponse {
            server: Some(server),
        }))
    }

    async fn release_server(
        &self,
        request: Request<ReleaseServerRequest>,
    ) -> Answer<ReleaseServerResponse> {
        let id = request.into_inner().id;
        let found = self.with(|s| s.evacuations.iter().find(|e| e.victim_id == id).cloned());
        let evacuation = found.ok_or_else(|| {
            refuse(
                Code::FailedPrecondition,
                "EB-API-007",
                "the server is not being evacuated",
            )
        })?;
        Ok(Response::new(ReleaseServerResponse {
            evacuation: Some(evacuation),
        }))
    }

    async fn create_server_group(
        &self,
        request: Request<CreateServerGroupRequest>,
    ) -> Answer<CreateServerGroupResponse> {
        let mut group = request.into_inner().group.unwrap();
        group.id = id(500);
        self.with(|state| state.groups.push(group.clone()));
        Ok(Response::new(CreateServerGroupResponse {
            group: Some(group),
        }))
    }

    async fn list_server_groups(
        &self,
        request: Request<ListServerGroupsRequest>,
    ) -> Answer<ListServerGroupsResponse> {
        let project = request.into_inner().project_id;
        let mut groups = self.with(|state| state.groups.clone());
        groups.retain(|group| project.is_empty() || group.project_id == project);
        Ok(Response::new(ListServerGroupsResponse { groups }))
    }

    async fn delete_server_group(
        &self,
        request: Request<DeleteServerGroupRequest>,
    ) -> Answer<DeleteServerGroupResponse> {
        let id = request.into_inner().id;
        self.with(|state| state.groups.retain(|group| group.id != id));
        Ok(Response::new(DeleteServerGroupResponse {}))
    }

    async fn get_evacuation(
        &self,
        request: Request<GetEvacuationRequest>,
    ) -> Answer<GetEvacuationResponse> {
        let id = request.into_inner().id;
        let found = self.with(|s| s.evacuations.iter().find(|e| e.id == id).cloned());
        let evacuation =
            found.ok_or_else(|| refuse(Code::NotFound, "EB-API-008", "no such evacuation"))?;
        Ok(Response::new(GetEvacuationResponse {
            evacuation: Some(evacuation),
        }))
    }

    async fn list_evacuations(
        &self,
        request: Request<ListEvacuationsRequest>,
    ) -> Answer<ListEvacuationsResponse> {
        let r = request.into_inner();
        let mut evacuations = self.with(|state| state.evacuations.clone());
        evacuations.retain(|e| {
            let of =
                r.server_id.is_empty() || [&e.victim_id, &e.preemptor_id].contains(&&r.server_id);
            let over = matches!(e.state.as_str(), "evacuated" | "spared" | "failed");
            of && (r.project_id.is_empty() || e.victim_project_id == r.project_id)
                && (r.host.is_empty() || e.host == r.host)
                && !(r.active_only && over)
        });
        Ok(Response::new(ListEvacuationsResponse { evacuations }))
    }
}

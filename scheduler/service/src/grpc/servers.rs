//! Tenant calls: servers, groups, evacuations.

use super::request::{limit, optional, parsed, required};
use super::{ApiHandlers, convert, guard};
use crate::cloud::ListedServer;
use crate::error::ServiceError;
use ebbtide_model::{EvacuationId, GroupId, ServerGroup, ServerId, names};
use ebbtide_proto::v1;
use ebbtide_region::{CreateGroup, CreateServers, DeleteGroup, DeleteServer, Region, RegionError};
use ebbtide_runtime::ids;
use ebbtide_store::{EvacuationFilter, MAX_PAGE, ServerFilter};
use tonic::{Request, Response, Status};

const ROWS: u32 = 1000;
const MAX_ROWS: u32 = MAX_PAGE;
/// What creates servers on an OpenStack.
pub(super) const CREATE: &str = "openstack server create --flavor FLAVOR --image IMAGE NAME";

impl ApiHandlers {
    /// A server by id (also one that is gone), or by name if only one server that is not gone has
    /// the name.
    pub(super) async fn server_by_name(&self, name: &str) -> Result<ListedServer, ServiceError> {
        if let Ok(id) = name.parse::<ServerId>() {
            let found = self.api.cloud.server(id).await?;
            return found.ok_or_else(|| ServiceError::NotFound {
                what: "server",
                name: names::shorten(name),
                next: "`ebbtide server list --deleted` shows those that are gone, too",
            });
        }
        self.api.cloud.server_named(name).await
    }
}

/// A server with its evacuation's deadline.
pub(super) fn on_the_wire(listed: &ListedServer) -> v1::Server {
    convert::server(&listed.server, listed.evacuation.as_ref())
}

/// Removes the preemptor and the host's owner: tenants learn that their server was needed, but not
/// by which server or person.
pub(super) fn without_preemptor(evacuation: v1::Evacuation) -> v1::Evacuation {
    v1::Evacuation {
        preemptor_id: String::new(),
        decision_id: String::new(),
        reclaim_owner: String::new(),
        ..evacuation
    }
}

#[tonic::async_trait]
impl v1::servers_server::Servers for ApiHandlers {
    async fn create_servers(
        &self,
        request: Request<v1::CreateServersRequest>,
    ) -> Result<Response<v1::CreateServersResponse>, Status> {
        let region = self.api.standalone(CREATE)?;
        let who = guard::caller(&request)?;
        let wire = request.into_inner();
        let request = self.api.placement_request(wire.request).await?;
        let quota = self.gate.quota(&who, &request.project_id);
        let asked = parsed("max_price", &wire.max_price)?;
        // The flavor's own is for those who name none.
        let of_flavor = || request.flavor.properties().ok()?.max_price;
        let create = CreateServers {
            quota: quota.map(|quota| quota.servers),
            max_price: asked.or_else(of_flavor),
            name: wire.name,
            request,
            external: false,
        };
        let idle_bid = match asked {
            Some(most) => {
                let flavor = create.request.flavor.clone();
                let look = move |region: &Region| region.idle_bid(&flavor, most);
                region.region_actor.read(look).await?
            }
            None => None,
        };
        let (servers, decision) = self.create(region, create).await?;
        Ok(Response::new(v1::CreateServersResponse {
            servers: servers.iter().map(|s| convert::server(s, None)).collect(),
            decision: Some(convert::decision(&guard::visible_to(decision, &who))),
            warnings: idle_bid.into_iter().collect(),
        }))
    }

    async fn get_server(
        &self,
        request: Request<v1::GetServerRequest>,
    ) -> Result<Response<v1::GetServerResponse>, Status> {
        let server = self.server_by_name(&request.into_inner().id).await?;
        Ok(Response::new(v1::GetServerResponse {
            server: Some(on_the_wire(&server)),
        }))
    }

    async fn list_servers(
        &self,
        request: Request<v1::ListServersRequest>,
    ) -> Result<Response<v1::ListServersResponse>, Status> {
        let wire = request.into_inner();
        let filter = ServerFilter {
            project_id: optional(wire.project_id),
            status: parsed("status", &wire.status)?,
            host: optional(wire.host),
            name: optional(wire.name),
            include_gone: wire.include_gone,
            limit: limit(wire.limit, ROWS, MAX_ROWS),
            marker: parsed("marker", &wire.marker)?,
        };
        let servers = self.api.cloud.servers(&filter).await?;
        Ok(Response::new(v1::ListServersResponse {
            servers: servers.iter().map(on_the_wire).collect(),
        }))
    }

    async fn delete_server(
        &self,
        request: Request<v1::DeleteServerRequest>,
    ) -> Result<Response<v1::DeleteServerResponse>, Status> {
        let command = "openstack server delete SERVER";
        let region = self.api.standalone(command)?;
        let listed = self.server_by_name(&request.into_inner().id).await?;
        let delete = DeleteServer(listed.server.id);
        let server = region.region_actor.handle(delete).await?;
        Ok(Response::new(v1::DeleteServerResponse {
            server: Some(convert::server(&server, None)),
        }))
    }

    async fn release_server(
        &self,
        request: Request<v1::ReleaseServerRequest>,
    ) -> Result<Response<v1::ReleaseServerResponse>, Status> {
        let listed = self.server_by_name(&request.into_inner().id).await?;
        let evacuation = self.api.early_release.release(&listed).await?;
        Ok(Response::new(v1::ReleaseServerResponse {
            evacuation: Some(convert::evacuation(&evacuation)),
        }))
    }

    async fn create_server_group(
        &self,
        request: Request<v1::CreateServerGroupRequest>,
    ) -> Result<Response<v1::CreateServerGroupResponse>, Status> {
        let command = "openstack server group create --policy POLICY NAME";
        let region = self.api.standalone(command)?;
        let who = guard::caller(&request)?;
        let wire = required("group", request.into_inner().group)?;
        let group = ServerGroup {
            id: parsed("group.id", &wire.id)?.unwrap_or_else(|| GroupId(ids::new())),
            name: wire.name,
            project_id: optional(wire.project_id).unwrap_or_else(|| "default".to_owned()),
            policy: wire
                .policy
                .parse()
                .map_err(|e| ServiceError::Region(RegionError::Invalid(e)))?,
            max_server_per_host: wire.max_server_per_host.max(1),
        };
        let quota = self.gate.quota(&who, &group.project_id);
        let create = CreateGroup {
            group,
            quota: quota.map(|quota| quota.groups),
        };
        let group = region.region_actor.handle(create).await?;
        Ok(Response::new(v1::CreateServerGroupResponse {
            group: Some(convert::group(&group)),
        }))
    }

    async fn list_server_groups(
        &self,
        request: Request<v1::ListServerGroupsRequest>,
    ) -> Result<Response<v1::ListServerGroupsResponse>, Status> {
        let project = request.into_inner().project_id;
        let groups = self.api.cloud.groups().await?;
        let wanted = groups
            .iter()
            .filter(|g| project.is_empty() || g.project_id == project);
        Ok(Response::new(v1::ListServerGroupsResponse {
            groups: wanted.map(convert::group).collect(),
        }))
    }

    async fn delete_server_group(
        &self,
        request: Request<v1::DeleteServerGroupRequest>,
    ) -> Result<Response<v1::DeleteServerGroupResponse>, Status> {
        let command = "openstack server group delete GROUP";
        let region = self.api.standalone(command)?;
        let delete = DeleteGroup(request.into_inner().id);
        region.region_actor.handle(delete).await?;
        Ok(Response::new(v1::DeleteServerGroupResponse {}))
    }

    async fn get_evacuation(
        &self,
        request: Request<v1::GetEvacuationRequest>,
    ) -> Result<Response<v1::GetEvacuationResponse>, Status> {
        let id: EvacuationId = required("id", parsed("id", &request.into_inner().id)?)?;
        let found = self.api.cloud.evacuation(id).await?;
        let evacuation = found.ok_or_else(|| ServiceError::NotFound {
            what: "evacuation",
            name: id.to_string(),
            next: "`ebbtide evacuation list` shows what there is",
        })?;
        Ok(Response::new(v1::GetEvacuationResponse {
            evacuation: Some(convert::evacuation(&evacuation)),
        }))
    }

    async fn list_evacuations(
        &self,
        request: Request<v1::ListEvacuationsRequest>,
    ) -> Result<Response<v1::ListEvacuationsResponse>, Status> {
        let wire = request.into_inner();
        let as_tenant = !wire.project_id.is_empty();
        let filter = EvacuationFilter {
            host: optional(wire.host),
            project_id: optional(wire.project_id),
            state: parsed("state", &wire.state)?,
            server_id: parsed("server_id", &wire.server_id)?,
            active_only: wire.active_only,
            limit: limit(wire.limit, ROWS, MAX_ROWS),
            marker: parsed("marker", &wire.marker)?,
        };
        let evacuations = self.api.cloud.evacuations(&filter).await?;
        Ok(Response::new(v1::ListEvacuationsResponse {
            evacuations: evacuations
                .iter()
                .map(convert::evacuation)
                .map(|e| if as_tenant { without_preemptor(e) } else { e })
                .collect(),
        }))
    }
}

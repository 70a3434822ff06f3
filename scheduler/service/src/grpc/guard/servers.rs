//! Tenant calls: servers, groups, evacuations.

use super::super::request::{optional, parsed, required};
use super::super::servers::without_preemptor;
use super::{Guard, caller};
use crate::error::ServiceError;
use ebbtide_model::EvacuationId;
use ebbtide_proto::v1;
use ebbtide_proto::v1::servers_server::Servers;
use tonic::{Request, Response, Status};

#[tonic::async_trait]
impl Servers for Guard {
    async fn create_servers(
        &self,
        mut request: Request<v1::CreateServersRequest>,
    ) -> Result<Response<v1::CreateServersResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.request = self
            .own_request(&who, wire.request.take(), "create servers")
            .await?;
        self.handlers.create_servers(request).await
    }

    async fn get_server(
        &self,
        mut request: Request<v1::GetServerRequest>,
    ) -> Result<Response<v1::GetServerResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.id = self.own_server(&who, &wire.id).await?;
        self.handlers.get_server(request).await
    }

    async fn list_servers(
        &self,
        mut request: Request<v1::ListServersRequest>,
    ) -> Result<Response<v1::ListServersResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.project_id = who
            .project(&wire.project_id, "list servers")
            .map_err(ServiceError::Access)?;
        self.handlers.list_servers(request).await
    }

    async fn delete_server(
        &self,
        mut request: Request<v1::DeleteServerRequest>,
    ) -> Result<Response<v1::DeleteServerResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.id = self.own_server(&who, &wire.id).await?;
        self.handlers.delete_server(request).await
    }

    async fn release_server(
        &self,
        mut request: Request<v1::ReleaseServerRequest>,
    ) -> Result<Response<v1::ReleaseServerResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.id = self.own_server(&who, &wire.id).await?;
        let mut answer = self.handlers.release_server(request).await?;
        if who.is_tenant() {
            let wire = answer.get_mut();
            wire.evacuation = wire.evacuation.take().map(without_preemptor);
        }
        Ok(answer)
    }

    async fn create_server_group(
        &self,
        mut request: Request<v1::CreateServerGroupRequest>,
    ) -> Result<Response<v1::CreateServerGroupResponse>, Status> {
        let who = caller(&request)?;
        if let Some(group) = &mut request.get_mut().group {
            group.project_id = who
                .project(&group.project_id, "create server groups")
                .map_err(ServiceError::Access)?;
        }
        self.handlers.create_server_group(request).await
    }

    async fn list_server_groups(
        &self,
        mut request: Request<v1::ListServerGroupsRequest>,
    ) -> Result<Response<v1::ListServerGroupsResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.project_id = who
            .project(&wire.project_id, "list server groups")
            .map_err(ServiceError::Access)?;
        self.handlers.list_server_groups(request).await
    }

    async fn delete_server_group(
        &self,
        mut request: Request<v1::DeleteServerGroupRequest>,
    ) -> Result<Response<v1::DeleteServerGroupResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.id = self.own_group(&who, &wire.id).await?;
        self.handlers.delete_server_group(request).await
    }

    async fn get_evacuation(
        &self,
        request: Request<v1::GetEvacuationRequest>,
    ) -> Result<Response<v1::GetEvacuationResponse>, Status> {
        let who = caller(&request)?;
        let asked = optional(request.get_ref().id.clone());
        let mut answer = self.handlers.get_evacuation(request).await?;
        if !who.is_tenant() {
            return Ok(answer);
        }
        let wire = answer.get_mut();
        let found = wire.evacuation.take();
        wire.evacuation = found
            .filter(|evacuation| who.sees(&evacuation.victim_project_id))
            .map(without_preemptor);
        if wire.evacuation.is_none() {
            // The same error as for an evacuation that does not exist.
            let id: EvacuationId = required("id", parsed("id", &asked.unwrap_or_default())?)?;
            return Err(ServiceError::NotFound {
                what: "evacuation",
                name: id.to_string(),
                next: "`ebbtide evacuation list` shows what there is",
            }
            .into());
        }
        Ok(answer)
    }

    async fn list_evacuations(
        &self,
        mut request: Request<v1::ListEvacuationsRequest>,
    ) -> Result<Response<v1::ListEvacuationsResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.project_id = who
            .project(&wire.project_id, "list evacuations")
            .map_err(ServiceError::Access)?;
        // With a project in the request, the handlers leave out the preemptors.
        self.handlers.list_evacuations(request).await
    }
}

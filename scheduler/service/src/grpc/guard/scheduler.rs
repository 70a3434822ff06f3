//! Decisions, explanations, event streams.

use super::super::ApiHandlers;
use super::super::request::REQUEST_ID;
use super::{Guard, caller};
use crate::error::ServiceError;
use ebbtide_access::AccessError;
use ebbtide_model::names;
use ebbtide_proto::v1;
use ebbtide_proto::v1::scheduler_server::Scheduler;
use tonic::{Code, Request, Response, Status};
use uuid::Uuid;

#[tonic::async_trait]
impl Scheduler for Guard {
    async fn select_destinations(
        &self,
        request: Request<v1::SelectDestinationsRequest>,
    ) -> Result<Response<v1::SelectDestinationsResponse>, Status> {
        // The gate's table of rules limits this call to operators.
        caller(&request)?;
        self.handlers.select_destinations(request).await
    }

    async fn what_if(
        &self,
        mut request: Request<v1::WhatIfRequest>,
    ) -> Result<Response<v1::WhatIfResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.request = self
            .own_request(&who, wire.request.take(), "plan servers")
            .await?;
        self.own_hints(&who, &mut wire.scheduler_hints).await?;
        self.handlers.what_if(request).await
    }

    async fn explain(
        &self,
        request: Request<v1::ExplainRequest>,
    ) -> Result<Response<v1::ExplainResponse>, Status> {
        let who = caller(&request)?;
        if !who.is_tenant() {
            return self.handlers.explain(request).await;
        }
        let wire = request.get_ref();
        if !wire.as_project.is_empty() && !who.sees(&wire.as_project) {
            return Err(ServiceError::Access(AccessError::OtherProject {
                caller: who.to_string(),
                what: "read explanations",
                project: names::shorten(&wire.as_project),
                own: who.projects.join(", "),
            })
            .into());
        }
        // An id may be that of a decision, a server or a request; anything else is the name of a
        // server.
        let id = if wire.id.parse::<Uuid>().is_ok() || wire.id.starts_with(REQUEST_ID) {
            wire.id.clone()
        } else {
            self.own_server(&who, &wire.id).await?
        };
        let projects = match wire.as_project.as_str() {
            "" => who.projects.clone(),
            one => vec![one.to_owned()],
        };
        let mut answer = Err(Status::from(ServiceError::NotFound {
            what: "decision",
            name: names::shorten(&id),
            next: "it may belong to another project",
        }));
        for as_project in projects {
            let mut asked = Request::new(v1::ExplainRequest {
                id: id.clone(),
                as_project,
            });
            asked.extensions_mut().insert(who.clone());
            match self.handlers.explain(asked).await {
                Err(status) if status.code() == Code::NotFound => {}
                found => {
                    answer = found;
                    break;
                }
            }
        }
        answer
    }

    async fn list_decisions(
        &self,
        request: Request<v1::ListDecisionsRequest>,
    ) -> Result<Response<v1::ListDecisionsResponse>, Status> {
        // The handlers query only the caller's projects.
        self.handlers.list_decisions(request).await
    }

    type WatchStream = <ApiHandlers as Scheduler>::WatchStream;

    async fn watch(
        &self,
        mut request: Request<v1::WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.project_id = who
            .project(&wire.project_id, "watch servers")
            .map_err(ServiceError::Access)?;
        self.handlers.watch(request).await
    }

    async fn region_summary(
        &self,
        request: Request<v1::RegionSummaryRequest>,
    ) -> Result<Response<v1::RegionSummaryResponse>, Status> {
        caller(&request)?;
        self.handlers.region_summary(request).await
    }
}

//! Market calls of tenants: a tenant sees its own lives, those of others only as aggregated advice,
//! and the prices of the flavors that it may use.

use super::super::ApiHandlers;
use super::{Guard, caller};
use crate::error::ServiceError;
use ebbtide_advice::Viewer;
use ebbtide_proto::v1;
use ebbtide_proto::v1::market_server::Market;
use tonic::{Request, Response, Status};

/// Says whose data a call may see.
fn set_viewer<T>(request: &mut Request<T>) -> Result<(), Status> {
    let who = caller(request)?;
    let viewer = match who.is_tenant() {
        true => Viewer::Projects(who.projects),
        false => Viewer::Everything,
    };
    request.extensions_mut().insert(viewer);
    Ok(())
}

#[tonic::async_trait]
impl Market for Guard {
    async fn list_lives(
        &self,
        mut request: Request<v1::ListLivesRequest>,
    ) -> Result<Response<v1::ListLivesResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.project_id = who
            .project(&wire.project_id, "list lives")
            .map_err(ServiceError::Access)?;
        <ApiHandlers as Market>::list_lives(&self.handlers, request).await
    }
    async fn list_prices(
        &self,
        mut request: Request<v1::ListPricesRequest>,
    ) -> Result<Response<v1::ListPricesResponse>, Status> {
        set_viewer(&mut request)?;
        <ApiHandlers as Market>::list_prices(&self.handlers, request).await
    }

    async fn list_price_history(
        &self,
        mut request: Request<v1::ListPriceHistoryRequest>,
    ) -> Result<Response<v1::ListPriceHistoryResponse>, Status> {
        set_viewer(&mut request)?;
        <ApiHandlers as Market>::list_price_history(&self.handlers, request).await
    }

    async fn list_bills(
        &self,
        mut request: Request<v1::ListBillsRequest>,
    ) -> Result<Response<v1::ListBillsResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.project_id = who
            .project(&wire.project_id, "list bills")
            .map_err(ServiceError::Access)?;
        set_viewer(&mut request)?;
        <ApiHandlers as Market>::list_bills(&self.handlers, request).await
    }

    async fn list_billed_hours(
        &self,
        mut request: Request<v1::ListBilledHoursRequest>,
    ) -> Result<Response<v1::ListBilledHoursResponse>, Status> {
        let who = caller(&request)?;
        let wire = request.get_mut();
        wire.project_id = who
            .project(&wire.project_id, "list billed hours")
            .map_err(ServiceError::Access)?;
        set_viewer(&mut request)?;
        <ApiHandlers as Market>::list_billed_hours(&self.handlers, request).await
    }

    async fn get_advice(
        &self,
        mut request: Request<v1::GetAdviceRequest>,
    ) -> Result<Response<v1::GetAdviceResponse>, Status> {
        set_viewer(&mut request)?;
        <ApiHandlers as Market>::get_advice(&self.handlers, request).await
    }
}

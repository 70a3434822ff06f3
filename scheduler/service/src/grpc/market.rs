//! Lives that are over.

use super::Door;
use super::convert;
use super::request::{limit, optional, parsed};
use crate::keeper::not_read;
use ebbtide_proto::v1;
use ebbtide_proto::v1::market_server::Market;
use ebbtide_store::LifeFilter;
use tonic::{Request, Response, Status};

/// Rows of a list if nothing is said, and at most.
const ROWS: u32 = 1000;

#[tonic::async_trait]
impl Market for Door {
    async fn list_lives(
        &self,
        request: Request<v1::ListLivesRequest>,
    ) -> Result<Response<v1::ListLivesResponse>, Status> {
        let wire = request.into_inner();
        let filter = LifeFilter {
            project_id: optional(wire.project_id),
            flavor: optional(wire.flavor),
            ended_from: parsed("ended_from", &wire.ended_from)?,
            launched_before: parsed("launched_before", &wire.launched_before)?,
            limit: limit(wire.limit, ROWS, ROWS),
            marker: optional(wire.marker),
        };
        let lives = self.api.store.lives(&filter).await;
        let lives = lives.map_err(|e| not_read(&e))?;
        Ok(Response::new(v1::ListLivesResponse {
            lives: lives.iter().map(convert::life).collect(),
        }))
    }
}

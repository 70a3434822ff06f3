//! Lives that are over, and prices.

use super::Door;
use super::convert;
use super::request::{limit, optional, parsed};
use crate::keeper::not_read;
use ebbtide_proto::v1;
use ebbtide_proto::v1::market_server::Market;
use ebbtide_region::Region;
use ebbtide_store::{LifeFilter, PriceFilter};
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
    async fn list_prices(
        &self,
        _request: Request<v1::ListPricesRequest>,
    ) -> Result<Response<v1::ListPricesResponse>, Status> {
        let prices = self.api.keeper.look(Region::flavor_prices).await?;
        Ok(Response::new(v1::ListPricesResponse {
            prices: prices.iter().map(convert::flavor_price).collect(),
            market: self.api.region.market.enabled,
        }))
    }

    async fn list_price_history(
        &self,
        request: Request<v1::ListPriceHistoryRequest>,
    ) -> Result<Response<v1::ListPriceHistoryResponse>, Status> {
        let wire = request.into_inner();
        let filter = PriceFilter {
            flavor: optional(wire.flavor),
            from: parsed("from", &wire.from)?,
            before: parsed("before", &wire.before)?,
            limit: limit(wire.limit, ROWS, ROWS),
            marker: optional(wire.marker),
        };
        let prices = self.api.store.prices(&filter).await;
        let prices = prices.map_err(|e| not_read(&e))?;
        Ok(Response::new(v1::ListPriceHistoryResponse {
            prices: prices.iter().map(convert::price).collect(),
        }))
    }
}

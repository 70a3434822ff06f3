//! Ended lives, advice from them, and prices.

use super::ApiHandlers;
use super::request::{limit, optional, parsed};
use super::{advice, convert};
use crate::advice::AdviceFlavor;
use crate::bills::{BilledPeriod, HourKey, bills, instance_hours};
use crate::error::ServiceError;
use ebbtide_access::AccessError;
use ebbtide_advice::Viewer;
use ebbtide_advice::life::hours_of;
use ebbtide_market::billing::Sum;
use ebbtide_model::{Flavor, Money};
use ebbtide_proto::v1;
use ebbtide_proto::v1::market_server::Market;
use ebbtide_region::RegionError;
use ebbtide_store::{LifeFilter, PriceFilter};
use tonic::{Request, Response, Status};

/// Rows of a list by default, and at most.
const ROWS: u32 = 1000;
/// Number of price changes in advice.
const CHANGES: u32 = 100;

/// What the guard has found that the caller may see. A request that has bypassed the guard is
/// refused.
fn viewer<T>(request: &Request<T>) -> Result<Viewer, ServiceError> {
    let viewer = request.extensions().get::<Viewer>().cloned();
    viewer.ok_or(ServiceError::Access(AccessError::Unauthenticated))
}

/// What advice needs of a flavor, which must be preemptible.
fn asked(flavor: &Flavor) -> Result<AdviceFlavor, ServiceError> {
    let properties = flavor.properties().map_err(RegionError::from)?;
    if !properties.preemptible {
        return Err(ServiceError::Field {
            field: "flavor",
            problem: format!(
                "{:?} is not preemptible: its servers are never evicted, so there is nothing to advise",
                flavor.name
            ),
        });
    }
    Ok(AdviceFlavor {
        name: flavor.name.clone(),
        maximum: hours_of(properties.max_lifetime),
    })
}

/// The project and the time that bills are asked for.
fn billed_period(project: String, from: &str, before: &str) -> Result<BilledPeriod, ServiceError> {
    Ok(BilledPeriod {
        project_id: optional(project),
        from: parsed("from", from)?,
        before: parsed("before", before)?,
    })
}

#[tonic::async_trait]
impl Market for ApiHandlers {
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
        let lives = self.api.cloud.lives(&filter).await?;
        Ok(Response::new(v1::ListLivesResponse {
            lives: lives.iter().map(convert::life).collect(),
        }))
    }
    async fn list_prices(
        &self,
        request: Request<v1::ListPricesRequest>,
    ) -> Result<Response<v1::ListPricesResponse>, Status> {
        let (prices, market) = self.api.market.prices(&viewer(&request)?).await?;
        Ok(Response::new(v1::ListPricesResponse {
            prices: prices.iter().map(convert::flavor_price).collect(),
            market,
        }))
    }

    async fn list_price_history(
        &self,
        request: Request<v1::ListPriceHistoryRequest>,
    ) -> Result<Response<v1::ListPriceHistoryResponse>, Status> {
        let viewer = viewer(&request)?;
        let wire = request.into_inner();
        let filter = PriceFilter {
            flavor: optional(wire.flavor),
            from: parsed("from", &wire.from)?,
            before: parsed("before", &wire.before)?,
            limit: limit(wire.limit, ROWS, ROWS),
            marker: optional(wire.marker),
        };
        let prices = self.api.market.price_history(&viewer, filter).await?;
        Ok(Response::new(v1::ListPriceHistoryResponse {
            prices: prices.iter().map(convert::price).collect(),
        }))
    }

    async fn list_bills(
        &self,
        request: Request<v1::ListBillsRequest>,
    ) -> Result<Response<v1::ListBillsResponse>, Status> {
        let viewer = viewer(&request)?;
        let wire = request.into_inner();
        let which = billed_period(wire.project_id, &wire.from, &wire.before)?;
        let now = ebbtide_runtime::clock::now();
        let bills = bills(&self.api, &viewer, &which, now).await?;
        let mut charged = Sum::default();
        bills.values().for_each(|bill| charged.merge(bill.charged));
        Ok(Response::new(v1::ListBillsResponse {
            bills: bills.iter().map(convert::bill).collect(),
            charged: charged.to_string(),
        }))
    }

    async fn list_billed_hours(
        &self,
        request: Request<v1::ListBilledHoursRequest>,
    ) -> Result<Response<v1::ListBilledHoursResponse>, Status> {
        let viewer = viewer(&request)?;
        let wire = request.into_inner();
        let which = billed_period(wire.project_id, &wire.from, &wire.before)?;
        let after: Option<HourKey> = parsed("marker", &wire.marker)?;
        let most = limit(wire.limit, ROWS, ROWS);
        let now = ebbtide_runtime::clock::now();
        let hours = instance_hours(&self.api, &viewer, &which, after, most, now).await?;
        Ok(Response::new(v1::ListBilledHoursResponse {
            hours: hours.iter().map(convert::billed_hour).collect(),
        }))
    }

    async fn get_advice(
        &self,
        request: Request<v1::GetAdviceRequest>,
    ) -> Result<Response<v1::GetAdviceResponse>, Status> {
        let asker = viewer(&request)?;
        let wire = request.into_inner();
        let question = advice::question(&wire);
        let projects = match &asker {
            Viewer::Everything => None,
            Viewer::Projects(projects) => Some(projects.as_slice()),
        };
        let cloud = &self.api.cloud;
        let priced = cloud.priced_flavor(&wire.flavor, projects, CHANGES).await?;
        let asked = asked(&priced.flavor)?;
        let name = asked.name.clone();
        let told = self.api.advice.advice(asked, asker, question).await?;
        let has_price = priced.price.base > Money::default();
        Ok(Response::new(v1::GetAdviceResponse {
            price: has_price.then(|| convert::flavor_price(&priced.price)),
            price_history: priced.changes.iter().map(convert::price).collect(),
            ..advice::wire(name, &question, told)
        }))
    }
}

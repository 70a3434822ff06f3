//! Lives, prices, and advice as the test wants it.

use super::{Answer, Fake, refuse};
use ebbtide_proto::v1::market_server::Market;
use ebbtide_proto::v1::*;
use tonic::{Code, Request, Response};

#[tonic::async_trait]
impl Market for Fake {
    async fn list_lives(&self, request: Request<ListLivesRequest>) -> Answer<ListLivesResponse> {
        let asked = request.into_inner();
        self.with(|state| {
            let after = match asked.marker.as_str() {
                "" => 0,
                marker => match state.lives.iter().position(|life| life.id == marker) {
                    Some(place) => place + 1,
                    None => return Err(refuse(Code::NotFound, "EB-STORE-010", "no such life")),
                },
            };
            // Pages are short, so that a client that reads only the first page fails its test.
            let most = (asked.limit as usize).min(100);
            let of_project =
                |life: &&Life| asked.project_id.is_empty() || life.project_id == asked.project_id;
            let page = state.lives.iter().skip(after).filter(of_project);
            Ok(Response::new(ListLivesResponse {
                lives: page.take(most).cloned().collect(),
            }))
        })
    }
    async fn list_prices(&self, _: Request<ListPricesRequest>) -> Answer<ListPricesResponse> {
        self.with(|state| {
            Ok(Response::new(ListPricesResponse {
                prices: state.prices.clone(),
                market: !state.price_history.is_empty(),
            }))
        })
    }

    async fn list_price_history(
        &self,
        request: Request<ListPriceHistoryRequest>,
    ) -> Answer<ListPriceHistoryResponse> {
        let asked = request.into_inner();
        self.with(|state| {
            // The latest first, in pages of three.
            let wanted = |p: &&PriceRecord| {
                (asked.flavor.is_empty() || p.flavor == asked.flavor)
                    && (asked.from.is_empty() || p.at >= asked.from)
                    && (asked.before.is_empty() || p.at < asked.before)
            };
            let all = state.price_history.iter().rev().filter(wanted);
            let after = all.skip_while(|p| !asked.marker.is_empty() && p.id != asked.marker);
            let skipped = usize::from(!asked.marker.is_empty());
            Ok(Response::new(ListPriceHistoryResponse {
                prices: after.skip(skipped).take(3).cloned().collect(),
            }))
        })
    }

    async fn list_bills(&self, request: Request<ListBillsRequest>) -> Answer<ListBillsResponse> {
        self.with(|state| {
            state.bills_asked = Some(request.into_inner());
            Ok(Response::new(state.bills.clone()))
        })
    }

    async fn list_billed_hours(
        &self,
        request: Request<ListBilledHoursRequest>,
    ) -> Answer<ListBilledHoursResponse> {
        let asked = request.into_inner();
        self.with(|state| {
            let after = match asked.marker.as_str() {
                "" => 0,
                marker => match state.billed_hours.iter().position(|hour| hour.id == marker) {
                    Some(place) => place + 1,
                    None => {
                        return Err(refuse(Code::InvalidArgument, "EB-API-001", "no such hour"));
                    }
                },
            };
            if after == 0 {
                state.hours_asked = Some(asked);
            }
            // Pages are short, so that a client that reads only the first page fails its test.
            let page = state.billed_hours.iter().skip(after).take(2);
            Ok(Response::new(ListBilledHoursResponse {
                hours: page.cloned().collect(),
            }))
        })
    }

    async fn get_advice(&self, request: Request<GetAdviceRequest>) -> Answer<GetAdviceResponse> {
        let asked = request.into_inner();
        self.with(|state| {
            let flavor = state.flavor(&asked.flavor)?;
            let answer = GetAdviceResponse {
                flavor: flavor.name,
                age_hours: asked.age_hours,
                ..state.advice.clone()
            };
            state.advice_asked = Some(asked);
            Ok(Response::new(answer))
        })
    }
}

//! What an hour of a flavor costs, as the service `preemption` says on both clouds.

use ebbtide_client::Region;
use ebbtide_model::Money;
use ebbtide_proto::v1;

/// The price of a flavor, millionths; `None` if the service does not say.
pub(crate) async fn hourly(region: &Region, flavor: &str) -> Option<u64> {
    let request = v1::ListPricesRequest {};
    let answer = region.market.clone().list_prices(request).await.ok()?;
    let prices = answer.into_inner().prices;
    let own = prices.into_iter().find(|price| price.flavor == flavor)?;
    own.price.parse::<Money>().ok().map(Money::micros)
}

//! What an hour of the flavors costs, as the service `preemption` says on both clouds.

use ebbtide_client::Region;
use ebbtide_model::Money;
use ebbtide_proto::v1;
use std::collections::BTreeMap;

/// The prices by flavor, millionths; empty if the service does not say.
pub(crate) async fn hourly(region: &Region) -> BTreeMap<String, u64> {
    let request = v1::ListPricesRequest {};
    let answer = region.market.clone().list_prices(request).await;
    let prices = answer.map(|answer| answer.into_inner().prices);
    let each = prices.unwrap_or_default().into_iter();
    let known =
        each.filter_map(|one| Some((one.flavor, one.price.parse::<Money>().ok()?.micros())));
    known.collect()
}

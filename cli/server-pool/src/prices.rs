//! What an hour of the flavors costs, as the service `preemption` says on both clouds.

use ebbtide_client::Region;
use ebbtide_model::Money;
use ebbtide_proto::v1;
use ebbtide_shell::errors::CliError;
use std::collections::BTreeMap;

/// The prices by flavor, millionths.
///
/// # Errors
/// Those of the service.
pub(crate) async fn hourly(region: &Region) -> Result<BTreeMap<String, u64>, CliError> {
    let request = v1::ListPricesRequest {};
    let answer = region.market.clone().list_prices(request).await?;
    let each = answer.into_inner().prices.into_iter();
    let known =
        each.filter_map(|one| Some((one.flavor, one.price.parse::<Money>().ok()?.micros())));
    Ok(known.collect())
}

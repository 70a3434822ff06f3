//! What an hour of the flavors costs, as the service `preemption` says on both clouds.

use ebbtide_client::Region;
use ebbtide_model::Money;
use ebbtide_proto::v1;
use ebbtide_shell::errors::CliError;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

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

/// What an hour of a flavor cost at a time, millionths; `None` if no price was written down by
/// then.
///
/// # Errors
/// Those of the service.
pub(crate) async fn hourly_at(
    region: &Region,
    flavor: &str,
    at: i64,
) -> Result<Option<u64>, CliError> {
    // Prices are written down by the millisecond; one of that moment counts.
    let after = (i128::from(at) + 1) * 1_000_000;
    let before = OffsetDateTime::from_unix_timestamp_nanos(after).ok();
    let Some(before) = before.and_then(|before| before.format(&Rfc3339).ok()) else {
        return Ok(None);
    };
    let request = v1::ListPriceHistoryRequest {
        flavor: flavor.to_owned(),
        before,
        limit: 1,
        ..Default::default()
    };
    let answer = region.market.clone().list_price_history(request).await?;
    let last = answer.into_inner().prices.into_iter().next();
    let price = last.and_then(|one| one.price.parse::<Money>().ok());
    Ok(price.map(Money::micros).filter(|price| *price > 0))
}

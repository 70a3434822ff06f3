//! Prices: what an hour of each flavor costs, now and before.

use super::openstack::unread;
use super::{Answer, OpenStackView, RegionView};
use crate::region_actor::not_read;
use ebbtide_advice::Viewer;
use ebbtide_market::FlavorPrice;
use ebbtide_model::PricePoint;
use ebbtide_region::Region;
use ebbtide_store::{MAX_PAGE, PriceFilter};
use std::collections::BTreeSet;

/// The prices of a cloud, as a caller sees them.
pub(crate) trait CloudMarket: Send + Sync {
    /// One for each flavor that has a price, by name, and whether they follow supply and demand.
    fn prices<'a>(&'a self, viewer: &'a Viewer) -> Answer<'a, (Vec<FlavorPrice>, bool)>;
    /// Changes of prices, the latest first.
    fn price_history<'a>(
        &'a self,
        viewer: &'a Viewer,
        filter: PriceFilter,
    ) -> Answer<'a, Vec<PricePoint>>;
}

/// Every caller of a region may use every flavor.
impl CloudMarket for RegionView {
    fn prices<'a>(&'a self, _viewer: &'a Viewer) -> Answer<'a, (Vec<FlavorPrice>, bool)> {
        Box::pin(async move {
            let look = |region: &Region| (region.flavor_prices(), region.has_market());
            self.region_actor.read(look).await
        })
    }

    fn price_history<'a>(
        &'a self,
        _viewer: &'a Viewer,
        filter: PriceFilter,
    ) -> Answer<'a, Vec<PricePoint>> {
        Box::pin(async move { self.store.prices(&filter).await.map_err(|e| not_read(&e)) })
    }
}

/// The projects of a tenant, who sees the prices of flavors that they may use.
fn projects(viewer: &Viewer) -> Option<&[String]> {
    match viewer {
        Viewer::Everything => None,
        Viewer::Projects(projects) => Some(projects),
    }
}

impl CloudMarket for OpenStackView {
    fn prices<'a>(&'a self, viewer: &'a Viewer) -> Answer<'a, (Vec<FlavorPrice>, bool)> {
        Box::pin(async move {
            let reader = self.reader();
            let prices = reader.prices(projects(viewer)).await;
            Ok((prices.map_err(|e| unread(&e))?, reader.has_market()))
        })
    }

    fn price_history<'a>(
        &'a self,
        viewer: &'a Viewer,
        mut filter: PriceFilter,
    ) -> Answer<'a, Vec<PricePoint>> {
        Box::pin(async move {
            let Some(store) = self.price_store().await? else {
                return Ok(Vec::new());
            };
            let page = async |filter: &PriceFilter| {
                let page = store.prices(filter).await;
                page.map_err(|e| not_read(&e))
            };
            let Some(projects) = projects(viewer) else {
                return page(&filter).await;
            };
            let prices = self.reader().prices(Some(projects)).await;
            let prices = prices.map_err(|e| unread(&e))?.into_iter();
            let visible: BTreeSet<String> = prices.map(|price| price.flavor).collect();
            let hidden = filter
                .flavor
                .as_ref()
                .is_some_and(|flavor| !visible.contains(flavor));
            if hidden || visible.is_empty() {
                return Ok(Vec::new());
            }
            // A page is full unless it is the last one, whatever it leaves out.
            let limit = if filter.limit == 0 {
                MAX_PAGE
            } else {
                filter.limit
            };
            filter.limit = MAX_PAGE;
            let mut seen: Vec<PricePoint> = Vec::new();
            loop {
                let found = page(&filter).await?;
                let Some(last) = found.last() else {
                    return Ok(seen);
                };
                filter.marker = Some(last.key());
                for point in found {
                    if visible.contains(&point.flavor) {
                        seen.push(point);
                    }
                    if seen.len() >= limit as usize {
                        return Ok(seen);
                    }
                }
            }
        })
    }
}

//! Bills: the instance-hours of lives that are over and of servers that run, summed up by project
//! and flavor. The rule of an hour is [`ebbtide_market::billing`]'s.

use crate::cloud::{Api, ListedServer};
use crate::error::ServiceError;
use ebbtide_advice::Viewer;
use ebbtide_market::PriceLine;
use ebbtide_market::billing::{BillableLife, BilledHour, Charge, Sum, hours};
use ebbtide_model::{Money, PastLife, PricePoint, ServerStatus, Timestamp};
use ebbtide_store::{LifeFilter, MAX_PAGE, PriceFilter, ServerFilter};
use std::collections::BTreeMap;

/// Which hours are billed.
pub(crate) struct BilledHours {
    /// `None`: of all projects.
    pub(crate) project_id: Option<String>,
    /// Hours that began at this time or later.
    pub(crate) from: Option<Timestamp>,
    /// Hours that began before this time.
    pub(crate) before: Option<Timestamp>,
}

impl BilledHours {
    fn contains(&self, hour: &BilledHour) -> bool {
        self.from.is_none_or(|from| hour.from >= from)
            && self.before.is_none_or(|before| hour.from < before)
    }
}

/// What a project was charged for servers of a flavor.
#[derive(Default)]
pub(crate) struct Bill {
    pub(crate) charged_hours: u64,
    /// Hours that the provider ended.
    pub(crate) free_hours: u64,
    /// Hours without a known price.
    pub(crate) unknown_hours: u64,
    pub(crate) charged: Sum,
}

impl Bill {
    fn add(&mut self, hour: &BilledHour) {
        match hour.charge {
            Charge::Full | Charge::EndedByOwner => self.charged_hours += 1,
            Charge::EndedByProvider => self.free_hours += 1,
            Charge::PriceUnknown => self.unknown_hours += 1,
        }
        self.charged.add(hour.charged);
    }
}

/// By project and flavor.
pub(crate) type Bills = BTreeMap<(String, String), Bill>;

/// The bills of the hours that began before `now`, with the prices that the viewer may see.
///
/// # Errors
/// What reading lives, servers or prices says.
pub(crate) async fn bills(
    api: &Api,
    viewer: &Viewer,
    which: &BilledHours,
    now: Timestamp,
) -> Result<Bills, ServiceError> {
    let lines = price_lines(api, viewer, which.before).await?;
    let (prices, _) = api.market.prices(viewer).await?;
    let bases: BTreeMap<String, Money> = prices.into_iter().map(|p| (p.flavor, p.base)).collect();
    let mut bills = Bills::new();
    let mut add = |project: &str, flavor: &str, life: &BillableLife| {
        for hour in hours(life, lines.get(flavor), now).filter(|hour| which.contains(hour)) {
            let of = (project.to_owned(), flavor.to_owned());
            bills.entry(of).or_default().add(&hour);
        }
    };
    let mut filter = LifeFilter {
        project_id: which.project_id.clone(),
        ended_from: which.from,
        launched_before: which.before,
        limit: MAX_PAGE,
        ..LifeFilter::default()
    };
    loop {
        let page = api.cloud.lives(&filter).await?;
        for life in &page {
            add(&life.project_id, &life.flavor, &ended(life));
        }
        match page.last() {
            Some(last) => filter.marker = Some(last.key()),
            None => break,
        }
    }
    let mut filter = ServerFilter {
        project_id: which.project_id.clone(),
        limit: MAX_PAGE,
        ..ServerFilter::default()
    };
    loop {
        let page = api.cloud.servers(&filter).await?;
        for ListedServer { server, .. } in &page {
            let base = bases.get(&server.flavor.name).copied();
            if let Some(launched_at) = server.launched_at.filter(|_| runs(server.status)) {
                let life = BillableLife {
                    launched_at,
                    ended: None,
                    preemptible: server.flavor.is_preemptible(),
                    price_per_hour: base.unwrap_or_default(),
                };
                add(&server.project_id, &server.flavor.name, &life);
            }
        }
        match page.last() {
            Some(last) => filter.marker = Some(last.server.id),
            None => break,
        }
    }
    Ok(bills)
}

fn runs(status: ServerStatus) -> bool {
    use ServerStatus::{Active, Evacuating, Reserved};
    matches!(status, Active | Evacuating | Reserved)
}

fn ended(life: &PastLife) -> BillableLife {
    BillableLife {
        launched_at: life.launched_at,
        ended: Some((life.ended_at, life.end)),
        preemptible: life.preemptible,
        price_per_hour: life.price_per_hour,
    }
}

/// Prices over time, by flavor. Those before the first hour count, too: an hour has the last price
/// before it.
async fn price_lines(
    api: &Api,
    viewer: &Viewer,
    before: Option<Timestamp>,
) -> Result<BTreeMap<String, PriceLine>, ServiceError> {
    let mut filter = PriceFilter {
        before,
        limit: MAX_PAGE,
        ..PriceFilter::default()
    };
    let mut points: BTreeMap<String, Vec<PricePoint>> = BTreeMap::new();
    loop {
        let page = api.market.price_history(viewer, filter.clone()).await?;
        match page.last() {
            Some(last) => filter.marker = Some(last.key()),
            None => break,
        }
        for point in page {
            points.entry(point.flavor.clone()).or_default().push(point);
        }
    }
    // The latest came first; of two of one moment the later in the list counts.
    let lines = points.into_iter().map(|(flavor, points)| {
        let line = PriceLine::new(points.iter().rev());
        (flavor, line)
    });
    Ok(lines.collect())
}

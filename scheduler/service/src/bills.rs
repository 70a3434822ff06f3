//! Bills: the instance-hours of lives that are over and of servers that run, one by one and summed
//! up by project and flavor. The rule of an hour is [`ebbtide_market::billing`]'s.

use crate::cloud::{Api, ListedServer};
use crate::error::ServiceError;
use ebbtide_advice::Viewer;
use ebbtide_market::PriceLine;
use ebbtide_market::billing::{BillableLife, BilledHour, Charge, Sum, hour, hours};
use ebbtide_model::{Money, PastLife, PricePoint, ServerStatus, Timestamp};
use ebbtide_store::{LifeFilter, MAX_PAGE, PriceFilter, ServerFilter};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Which hours are billed.
#[derive(Clone)]
pub(crate) struct BilledPeriod {
    /// `None`: of all projects.
    pub(crate) project_id: Option<String>,
    /// Hours that began at this time or later.
    pub(crate) from: Option<Timestamp>,
    /// Hours that began before this time.
    pub(crate) before: Option<Timestamp>,
}

impl BilledPeriod {
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
    which: &BilledPeriod,
    now: Timestamp,
) -> Result<Bills, ServiceError> {
    let within = PriceFilter {
        before: which.before,
        ..PriceFilter::default()
    };
    let lines = price_lines(price_points(api, viewer, within).await?);
    let mut bills = Bills::new();
    each_instance(api, viewer, which, |of| {
        let all = hours(&of.billed, lines.get(&of.flavor), now);
        for hour in all.filter(|hour| which.contains(hour)) {
            let key = (of.project_id.clone(), of.flavor.clone());
            bills.entry(key).or_default().add(&hour);
        }
    })
    .await?;
    Ok(bills)
}

/// An instance whose hours are billed.
pub(crate) struct BilledInstance {
    pub(crate) project_id: String,
    pub(crate) server_id: String,
    pub(crate) name: String,
    pub(crate) flavor: String,
    billed: BillableLife,
}

/// The place of an hour in the list of hours, and its id.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HourKey {
    from: Timestamp,
    server_id: String,
}

impl fmt::Display for HourKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.from.as_millis(), self.server_id)
    }
}

/// A text that is no [`HourKey`].
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not the id of a billed hour")]
pub(crate) struct NoHourKey(String);

impl FromStr for HourKey {
    type Err = NoHourKey;

    fn from_str(text: &str) -> Result<Self, NoHourKey> {
        let wrong = || NoHourKey(text.to_owned());
        let (millis, server_id) = text.split_once('.').ok_or_else(wrong)?;
        Ok(Self {
            from: Timestamp::from_millis(millis.parse().map_err(|_| wrong())?),
            server_id: server_id.to_owned(),
        })
    }
}

/// An hour and whose it is.
pub(crate) struct InstanceHour {
    pub(crate) of: Arc<BilledInstance>,
    pub(crate) hour: BilledHour,
}

impl InstanceHour {
    pub(crate) fn key(&self) -> HourKey {
        HourKey {
            from: self.hour.from,
            server_id: self.of.server_id.clone(),
        }
    }
}

/// The first `most` hours after a place that began before `now`, with the prices that the viewer
/// may see. Memory is bounded by `most`, not by the hours of the period.
///
/// # Errors
/// What reading lives, servers or prices says.
pub(crate) async fn instance_hours(
    api: &Api,
    viewer: &Viewer,
    which: &BilledPeriod,
    after: Option<HourKey>,
    most: u32,
    now: Timestamp,
) -> Result<Vec<InstanceHour>, ServiceError> {
    let from = which.from.max(after.as_ref().map(|key| key.from));
    let rest = BilledPeriod {
        from,
        ..which.clone()
    };
    let mut first: BTreeMap<HourKey, (Arc<BilledInstance>, u32)> = BTreeMap::new();
    each_instance(api, viewer, &rest, |of| {
        let of = Arc::new(of);
        // When an hour begins does not depend on its price.
        for hour in hours(&of.billed, None, now).filter(|hour| rest.contains(hour)) {
            let row = InstanceHour {
                of: Arc::clone(&of),
                hour,
            };
            let key = row.key();
            if after.as_ref().is_some_and(|after| key <= *after) {
                continue;
            }
            first.insert(key.clone(), (row.of, hour.number));
            if first.len() > most as usize && first.pop_last().is_some_and(|(k, _)| k == key) {
                // The later hours of this instance do not fit either.
                break;
            }
        }
    })
    .await?;
    let lines = lines_of(api, viewer, which.before, &first).await?;
    let rows = first.into_values().filter_map(|(of, number)| {
        let hour = hour(&of.billed, lines.get(&of.flavor), number, now)?;
        Some(InstanceHour { of, hour })
    });
    Ok(rows.collect())
}

/// The prices of these hours. A market whose first known price is a later one, but one before the
/// end of the period, leaves hours without a price: their flavor has a line without points.
async fn lines_of(
    api: &Api,
    viewer: &Viewer,
    before: Option<Timestamp>,
    rows: &BTreeMap<HourKey, (Arc<BilledInstance>, u32)>,
) -> Result<BTreeMap<String, PriceLine>, ServiceError> {
    let (Some((first, _)), Some((last, _))) = (rows.first_key_value(), rows.last_key_value())
    else {
        return Ok(BTreeMap::new());
    };
    let past = |at: Timestamp| Timestamp::from_millis(at.as_millis().saturating_add(1));
    let within = PriceFilter {
        from: Some(past(first.from)),
        before: Some(past(last.from)),
        ..PriceFilter::default()
    };
    let mut points = price_points(api, viewer, within).await?;
    let preemptible = rows.values().filter(|(of, _)| of.billed.preemptible);
    let flavors: BTreeSet<String> = preemptible.map(|(of, _)| of.flavor.clone()).collect();
    for flavor in flavors {
        let latest = async |before: Option<Timestamp>| {
            let filter = PriceFilter {
                flavor: Some(flavor.clone()),
                before,
                limit: 1,
                ..PriceFilter::default()
            };
            api.market.price_history(viewer, filter).await
        };
        let earlier = latest(Some(past(first.from))).await?;
        let known = !earlier.is_empty() || points.contains_key(&flavor);
        if known || !latest(before).await?.is_empty() {
            points.entry(flavor).or_default().extend(earlier);
        }
    }
    Ok(price_lines(points))
}

/// Calls `add` with each instance that has lived within the period: lives that are over, and
/// servers that run.
async fn each_instance(
    api: &Api,
    viewer: &Viewer,
    which: &BilledPeriod,
    mut add: impl FnMut(BilledInstance) + Send,
) -> Result<(), ServiceError> {
    let (prices, _) = api.market.prices(viewer).await?;
    let bases: BTreeMap<String, Money> = prices.into_iter().map(|p| (p.flavor, p.base)).collect();
    let mut filter = LifeFilter {
        project_id: which.project_id.clone(),
        ended_from: which.from,
        launched_before: which.before,
        limit: MAX_PAGE,
        ..LifeFilter::default()
    };
    loop {
        let page = api.cloud.lives(&filter).await?;
        page.iter().for_each(|life| add(ended(life)));
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
                add(BilledInstance {
                    project_id: server.project_id.clone(),
                    server_id: server.id.to_string(),
                    name: server.name.clone(),
                    flavor: server.flavor.name.clone(),
                    billed: BillableLife {
                        launched_at,
                        ended: None,
                        preemptible: server.flavor.is_preemptible(),
                        price_per_hour: base.unwrap_or_default(),
                    },
                });
            }
        }
        match page.last() {
            Some(last) => filter.marker = Some(last.server.id),
            None => break,
        }
    }
    Ok(())
}

fn runs(status: ServerStatus) -> bool {
    use ServerStatus::{Active, Evacuating, Reserved};
    matches!(status, Active | Evacuating | Reserved)
}

fn ended(life: &PastLife) -> BilledInstance {
    BilledInstance {
        project_id: life.project_id.clone(),
        server_id: life.server_id.to_string(),
        name: life.name.clone(),
        flavor: life.flavor.clone(),
        billed: BillableLife {
            launched_at: life.launched_at,
            ended: Some((life.ended_at, life.end)),
            preemptible: life.preemptible,
            price_per_hour: life.price_per_hour,
        },
    }
}

/// Price points by flavor, the latest first.
type PricePoints = BTreeMap<String, Vec<PricePoint>>;

/// All changes of prices that fit. What the filter says about pages does not count.
async fn price_points(
    api: &Api,
    viewer: &Viewer,
    mut filter: PriceFilter,
) -> Result<PricePoints, ServiceError> {
    filter.limit = MAX_PAGE;
    let mut points = PricePoints::new();
    loop {
        let page = api.market.price_history(viewer, filter.clone()).await?;
        match page.last() {
            Some(last) => filter.marker = Some(last.key()),
            None => return Ok(points),
        }
        for point in page {
            points.entry(point.flavor.clone()).or_default().push(point);
        }
    }
}

/// Prices over time, by flavor. Those before the first hour count, too: an hour has the last price
/// before it.
fn price_lines(points: PricePoints) -> BTreeMap<String, PriceLine> {
    // The latest come first; of two of one moment the later in the list counts.
    let lines = points.into_iter().map(|(flavor, points)| {
        let line = PriceLine::new(points.iter().rev());
        (flavor, line)
    });
    lines.collect()
}

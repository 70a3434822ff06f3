//! Whole lists from a region that answers in pages.

use crate::ClientError;
use crate::Region;
use ebbtide_proto::v1;

/// The largest page.
const PAGE: u32 = 1000;

/// All servers of a project that are not gone; of all projects if it is empty.
///
/// # Errors
/// What the region says. The same holds for all lists.
pub async fn servers(region: &mut Region, project: &str) -> Result<Vec<v1::Server>, ClientError> {
    let request = v1::ListServersRequest {
        project_id: project.to_owned(),
        ..Default::default()
    };
    servers_where(region, request, None).await
}

/// All servers that match, page by page, or as many as `limit`.
///
/// # Errors
/// What the region says.
pub async fn servers_where(
    region: &mut Region,
    mut request: v1::ListServersRequest,
    limit: Option<u32>,
) -> Result<Vec<v1::Server>, ClientError> {
    let mut all: Vec<v1::Server> = Vec::new();
    loop {
        let have = u32::try_from(all.len()).unwrap_or(u32::MAX);
        let want = limit.map_or(PAGE, |limit| limit.saturating_sub(have).min(PAGE));
        if want == 0 {
            return Ok(all);
        }
        request.limit = want;
        let page = region
            .servers
            .list_servers(request.clone())
            .await?
            .into_inner()
            .servers;
        let full = page.len() >= want as usize;
        // The marker must move on, or a region that ignores it would keep us here for ever.
        match page.last() {
            Some(last) if full && last.id != request.marker => request.marker = last.id.clone(),
            _ => {
                all.extend(page);
                return Ok(all);
            }
        }
        all.extend(page);
    }
}

/// All lives that fit, the latest launch first. What the request says about pages does not count.
///
/// # Errors
/// As [`servers`].
pub async fn lives(
    region: &mut Region,
    wanted: v1::ListLivesRequest,
) -> Result<Vec<v1::Life>, ClientError> {
    let mut all: Vec<v1::Life> = Vec::new();
    loop {
        let request = v1::ListLivesRequest {
            limit: PAGE,
            marker: all.last().map(|last| last.id.clone()).unwrap_or_default(),
            ..wanted.clone()
        };
        let page = region.market.list_lives(request).await?.into_inner().lives;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// All changes of prices that fit, the latest first.
///
/// # Errors
/// As [`servers`].
pub async fn price_changes(
    region: &mut Region,
    wanted: v1::ListPriceHistoryRequest,
) -> Result<Vec<v1::PriceRecord>, ClientError> {
    let mut all: Vec<v1::PriceRecord> = Vec::new();
    loop {
        let request = v1::ListPriceHistoryRequest {
            limit: PAGE,
            marker: all.last().map(|last| last.id.clone()).unwrap_or_default(),
            ..wanted.clone()
        };
        let page = region.market.list_price_history(request).await?;
        let page = page.into_inner().prices;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// All instance-hours that fit, the earliest first.
///
/// # Errors
/// As [`servers`].
pub async fn billed_hours(
    region: &mut Region,
    wanted: v1::ListBilledHoursRequest,
) -> Result<Vec<v1::BilledHour>, ClientError> {
    let mut all: Vec<v1::BilledHour> = Vec::new();
    loop {
        let request = v1::ListBilledHoursRequest {
            limit: PAGE,
            marker: all.last().map(|last| last.id.clone()).unwrap_or_default(),
            ..wanted.clone()
        };
        let page = region.market.list_billed_hours(request).await?;
        let page = page.into_inner().hours;
        if page.is_empty() {
            return Ok(all);
        }
        all.extend(page);
    }
}

/// True for a server that its owner can use: neither being started nor being deleted.
#[must_use]
pub fn runs(server: &v1::Server) -> bool {
    matches!(server.status.as_str(), "active" | "evacuating" | "reserved")
}

//! Whole lists from a region that answers in pages.

use crate::client::Region;
use crate::errors::CliError;
use ebbtide_proto::v1;

/// The largest page.
const PAGE: u32 = 1000;

/// All servers of a project that are not gone; of all projects if it is empty.
///
/// # Errors
/// What the region says. The same holds for all lists.
pub async fn servers(region: &mut Region, project: &str) -> Result<Vec<v1::Server>, CliError> {
    let mut all: Vec<v1::Server> = Vec::new();
    loop {
        let request = v1::ListServersRequest {
            project_id: project.to_owned(),
            limit: PAGE,
            marker: all.last().map(|last| last.id.clone()).unwrap_or_default(),
            ..Default::default()
        };
        let page = region.servers.list_servers(request).await?;
        let page = page.into_inner().servers;
        let full = page.len() >= PAGE as usize;
        all.extend(page);
        if !full {
            return Ok(all);
        }
    }
}

/// All lives that fit, the latest launch first. What the request says about pages does not count.
///
/// # Errors
/// As [`servers`].
pub async fn lives(
    region: &mut Region,
    wanted: v1::ListLivesRequest,
) -> Result<Vec<v1::Life>, CliError> {
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
) -> Result<Vec<v1::PriceRecord>, CliError> {
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

/// True for a server that its owner can use: neither being started nor being deleted.
#[must_use]
pub fn runs(server: &v1::Server) -> bool {
    matches!(server.status.as_str(), "active" | "evacuating" | "reserved")
}

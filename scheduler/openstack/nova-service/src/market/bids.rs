//! The most that owners pay for an hour: a scheduler hint of the request, else the flavor's.

use crate::error::NovaServiceError;
use ebbtide_model::{Flavor, Money};
use ebbtide_nova::model::RequestSpec;
use ebbtide_nova_cloud::PricedServer;
use ebbtide_nova_db::NovaDb;
use std::collections::{HashMap, HashSet};
use uuid::Uuid;

/// The hint of a request.
pub(crate) const MAX_PRICE_HINT: &str = "ebbtide:max_price";

/// The flavor's own maximum price.
fn of_flavor(flavor: &Flavor) -> Option<Money> {
    let properties = flavor.properties().ok();
    properties.and_then(|properties| properties.max_price)
}

/// The most that the owner of a request pays; `None`: what the market asks.
///
/// # Errors
/// The hint is no price, in words.
pub(crate) fn bid_of_request(spec: &RequestSpec, flavor: &Flavor) -> Result<Option<Money>, String> {
    let Some(values) = spec.hint(MAX_PRICE_HINT) else {
        return Ok(of_flavor(flavor));
    };
    let wrong = |why: &str| format!("EB-DOOR-066: the hint {MAX_PRICE_HINT}: {why}");
    let [text] = values else {
        return Err(wrong("give one price, as in 0.031"));
    };
    let price = text.parse::<Money>();
    price.map(Some).map_err(|error| wrong(&error.to_string()))
}

/// The most that a server's owner pays; `None`: what the market asks. A hint that is no price
/// counts as not said.
///
/// # Errors
/// Those of Nova's databases.
pub(super) async fn bid_of_server(
    nova: &NovaDb,
    server: Uuid,
    flavor: &Flavor,
) -> Result<Option<Money>, NovaServiceError> {
    let mut found = nova.hints_of(MAX_PRICE_HINT, &[server.to_string()]).await?;
    let hint = match found.remove(&server.to_string()).as_deref() {
        Some([price]) => price.parse().ok(),
        _ => None,
    };
    Ok(hint.or_else(|| of_flavor(flavor)))
}

/// Most hints that are read at once. What was read stays, if a later read fails.
const CHUNK: usize = 200;

/// The hints of preemptible servers that exist. A server's hint does not change.
#[derive(Default)]
pub(super) struct KnownBids {
    /// `None`: no hint, or one that is no price.
    hints: HashMap<Uuid, Option<Money>>,
}

impl KnownBids {
    /// Reads the hints of servers that were not known, and forgets those that are gone.
    pub(super) async fn follow(
        &mut self,
        nova: &NovaDb,
        servers: &[PricedServer],
    ) -> Result<(), NovaServiceError> {
        let present: HashSet<Uuid> = servers.iter().map(|server| server.uuid).collect();
        self.hints.retain(|uuid, _| present.contains(uuid));
        let unknown = present.iter().filter(|uuid| !self.hints.contains_key(uuid));
        let unknown: Vec<Uuid> = unknown.copied().collect();
        for chunk in unknown.chunks(CHUNK) {
            let asked: Vec<String> = chunk.iter().map(Uuid::to_string).collect();
            let mut found = nova.hints_of(MAX_PRICE_HINT, &asked).await?;
            for (uuid, text) in chunk.iter().zip(&asked) {
                let price = match found.remove(text).as_deref() {
                    Some([price]) => price.parse().ok(),
                    _ => None,
                };
                self.hints.insert(*uuid, price);
            }
        }
        Ok(())
    }

    /// The most that a server's owner pays; `None`: what the market asks.
    pub(super) fn of(&self, server: &PricedServer) -> Option<Money> {
        let hint = self.hints.get(&server.uuid).copied().flatten();
        hint.or(server.max_price)
    }
}

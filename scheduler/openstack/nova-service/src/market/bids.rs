//! The most that owners pay for an hour: a scheduler hint of the request, else the flavor's.

use crate::error::NovaServiceError;
use crate::facts::Facts;
use ebbtide_model::{Flavor, Money, Server, ServerId, ServerStatus};
use ebbtide_nova::model::RequestSpec;
use std::collections::HashMap;

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

/// The hints of preemptible servers that exist. A server's hint does not change.
#[derive(Default)]
pub(super) struct KnownBids {
    /// `None`: no hint, or one that is no price.
    hints: HashMap<ServerId, Option<Money>>,
}

impl KnownBids {
    /// Reads the hints of servers that were not known, and forgets those that are gone.
    pub(super) async fn follow(
        &mut self,
        facts: &Facts,
        servers: &[Server],
    ) -> Result<(), NovaServiceError> {
        let present: HashMap<ServerId, Option<Money>> = servers
            .iter()
            .filter_map(|server| Some((server.id, *self.hints.get(&server.id)?)))
            .collect();
        self.hints = present;
        let unknown = servers.iter().map(|server| server.id);
        let unknown = unknown.filter(|id| !self.hints.contains_key(id));
        let unknown: Vec<String> = unknown.map(|id| id.to_string()).collect();
        let nova = facts.database.nova();
        let mut found = nova.hints_of(MAX_PRICE_HINT, &unknown).await?;
        for uuid in unknown {
            let hint = found.remove(&uuid).unwrap_or_default();
            let price = match hint.as_slice() {
                [text] => text.parse().ok(),
                _ => None,
            };
            if let Ok(id) = uuid.parse() {
                self.hints.insert(id, price);
            }
        }
        Ok(())
    }

    /// The most that a server's owner pays; `None`: what the market asks.
    pub(super) fn of(&self, server: &Server) -> Option<Money> {
        let hint = self.hints.get(&server.id).copied().flatten();
        hint.or_else(|| of_flavor(&server.flavor))
    }
}

/// The servers that a price can end.
pub(super) fn running(facts: &Facts) -> Vec<Server> {
    let mut servers = facts.read(ebbtide_nova_cloud::Cloud::servers);
    servers.retain(|server| {
        server.is_preemptible() && server.status == ServerStatus::Active && server.host.is_some()
    });
    servers
}

//! The most that owners of preemptible servers pay for an hour.

use super::Cloud;
use crate::flavor::PreemptibleTerms;
use ebbtide_model::Money;
use std::collections::HashMap;
use uuid::Uuid;

impl Cloud {
    /// Whether these are the present bids.
    #[must_use]
    pub fn has_bids(&self, bids: &HashMap<Uuid, Money>) -> bool {
        self.bids == *bids
    }

    /// Tells the bids, by server. A server without one has what its flavor says: the maximum price,
    /// or else the price.
    pub fn set_bids(&mut self, bids: HashMap<Uuid, Money>) {
        let differ = |(uuid, bid): (&Uuid, &Money), others: &HashMap<Uuid, Money>| {
            (others.get(uuid) != Some(bid)).then_some(*uuid)
        };
        let new = bids.iter().filter_map(|bid| differ(bid, &self.bids));
        let old = self.bids.iter().filter_map(|bid| differ(bid, &bids));
        let changed: Vec<Uuid> = new.chain(old).collect();
        self.bids = bids;
        for uuid in changed {
            if self.instances.contains_key(&uuid) {
                self.count_again(uuid);
            }
        }
    }

    /// The most that the owner of a server pays for an hour.
    pub(super) fn bid_of(&self, uuid: Uuid, terms: &PreemptibleTerms) -> Money {
        let bid = self.bids.get(&uuid).copied();
        bid.or(terms.max_price).unwrap_or(terms.price_per_hour)
    }
}

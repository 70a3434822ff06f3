//! What a request that writes nothing would hold: the claims of its own that it has to see.

use crate::facts::Facts;
use ebbtide_openstack::NewClaim;
use ebbtide_swap::taken_by;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use uuid::Uuid;

/// Amounts by provider and class.
type Amounts = BTreeMap<Uuid, BTreeMap<String, u64>>;

/// What the instances of a what-if would hold so far, by instance.
#[derive(Default)]
pub(super) struct Trial {
    claims: Mutex<HashMap<Uuid, Amounts>>,
}

/// Why a claim is refused, in the words of an explanation.
const NO_ROOM: &str = "there is no capacity left beside the other servers of the request";

impl Trial {
    /// What Placement would say to a claim beside those before it. The first one of a host was
    /// compared with all of Placement's limits when the host became a candidate.
    pub(super) fn claim(&self, facts: &Facts, new: &NewClaim) -> Result<(), &'static str> {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        let takes = taken_by(new);
        let fits = takes.iter().all(|(provider, amounts)| {
            let mut sums = amounts.clone();
            for (class, amount) in claims
                .values()
                .filter_map(|all| all.get(provider))
                .flatten()
            {
                *sums.entry(class.clone()).or_default() += amount;
            }
            facts.read(|cloud| cloud.has_left(*provider, &sums))
        });
        if !fits {
            return Err(NO_ROOM);
        }
        claims.insert(new.consumer, takes);
        Ok(())
    }

    /// The request gives a claim back.
    pub(super) fn release(&self, consumer: Uuid) {
        let mut claims = self.claims.lock().unwrap_or_else(PoisonError::into_inner);
        claims.remove(&consumer);
    }
}

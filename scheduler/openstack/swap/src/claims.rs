//! Claims of requests that find capacity, if the instance may already hold something.

use crate::Amounts;
use ebbtide_openstack::{AllocationResult, NewClaim, OpenStackError, Placement, Resources};
use std::collections::BTreeMap;
use std::future::Future;
use uuid::Uuid;

/// The amounts of a claim, by provider.
#[must_use]
pub fn taken_by(new: &NewClaim) -> Amounts {
    let mut taken = Amounts::new();
    for (provider, class, amount) in new.resources.amounts() {
        let of = taken.entry(provider).or_default();
        of.insert(class.to_owned(), amount);
    }
    taken
}

/// Writes a claim for a request that may have been begun before, by a scheduler that died, or whose
/// answer was lost: existing allocations are an earlier claim and are replaced. Only what the
/// instance holds on its current host stays (its owner evacuates it). `home` returns that host's
/// provider; it is called only if the instance holds anything.
///
/// # Errors
/// Those of Placement, with the effect unknown.
pub async fn replace(
    placement: &Placement,
    new: &NewClaim,
    home: impl Future<Output = Option<Uuid>>,
) -> Result<AllocationResult, OpenStackError> {
    let current = placement.allocations(new.consumer).await?;
    if current.allocations.is_empty() {
        return placement.claim_new(new).await;
    }
    let home = home.await;
    let mut wanted = taken_by(new);
    let mut stays = false;
    for (provider, of) in &current.allocations {
        if Some(*provider) == home && !wanted.contains_key(provider) {
            wanted.insert(*provider, of.resources.clone());
            stays = true;
        }
    }
    let resources = if stays {
        Resources::from_amounts(&wanted)?
    } else {
        new.resources.clone()
    };
    let replaced = NewClaim {
        resources,
        generation: current.consumer_generation,
        ..new.clone()
    };
    match placement.put_allocations(&replaced).await {
        Ok(()) => Ok(AllocationResult::Yes),
        Err(OpenStackError::Conflict { code, text, .. }) => Ok(AllocationResult::No {
            status: 409,
            code,
            text,
        }),
        Err(error) => Err(error),
    }
}

/// Whether Placement has the claim, after a lost answer.
///
/// # Errors
/// Those of Placement: it is unknown.
pub async fn holds(placement: &Placement, new: &NewClaim) -> Result<bool, OpenStackError> {
    let held = placement.allocations(new.consumer).await?;
    Ok(new.resources.amounts().all(|(provider, class, amount)| {
        held.allocations
            .get(&provider)
            .is_some_and(|of| of.resources.get(class) == Some(&amount))
    }))
}

/// Deletes claims of one consumer, and keeps what it holds on other providers (an instance that its
/// owner evacuates).
///
/// # Errors
/// Those of Placement. The caller can retry.
pub async fn take_back(placement: &Placement, claims: &[NewClaim]) -> Result<(), OpenStackError> {
    let Some(new) = claims.first() else {
        return Ok(());
    };
    let current = placement.allocations(new.consumer).await?;
    let ours = |provider: &Uuid| {
        let mut claims = claims.iter();
        claims.any(|claim| taken_by(claim).contains_key(provider))
    };
    if !current.allocations.keys().any(ours) {
        return Ok(());
    }
    let rest: BTreeMap<Uuid, BTreeMap<String, u64>> = current
        .allocations
        .into_iter()
        .filter(|(provider, _)| !ours(provider))
        .map(|(provider, of)| (provider, of.resources))
        .collect();
    if rest.is_empty() {
        let deleted = placement.delete_allocations(new.consumer).await;
        return deleted.map(drop);
    }
    let rest = NewClaim {
        resources: Resources::from_amounts(&rest)?,
        generation: current.consumer_generation,
        ..new.clone()
    };
    placement.put_allocations(&rest).await
}

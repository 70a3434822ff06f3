//! The expected remaining lifetime of the victim, by a lifetime model. Instances near their end
//! leave first.
//!
//! - Cost: the expected remaining lifetime at the victim's age, `E[T − s | T > s] = ∫ (1 − F(t)) dt
//!   / (1 − F(s))` from its age s on, in hours, times its CPUs (virtual and physical ones together;
//!   at least 1). An instance whose flavor has a maximum lifetime expects no more than is left of
//!   that.
//! - Chooses: instances near their end, be it the maximum lifetime or an age at which many end. A
//!   bathtub model spares those that have survived the early ends; a hazard that rises takes the
//!   oldest first, one that falls the youngest.
//! - Needs `engine.lifetime_model`: models by flavor, by zone, by both, or one for all, as `ebbtide
//!   model fit --output json` writes them. An instance goes by the nearest group: its flavor in its
//!   zone, its flavor, its zone, all.
//! - Why CPU-hours: what is lost is work that would have been done, and eight CPUs would have done
//!   eight times as much. So one instance of eight CPUs is as dear as eight of one, and no size is
//!   preferred as such; without the factor large ones would go first.
//! - Without a model (`all()` for lists and tests; the configuration refuses it) all cost 0, and
//!   the engine's ties decide.
//!
//! Invariants: no more life is lost for a longer remaining life; a cost is finite and not negative
//! whatever the age.
//!
//! Source: the remaining lifetime is that of Kadupitiya et al., HPDC 2020, equation 3 with its
//! lower limit at the age, and with the atom at the maximum that the paper leaves out. That the
//! provider goes by it is our own.

use crate::columns::check;
use ebbtide_cost_api::{
    CostError, CostModule, Fact, FactColumn, MAX_COST, NO_END, Texts, VictimBatch,
};
use ebbtide_model::{LifeTable, LifeTables};
use std::collections::HashMap;

pub(crate) const NAME: &str = "remaining_lifetime";

const SECONDS_PER_HOUR: f64 = 3600.0;

/// See the module's text.
#[derive(Debug, Clone)]
pub struct RemainingLifetime {
    lifetimes: Option<LifeTables>,
    facts: Vec<Fact>,
}

impl RemainingLifetime {
    /// With what is known of lifetimes.
    pub(crate) fn new(lifetimes: Option<LifeTables>) -> Self {
        let zones = lifetimes.as_ref().is_some_and(LifeTables::knows_zones);
        Self {
            lifetimes,
            // Most models have no zones, and then the caller need not supply them.
            facts: zones
                .then_some(Fact::AvailabilityZone)
                .into_iter()
                .collect(),
        }
    }

    /// The zone of each candidate, if the models need it.
    fn zones<'a>(&self, victims: &VictimBatch<'a>) -> Result<Option<&'a Texts>, CostError> {
        let Some(fact) = self.facts.first() else {
            return Ok(None);
        };
        match victims.fact(fact)? {
            FactColumn::Texts(texts) => Ok(Some(texts)),
            FactColumn::Numbers(_) => Err(CostError::MissingFact(fact.clone())),
        }
    }
}

/// The text of a row, and a number that is the same for equal texts.
fn lifetime_facts(texts: Option<&Texts>, row: usize) -> (Option<u32>, &str) {
    texts.map_or((None, ""), |texts| {
        (texts.codes.get(row).copied(), texts.get(row))
    })
}

impl CostModule for RemainingLifetime {
    fn name(&self) -> &str {
        NAME
    }

    fn unit(&self) -> &str {
        "CPU-hours that were still to be expected"
    }

    fn facts(&self) -> &[Fact] {
        &self.facts
    }

    fn reads_flavors(&self) -> bool {
        self.lifetimes.is_some()
    }

    fn cost(&self, victims: &VictimBatch<'_>, out: &mut [f64]) -> Result<(), CostError> {
        check(victims, "age_seconds", victims.age_seconds.len())?;
        check(victims, "vcpus", victims.vcpus.len())?;
        check(victims, "ends_in_seconds", victims.ends_in_seconds.len())?;
        check(victims, "out", out.len())?;
        let Some(lifetimes) = &self.lifetimes else {
            out.fill(0.0);
            return Ok(());
        };
        let flavors = victims.flavors.ok_or(CostError::MissingFlavors)?;
        let zones = self.zones(victims)?;
        // There are few flavors and zones, and many candidates.
        let mut known: HashMap<(Option<u32>, Option<u32>), &LifeTable> = HashMap::new();
        for (row, out) in out.iter_mut().enumerate() {
            let (flavor, flavor_name) = lifetime_facts(Some(flavors), row);
            let (zone, zone_name) = lifetime_facts(zones, row);
            let table = known
                .entry((flavor, zone))
                .or_insert_with(|| lifetimes.find(flavor_name, zone_name));
            let end = victims.ends_in_seconds[row];
            let left = table.remaining(victims.age_seconds[row], (end < NO_END).then_some(end));
            *out = (left / SECONDS_PER_HOUR * victims.vcpus[row].max(1.0)).clamp(0.0, MAX_COST);
        }
        Ok(())
    }
}

//! The one list of built-in cost modules. A new cost module is a file, a line in `build`, and
//! nothing else.
//!
//! Invariant: names are unique and snake_case.

use crate::options::{ConfigError, CostModuleOptions};
use crate::{
    fairness, lowest_bid, newest_first, num_instances, oldest_first, partial_hour, priority_class,
    remaining_lifetime, revenue,
};
use ebbtide_cost_api::CostModule;
use std::sync::Arc;

/// The module that is used where nothing else is configured.
pub const DEFAULT: &str = "partial_hour";

/// Every cost module with these options; the default first.
fn build(options: &CostModuleOptions) -> Vec<Arc<dyn CostModule>> {
    vec![
        Arc::new(partial_hour::PartialHour::new(options.period_seconds)),
        Arc::new(num_instances::NumInstances),
        Arc::new(oldest_first::OldestFirst::new(options.horizon_seconds)),
        Arc::new(newest_first::NewestFirst),
        Arc::new(priority_class::PriorityClass),
        Arc::new(revenue::Revenue::new(options.period_seconds)),
        Arc::new(lowest_bid::LowestBid),
        Arc::new(fairness::Fairness::new(
            options.period_seconds,
            options.fairness_seconds,
        )),
        Arc::new(remaining_lifetime::RemainingLifetime::new(
            options.lifetimes.clone(),
        )),
    ]
}

/// Every built-in cost module, with default options: `remaining_lifetime` has no model then, and
/// all cost the same.
#[must_use]
pub fn all() -> Vec<Arc<dyn CostModule>> {
    build(&CostModuleOptions::default())
}

/// The names of all built-in cost modules, in the order of [`all`].
#[must_use]
pub fn names() -> Vec<String> {
    all()
        .iter()
        .map(|module| module.name().to_owned())
        .collect()
}

/// The cost module of that name. `partial-hour` is the same as `partial_hour`.
///
/// # Errors
/// [`ConfigError::UnknownCostModule`], which lists the names, an option that is out of range, or
/// [`ConfigError::NoLifetimes`].
pub fn by_name(
    name: &str,
    options: &CostModuleOptions,
) -> Result<Arc<dyn CostModule>, ConfigError> {
    options.check()?;
    let wanted = name.replace('-', "_");
    if wanted == remaining_lifetime::NAME && options.lifetimes.is_none() {
        return Err(ConfigError::NoLifetimes { name: wanted });
    }
    build(options)
        .into_iter()
        .find(|module| module.name() == wanted)
        .ok_or_else(|| ConfigError::UnknownCostModule {
            name: name.to_owned(),
            known: names(),
        })
}

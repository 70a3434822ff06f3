//! How much a weigher counts on a host (`get_weight_multiplier`).

use crate::model::HostState;
use ebbtide_weigher_api::{Weigher, arithmetic};

/// Where a weigher's multiplier comes from.
#[derive(Debug, Clone, Copy)]
pub struct MultiplierSource<'a> {
    key: &'a str,
    configured: Option<f64>,
    sign: f64,
}

impl<'a> MultiplierSource<'a> {
    /// A weigher with its configured multiplier.
    pub fn new(weigher: &'a dyn Weigher, configured: Option<f64>) -> Self {
        Self {
            key: weigher.multiplier_key(),
            configured,
            sign: weigher.multiplier_sign(),
        }
    }

    /// The multiplier on a host, turned round where the weigher says so. `None`: neither aggregates
    /// nor configuration give one.
    #[must_use]
    pub fn of(&self, host: &HostState) -> Option<f64> {
        let values = host
            .aggregates
            .iter()
            .filter_map(|a| a.metadata.get(self.key));
        let own = arithmetic::multiplier(values.map(String::as_str), self.configured);
        own.map(|own| {
            if self.sign == 1.0 {
                own
            } else {
                self.sign * own
            }
        })
    }
}

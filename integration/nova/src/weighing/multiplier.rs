//! How much a weigher counts on a host (`get_weight_multiplier`).

use crate::model::HostState;
use crate::python::number;
use ebbtide_weigher_api::Weigher;

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
        let own = multiplier_of(values.map(String::as_str), self.configured);
        own.map(|own| {
            if self.sign == 1.0 {
                own
            } else {
                self.sign * own
            }
        })
    }
}

/// The smallest of what a host's aggregates say; the configured one if none says anything or one of
/// them is no number. Where one says NaN Nova's `min` depends on the order of a set; here NaN is
/// larger than everything.
#[must_use]
pub fn multiplier_of<'a>(
    values: impl Iterator<Item = &'a str>,
    configured: Option<f64>,
) -> Option<f64> {
    let mut smallest: Option<f64> = None;
    for value in values {
        let Some(value) = number::float(value) else {
            return configured;
        };
        smallest = Some(match smallest {
            Some(known) if value.is_nan() || known <= value => known,
            _ => value,
        });
    }
    smallest.or(configured)
}

#[cfg(test)]
mod tests {
    use super::multiplier_of;

    #[test]
    fn the_smallest_value_counts_unless_one_is_no_number() {
        assert_eq!(multiplier_of([].into_iter(), Some(1.5)), Some(1.5));
        assert_eq!(
            multiplier_of(["3", " -2.0 ", "1_0"].into_iter(), Some(1.5)),
            Some(-2.0)
        );
        assert_eq!(
            multiplier_of(["3", "2,5"].into_iter(), Some(1.5)),
            Some(1.5)
        );
        assert_eq!(
            multiplier_of(["nan", "3"].into_iter(), Some(1.5)),
            Some(3.0)
        );
        assert_eq!(
            multiplier_of(["3", "nan"].into_iter(), Some(1.5)),
            Some(3.0)
        );
        assert!(multiplier_of(["nan"].into_iter(), Some(1.5)).is_some_and(f64::is_nan));
        assert_eq!(multiplier_of(["x"].into_iter(), None), None);
    }
}

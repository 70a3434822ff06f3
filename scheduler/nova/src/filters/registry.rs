//! The one list of filters. A new filter is a file, a line here, and nothing else.

use super::{Filter, NumaTopologyFits, PciPassthrough};

/// All filters, by class name.
#[must_use]
pub fn all() -> Vec<&'static dyn Filter> {
    vec![&NumaTopologyFits, &PciPassthrough]
}

/// The filter of one of Nova's class names.
#[must_use]
pub fn by_name(name: &str) -> Option<&'static dyn Filter> {
    all().into_iter().find(|filter| filter.name() == name)
}

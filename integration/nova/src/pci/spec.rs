//! Whether a pool has the properties that a request asks for (`nova/pci/utils.py`,
//! `pci_device_prop_match`).

use crate::model::{PciPool, PciRequest};
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Keys of a spec that Placement has matched already.
const MATCHED_BY_PLACEMENT: [&str; 3] = ["resource_class", "traits", "rp_uuids"];

/// A value as Nova's objects hold it: text, or nothing. Numbers and truth values become the text
/// that Python makes of them.
pub(super) fn text(value: &Value) -> Option<Cow<'_, str>> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(Cow::Borrowed(text)),
        Value::Bool(true) => Some(Cow::Borrowed("True")),
        Value::Bool(false) => Some(Cow::Borrowed("False")),
        other => Some(Cow::Owned(other.to_string())),
    }
}

impl PciPool {
    /// Whether the pool has all properties of one of the request's alternatives. Text is compared
    /// without case. A property that the pool lacks matches null only.
    pub(super) fn matches_spec(&self, request: &PciRequest) -> bool {
        request.spec.iter().any(|spec| self.has_all(spec))
    }

    fn has_all(&self, spec: &BTreeMap<String, Value>) -> bool {
        spec.iter()
            .filter(|(key, _)| !MATCHED_BY_PLACEMENT.contains(&key.as_str()))
            .all(|(key, wanted)| self.has(key, text(wanted).as_deref()))
    }

    fn has(&self, key: &str, wanted: Option<&str>) -> bool {
        let own = match key {
            "vendor_id" => Some(Cow::Borrowed(self.vendor_id.as_str())),
            "product_id" => Some(Cow::Borrowed(self.product_id.as_str())),
            // These two are numbers in the pool and text in the spec, which never match; only an
            // unknown node matches null.
            "numa_node" => return self.numa_node.is_none() && wanted.is_none(),
            "count" => return false,
            tag => self.tag(tag),
        };
        match (own, wanted) {
            (None, None) => true,
            (Some(own), Some(wanted)) => own.to_lowercase() == wanted.to_lowercase(),
            _ => false,
        }
    }

    /// A tag of the pool.
    pub(super) fn tag(&self, name: &str) -> Option<Cow<'_, str>> {
        self.tags.get(name).and_then(text)
    }
}

/// What all alternatives of a request say about a tag.
pub(super) fn every(request: &PciRequest, tag: &str, holds: impl Fn(Option<&str>) -> bool) -> bool {
    request
        .spec
        .iter()
        .all(|spec| holds(spec.get(tag).and_then(text).as_deref()))
}

/// Text that means yes (`oslo_utils.strutils.bool_from_string`); anything else, nothing included,
/// means no.
pub(super) fn means_yes(value: Option<&str>) -> bool {
    let lowered = value.unwrap_or_default().trim().to_lowercase();
    matches!(lowered.as_str(), "1" | "t" | "true" | "on" | "y" | "yes")
}

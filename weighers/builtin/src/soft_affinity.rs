//! Keeps the members of a server group with policy `soft-affinity` together: hosts that have more
//! members are better.
//!
//! - Raw number: members of the request's group on the host; 0 for every other request.
//! - Normalised: the smallest number becomes 0, the largest 1; hosts that are all alike get 0.
//! - Multiplier: `soft_affinity_weight_multiplier`, default 1.0; aggregates may set the same key in
//!   their metadata.
//! - To invert, use the group policy `soft-anti-affinity`; Nova refuses a negative multiplier in
//!   its configuration.
//!
//! Source: Nova, `nova/scheduler/weights/affinity.py` (`ServerGroupSoftAffinityWeigher`, no
//! bounds).

use ebbtide_model::GroupPolicy;
use ebbtide_weigher_api::{Column, RequestView, Weigher, WeigherForm};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct SoftAffinity;

impl Weigher for SoftAffinity {
    fn name(&self) -> &str {
        "soft_affinity"
    }

    fn multiplier_key(&self) -> &str {
        "soft_affinity_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::GroupMembers]
    }

    fn form(&self, request: &RequestView<'_>) -> WeigherForm {
        match request.group_policy {
            Some(GroupPolicy::SoftAffinity) => WeigherForm::Column(Column::GroupMembers),
            _ => WeigherForm::Constant(0.0),
        }
    }
}

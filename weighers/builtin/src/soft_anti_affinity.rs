//! Keeps the members of a server group with policy `soft-anti-affinity` apart: hosts that have
//! fewer members are better.
//!
//! - Raw number: minus the members of the request's group on the host; 0 for every other request.
//! - Normalised: the host with most members becomes 0, the one with fewest 1; hosts that are all
//!   alike get 0.
//! - Multiplier: `soft_anti_affinity_weight_multiplier`, default 1.0; aggregates may set the same
//!   key in their metadata.
//! - To invert, use the group policy `soft-affinity`; Nova refuses a negative multiplier in its
//!   configuration.
//!
//! Source: Nova, `nova/scheduler/weights/affinity.py` (`ServerGroupSoftAntiAffinityWeigher`, no
//! bounds).

use ebbtide_model::GroupPolicy;
use ebbtide_weigher_api::{Column, RequestView, Weigher, WeigherForm};

/// See the module's text.
#[derive(Debug, Clone, Copy, Default)]
pub struct SoftAntiAffinity;

impl Weigher for SoftAntiAffinity {
    fn name(&self) -> &str {
        "soft_anti_affinity"
    }

    fn multiplier_key(&self) -> &str {
        "soft_anti_affinity_weight_multiplier"
    }

    fn default_multiplier(&self) -> f64 {
        1.0
    }

    fn needs(&self) -> &[Column] {
        &[Column::GroupMembers]
    }

    fn form(&self, request: &RequestView<'_>) -> WeigherForm {
        match request.group_policy {
            Some(GroupPolicy::SoftAntiAffinity) => WeigherForm::Negated(Column::GroupMembers),
            _ => WeigherForm::Constant(0.0),
        }
    }
}

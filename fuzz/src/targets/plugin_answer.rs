//! What a plugin says of itself: a service's message, off the wire. What is taken reads what it
//! says, by names that are read as they are written.

use ebbtide_plugin_contract::{
    CandidateNeed, CostDescription, FilterDescription, HostNeed, WeigherDescription, speaks,
};
use ebbtide_proto::plugin::v1;
use ebbtide_proto::plugin::v1::description::Kind;
use ebbtide_weigher_api::Bounds;
use prost::Message;

pub(super) fn run(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = speaks(text);
        if let Ok(need) = HostNeed::read(text) {
            assert_eq!(need.to_string(), text);
        }
        if let Ok(need) = CandidateNeed::read(text) {
            assert_eq!(need.name(), text);
        }
    }
    let Ok(said) = v1::Description::decode(bytes) else {
        return;
    };
    match said.kind {
        Some(Kind::Weigher(said)) => {
            let bounds = Bounds {
                min: said.min,
                max: said.max,
            };
            let checked = WeigherDescription::check(said.default_multiplier, &said.needs, bounds);
            if let Ok(described) = checked {
                assert_eq!(described.reads(), said.needs);
                assert!(described.default_multiplier.is_finite());
            }
        }
        Some(Kind::CostModule(said)) => {
            let needs = said.needs.clone();
            if let Ok(described) = CostDescription::check(said.unit, &said.needs, said.surcharges) {
                assert_eq!(described.reads(), needs);
                let costs = [0, 1, 2, u32::MAX].map(|n| described.nth_of_a_project(n));
                assert!(costs.iter().all(|cost| cost.is_finite() && *cost >= 0.0));
            }
        }
        Some(Kind::Filter(said)) => {
            if let Ok(described) = FilterDescription::check(&said.needs) {
                assert_eq!(described.reads(), said.needs);
            }
        }
        None => {}
    }
}

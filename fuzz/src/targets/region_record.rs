//! A recorded region, as `ebbtide-lab plugin try` reads it from a file: it is refused, or decisions
//! can be made on it.

use ebbtide_engine::{Engine, EngineConfig};
use ebbtide_model::{PlacementRequest, ServerId};
use ebbtide_region::{CountingIds, RegionRecord};
use std::sync::Arc;
use uuid::Uuid;

pub(super) fn run(bytes: &[u8]) {
    let Ok(record) = serde_json::from_slice::<RegionRecord>(bytes) else {
        return;
    };
    let written = serde_json::to_vec(&record).expect("what was read can be written");
    let again: RegionRecord = serde_json::from_slice(&written).expect("its own text");
    assert_eq!(again, record);
    let engine = Engine::new(EngineConfig::default()).expect("the default");
    let Ok(region) = record.region(Arc::new(engine)) else {
        return;
    };
    for flavor in &record.state.flavors {
        let request = PlacementRequest {
            server_ids: vec![ServerId(Uuid::from_u128(u128::MAX))],
            project_id: "fuzz".to_owned(),
            flavor: flavor.clone(),
            availability_zone: None,
            group_id: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 0,
        };
        drop(region.what_if(record.at, &mut CountingIds::after(0), &request));
    }
}

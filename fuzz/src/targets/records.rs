//! Records of the own database: the first byte says of which kind, JSON follows. What is read is
//! written as it was read.

use ebbtide_agent::driver::simulated::SimulatedState;
use ebbtide_model::{
    Aggregate, Decision, DisruptionBudget, Evacuation, Flavor, Host, PlacementRequest, Server,
    ServerGroup,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

fn round<T: Serialize + DeserializeOwned + PartialEq + Debug>(json: &[u8]) {
    if let Ok(record) = serde_json::from_slice::<T>(json) {
        let written = serde_json::to_vec(&record).expect("what was read can be written");
        let again: T = serde_json::from_slice(&written).expect("what was written can be read");
        assert_eq!(again, record);
    }
}

pub(super) fn run(bytes: &[u8]) {
    let Some((kind, json)) = bytes.split_first() else {
        return;
    };
    match kind % 10 {
        0 => round::<Server>(json),
        1 => round::<Evacuation>(json),
        2 => round::<Decision>(json),
        3 => round::<Host>(json),
        4 => round::<Flavor>(json),
        5 => round::<Aggregate>(json),
        6 => round::<ServerGroup>(json),
        7 => round::<DisruptionBudget>(json),
        8 => round::<PlacementRequest>(json),
        _ => round::<SimulatedState>(json),
    }
}

//! Decisions for tests.

use ebbtide_model::decision::Explanation;
use ebbtide_model::{
    Decision, DecisionId, DecisionOutcome, Flavor, FlavorId, Placement, PlacementRequest,
    RequestTrace, Resources, ServerId, Timestamp, Victim,
};
use uuid::Uuid;

/// A decision with this outcome about one server.
pub(crate) fn decision(outcome: DecisionOutcome, explanation: Explanation) -> Decision {
    Decision {
        id: DecisionId(Uuid::nil()),
        at: Timestamp::from_millis(0),
        request: PlacementRequest {
            server_ids: vec![ServerId(Uuid::nil())],
            project_id: "p".to_owned(),
            flavor: Flavor {
                id: FlavorId(Uuid::nil()),
                name: "small".to_owned(),
                vcpus: 1,
                ram_mb: 1,
                disk_gb: 1,
                extra_specs: std::collections::BTreeMap::default(),
            },
            availability_zone: None,
            group_id: None,
            ignore_hosts: Vec::new(),
            force_hosts: Vec::new(),
            alternates: 0,
        },
        outcome,
        explanation,
        trace: RequestTrace::default(),
    }
}

/// A server on a host, with so many victims.
pub(crate) fn placed(host: &str, victims: usize) -> Placement {
    let victim = Victim {
        server_id: ServerId(Uuid::nil()),
        name: String::new(),
        project_id: String::new(),
        resources: Resources::new(),
        age_seconds: 0.0,
        cost: 0.0,
    };
    Placement {
        server_id: ServerId(Uuid::nil()),
        host: host.to_owned(),
        victims: vec![victim; victims],
        waits_for_room: victims > 0,
        alternates: Vec::new(),
    }
}

//! An agent, or a process with its login, reports about another agent's evacuation: nothing changes
//! unless the report names the right host, victim and evacuation.

use super::*;

/// Everything that an agent can say about a victim of an evacuation.
fn said(evacuation_id: EvacuationId, server_id: ServerId, host: &str, at: Timestamp) -> [Body; 4] {
    let host = host.to_owned();
    [
        Body::Draining(Draining {
            evacuation_id,
            host: host.clone(),
            server_id,
            notified_at: at,
            deadline_at: at,
        }),
        Body::Evacuated(Evacuated {
            evacuation_id,
            host: host.clone(),
            server_id,
            how: EvacuationEnd::Terminated,
            at,
            unbilled_seconds: None,
            storage: None,
        }),
        Body::EvacuationFailed(EvacuationFailed {
            evacuation_id,
            host: host.clone(),
            server_id,
            reason: "it is not yours".to_owned(),
            still_running: false,
            late_attempt: Some(1),
        }),
        Body::Spared(Spared {
            evacuation_id,
            host,
            server_id,
        }),
    ]
}

#[test]
fn what_another_host_says_or_of_another_victim_or_evacuation_changes_nothing() {
    let policy = PreemptionPolicy::default();
    let now = Timestamp::from_millis(2_000_000);
    let later = now.plus(Seconds(5));
    for state in [
        VictimState::Claimed,
        VictimState::Notified {
            attempt: 1,
            published: true,
            until: later,
            begin_before: later,
        },
        VictimState::Draining { deadline: later },
    ] {
        let mut doc = evacuating(state);
        let before = doc.clone();
        let (evacuation, server) = (doc.victims[0].evacuation, doc.victims[0].server);
        let other_evacuation = EvacuationId(Uuid::from_u128(999));
        let other_server = ServerId(Uuid::from_u128(999));
        let forged = [
            said(evacuation, server, "thief", now),
            said(evacuation, server, "", now),
            said(evacuation, other_server, "h", now),
            said(other_evacuation, server, "h", now),
        ];
        for body in forged.iter().flatten() {
            assert!(
                !doc.feed(&PreemptionInput::Report(body), now, &policy),
                "{body:?}"
            );
            assert_eq!(doc, before, "{body:?}");
        }
        // The right one is believed.
        let [_, evacuated, ..] = said(evacuation, server, "h", now);
        assert!(doc.feed(&PreemptionInput::Report(&evacuated), now, &policy));
    }
}

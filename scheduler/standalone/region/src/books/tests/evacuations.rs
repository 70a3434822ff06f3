use crate::books::EvacuationBook;
use ebbtide_model::{
    BudgetScope, Evacuation, EvacuationCause, EvacuationId, EvacuationState, GroupId,
    InterruptionBehaviour, MessageId, Seconds, ServerId, Timestamp,
};
use proptest::prelude::*;
use std::collections::BTreeMap;
use uuid::Uuid;

#[derive(Debug, Clone)]
enum Operation {
    Put(Box<Evacuation>),
    Forget(EvacuationId),
    Unsent(EvacuationId, MessageId),
    Take(EvacuationId),
    Confirmed(MessageId),
}

fn id(n: u128) -> EvacuationId {
    EvacuationId(Uuid::from_u128(n))
}

fn group(n: u128) -> GroupId {
    GroupId(Uuid::from_u128(n))
}

fn evacuation() -> impl Strategy<Value = Evacuation> {
    let state = prop_oneof![
        Just(EvacuationState::Claimed),
        Just(EvacuationState::Notified),
        Just(EvacuationState::Draining),
        Just(EvacuationState::Evacuated),
        Just(EvacuationState::Spared),
        Just(EvacuationState::Failed),
    ];
    let victim = (0u128..4, 0u8..3, proptest::option::of(0u128..2));
    (0u128..6, victim, 0u8..3, state, 0i64..5).prop_map(
        |(n, (victim, project, member), host, state, until)| Evacuation {
            id: id(n),
            victim_id: ServerId(Uuid::from_u128(victim)),
            victim_name: String::new(),
            victim_project_id: format!("project-{project}"),
            victim_group_id: member.map(group),
            victim_starts: 1,
            host: format!("host-{host}"),
            cause: EvacuationCause::Preemption,
            reclaim_owner: None,
            preemptor_id: None,
            decision_id: None,
            behaviour: InterruptionBehaviour::default(),
            grace: Seconds(30),
            cost: 1.0,
            state,
            attempts: 1,
            give_up_at: Timestamp::from_millis(until),
            spare_requested: false,
            reason: None,
            claimed_at: Timestamp::default(),
            notified_at: None,
            draining_at: None,
            deadline_at: None,
            ended_at: None,
        },
    )
}

fn operation() -> impl Strategy<Value = Operation> {
    let message = || (0u128..4).prop_map(|n| MessageId(Uuid::from_u128(n)));
    prop_oneof![
        5 => evacuation().prop_map(|e| Operation::Put(Box::new(e))),
        1 => (0u128..6).prop_map(|n| Operation::Forget(id(n))),
        2 => ((0u128..6), message()).prop_map(|(n, m)| Operation::Unsent(id(n), m)),
        1 => (0u128..6).prop_map(|n| Operation::Take(id(n))),
        1 => message().prop_map(Operation::Confirmed),
    ]
}

proptest! {
    #[test]
    fn the_indexes_of_evacuations_follow_from_the_records(
        operations in proptest::collection::vec(operation(), 0..60),
    ) {
        let mut book = EvacuationBook::default();
        let mut records: BTreeMap<EvacuationId, Evacuation> = BTreeMap::new();
        for operation in operations {
            match operation {
                Operation::Put(evacuation) => {
                    records.insert(evacuation.id, (*evacuation).clone());
                    book.put(*evacuation);
                }
                Operation::Forget(id) => {
                    records.remove(&id);
                    book.forget(id);
                }
                // Each notice is a message of its own, and of an evacuation under way.
                Operation::Unsent(id, message) => {
                    book.forget_notice(message);
                    if book.is_active(&id) {
                        book.note_unsent(id, message);
                        prop_assert_eq!(book.unsent(&id), Some(message));
                    }
                }
                Operation::Take(id) => drop(book.take_unsent(&id)),
                Operation::Confirmed(message) => book.forget_notice(message),
            }
            prop_assert_eq!(book.audit(), Ok(()));
            let ids = |is_meant: &dyn Fn(&Evacuation) -> bool| -> Vec<EvacuationId> {
                records.values().filter(|e| is_meant(e)).map(|e| e.id).collect()
            };
            let under_way = |e: &Evacuation| !e.state.is_final();
            prop_assert_eq!(book.len(), records.len());
            prop_assert_eq!(book.active().collect::<Vec<_>>(), ids(&under_way));
            prop_assert_eq!(book.active_count(), ids(&under_way).len());
            for n in 0..5 {
                let at = Timestamp::from_millis(n);
                prop_assert_eq!(book.due(at), ids(&|e| under_way(e) && e.give_up_at <= at));
                let host = format!("host-{n}");
                let there: Vec<_> = book.leaving(&host).map(|e| e.id).collect();
                prop_assert_eq!(book.is_leaving(&host), !there.is_empty());
                prop_assert_eq!(there, ids(&|e| under_way(e) && e.host == host));
                let victim = ServerId(Uuid::from_u128(n as u128));
                let of_victim: Vec<_> = book.of_victim(victim).map(|e| e.id).collect();
                prop_assert_eq!(of_victim, ids(&|e| e.victim_id == victim));
                let project = format!("project-{n}");
                let scope = BudgetScope::Project(project.clone());
                let of_scope: Vec<_> = book.of_scope(&scope).map(|e| e.id).collect();
                prop_assert_eq!(of_scope, ids(&|e| e.victim_project_id == project));
                let of_group = BudgetScope::Group(group(n as u128));
                let of_group: Vec<_> = book.of_scope(&of_group).map(|e| e.id).collect();
                let member = Some(group(n as u128));
                prop_assert_eq!(of_group, ids(&|e| e.victim_group_id == member));
            }
        }
    }
}

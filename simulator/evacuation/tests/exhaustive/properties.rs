//! What must never be, and what must be possible.

use crate::world::{Now, Placement, Small};
use ebbtide_preemption::{PreemptionState, ReplyWhen, VictimState};

type Holds = fn(&Small, &Now) -> bool;

/// Promises that hold in every state.
pub(crate) const PROMISES: &[(&str, Holds)] = &[
    (
        "no server ends for nothing, and nothing is done twice",
        |_, now| now.wrong.is_none(),
    ),
    ("who hears that there is room has it", |_, now| {
        now.heard != Some(true) || now.deleted || now.placement == Placement::Swapped
    }),
    (
        "room is promised only when it is free, unless the answer goes at once",
        |model, now| now.heard != Some(true) || model.bounds.at_once || !now.agent.runs,
    ),
    (
        "a row that is done has its room, and one that came to nothing has given it back",
        |_, now| {
            let Some(row) = now.row.as_ref().filter(|row| row.finished) else {
                return true;
            };
            match row.record.state {
                PreemptionState::Done => {
                    (now.deleted || now.placement == Placement::Swapped) && !now.agent.runs
                }
                PreemptionState::Withdrawn => now.placement != Placement::Swapped,
                PreemptionState::Refused => now.placement != Placement::Swapped,
                _ => false,
            }
        },
    ),
    (
        "a victim that stays has its allocations when its row is over, and no other consumer has them",
        |model, now| {
            let over = now.row.as_ref().is_some_and(|row| row.finished);
            // After an early answer a victim that left by an earlier evacuation may be asked to
            // stay by a later one: its agent knows nothing of that one and says so. Then it runs no
            // more, and holds nothing.
            let left = model.bounds.deletes && model.bounds.at_once && !now.agent.runs;
            let spared = now
                .row
                .iter()
                .flat_map(|row| &row.record.victims)
                .any(|victim| victim.state == VictimState::Spared);
            let holds = if left {
                now.placement == Placement::Free
            } else {
                now.agent.runs && now.placement == Placement::GivenBack
            };
            !over || !spared || holds
        },
    ),
    (
        "the room of a victim that has left is given to no consumer once its row is over",
        |_, now| {
            let withdrawn = now
                .row
                .as_ref()
                .is_some_and(|row| row.finished && row.record.state == PreemptionState::Withdrawn);
            let gone = |state: &VictimState| matches!(state, VictimState::Evacuated { .. });
            let mut victims = now.row.iter().flat_map(|row| &row.record.victims);
            !withdrawn
                || !victims.any(|victim| gone(&victim.state))
                || now.placement == Placement::Free
        },
    ),
    ("what is written as gone does not run", |_, now| {
        let gone = |state: &VictimState| matches!(state, VictimState::Evacuated { .. });
        let written = now
            .row
            .as_ref()
            .is_some_and(|row| row.record.victims.iter().any(|v| gone(&v.state)));
        !written || !now.agent.runs
    }),
];

/// What has to be reachable: a model in which nothing happens keeps all promises.
pub(crate) const POSSIBLE: &[(&str, Holds)] = &[
    ("a newcomer gets its room", |_, now| {
        now.heard == Some(true) && !now.agent.runs
    }),
    (
        "a preemption is called off and its victim lives",
        |_, now| {
            let over = |state| state == PreemptionState::Withdrawn;
            now.row
                .as_ref()
                .is_some_and(|row| row.finished && over(row.record.state))
                && now.agent.runs
                && now.placement == Placement::GivenBack
        },
    ),
    (
        "a row has been in the hands of both schedulers at the same time",
        |model, now| model.bounds.faults == 0 || now.held.iter().all(Option::is_some),
    ),
    ("a victim leaves before its caller gives up", |_, now| {
        now.placement == Placement::Free
    }),
    (
        "the caller is answered at once, or when the room is free",
        |_, now| {
            now.row.as_ref().is_some_and(|row| {
                row.record.answered
                    && (row.record.reply_when == ReplyWhen::AtOnce || !now.agent.runs)
            })
        },
    ),
];

//! Single stories about starts, deletions, and messages that cannot be followed.

use super::cases::{runs, settle, types, world};
use super::world::{Fate, evacuation, server};
use crate::AgentPolicy;
use ebbtide_model::message::{Body, EvacuationEnd, Heartbeat, Message};
use ebbtide_model::{InterruptionBehaviour, MessageId, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

#[test]
fn a_start_is_followed_once_and_answered_each_time() {
    let mut w = world();
    let start = w.start(3);
    settle(&mut w);
    w.advance(5);
    w.queue.push(start);
    settle(&mut w);
    assert_eq!(types(&w), ["server.started", "server.started"]);
    assert_eq!(w.reports[0].id, w.reports[1].id);
    assert_eq!(
        w.reports[0].body, w.reports[1].body,
        "since when it runs is the same"
    );
}

#[test]
fn a_repeated_start_does_not_bring_back_an_evacuated_server() {
    for behaviour in [
        InterruptionBehaviour::Terminate,
        InterruptionBehaviour::Stop,
    ] {
        let mut w = world();
        let start = w.start(3);
        settle(&mut w);
        w.advance(1);
        w.notice_with(4, 3, behaviour, 1);
        w.come_to_rest().unwrap();
        assert!(!runs(&w, 3));
        w.crash();
        w.queue.push(start);
        w.come_to_rest().unwrap();
        assert!(!runs(&w, 3), "{behaviour}");
        w.start(3);
        w.come_to_rest().unwrap();
        assert!(runs(&w, 3), "a new start is followed");
    }
}

#[test]
fn a_start_that_fails_is_reported_with_its_reason() {
    let mut w = world();
    w.start(3);
    w.deliver_all();
    for _ in 0..3 {
        w.complete(0, Fate::Fails);
        w.advance(60_000);
    }
    settle(&mut w);
    let Body::StartFailed(failed) = &w.reports[0].body else {
        panic!("{:?}", w.reports);
    };
    assert!(failed.reason.contains("after 3 tries"), "{}", failed.reason);
}

#[test]
fn a_start_that_failed_and_comes_once_more_is_not_tried_again_because_its_room_may_be_anothers() {
    for crash in [false, true] {
        let mut w = world();
        let start = w.start(3);
        w.deliver_all();
        for _ in 0..3 {
            w.complete(0, Fate::Fails);
            w.advance(60_000);
        }
        settle(&mut w);
        if crash {
            w.crash();
        }
        w.queue.push(start);
        w.come_to_rest().unwrap();
        assert!(!runs(&w, 3), "crash: {crash}");
        let said = types(&w);
        assert!(said.iter().all(|t| *t == "server.start-failed"), "{said:?}");
        assert!(said.len() >= 2, "it is answered each time: {said:?}");
        w.advance(1);
        w.start(3);
        w.come_to_rest().unwrap();
        assert!(runs(&w, 3), "a new start is followed");
    }
}

#[test]
fn a_victim_that_does_not_run_yet_is_not_started_between_its_notice_and_its_end() {
    let mut w = world();
    w.guest_powers_off(1);
    let start = w.resume(1, 1);
    w.queue.clear();
    w.advance(1);
    w.notice(1, 1);
    w.deliver_all();
    w.complete(0, Fate::Works);
    // It has no time to be given; the broker has not confirmed that yet. Its older start arrives
    // only now.
    w.queue.push(start);
    w.deliver_all();
    assert!(w.calls.is_empty(), "{:?}", w.calls);
    w.come_to_rest().unwrap();
    assert!(!runs(&w, 1) && w.unsettled.is_empty());
}

#[test]
fn a_deletion_is_followed_also_of_an_unknown_server_and_also_twice() {
    let mut w = world();
    let delete = w.delete(0);
    w.delete(9);
    settle(&mut w);
    w.queue.push(delete);
    settle(&mut w);
    assert_eq!(types(&w), ["server.deleted"; 3]);
    assert!(w.unsettled.is_empty() && !w.guests.contains_key(&server(0)));
}

#[test]
fn a_deletion_that_fails_is_tried_for_ever() {
    let mut w = world();
    w.delete(0);
    w.deliver_all();
    for _ in 0..50 {
        w.complete(0, Fate::Fails);
        w.advance(60_000);
    }
    assert!(w.reports.is_empty());
    settle(&mut w);
    assert_eq!(types(&w), ["server.deleted"]);
}

#[test]
fn a_deletion_during_an_evacuation_ends_both() {
    let mut w = world();
    w.notice(0, 0);
    settle(&mut w);
    w.delete(0);
    settle(&mut w);
    assert_eq!(
        types(&w),
        [
            "evacuation.draining",
            "server.deleted",
            "evacuation.evacuated"
        ]
    );
    assert_eq!(w.how(0), Some(EvacuationEnd::AlreadyGone));
    assert!(w.unsettled.is_empty());
}

#[test]
fn a_report_in_the_wrong_queue_and_a_contradiction_become_dead_letters() {
    let mut w = world();
    w.send(Body::Heartbeat(Heartbeat {
        host: "host-b".to_owned(),
        session: Uuid::nil(),
        sequence: 1,
        inventory: BTreeMap::new(),
        traits: BTreeSet::new(),
        servers: Vec::new(),
        storage: None,
    }));
    w.notice(0, 0);
    settle(&mut w);
    w.notice(0, 1);
    settle(&mut w);
    let reasons: Vec<&str> = w.dead.iter().map(|(_, reason)| reason.as_str()).collect();
    assert!(
        reasons[0].contains("a report of host host-b"),
        "{reasons:?}"
    );
    assert!(reasons[1].contains("this message says"), "{reasons:?}");
    assert_eq!(w.asked.get(&server(1)), None);
}

#[test]
fn a_report_that_can_never_be_sent_does_not_block_the_agent() {
    use crate::{AgentCore, AgentEffect, AgentInput, DeliveryTag, ReportId};
    let now = Timestamp::from_millis(5);
    let (mut core, _) = AgentCore::restore("h", AgentPolicy::default(), [], now);
    let message = Message {
        id: MessageId(Uuid::nil()),
        source: "s".to_owned(),
        time: now,
        body: Body::Spare(ebbtide_model::message::Spare {
            evacuation_id: evacuation(1),
            server_id: server(1),
        }),
    };
    let token = DeliveryTag(7);
    core.handle(now, AgentInput::Command { token, message });
    let reason = "too large".to_owned();
    let report = ReportId(1);
    let effects = core.handle(now, AgentInput::Unpublishable { report, reason });
    assert!(
        effects.iter().any(
            |e| matches!(e, AgentEffect::DeadLetter(DeliveryTag(7), why) if why.contains("too large"))
        ),
        "{effects:?}"
    );
    assert!(core.is_idle());
}

#[test]
fn the_answer_to_a_start_says_which_one_it_was() {
    let mut w = world();
    w.resume(0, 7);
    settle(&mut w);
    w.resume(5, 3);
    settle(&mut w);
    let said: Vec<u32> = w
        .reports
        .iter()
        .filter_map(|m| match &m.body {
            Body::Started(m) => Some(m.attempt),
            Body::StartFailed(m) => Some(m.attempt),
            _ => None,
        })
        .collect();
    assert_eq!(said, [7, 3]);
}

#[test]
fn who_is_to_go_on_and_is_not_there_is_not_made_anew() {
    let mut w = world();
    w.resume(5, 1);
    settle(&mut w);
    let Some(Body::StartFailed(failed)) = w.reports.first().map(|m| &m.body) else {
        panic!("{:?}", w.reports);
    };
    assert!(
        failed.reason.contains("what was kept of it is not there"),
        "{}",
        failed.reason
    );
    assert!(!failed.may_run && !w.guests.contains_key(&server(5)));
}

#[test]
fn who_goes_on_is_not_ended_by_an_older_notice_whenever_that_arrives() {
    for late in [false, true] {
        let mut w = world();
        // The first is given up; the second ends the server.
        let first = w.notice(1, 1);
        if late {
            w.queue.clear();
        } else {
            w.deliver_all();
            w.complete(0, Fate::Works);
        }
        w.advance(1);
        w.guest_powers_off(1);
        w.advance(1);
        w.resume(1, 2);
        w.deliver_all();
        if late {
            w.queue.push(first);
            w.deliver_all();
        }
        settle(&mut w);
        w.advance(300_000);
        settle(&mut w);
        let runs = w.guests[&server(1)].state == ebbtide_model::message::HostedState::Running;
        assert!(runs, "late: {late}, {:?}", w.reports);
        let spared = w
            .verdicts(evacuation(1))
            .any(|body| matches!(body, Body::Spared(_)));
        assert!(spared, "late: {late}, {:?}", w.reports);
        assert!(w.unsettled.is_empty());
    }
}

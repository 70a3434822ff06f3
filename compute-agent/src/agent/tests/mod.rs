//! The shell, with a real bus, a real journal and a real (simulated) hypervisor; only the time is
//! not real.

mod test_harness;

use crate::clock::Clock;
use crate::driver::simulated::{FaultyAction, GuestHabit, OnNotice};
use ebbtide_model::InterruptionBehaviour::{Hibernate, Stop, Terminate};
use ebbtide_model::message::{Body, EvacuationEnd, HostedState};
use std::sync::atomic::Ordering;
use std::time::Duration;
use test_harness::{TestHarness, evacuation, server};

fn how(report: &Body) -> EvacuationEnd {
    match report {
        Body::Evacuated(m) => m.how,
        other => panic!("not evacuated: {other:?}"),
    }
}

async fn deadline(rig: &mut TestHarness) -> ebbtide_model::Timestamp {
    match rig.report().await {
        Body::Draining(m) => m.deadline_at,
        other => panic!("not draining: {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn a_host_registers_and_tells_at_once_what_changes() {
    let mut rig = TestHarness::started().await;
    let Body::Heartbeat(first) = rig.next().await else {
        panic!("the first report is a heartbeat");
    };
    assert_eq!((first.host.as_str(), first.sequence), ("host-a", 1));
    assert_eq!(first.inventory.len(), 2);
    assert!(first.servers.is_empty());
    let before = rig.clock.now();
    rig.order_start(1).await;
    let hosted = loop {
        match rig.next().await {
            Body::Heartbeat(m) if !m.servers.is_empty() => break m,
            _ => {}
        }
    };
    assert!(rig.clock.now().millis_since(before) < 1_000, "at once");
    assert_eq!(hosted.servers[0].state, HostedState::Running);
    assert_eq!(hosted.session, first.session);
    // A server that ends by itself is noticed by looking.
    rig.change(|state| state.remove(server(1)).unwrap());
    let before = rig.clock.now();
    loop {
        if let Body::Heartbeat(m) = rig.next().await
            && m.servers.is_empty()
        {
            break;
        }
    }
    assert!(
        rig.clock.now().millis_since(before) <= 2_000,
        "at the next look"
    );
}

#[tokio::test(start_paused = true)]
async fn heartbeats_come_at_their_interval() {
    let mut rig = TestHarness::started().await;
    let mut times = Vec::new();
    for _ in 0..4 {
        assert!(matches!(rig.next().await, Body::Heartbeat(_)));
        times.push(rig.clock.now().as_millis());
    }
    assert_eq!(
        times,
        [1_000_000_000, 1_000_010_000, 1_000_020_000, 1_000_030_000]
    );
}

#[tokio::test(start_paused = true)]
async fn a_victim_is_evacuated_after_its_grace_period() {
    for (behaviour, expected) in [
        (Terminate, EvacuationEnd::Terminated),
        (Stop, EvacuationEnd::Stopped),
        (Hibernate, EvacuationEnd::Hibernated),
    ] {
        let mut rig = TestHarness::started().await;
        rig.run(1).await;
        let before = rig.clock.now();
        rig.notice(1, behaviour).await;
        let deadline = deadline(&mut rig).await;
        assert!((30_000..30_500).contains(&deadline.millis_since(before)));
        let report = rig.report().await;
        assert_eq!(how(&report), expected);
        let late = rig.clock.now().millis_since(deadline);
        assert!(
            rig.clock.now() >= deadline && late < 1_000,
            "{late} ms late"
        );
        rig.stop_agent().await.unwrap();
        assert_eq!(rig.left_in_queue().await, 0, "everything is acknowledged");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_killed_in_the_grace_period_ends_the_victim_at_the_original_deadline() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.notice(1, Terminate).await;
    let original = deadline(&mut rig).await;
    tokio::time::sleep(Duration::from_secs(10)).await;
    rig.kill_agent().await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    rig.start_agent();
    let report = loop {
        match rig.report().await {
            Body::Draining(again) => assert_eq!(again.deadline_at, original),
            other => break other,
        }
    };
    assert_eq!(how(&report), EvacuationEnd::Terminated);
    let now = rig.clock.now();
    assert!(
        now >= original && now.millis_since(original) < 1_000,
        "{now} against {original}"
    );
    rig.stop_agent().await.unwrap();
    assert_eq!(rig.left_in_queue().await, 0);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_was_down_when_the_grace_period_ended_ends_the_victim_unless_spared() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.notice(1, Terminate).await;
    deadline(&mut rig).await;
    rig.kill_agent().await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let before = rig.clock.now();
    rig.start_agent();
    while !matches!(rig.report().await, Body::Evacuated(_)) {}
    let waited = rig.clock.now().millis_since(before);
    assert!((5_000..6_000).contains(&waited), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_moves_no_deadline_whether_the_agent_is_there_or_not() {
    for (by_ms, down) in [
        (3_600_000, false),
        (-3_600_000, false),
        (3_600_000, true),
        (-3_600_000, true),
    ] {
        let mut rig = TestHarness::started().await;
        rig.run(1).await;
        rig.notice(1, Terminate).await;
        deadline(&mut rig).await;
        tokio::time::sleep(Duration::from_secs(10)).await;
        let before = rig.clock.steady();
        if down {
            rig.kill_agent().await;
        }
        rig.clock.set(by_ms);
        if down {
            rig.start_agent();
        }
        while !matches!(rig.report().await, Body::Evacuated(_)) {}
        let waited = (rig.clock.steady() - before).as_millis();
        assert!(
            (20_000..21_500).contains(&waited),
            "set by {by_ms} ms, down: {down}: it had {waited} ms"
        );
        rig.stop_agent().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_clean_shutdown_keeps_the_evacuation_for_the_next_agent() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.notice(1, Stop).await;
    let original = deadline(&mut rig).await;
    rig.stop_agent().await.unwrap();
    assert_eq!(rig.left_in_queue().await, 1, "the notice is not settled");
    assert!(rig.has(1));
    rig.start_agent();
    while !matches!(rig.report().await, Body::Evacuated(_)) {}
    assert!(rig.clock.now() >= original);
}

#[tokio::test(start_paused = true)]
async fn duplicates_and_lost_connections_end_one_victim_once() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.run(2).await;
    let notice = rig.notice(1, Terminate).await;
    for _ in 0..5 {
        rig.send_again(&notice).await;
        tokio::time::sleep(Duration::from_secs(3)).await;
        // Everything that is not settled comes again.
        rig.bus.inner.sever();
    }
    let reports = rig.reports_within(Duration::from_secs(60)).await;
    let evacuated = reports
        .iter()
        .filter(|r| matches!(r, Body::Evacuated(_)))
        .count();
    assert!(evacuated >= 1, "{reports:?}");
    assert!(
        reports
            .iter()
            .all(|r| matches!(r, Body::Draining(_) | Body::Evacuated(_)))
    );
    assert!(rig.has(2) && !rig.has(1));
    rig.stop_agent().await.unwrap();
    assert_eq!(rig.left_in_queue().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_spared_victim_and_a_deleted_one_are_reported() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.run(2).await;
    rig.notice(1, Terminate).await;
    deadline(&mut rig).await;
    rig.notice(2, Terminate).await;
    deadline(&mut rig).await;
    rig.spare(1).await;
    assert!(matches!(rig.report().await, Body::Spared(m) if m.evacuation_id == evacuation(1)));
    rig.delete(2).await;
    assert!(matches!(rig.report().await, Body::Deleted(m) if m.server_id == server(2)));
    assert_eq!(how(&rig.report().await), EvacuationEnd::AlreadyGone);
    assert_eq!(rig.reports_within(Duration::from_secs(120)).await, []);
    assert!(rig.has(1) && !rig.has(2));
}

#[tokio::test(start_paused = true)]
async fn a_start_without_room_is_refused_and_works_when_there_is_room() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.run(2).await;
    rig.order_start(3).await;
    match rig.report().await {
        Body::StartFailed(m) => {
            assert!(m.reason.contains("VCPU: 2 asked for, 0 of 4 free"), "{m:?}")
        }
        other => panic!("{other:?}"),
    }
    rig.delete(1).await;
    assert!(matches!(rig.report().await, Body::Deleted(_)));
    tokio::time::sleep(Duration::from_millis(1)).await;
    rig.run(3).await;
}

#[tokio::test(start_paused = true)]
async fn a_guest_that_releases_or_powers_off_does_not_use_up_its_time() {
    for on_notice in [OnNotice::Release, OnNotice::PowerOff] {
        let mut rig = TestHarness::started().await;
        rig.change(|state| {
            state.faults.guests = GuestHabit {
                on_notice,
                after_seconds: 4.0,
            };
        });
        rig.run(1).await;
        rig.notice(1, Hibernate).await;
        deadline(&mut rig).await;
        let before = rig.clock.now();
        rig.report().await;
        let waited = rig.clock.now().millis_since(before);
        assert!((3_000..7_000).contains(&waited), "{waited} ms");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hypervisor_that_fails_and_hangs_is_asked_again() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.change(|state| {
        state.faults.fail.insert(FaultyAction::Terminate, 1);
        state.faults.hang.insert(FaultyAction::Notice, 1);
    });
    // The notice hangs for longer than it may be begun.
    rig.config.action_timeout = Duration::from_secs(10);
    rig.kill_agent().await;
    rig.start_agent();
    rig.notice(1, Terminate).await;
    deadline(&mut rig).await;
    assert_eq!(how(&rig.report().await), EvacuationEnd::Terminated);
}

#[tokio::test(start_paused = true)]
async fn a_hypervisor_that_cannot_hibernate_is_reported_and_the_victim_lives() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.change(|state| {
        state.faults.fail.insert(FaultyAction::Hibernate, 100);
    });
    rig.notice(1, Hibernate).await;
    deadline(&mut rig).await;
    match rig.report().await {
        Body::EvacuationFailed(m) => {
            assert!(m.still_running);
            assert!(m.reason.contains("after 3 tries"), "{}", m.reason);
        }
        other => panic!("{other:?}"),
    }
    assert!(rig.has(1));
}

#[tokio::test(start_paused = true)]
async fn a_broker_that_is_away_is_waited_for_and_nothing_is_lost() {
    let mut rig = TestHarness::new().await;
    rig.down.store(true, Ordering::SeqCst);
    rig.start_agent();
    rig.order_start(1).await;
    tokio::time::sleep(Duration::from_secs(120)).await;
    rig.down.store(false, Ordering::SeqCst);
    assert!(matches!(rig.report().await, Body::Started(_)));
    // And in the middle: the evacuation goes on, its reports come when the broker is back.
    rig.notice(1, Terminate).await;
    let original = deadline(&mut rig).await;
    // The agent has the broker's word for it, too.
    tokio::time::sleep(Duration::from_secs(1)).await;
    rig.down.store(true, Ordering::SeqCst);
    rig.bus.inner.sever();
    tokio::time::sleep(Duration::from_secs(300)).await;
    assert!(!rig.has(1), "it has been ended meanwhile");
    rig.down.store(false, Ordering::SeqCst);
    loop {
        match rig.report().await {
            Body::Draining(m) => assert_eq!(m.deadline_at, original),
            Body::Evacuated(m) => {
                assert!(m.at >= original && m.at.millis_since(original) < 1_000);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_understood_goes_to_the_dead_letters_with_the_reason() {
    let mut rig = TestHarness::started().await;
    rig.send_bytes(b"{\"specversion\":\"1.0\"".to_vec()).await;
    let (delivery, reason) = rig.dead_letter().await;
    assert!(
        reason.starts_with("EB-MODEL-009: message: not a JSON object"),
        "{reason}"
    );
    delivery.ack().await;
    let Body::Heartbeat(heartbeat) = rig.next().await else {
        panic!("no heartbeat");
    };
    rig.send(Body::Heartbeat(heartbeat)).await;
    let (delivery, reason) = rig.dead_letter().await;
    assert!(
        reason.contains("is a report of host host-a for the scheduler"),
        "{reason}"
    );
    delivery.ack().await;
    rig.run(1).await;
    rig.stop_agent().await.unwrap();
    assert_eq!(rig.left_in_queue().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_full_disk_stops_the_agent_from_acting_and_loses_nothing() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.disk.fill();
    rig.notice(1, Terminate).await;
    assert_eq!(rig.reports_within(Duration::from_secs(50)).await, []);
    assert!(rig.has(1));
    rig.disk.enlarge(usize::MAX);
    deadline(&mut rig).await;
    assert_eq!(how(&rig.report().await), EvacuationEnd::Terminated);
    rig.stop_agent().await.unwrap();
    assert_eq!(rig.left_in_queue().await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_is_full_at_the_deadline_delays_the_end_and_loses_nothing() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.notice(1, Terminate).await;
    deadline(&mut rig).await;
    rig.disk.fill();
    tokio::time::sleep(Duration::from_secs(100)).await;
    assert!(rig.has(1), "what cannot be written down is not done");
    rig.disk.enlarge(usize::MAX);
    while !matches!(rig.report().await, Body::Evacuated(_)) {}
    assert!(!rig.has(1));
}

#[tokio::test(start_paused = true)]
async fn two_agents_do_not_share_a_state_directory() {
    let mut rig = TestHarness::started().await;
    assert!(matches!(rig.next().await, Body::Heartbeat(_)));
    rig.start_agent();
    let error = rig.ended().await.unwrap_err();
    assert_eq!((error.code(), error.exit_code()), ("EB-AGENT-003", 3));
    assert!(error.to_string().contains("agent.lock"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_journal_that_is_corrupt_is_not_guessed_at() {
    let mut rig = TestHarness::started().await;
    rig.run(1).await;
    rig.stop_agent().await.unwrap();
    let mut disk = rig.disk.clone();
    let mut bytes = crate::journal::Storage::read(&mut disk).unwrap();
    // In the header, which was durable before anything was appended.
    bytes[20] ^= 0x55;
    bytes.extend_from_slice(b"more\n");
    crate::journal::Storage::replace(&mut disk, &bytes).unwrap();
    rig.start_agent();
    let error = rig.ended().await.unwrap_err();
    assert_eq!(error.code(), "EB-AGENT-006");
}

#[tokio::test(start_paused = true)]
async fn a_hypervisor_that_does_not_answer_sends_no_heartbeats_and_is_not_ready() {
    let mut rig = TestHarness::started().await;
    assert!(matches!(rig.next().await, Body::Heartbeat(_)));
    rig.health.opened().await;
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(rig.health.not_ready(), [] as [String; 0]);
    rig.change(|state| {
        state.faults.hang.insert(FaultyAction::List, 1_000);
    });
    let heard = tokio::time::timeout(Duration::from_secs(300), rig.next()).await;
    assert!(heard.is_err(), "{heard:?}");
    let not_ready = rig.health.not_ready();
    assert!(
        not_ready[0].contains("does not list its servers"),
        "{not_ready:?}"
    );
    // The agent itself lives: a restart would not make the hypervisor answer.
    assert_eq!(rig.health.stuck(), [] as [String; 0]);
    rig.change(|state| state.faults = Default::default());
    assert!(matches!(rig.next().await, Body::Heartbeat(_)));
}

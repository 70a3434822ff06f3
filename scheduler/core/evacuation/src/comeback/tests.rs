use super::*;
use ebbtide_model::{Comeback, SavedState, Seconds, ServerId, Timestamp};
use proptest::collection::vec;
use proptest::prelude::*;
use uuid::Uuid;

fn server(n: u128) -> ServerId {
    ServerId(Uuid::from_u128(n))
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1000)
}

fn vcpus(n: u64) -> Resources {
    let mut resources = Resources::new();
    assert!(resources.set(ResourceClass::vcpu(), n).is_ok());
    resources
}

fn entry(project: &str, since: i64, resumed_at: Option<i64>) -> ResumeEntry {
    ResumeEntry {
        place: "host".to_owned(),
        project: project.to_owned(),
        state: ResumeState::Waiting,
        since: at(since),
        not_before: at(since),
        resumed_at: resumed_at.map(at),
    }
}

#[test]
fn a_server_that_leaves_again_soon_stays_away_twice_as_long() {
    let config = ComebackConfig::default();
    let stopped = |before: Option<Comeback>, ran_seconds: i64| {
        let millis = ran_seconds * 1000;
        saved(before, SavedState::Stopped, None, millis, at(0), &config)
    };
    let first = stopped(None, 0);
    assert_eq!((first.preempted, first.not_before), (1, at(30)));
    let second = stopped(Some(first.clone()), 3599);
    assert_eq!((second.preempted, second.not_before), (2, at(60)));
    let after_a_long_run = stopped(Some(second), 3600);
    assert_eq!(after_a_long_run, first);
}

#[test]
fn a_failed_attempt_waits_longer_each_time_and_keeps_its_reason() {
    let config = ComebackConfig::default();
    let mut record = saved(None, SavedState::Stopped, None, 0, at(0), &config);
    for (tries, wait) in [(1, 30), (2, 60), (3, 120), (4, 240)] {
        failed_attempt(&mut record, "no room", at(1000), &config);
        assert_eq!((record.tries, record.not_before), (tries, at(1000 + wait)));
        assert_eq!(record.reason.as_deref(), Some("no room"));
    }
    assert_eq!(config.waiting_time(u32::MAX), Seconds(3600));
}

#[test]
fn the_project_with_fewer_resumptions_goes_first_then_the_longest_wait() {
    let mut queue = ResumeQueue::default();
    queue.put(server(1), Some(entry("busy", 0, Some(990))));
    queue.put(server(2), Some(entry("quiet", 9, None)));
    queue.put(server(3), Some(entry("quiet", 8, None)));
    // Not due.
    queue.put(server(4), Some(entry("quiet", 2000, None)));
    let config = ComebackConfig::default();
    let turn = |now| queue.in_turn("host", at(now), &config, |_| true);
    assert_eq!(turn(1000), [server(3), server(2), server(1)]);
    // The resumption is out of the window.
    assert_eq!(turn(990 + 3600)[0], server(1));
    let but = queue.in_turn("host", at(1000), &config, |id| id != server(3));
    assert_eq!(but, [server(2), server(1)]);
}

#[test]
fn a_large_server_is_overtaken_in_every_other_period_only() {
    let mut queue = ResumeQueue::default();
    queue.put(server(1), Some(entry("a", 0, None)));
    queue.put(server(2), Some(entry("b", 1, None)));
    let config = ComebackConfig::default();
    let room = |_: &ResourceClass| ClassCapacity {
        free: 4,
        capacity: 8,
    };
    let first = |now| {
        let turn = [(server(1), vcpus(6)), (server(2), vcpus(2))];
        queue.first_that_fits(turn.into_iter(), at(now), &config, |_, needs, reserved| {
            config.fits(needs, reserved, true, room)
        })
    };
    assert_eq!(first(599), Some(server(2)));
    assert_eq!(first(600), None);
    assert_eq!(first(1200), Some(server(2)));
}

#[test]
fn the_reserve_stays_free_unless_the_host_has_no_other_server() {
    let config = ComebackConfig {
        reserve_percent: 10,
        ..ComebackConfig::default()
    };
    let fits = |needs, alone| {
        let room = |_: &ResourceClass| ClassCapacity {
            free: 4,
            capacity: 10,
        };
        config.fits(&vcpus(needs), &ReservedCapacity::new(), alone, room)
    };
    assert!(fits(3, false));
    assert!(!fits(4, false));
    assert!(fits(4, true));
    assert!(!fits(5, true));
}

proptest! {
    #[test]
    fn the_indexes_follow_from_the_entries(
        puts in vec((0u128..5, proptest::option::of((0u8..3, 0u8..2, 0u8..3, proptest::option::of(0i64..5)))), 0..40),
    ) {
        let mut queue = ResumeQueue::default();
        let mut all = BTreeMap::new();
        for (n, entry) in puts {
            let entry = entry.map(|(place, project, state, resumed)| ResumeEntry {
                place: format!("host{place}"),
                project: format!("p{project}"),
                state: match state {
                    0 => ResumeState::Waiting,
                    1 => ResumeState::Returning,
                    _ => ResumeState::Other,
                },
                since: at(0),
                not_before: at(0),
                resumed_at: resumed.map(at),
            });
            queue.put(server(n), entry.clone());
            match entry {
                Some(entry) => drop(all.insert(server(n), entry)),
                None => drop(all.remove(&server(n))),
            }
            prop_assert_eq!(queue.audit(all.clone().into_iter()), Ok(()));
        }
    }
}

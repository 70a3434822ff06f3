//! No thrashing: servers are not evicted and resumed again and again, however requests come and go.

use super::world::{SimulatedRegion, normal, spot, with};
use crate::{ComebackConfig, RegionConfig};
use ebbtide_model::{Flavor, ServerId, ServerStatus, Timestamp};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn sleeper(vcpus: u32) -> Flavor {
    let specs = [
        ("ebbtide:interruption", "hibernate"),
        ("ebbtide:grace_seconds", "1"),
    ];
    with(&spot(vcpus), &specs)
}

/// A normal request that is created or deleted, and the pause after it, in seconds.
#[derive(Debug, Clone, Copy)]
struct Tide {
    comes: bool,
    vcpus: u32,
    then: u32,
}

fn tides() -> impl Strategy<Value = Vec<Tide>> {
    let tide = (any::<bool>(), 1_u32..4, 1_u32..90);
    let tide = tide.prop_map(|(comes, vcpus, then)| Tide { comes, vcpus, then });
    prop::collection::vec(tide, 10..40)
}

/// When each server was resumed, and how often in a row it had been evicted before.
type Seen = BTreeMap<ServerId, Vec<(Timestamp, u32)>>;

fn look(world: &SimulatedRegion, all: &[ServerId], seen: &mut Seen) {
    for id in all {
        let server = world.server(*id);
        let Some(comeback) = &server.comeback else {
            continue;
        };
        if let Some(at) = comeback.resumed_at {
            let times = seen.entry(*id).or_default();
            if times.last().is_none_or(|(last, _)| *last != at) {
                times.push((at, comeback.preempted));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn every_waiting_time_grows_and_every_server_resumes_in_the_end(
        tides in tides(),
    ) {
        let comeback = ComebackConfig { reserve_percent: 0, ..ComebackConfig::default() };
        let config = RegionConfig { comeback: comeback.clone(), ..RegionConfig::default() };
        let mut world = SimulatedRegion::with_config(&[("host-a", 4), ("host-b", 4)], config);
        let all: Vec<ServerId> = [2, 2, 1, 3].iter().map(|n| world.create(&sleeper(*n))).collect();
        let mut pets: Vec<ServerId> = Vec::new();
        let mut seen = Seen::new();
        let begun = world.now;
        for tide in tides {
            if tide.comes {
                pets.push(world.create(&normal(tide.vcpus)));
            } else if let Some(pet) = pets.pop() {
                world.delete(pet);
            }
            for _ in 0..tide.then {
                world.run(1);
                look(&world, &all, &mut seen);
            }
        }
        let lasted = world.now.millis_since(begun) / 1000;
        for times in seen.values() {
            for pair in times.windows(2) {
                let (before, (after, row)) = (pair[0].0, pair[1]);
                let away = i64::from(comeback.waiting_time(row).0);
                prop_assert!(after.millis_since(before) / 1000 >= away, "{times:?}");
            }
            // The wait before a resumption doubles each time, which limits the resumptions of a
            // server within a window.
            let mut most = 0;
            let mut sum = 0;
            while sum <= lasted {
                most += 1;
                sum += i64::from(comeback.waiting_time(u32::try_from(most).unwrap_or(u32::MAX)).0);
            }
            prop_assert!(times.len() <= most, "{} comebacks in {lasted} s", times.len());
        }
        for pet in pets {
            world.delete(pet);
        }
        // All capacity is free: every server is resumed within the longest wait.
        world.run(comeback.max_seconds.0 + 60);
        for id in all {
            let status = world.server(id).status;
            prop_assert!(
                matches!(status, ServerStatus::Active | ServerStatus::Error),
                "{id} is {status}"
            );
            let placed = status == ServerStatus::Active || world.server(id).comeback.is_none();
            prop_assert!(placed, "{id} is {status}");
        }
    }
}

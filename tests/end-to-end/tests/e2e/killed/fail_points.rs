//! Scheduler and agent die at every named place of a preemption, and start again.

use super::kit::{
    audited, delete, flavors, insist, one_host, only_evacuation, runs_exactly, the_host,
    try_to_create, try_to_delete,
};
use crate::kit::{until, until_evacuation};
use ebbtide_fail_points::FailPoint;
use ebbtide_harness::eventually;
use ebbtide_integration_tests::region::PATIENCE;
use ebbtide_integration_tests::{Database, ProcessEnvironment, Region, RegionOptions};
use ebbtide_model::{Seconds, Timestamp};
use futures::future::join_all;
use uuid::Uuid;

const HOST: &str = "host-A";

/// What was at rest for so long when its host was heard is audited (see `LIMITS`).
const AT_REST: Seconds = Seconds(3);

/// Regions that are looked after at the same time: most of the time each of them waits for a lease
/// or a grace period.
const LANES: usize = 4;

/// Who comes to a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Scheduler,
    Agent,
}

/// The story in which a process reaches a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Story {
    /// The victim leaves, the preemptor starts.
    Preempted,
    /// The preemptor is deleted while the victim has time left, and the victim stays.
    Spared,
}

/// The table. A place that is added to the list has to be added here before this compiles.
///
/// `None`: only a scheduler on a real Nova comes there; `the_scheduler_dies_at_every_step` of
/// `devstack/openstack-tools/bad_days.py` kills it.
fn place(point: FailPoint) -> Option<(Who, Story)> {
    use FailPoint as P;
    let place = match point {
        P::ClaimDecided | P::ClaimWritten | P::ClaimCommitted => (Who::Scheduler, Story::Preempted),
        P::NoticeSending | P::NoticeConfirmed | P::NoticeNoted => {
            (Who::Scheduler, Story::Preempted)
        }
        P::DrainingHeard | P::DrainingCommitted | P::DrainingAcknowledged => {
            (Who::Scheduler, Story::Preempted)
        }
        P::EvacuatedHeard | P::EvacuatedCommitted | P::EvacuatedAcknowledged => {
            (Who::Scheduler, Story::Preempted)
        }
        P::StartConfirmed | P::StartedHeard | P::StartedCommitted => {
            (Who::Scheduler, Story::Preempted)
        }
        P::SpareDecided | P::SpareCommitted | P::SpareConfirmed | P::SparedHeard => {
            (Who::Scheduler, Story::Spared)
        }
        P::NoticeRead | P::NoticeJournaled | P::GuestTold => (Who::Agent, Story::Preempted),
        P::DrainingJournaled | P::DrainingReported => (Who::Agent, Story::Preempted),
        P::EndingHalfJournaled | P::EndingJournaled | P::VictimEnded => {
            (Who::Agent, Story::Preempted)
        }
        P::EvacuatedJournaled | P::EvacuatedReported | P::EvacuatedSettled => {
            (Who::Agent, Story::Preempted)
        }
        P::NoticeAcknowledged => (Who::Agent, Story::Preempted),
        P::StartRead | P::PreemptorStarted | P::StartedReported => (Who::Agent, Story::Preempted),
        P::SpareRead | P::GuestSpared | P::SparedReported => (Who::Agent, Story::Spared),
        P::NovaPlanned
        | P::NovaRecorded
        | P::NovaSwapped
        | P::NovaNoticed
        | P::NovaEvacuated
        | P::NovaReplied => return None,
    };
    Some(place)
}

/// Restarts the scheduler or the agent, with the place at which it dies in its environment, or
/// without one.
async fn start_anew(region: &mut Region, who: Who, at: Option<FailPoint>) {
    let environment = at.map(ProcessEnvironment::dying_at).unwrap_or_default();
    match who {
        Who::Scheduler => {
            region.scheduler_will_run_in(environment);
            region.start_scheduler().await.unwrap();
        }
        Who::Agent => {
            region.agent_will_run_in(HOST, environment);
            region.start_agent(HOST).unwrap();
        }
    }
}

async fn end(region: &mut Region, who: Who) {
    match who {
        Who::Scheduler => region.stop_scheduler().await.unwrap(),
        Who::Agent => region.kill_agent(HOST),
    }
}

async fn died(region: &mut Region, who: Who, at: FailPoint) {
    let died = match who {
        Who::Scheduler => region.scheduler_died().await,
        Who::Agent => region.agent_died(HOST).await,
    };
    died.unwrap_or_else(|error| panic!("{}: {error:#}", at.name()));
}

/// One preemption in which the scheduler or the agent dies at the place. The host is empty before
/// and after it.
async fn one_round(region: &mut Region, point: FailPoint) {
    let (who, story) = place(point).unwrap();
    let id = |n| Uuid::from_u128(0x100 * (point as u128 + 1) + n);
    let (victim, pet) = (id(1), id(2));
    let flavor = match story {
        Story::Preempted => "victim",
        Story::Spared => "patient",
    };
    let victim = insist(region, "victim", flavor, victim).await.id;
    until(region, &victim, "active").await;
    end(region, who).await;
    start_anew(region, who, Some(point)).await;
    // The request may fail, because the scheduler may die before it answers. It is repeated below.
    let _ = try_to_create(region, "pet", "pet", pet).await;
    let pet_id = pet.to_string();
    if story == Story::Spared {
        until_evacuation(region, &victim, "draining").await;
        let _ = try_to_delete(region, &pet_id).await;
    }
    died(region, who, point).await;
    start_anew(region, who, None).await;
    match story {
        Story::Preempted => {
            insist(region, "pet", "pet", pet).await;
            until(region, &pet_id, "active").await;
            runs_exactly(region, HOST, &[&pet_id]).await;
            until(region, &victim, "preempted").await;
            let evacuation = only_evacuation(region, &victim).await;
            assert_eq!(
                evacuation.state,
                "evacuated",
                "{}: {evacuation:?}",
                point.name()
            );
            assert_eq!(evacuation.preemptor_id, pet_id);
            delete(region, &pet_id).await;
        }
        Story::Spared => {
            delete(region, &pet_id).await;
            let evacuation = until_evacuation(region, &victim, "spared").await;
            assert_eq!(evacuation.id, only_evacuation(region, &victim).await.id);
            until(region, &victim, "active").await;
            runs_exactly(region, HOST, &[&victim]).await;
            delete(region, &victim).await;
        }
    }
    runs_exactly(region, HOST, &[]).await;
}

/// One region, and some of the places one after the other.
async fn lane(database: Database, points: Vec<FailPoint>) {
    let options = RegionOptions {
        database,
        ..one_host()
    };
    let mut region = Region::start(options).await.unwrap();
    flavors(&region).await;
    for point in points {
        eprintln!("{}", point.name());
        one_round(&mut region, point).await;
    }
    // Something at rest for long enough to be audited.
    let last = insist(&region, "last", "pet", Uuid::from_u128(1)).await.id;
    let launched = until(&region, &last, "active").await.launched_at;
    let launched: Timestamp = launched.parse().unwrap();
    eventually(PATIENCE, async || {
        let seen = the_host(&region).await.last_seen;
        match seen.parse::<Timestamp>().unwrap() > launched.plus(AT_REST) {
            true => Ok(()),
            false => Err(format!("heard at {seen}, launched at {launched}")),
        }
    })
    .await;
    audited(&region).await;
}

async fn at_every_place(who: Who, database: Database) {
    let mut lanes = vec![Vec::new(); LANES];
    let points = FailPoint::ALL
        .iter()
        .filter(|point| place(**point).is_some_and(|(dies, _)| dies == who));
    for (n, point) in points.enumerate() {
        // SQLite commits in a way of its own.
        if *point != FailPoint::ClaimWritten || database != Database::Sqlite {
            lanes[n % LANES].push(*point);
        }
    }
    join_all(lanes.into_iter().map(|points| lane(database, points))).await;
}

#[tokio::test]
async fn a_scheduler_that_dies_at_any_place_of_a_preemption_loses_nothing_on_mariadb() {
    at_every_place(Who::Scheduler, Database::MariaDb).await;
}

#[tokio::test]
async fn a_scheduler_that_dies_at_any_place_of_a_preemption_loses_nothing_on_postgresql() {
    at_every_place(Who::Scheduler, Database::Postgres).await;
}

#[tokio::test]
async fn an_agent_that_dies_at_any_place_of_a_preemption_loses_nothing() {
    at_every_place(Who::Agent, Database::Sqlite).await;
}

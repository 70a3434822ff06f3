//! The test sets a clock by an hour during a grace period. The victim keeps its promised time, and
//! the preemptor does not wait for an hour.

use super::kit::{
    audited, delete, flavors, hypervisor, insist, one_host, only_evacuation, runs_exactly,
};
use crate::kit::{preemptible, until, until_evacuation};
use ebbtide_harness::{Deadline, eventually};
use ebbtide_integration_tests::{Database, ProcessEnvironment, Region, RegionOptions};
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_store::{Store, StoreConfig, StoreError};
use std::path::{Path, PathBuf};
use std::time::Duration;
use uuid::Uuid;

const HOST: &str = "host-A";

/// How long the victims of this story have. Seconds.
const GRACE: u32 = 8;
/// Times are told in milliseconds, and rounded.
const ROUNDED: Duration = Duration::from_millis(50);
/// As soon as the preemptor has to run then: far below the hour that the clock was set by.
const SOON: Duration = Duration::from_secs(60);

/// A clock that can be set.
struct Clock(PathBuf);

impl Clock {
    fn beside(dir: &Path) -> Self {
        let clock = Self(dir.join("clock"));
        clock.set(0);
        clock
    }

    /// Sets it to so many seconds more than the real time.
    fn set(&self, seconds: i32) {
        // The library reads it at any moment, so it is never half.
        let draft = self.0.with_extension("new");
        std::fs::write(&draft, format!("{seconds:+}\n")).unwrap();
        std::fs::rename(&draft, &self.0).unwrap();
    }
}

fn ids(round: u128) -> (Uuid, Uuid) {
    (Uuid::from_u128(1000 + round), Uuid::from_u128(2000 + round))
}

/// Lets scheduler and agent begin.
async fn begin(region: &mut Region) {
    region.start_scheduler().await.unwrap();
    region.start_agent(HOST).unwrap();
    region.wait_for_hosts_up().await.unwrap();
    flavors(region).await;
    preemptible(region, "warned", 8, GRACE).await;
}

/// A preemption in the middle of whose grace period something happens to a clock.
async fn one_round(region: &mut Region, round: u128, set: impl AsyncFnOnce(&mut Region)) {
    let (victim, pet) = ids(round);
    let victim = insist(region, "victim", "warned", victim).await.id;
    until(region, &victim, "active").await;
    // No guest can be warned earlier, so none may end before this and the grace period.
    let asked = Deadline::after(SOON);
    let pet = insist(region, "pet", "pet", pet).await.id;
    until_evacuation(region, &victim, "draining").await;
    set(region).await;
    let gone = eventually(SOON, async || {
        let there = hypervisor(region, HOST);
        match there.iter().any(|(id, _)| *id == victim) {
            true => Err(format!("round {round}: {there:?}")),
            false => Ok(asked.elapsed()),
        }
    })
    .await;
    assert!(
        gone + ROUNDED >= Duration::from_secs(GRACE.into()),
        "round {round}: the victim has lost its grace period, it was gone after {gone:?}"
    );
    let started = tokio::time::timeout(SOON, until(region, &pet, "active")).await;
    assert!(started.is_ok(), "round {round}: the preemptor waits");
    let evacuation = only_evacuation(region, &victim).await;
    assert_eq!(evacuation.state, "evacuated", "{evacuation:?}");
    runs_exactly(region, HOST, &[&pet]).await;
    delete(region, &pet).await;
}

#[tokio::test]
async fn a_hosts_clock_that_is_set_takes_no_time_from_its_guests_and_gives_none() {
    let mut region = Region::prepare(one_host()).await.unwrap();
    let clock = Clock::beside(region.dir());
    region.agent_will_run_in(HOST, ProcessEnvironment::with_clock(&clock.0).unwrap());
    begin(&mut region).await;
    one_round(&mut region, 1, async |_| clock.set(3600)).await;
    // A notice of a scheduler that is an hour behind would be too late.
    clock.set(0);
    one_round(&mut region, 2, async |_| clock.set(-3600)).await;
    clock.set(0);
    for (round, seconds) in [(3, 3600), (4, -3600)] {
        let set = async |region: &mut Region| {
            region.kill_agent(HOST);
            clock.set(seconds);
            region.start_agent(HOST).unwrap();
        };
        one_round(&mut region, round, set).await;
        clock.set(0);
    }
    let log = region.agent_log(HOST);
    assert!(log.contains("the host's clock was set;"), "{log}");
    assert!(log.contains("set while the agent was down"), "{log}");
    audited(&region).await;
}

/// When the lease of the scheduler on duty ends, as its row says. A request for it at the beginning
/// of time never succeeds.
async fn lease_ends(region: &Region) -> Result<Timestamp, String> {
    let config = StoreConfig::new(region.database_url()).map_err(|e| e.to_string())?;
    let store = Store::open(&config).await.map_err(|e| e.to_string())?;
    let asked = store
        .acquire_lease("a test that looks", Timestamp::default(), Seconds(1))
        .await;
    match asked {
        Err(StoreError::LeaseHeld { until, .. }) => Ok(until),
        other => Err(format!("{other:?}")),
    }
}

async fn a_schedulers_clock_that_is_set_fails_nothing(database: Database) {
    let options = RegionOptions {
        database,
        ..one_host()
    };
    let mut region = Region::prepare(options).await.unwrap();
    let clock = Clock::beside(region.dir());
    region.scheduler_will_run_in(ProcessEnvironment::with_clock(&clock.0).unwrap());
    begin(&mut region).await;
    one_round(&mut region, 1, async |_| clock.set(3600)).await;
    one_round(&mut region, 2, async |_| clock.set(0)).await;
    // The lease that it leaves behind seems to last for an hour.
    let set = async |region: &mut Region| {
        let before = lease_ends(region).await.unwrap();
        clock.set(3600);
        eventually(SOON, async || match lease_ends(region).await? {
            end if end > before.plus(Seconds(1800)) => Ok(()),
            end => Err(format!("the lease ends at {end}")),
        })
        .await;
        region.kill_scheduler();
        clock.set(0);
        region.start_scheduler().await.unwrap();
    };
    one_round(&mut region, 3, set).await;
    audited(&region).await;
}

#[tokio::test]
async fn a_schedulers_clock_that_is_set_fails_nothing_on_sqlite() {
    a_schedulers_clock_that_is_set_fails_nothing(Database::Sqlite).await;
}

#[tokio::test]
async fn a_schedulers_clock_that_is_set_fails_nothing_on_postgresql() {
    a_schedulers_clock_that_is_set_fails_nothing(Database::Postgres).await;
}

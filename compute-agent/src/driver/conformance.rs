//! The contract of drivers, as checks that any driver can be run through. See the module above for
//! the contract in words.
//!
//! A driver's author implements [`Bench`] (how to come by a fresh hypervisor) and calls [`run`];
//! the answer lists every check with what was wrong. The checks use public operations only, and
//! take a hypervisor of their own each.

mod sharing;

use super::{Driver, DriverError, GuestNotice, NoticeOutcome, Occupancy};
use async_trait::async_trait;
use ebbtide_model::message::{HostedState, Start};
use ebbtide_model::{EvacuationId, InterruptionBehaviour, Resources, Seconds, ServerId, Timestamp};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How a driver under test is set up.
#[async_trait]
pub trait Bench: Send + Sync {
    /// A driver on an empty hypervisor that no other check uses.
    async fn fresh(&self) -> Arc<dyn Driver>;

    /// Another driver on the hypervisor of this one, as after a restart of the agent.
    async fn reopened(&self, driver: Arc<dyn Driver>) -> Arc<dyn Driver>;

    /// Two empty hosts that share a storage, on hypervisors of their own; `None` for drivers that
    /// share none.
    async fn sharing(&self) -> Option<(Arc<dyn Driver>, Arc<dyn Driver>)>;

    /// What a small server takes; the hypervisor has room for exactly two of them.
    fn half_of_everything(&self) -> Resources;
}

/// One check and what came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    /// The promise, as a sentence.
    pub promise: &'static str,
    /// What was wrong; `None` if it was kept.
    pub broken: Option<String>,
}

/// Checks every promise of the contract.
pub async fn run(bench: &dyn Bench) -> Vec<CheckResult> {
    let mut results = Vec::new();
    macro_rules! check {
        ($($promise:literal => $check:path,)+) => {
            $(results.push(CheckResult {
                promise: $promise,
                broken: Box::pin($check(bench)).await.err(),
            });)+
        };
    }
    check! {
        "a hypervisor answers and tells what it has" => answers,
        "a server that was started runs and is listed" => started_is_listed,
        "starting twice starts once" => start_twice,
        "what is not free cannot be given, and nothing is left behind" => no_overcommit,
        "a terminated server is gone with all it held" => terminate_frees,
        "a stopped server keeps at most its disk and goes on when it is started" => stop_and_go_on,
        "a hibernated server keeps at most its disk and goes on when it is started" => hibernate_and_go_on,
        "ending twice ends once" => end_twice,
        "a deleted server is gone whatever it was doing" => delete_any_state,
        "a notice can be given, repeated and withdrawn" => notices,
        "a guest that does not run cannot be told" => notice_to_stopped_guest,
        "a notice ends with the run of the guest that got it" => notice_of_an_earlier_run,
        "what is not there is not found" => unknown_server,
        "what is to go on and is not there is not made anew" => nothing_saved,
        "the servers outlive the driver" => survives,
        "a call that was cancelled can be repeated" => cancelled_calls,
        "calls about different servers run at the same time" => concurrent_calls,
        "what is kept on shared storage goes on on another host" => sharing::resume_on_other_host,
        "a server on shared storage is resumed by one host only" => sharing::resume_on_one_host_only,
        "what finds no room leaves its token to others" => sharing::release_token_without_room,
    }
    results
}

type Verdict = Result<(), String>;

fn id(n: u128) -> ServerId {
    ServerId(Uuid::from_u128(0xc0_4f0a_0000 + n))
}

fn order(bench: &dyn Bench, n: u128) -> Start {
    Start {
        server_id: id(n),
        name: format!("conformance-{n}"),
        project_id: "conformance".to_owned(),
        flavor: "half".to_owned(),
        resources: bench.half_of_everything(),
        preemptible: true,
        attempt: 0,
        resume: false,
        storage: None,
    }
}

fn notice(n: u128) -> GuestNotice {
    GuestNotice {
        evacuation_id: EvacuationId(Uuid::from_u128(n)),
        behaviour: InterruptionBehaviour::Stop,
        grace: Seconds(30),
        not_before: Timestamp::from_millis(30_000),
        begin_before: Timestamp::from_millis(4_000_000_000_000),
    }
}

fn ensure(good: bool, otherwise: impl FnOnce() -> String) -> Verdict {
    if good { Ok(()) } else { Err(otherwise()) }
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, got: &T, expected: &T) -> Verdict {
    ensure(got == expected, || {
        format!("{what}: expected {expected:?}, got {got:?}")
    })
}

/// An answer that must be `Ok`.
fn fine<T>(what: &str, answer: Result<T, DriverError>) -> Result<T, String> {
    answer.map_err(|error| format!("{what}: {error}"))
}

fn not_found<T: std::fmt::Debug>(what: &str, answer: Result<T, DriverError>) -> Verdict {
    match answer {
        Err(DriverError::NotFound { .. }) => Ok(()),
        other => Err(format!("{what}: expected NotFound, got {other:?}")),
    }
}

async fn state(driver: &dyn Driver, n: u128) -> Result<Option<HostedState>, String> {
    let listed = fine("list", driver.list().await)?;
    let listed = listed
        .iter()
        .find(|view| view.server_id == id(n))
        .map(|view| view.state);
    let seen = match fine("occupancy", driver.occupancy(id(n)).await)? {
        Occupancy::Absent => None,
        Occupancy::Present { state, .. } => Some(state),
    };
    same("list and occupancy tell the same", &listed, &seen)?;
    Ok(seen)
}

async fn expect(driver: &dyn Driver, n: u128, expected: Option<HostedState>) -> Verdict {
    let state = state(driver, n).await?;
    same(&format!("state of server {n}"), &state, &expected)
}

async fn answers(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    fine("health", driver.health().await)?;
    let facts = fine("inventory", driver.inventory().await)?;
    for (class, amount) in bench.half_of_everything().iter() {
        let capacity = facts
            .inventory
            .get(class)
            .map_or(0, ebbtide_model::Inventory::capacity);
        same(&format!("capacity of {class}"), &capacity, &(2 * amount))?;
    }
    same(
        "servers of an empty hypervisor",
        &fine("list", driver.list().await)?,
        &Vec::new(),
    )
}

async fn started_is_listed(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    fine("start", driver.start(&order(bench, 1)).await)?;
    expect(&*driver, 1, Some(HostedState::Running)).await?;
    match fine("occupancy", driver.occupancy(id(1)).await)? {
        Occupancy::Present { holds, .. } => same("holds", &holds, &bench.half_of_everything()),
        Occupancy::Absent => Err("it holds nothing".to_owned()),
    }
}

async fn start_twice(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    let first = fine("start", driver.start(&order(bench, 1)).await)?;
    let again = fine("start again", driver.start(&order(bench, 1)).await)?;
    same("since when it runs", &again, &first)?;
    same("servers", &fine("list", driver.list().await)?.len(), &1)
}

async fn no_overcommit(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    fine("start 1", driver.start(&order(bench, 1)).await)?;
    fine("start 2", driver.start(&order(bench, 2)).await)?;
    match driver.start(&order(bench, 3)).await {
        Err(DriverError::NoRoom { .. }) => {}
        other => return Err(format!("a third server: expected NoRoom, got {other:?}")),
    }
    expect(&*driver, 3, None).await?;
    fine("terminate 1", driver.terminate(id(1)).await)?;
    fine(
        "start 3 in the free room",
        driver.start(&order(bench, 3)).await,
    )
    .map(drop)
}

async fn terminate_frees(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    fine("start", driver.start(&order(bench, 1)).await)?;
    fine("terminate", driver.terminate(id(1)).await)?;
    expect(&*driver, 1, None).await
}

async fn stop_and_resume(bench: &dyn Bench, hibernate: bool) -> Verdict {
    let driver = bench.fresh().await;
    fine("start", driver.start(&order(bench, 1)).await)?;
    let (ended, halted, behaviour) = if hibernate {
        let ended = driver.hibernate(id(1)).await;
        (
            ended,
            HostedState::Hibernated,
            InterruptionBehaviour::Hibernate,
        )
    } else {
        let ended = driver.stop(id(1)).await;
        (ended, HostedState::Stopped, InterruptionBehaviour::Stop)
    };
    fine("end", ended)?;
    expect(&*driver, 1, Some(halted)).await?;
    let occupancy = fine("occupancy", driver.occupancy(id(1)).await)?;
    ensure(occupancy.is_free_after(behaviour), || {
        format!("room is not free: {occupancy:?}")
    })?;
    fine("start again", driver.start(&order(bench, 1)).await)?;
    expect(&*driver, 1, Some(HostedState::Running)).await
}

async fn stop_and_go_on(bench: &dyn Bench) -> Verdict {
    stop_and_resume(bench, false).await
}

async fn hibernate_and_go_on(bench: &dyn Bench) -> Verdict {
    stop_and_resume(bench, true).await
}

async fn end_twice(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    fine("start 1", driver.start(&order(bench, 1)).await)?;
    fine("stop", driver.stop(id(1)).await)?;
    fine("stop again", driver.stop(id(1)).await)?;
    expect(&*driver, 1, Some(HostedState::Stopped)).await?;
    fine("start 2", driver.start(&order(bench, 2)).await)?;
    fine("hibernate", driver.hibernate(id(2)).await)?;
    fine("hibernate again", driver.hibernate(id(2)).await)?;
    expect(&*driver, 2, Some(HostedState::Hibernated)).await?;
    fine("terminate", driver.terminate(id(1)).await)?;
    not_found("terminate again", driver.terminate(id(1)).await)
}

async fn delete_any_state(bench: &dyn Bench) -> Verdict {
    for halt in [false, true] {
        let driver = bench.fresh().await;
        fine("start", driver.start(&order(bench, 1)).await)?;
        if halt {
            fine("stop", driver.stop(id(1)).await)?;
        }
        fine("delete", driver.delete(id(1)).await)?;
        expect(&*driver, 1, None).await?;
        not_found("delete again", driver.delete(id(1)).await)?;
    }
    Ok(())
}

async fn notices(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    fine("start", driver.start(&order(bench, 1)).await)?;
    for time in ["notice", "the same notice", "and again"] {
        let outcome = fine(time, driver.give_notice(id(1), &notice(1)).await)?;
        same(time, &outcome, &NoticeOutcome::Delivered)?;
    }
    let elsewhere = EvacuationId(Uuid::from_u128(2));
    fine(
        "withdraw another one",
        driver.withdraw_notice(id(1), elsewhere).await,
    )?;
    let evacuation_id = notice(1).evacuation_id;
    fine(
        "withdraw",
        driver.withdraw_notice(id(1), evacuation_id).await,
    )?;
    fine(
        "withdraw again",
        driver.withdraw_notice(id(1), evacuation_id).await,
    )?;
    let views = fine("list", driver.list().await)?;
    ensure(views.iter().all(|view| view.released.is_none()), || {
        format!("released after the notice was withdrawn: {views:?}")
    })?;
    expect(&*driver, 1, Some(HostedState::Running)).await
}

async fn notice_to_stopped_guest(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    fine("start", driver.start(&order(bench, 1)).await)?;
    fine("stop", driver.stop(id(1)).await)?;
    let outcome = fine("notice", driver.give_notice(id(1), &notice(1)).await)?;
    same(
        "notice to a stopped guest",
        &outcome,
        &NoticeOutcome::NotRunning,
    )
}

async fn notice_of_an_earlier_run(bench: &dyn Bench) -> Verdict {
    for hibernate in [false, true] {
        let driver = bench.fresh().await;
        fine("start", driver.start(&order(bench, 1)).await)?;
        let outcome = fine("notice", driver.give_notice(id(1), &notice(1)).await)?;
        same("notice", &outcome, &NoticeOutcome::Delivered)?;
        if hibernate {
            fine("hibernate", driver.hibernate(id(1)).await)?;
        } else {
            fine("stop", driver.stop(id(1)).await)?;
        }
        fine("start again", driver.start(&order(bench, 1)).await)?;
        // A guest that could still answer the old notice would shorten the time of the next one.
        let views = fine("list", driver.list().await)?;
        ensure(views.iter().all(|view| view.released.is_none()), || {
            format!("it comes back with a word about its earlier run: {views:?}")
        })?;
        let outcome = fine("next notice", driver.give_notice(id(1), &notice(2)).await)?;
        same("next notice", &outcome, &NoticeOutcome::Delivered)?;
        // Taking back the old one is no reason to let it stay now, and not an error.
        let old = notice(1).evacuation_id;
        fine(
            "withdraw the old one",
            driver.withdraw_notice(id(1), old).await,
        )?;
        expect(&*driver, 1, Some(HostedState::Running)).await?;
    }
    Ok(())
}

async fn unknown_server(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    let evacuation_id = notice(1).evacuation_id;
    not_found("notice", driver.give_notice(id(9), &notice(1)).await)?;
    not_found(
        "withdraw",
        driver.withdraw_notice(id(9), evacuation_id).await,
    )?;
    not_found("terminate", driver.terminate(id(9)).await)?;
    not_found("stop", driver.stop(id(9)).await)?;
    not_found("hibernate", driver.hibernate(id(9)).await)?;
    not_found("delete", driver.delete(id(9)).await)?;
    expect(&*driver, 9, None).await
}

async fn nothing_saved(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    let go_on = Start {
        resume: true,
        storage: None,
        ..order(bench, 1)
    };
    not_found("go on", driver.start(&go_on).await)?;
    expect(&*driver, 1, None).await?;
    fine("start", driver.start(&order(bench, 1)).await)?;
    fine("stop", driver.stop(id(1)).await)?;
    fine("go on with what was kept", driver.start(&go_on).await)?;
    expect(&*driver, 1, Some(HostedState::Running)).await
}

async fn survives(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    let since = fine("start 1", driver.start(&order(bench, 1)).await)?;
    fine("start 2", driver.start(&order(bench, 2)).await)?;
    fine("stop 2", driver.stop(id(2)).await)?;
    let driver = bench.reopened(driver).await;
    expect(&*driver, 1, Some(HostedState::Running)).await?;
    expect(&*driver, 2, Some(HostedState::Stopped)).await?;
    let again = fine("start 1 again", driver.start(&order(bench, 1)).await)?;
    same("since when it runs", &again, &since)
}

async fn cancelled_calls(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    // Dropped before, during or after its effect, as the moment has it.
    for wait in [0, 1, 5, 20] {
        let wait = Duration::from_millis(wait);
        let start = order(bench, 1);
        let _ = tokio::time::timeout(wait, driver.start(&start)).await;
        fine("start after a cancelled start", driver.start(&start).await)?;
        expect(&*driver, 1, Some(HostedState::Running)).await?;
        let _ = tokio::time::timeout(wait, driver.terminate(id(1))).await;
        match driver.terminate(id(1)).await {
            Ok(()) | Err(DriverError::NotFound { .. }) => {}
            Err(error) => return Err(format!("terminate after a cancelled one: {error}")),
        }
        expect(&*driver, 1, None).await?;
    }
    Ok(())
}

async fn concurrent_calls(bench: &dyn Bench) -> Verdict {
    let driver = bench.fresh().await;
    let (first, second) = (order(bench, 1), order(bench, 2));
    let (one, two) = tokio::join!(driver.start(&first), driver.start(&second));
    fine("start 1", one)?;
    fine("start 2", two)?;
    let (gone, stopped) = tokio::join!(driver.terminate(id(1)), driver.stop(id(2)));
    fine("terminate 1", gone)?;
    fine("stop 2", stopped)?;
    expect(&*driver, 1, None).await?;
    expect(&*driver, 2, Some(HostedState::Stopped)).await
}

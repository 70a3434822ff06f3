//! The promises of hosts that share a storage.

use super::{Bench, Verdict, ensure, expect, fine, id, not_found, order, same};
use crate::driver::{Driver, DriverError};
use ebbtide_model::message::{HostedState, Start};

/// A server that is to go on with what is kept of it on this storage.
fn goes_on(bench: &dyn Bench, n: u128, storage: &str) -> Start {
    Start {
        resume: true,
        storage: Some(storage.to_owned()),
        ..order(bench, n)
    }
}

fn held_elsewhere<T: std::fmt::Debug>(what: &str, answer: Result<T, DriverError>) -> Verdict {
    match answer {
        Err(DriverError::HeldElsewhere { .. }) => Ok(()),
        other => Err(format!("{what}: expected HeldElsewhere, got {other:?}")),
    }
}

async fn named(driver: &dyn Driver) -> Result<String, String> {
    let facts = fine("inventory", driver.inventory().await)?;
    facts
        .storage
        .ok_or_else(|| "it does not say that it shares a storage".to_owned())
}

pub(super) async fn resume_on_other_host(bench: &dyn Bench) -> Verdict {
    let Some((a, b)) = bench.sharing().await else {
        return Ok(());
    };
    let storage = named(&*a).await?;
    same("storage of the other", &named(&*b).await?, &storage)?;
    let start = goes_on(bench, 1, &storage);
    fine("start", a.start(&order(bench, 1)).await)?;
    same("kept while it runs", &a.saved_storage(id(1)).await, &None)?;
    fine("hibernate", a.hibernate(id(1)).await)?;
    fine("hibernate again", a.hibernate(id(1)).await)?;
    expect(&*a, 1, Some(HostedState::Hibernated)).await?;
    expect(&*b, 1, None).await?;
    same(
        "kept in",
        &a.saved_storage(id(1)).await,
        &Some(storage.clone()),
    )?;
    fine("go on on the other host", b.start(&start).await)?;
    fine("go on there again", b.start(&start).await)?;
    expect(&*b, 1, Some(HostedState::Running)).await?;
    expect(&*a, 1, None).await?;
    held_elsewhere("start on the former host", a.start(&start).await)?;
    not_found("hibernate on the former host", a.hibernate(id(1)).await)?;
    not_found("delete on the former host", a.delete(id(1)).await)?;
    held_elsewhere(
        "delete with all on the former host",
        a.delete_saved(id(1), &storage).await,
    )?;
    expect(&*b, 1, Some(HostedState::Running)).await?;
    fine("stop there", b.stop(id(1)).await)?;
    expect(&*b, 1, Some(HostedState::Stopped)).await?;
    fine("go on on the first host", a.start(&start).await)?;
    expect(&*a, 1, Some(HostedState::Running)).await?;
    expect(&*b, 1, None).await
}

pub(super) async fn resume_on_one_host_only(bench: &dyn Bench) -> Verdict {
    let Some((a, b)) = bench.sharing().await else {
        return Ok(());
    };
    let storage = named(&*a).await?;
    let start = goes_on(bench, 1, &storage);
    fine("start", a.start(&order(bench, 1)).await)?;
    fine("stop", a.stop(id(1)).await)?;
    let (here, there) = tokio::join!(a.start(&start), b.start(&start));
    ensure(here.is_ok() != there.is_ok(), || {
        format!("one of two has to start it: {here:?}, {there:?}")
    })?;
    let (winner, loser) = match here.is_ok() {
        true => (a, b),
        false => (b, a),
    };
    expect(&*winner, 1, Some(HostedState::Running)).await?;
    expect(&*loser, 1, None).await?;
    fine("stop again", winner.stop(id(1)).await)?;
    // What an attempt may have left on the other host is not what is kept.
    not_found("delete what is not there", loser.delete(id(1)).await)?;
    expect(&*winner, 1, Some(HostedState::Stopped)).await?;
    fine("delete with all", loser.delete_saved(id(1), &storage).await)?;
    expect(&*winner, 1, None).await?;
    fine("start anew", loser.start(&order(bench, 2)).await)?;
    fine("stop", loser.stop(id(2)).await)?;
    // A deletion that was sent before it was kept does not say where.
    fine("delete where it was kept last", loser.delete(id(2)).await)?;
    expect(&*loser, 2, None).await?;
    not_found("start of what is gone", winner.start(&start).await)?;
    not_found("start of what is gone", loser.start(&start).await)
}

pub(super) async fn release_token_without_room(bench: &dyn Bench) -> Verdict {
    let Some((a, b)) = bench.sharing().await else {
        return Ok(());
    };
    let storage = named(&*a).await?;
    let start = goes_on(bench, 1, &storage);
    fine("start", a.start(&order(bench, 1)).await)?;
    fine("hibernate", a.hibernate(id(1)).await)?;
    for n in [2, 3] {
        fine("start another one", b.start(&order(bench, n)).await)?;
    }
    match b.start(&start).await {
        Err(DriverError::NoRoom { .. }) => {}
        other => return Err(format!("no room there: expected NoRoom, got {other:?}")),
    }
    let unknown = goes_on(bench, 1, "another storage");
    not_found("a storage that is not here", a.start(&unknown).await)?;
    fine("go on where there is room", a.start(&start).await)?;
    expect(&*a, 1, Some(HostedState::Running)).await
}

//! Asks a real OpenStack everything that this crate can ask, and undoes what it does; a smoke test
//! for people.
//!
//! ```text
//! . openrc; cargo run -p ebbtide-openstack --example everything [SERVER]
//! ```
//! With the id of an active server, also what changes servers: metadata, stop, start, shelve, live
//! migration, deletion.
#![allow(clippy::print_stdout)] // An answer to a person.

use ebbtide_openstack::compute::ServerFilter;
use ebbtide_openstack::placement::{Generation, Placement};
use ebbtide_openstack::{
    AdapterOptions, AuthOptions, Compute, NewClaim, OpenStackError, ReleasedConsumer, Resources,
    Session, SessionOptions, new_request_id,
};
use ebbtide_runtime::{clock, ids};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;
use uuid::Uuid;

type Outcome = Result<(), OpenStackError>;

#[tokio::main]
async fn main() -> Outcome {
    let environment = |key: &str| std::env::var(format!("OS_{}", key.to_uppercase())).ok();
    let auth = AuthOptions::from_lookup("environment", environment)?;
    let session = Session::new(auth, SessionOptions::new("ebbtide-everything"))?;
    let region = |options: AdapterOptions| AdapterOptions {
        region_name: environment("region_name"),
        ..options
    };
    told("authenticate", session.authenticate()).await?;
    println!(
        "project {:?} user {:?}",
        session.project_id().await?,
        session.user_id().await?
    );
    let request_id = new_request_id();
    let placement = Placement::new(session.clone(), region(AdapterOptions::placement()))?
        .for_request(&request_id);
    let compute =
        Compute::new(session, region(AdapterOptions::compute()))?.for_request(&request_id);
    ask_placement(&placement).await?;
    ask_compute(&compute).await?;
    match std::env::args().nth(1).and_then(|id| id.parse().ok()) {
        Some(server) => change(&compute, server).await,
        None => Ok(()),
    }
}

/// Does it, and says how long it took and what came of it.
async fn told<T: Debug>(
    what: &str,
    call: impl Future<Output = Result<T, OpenStackError>>,
) -> Result<T, OpenStackError> {
    let began = clock::instant();
    let result = call.await;
    let text: String = format!("{result:?}").chars().take(220).collect();
    println!(
        "{what:<28} {:>6.1} ms  {text}",
        began.elapsed().as_secs_f64() * 1e3
    );
    result
}

async fn ask_placement(placement: &Placement) -> Outcome {
    told("versions", placement.check_version()).await?;
    let found = told("providers", placement.providers("")).await?;
    let Some(provider) = found.first().map(|provider| provider.uuid) else {
        println!("there is no provider");
        return Ok(());
    };
    told("provider", placement.provider(provider)).await?;
    told("inventories", placement.inventories(provider)).await?;
    told("usages", placement.usages(provider)).await?;
    told("traits", placement.traits(provider)).await?;
    told("aggregates", placement.aggregates(provider)).await?;
    told(
        "provider_allocations",
        placement.provider_allocations(provider),
    )
    .await?;
    let query = format!("limit=1000&resources=VCPU%3A1&in_tree={provider}");
    let candidates = told(
        "allocation_candidates",
        placement.allocation_candidates(&query),
    )
    .await?;
    let amounts = BTreeMap::from([(provider, BTreeMap::from([("VCPU".to_owned(), 1)]))]);
    let resources = candidates
        .allocation_requests
        .first()
        .cloned()
        .map_or_else(|| Resources::from_amounts(&amounts), Ok)?;
    let consumer = ids::random;
    let (project_id, user_id) = ("p".repeat(32), "u".repeat(32));
    let claim = |consumer| NewClaim {
        consumer,
        resources: resources.clone(),
        project_id: project_id.clone(),
        user_id: user_id.clone(),
        generation: None,
    };
    let (first, second, third) = (claim(consumer()), claim(consumer()), claim(consumer()));
    told("claim", placement.claim(&first)).await?;
    told("claim_new", placement.claim_new(&second)).await?;
    let again = told("claim_new, known consumer", placement.claim_new(&second)).await?;
    println!("a second claim for a consumer: {again:?}");
    told("put_allocations", placement.put_allocations(&third)).await?;
    let held = told("allocations", placement.allocations(first.consumer)).await?;
    let victim = |consumer, generation| ReleasedConsumer {
        consumer,
        generation,
        project_id: project_id.clone(),
        user_id: user_id.clone(),
    };
    let stale = victim(first.consumer, Generation(99));
    let newcomer = claim(consumer());
    let refused = told(
        "post_allocations, stale",
        placement.post_allocations(&[stale], std::slice::from_ref(&newcomer)),
    )
    .await;
    println!(
        "a stale generation: {:?}",
        refused.map_err(|error| error.code())
    );
    if let Some(generation) = held.consumer_generation {
        let swap = [victim(first.consumer, generation)];
        told(
            "post_allocations",
            placement.post_allocations(&swap, std::slice::from_ref(&newcomer)),
        )
        .await?;
    }
    for consumer in [
        first.consumer,
        second.consumer,
        third.consumer,
        newcomer.consumer,
    ] {
        told("delete_allocations", placement.delete_allocations(consumer)).await?;
    }
    told("usages", placement.usages(provider)).await.map(drop)
}

async fn ask_compute(compute: &Compute) -> Outcome {
    told("versions", compute.versions()).await?;
    told("negotiated", compute.negotiated()).await?;
    told("services", compute.services(Some("nova-compute"))).await?;
    told("hypervisors", compute.hypervisors()).await?;
    let servers = told("servers", compute.servers(&ServerFilter::everywhere())).await?;
    if let Some(server) = servers.first() {
        let host = server.host.clone().unwrap_or_default();
        told(
            "servers of a host",
            compute.servers(&ServerFilter::on_host(&host)),
        )
        .await?;
        let mut changed = ServerFilter::everywhere();
        changed.changes_since = server.updated.clone();
        told("servers changed since", compute.servers(&changed)).await?;
        told("server", compute.server(server.id)).await?;
        told("instance_actions", compute.instance_actions(server.id)).await?;
        told("migrations", compute.migrations(server.id)).await?;
    }
    Ok(())
}

async fn change(compute: &Compute, server: Uuid) -> Outcome {
    let pairs = BTreeMap::from([("ebbtide:example".to_owned(), "x".to_owned())]);
    told("set_metadata", compute.set_metadata(server, &pairs)).await?;
    told(
        "delete_metadata",
        compute.delete_metadata(server, "ebbtide:example"),
    )
    .await?;
    told(
        "delete_metadata again",
        compute.delete_metadata(server, "ebbtide:example"),
    )
    .await?;
    told("live_migrate", compute.live_migrate(server, None)).await?;
    settle(compute, server).await?;
    told("stop", compute.stop(server)).await?;
    settle(compute, server).await?;
    let twice = told("stop again", compute.stop(server)).await;
    println!(
        "stopping what is stopped: {:?}",
        twice.map_err(|error| error.code())
    );
    told("start", compute.start(server)).await?;
    settle(compute, server).await?;
    told("shelve", compute.shelve(server)).await?;
    if settle(compute, server).await? == "SHELVED" {
        told("shelve_offload", compute.shelve_offload(server)).await?;
        settle(compute, server).await?;
    }
    told("unshelve", compute.unshelve(server)).await?;
    settle(compute, server).await?;
    told("force_delete", compute.force_delete(server)).await?;
    while !matches!(
        compute.server(server).await,
        Err(OpenStackError::NotFound { .. })
    ) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    told("delete", compute.delete(server)).await.map_or_else(
        |error| println!("deleting what is gone: {}", error.code()),
        drop,
    );
    told("instance_actions", compute.instance_actions(server))
        .await
        .map(drop)
}

/// Waits until Nova does nothing with it; its status then.
async fn settle(compute: &Compute, server: Uuid) -> Result<String, OpenStackError> {
    loop {
        let now = compute.server(server).await?;
        if now.task_state.is_none() {
            println!("  … {} on {:?}", now.status, now.host);
            return Ok(now.status);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

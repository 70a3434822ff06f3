//! Broker and database are killed when a preemption has come to a certain state, and start again.

use super::kit::{audited, delete, flavors, insist, one_host, only_evacuation, runs_exactly};
use crate::kit::{preemptible, until, until_evacuation};
use ebbtide_harness::{Maria, Postgresql, PrivateServer, RabbitMq, ServerKind};
use ebbtide_integration_tests::{Region, RegionOptions};
use ebbtide_proto::v1;
use uuid::Uuid;

const HOST: &str = "host-A";

/// What is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Broker,
    Database,
    Both,
}

/// When it is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum When {
    /// The preemptor has its answer.
    Claimed,
    /// The grace period runs.
    Draining,
    /// The victim is gone, the preemptor is on its way.
    Building,
    /// The preemptor was deleted in the grace period.
    Sparing,
}

const MARIADB: [(Which, When); 7] = [
    (Which::Broker, When::Claimed),
    (Which::Database, When::Claimed),
    (Which::Database, When::Draining),
    (Which::Both, When::Draining),
    (Which::Broker, When::Building),
    (Which::Database, When::Building),
    (Which::Both, When::Sparing),
];

/// What the broker does for a scheduler does not depend on the database.
const POSTGRESQL: [(Which, When); 4] = [
    (Which::Database, When::Claimed),
    (Which::Both, When::Draining),
    (Which::Database, When::Building),
    (Which::Database, When::Sparing),
];

async fn kill_and_restart<K: ServerKind>(
    which: Which,
    broker: &mut RabbitMq,
    database: &mut PrivateServer<K>,
) {
    if which != Which::Database {
        broker.kill();
    }
    if which != Which::Broker {
        database.kill();
    }
    let broken = async {
        if which != Which::Database {
            broker.restart().await.unwrap();
        }
    };
    let gone = async {
        if which != Which::Broker {
            database.restart().await.unwrap();
        }
    };
    tokio::join!(broken, gone);
}

#[tokio::test]
async fn broker_and_mariadb_are_killed_at_any_state_of_a_preemption_and_nothing_is_lost() {
    nothing_is_lost::<Maria>(&MARIADB).await;
}

#[tokio::test]
async fn broker_and_postgresql_are_killed_at_any_state_of_a_preemption_and_nothing_is_lost() {
    nothing_is_lost::<Postgresql>(&POSTGRESQL).await;
}

async fn nothing_is_lost<K: ServerKind>(table: &[(Which, When)]) {
    let (broker, database) = tokio::join!(RabbitMq::start(), PrivateServer::<K>::start());
    let (mut broker, mut database) = (broker.unwrap(), database.unwrap());
    let options = RegionOptions {
        broker_url: Some(broker.url()),
        database_url: Some(database.url()),
        heartbeat_seconds: Some(1),
        // A broker and a database need seconds to start, on a busy machine many.
        region: "start_timeout_seconds = 60\nhost_down_seconds = 6\nnotice_timeout_seconds = 20"
            .to_owned(),
        drivers: [(HOST.to_owned(), SLOW_START.to_owned())].into(),
        ..one_host()
    };
    let region = Region::start(options).await.unwrap();
    flavors(&region).await;
    preemptible(&region, "lasting", 8, 2).await;
    for (n, (which, when)) in (0u128..).zip(table.iter().copied()) {
        eprintln!("{which:?} {when:?}");
        let flavor = match when {
            When::Sparing => "patient",
            _ => "lasting",
        };
        let victim = insist(&region, "victim", flavor, Uuid::from_u128(100 + n)).await;
        until(&region, &victim.id, "active").await;
        let pet = insist(&region, "pet", "pet", Uuid::from_u128(200 + n)).await;
        match when {
            When::Claimed => {}
            When::Draining => drop(until_evacuation(&region, &victim.id, "draining").await),
            When::Building => drop(until(&region, &pet.id, "building").await),
            When::Sparing => {
                until_evacuation(&region, &victim.id, "draining").await;
                let delete = v1::DeleteServerRequest { id: pet.id.clone() };
                let mut servers = region.servers().await.unwrap();
                servers.delete_server(delete).await.unwrap();
            }
        }
        kill_and_restart(which, &mut broker, &mut database).await;
        let stays = match when {
            When::Sparing => {
                until_evacuation(&region, &victim.id, "spared").await;
                until(&region, &victim.id, "active").await
            }
            _ => {
                let pet = until(&region, &pet.id, "active").await;
                let ended = only_evacuation(&region, &victim.id).await;
                assert_eq!(ended.state, "evacuated", "{which:?} {when:?}: {ended:?}");
                pet
            }
        };
        runs_exactly(&region, HOST, &[&stays.id]).await;
        delete(&region, &stays.id).await;
    }
    audited(&region).await;
}

/// So slow that a start can be seen under way.
const SLOW_START: &str = "\
[driver]
kind = \"simulated\"
[driver.simulated]
inventory = { VCPU = 8, MEMORY_MB = 16000, DISK_GB = 160 }
start_seconds = 0.5
terminate_seconds = 0.05
delete_seconds = 0.05
";

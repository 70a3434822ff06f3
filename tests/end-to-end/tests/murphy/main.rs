//! Murphy's law: for some time everything that can go wrong does, while servers come and others
//! leave for them.
//!
//! Real schedulers, a real broker, a real database, real agents; their hypervisors are simulated,
//! and are the witnesses: what is judged in the end is read from their files. What goes wrong, and
//! when, follows from a seed; what the processes make of it does not.
//!
//! The short form is part of every run of the tests. The long ones are asked for, see
//! `docs/operate/security.md`:
//!
//! ```console
//! $ cargo nextest run -p ebbtide-integration-tests --test murphy --run-ignored only
//! ```
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr
)] // These are tests.

mod client;
mod clusters;
mod day;
mod faults;
mod load;
mod mixed;
mod rotation;
mod verification;
mod watch;

use day::Day;
use ebbtide_integration_tests::Database;

/// A number from the environment.
fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|value| {
        let number = value.parse();
        number.unwrap_or_else(|error| panic!("{name}={value}: {error}"))
    })
}

/// Long enough for each kind of fault, short enough for every run of the tests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_bad_day_on_sqlite_loses_nothing_and_ends_no_victim_for_nothing() {
    let day = Day {
        database: Database::Sqlite,
        seed: setting("EBBTIDE_MURPHY_SEED").unwrap_or(1),
        seconds: 45,
        // A machine with a load of 9 had five in 25 s; a quiet one has more than twenty.
        evacuations: 5,
        faults: 20,
    };
    day.happen().await;
}

async fn two_minutes(database: Database) {
    let day = Day {
        database,
        seed: setting("EBBTIDE_MURPHY_SEED").unwrap_or(1),
        seconds: setting("EBBTIDE_MURPHY_SECONDS").unwrap_or(120),
        evacuations: setting("EBBTIDE_MURPHY_EVACUATIONS").unwrap_or(500),
        faults: setting("EBBTIDE_MURPHY_FAULTS").unwrap_or(100),
    };
    day.happen().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; asked for with --run-ignored"]
async fn a_long_bad_day_on_sqlite() {
    two_minutes(Database::Sqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; asked for with --run-ignored"]
async fn a_long_bad_day_on_mariadb() {
    two_minutes(Database::MariaDb).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "minutes; asked for with --run-ignored"]
async fn a_long_bad_day_on_postgresql() {
    two_minutes(Database::Postgres).await;
}

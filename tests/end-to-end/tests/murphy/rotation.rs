//! Passwords of broker and database that change under load, without a restart.
//!
//! A real broker, a real database, two schedulers, agents with simulated hypervisors. The operator
//! changes a password at the server, in the configurations, and reloads; the server then ends every
//! connection that has the old one. What is judged in the end is read from the hypervisors' files,
//! as on a bad day.

use crate::client::{PATIENCE, RetryingClient};
use crate::day::{DRIVER, flavors};
use crate::faults::Schedulers;
use crate::load::Load;
use crate::verification::{self, Verdict};
use crate::watch::Watch;
use ebbtide_harness::{Deadline, MariaDb, Postgres, RabbitMq, Signal};
use ebbtide_integration_tests::{Database, Peer, Region, RegionOptions, get_raw};
use ebbtide_runtime::clock::Stopwatch;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HOSTS: u32 = 6;
const PREEMPTORS: u64 = 6;
const FILLERS: u64 = 2;
/// Evacuations that show that the region works.
const PROGRESS: u64 = 8;
const USER: &str = "region";
/// Longer than a rotation takes.
const LIMITS: &str = "notice_timeout_seconds = 10\nnotice_attempts = 5\nact_timeout_seconds = 40\n\
     start_timeout_seconds = 40\nhost_down_seconds = 40\nfailed_victim_rest_seconds = 1";

enum Server {
    MariaDb(MariaDb),
    Postgres(Postgres),
}

impl Server {
    /// Makes a database with a user of its own, and returns its URL.
    async fn prepare(&self, password: &str) -> String {
        let port = match self {
            Self::MariaDb(server) => {
                server.create_database("region").await.unwrap();
                let made = format!(
                    "CREATE USER {USER}@'%' IDENTIFIED BY '{password}'; \
                     GRANT ALL ON region.* TO {USER}@'%'"
                );
                for sql in made.split("; ") {
                    server.execute(sql).await.unwrap();
                }
                return format!(
                    "mysql://{USER}:{password}@127.0.0.1:{}/region",
                    server.port()
                );
            }
            Self::Postgres(server) => {
                server.create_database("region").await.unwrap();
                for sql in [
                    format!("CREATE USER {USER} PASSWORD '{password}'"),
                    format!("ALTER DATABASE region OWNER TO {USER}"),
                ] {
                    server.execute(&sql).await.unwrap();
                }
                server.port()
            }
        };
        format!("postgres://{USER}:{password}@127.0.0.1:{port}/region")
    }

    async fn set_password(&self, password: &str) {
        match self {
            Self::MariaDb(server) => {
                let set = format!("ALTER USER {USER}@'%' IDENTIFIED BY '{password}'");
                server.execute(&set).await.unwrap();
            }
            Self::Postgres(server) => {
                let set = format!("ALTER USER {USER} PASSWORD '{password}'");
                server.execute(&set).await.unwrap();
            }
        }
    }

    /// Ends every connection of the user.
    async fn end_connections(&self) {
        match self {
            Self::MariaDb(server) => {
                server.execute(&format!("KILL USER {USER}")).await.unwrap();
            }
            Self::Postgres(server) => {
                let end = format!(
                    "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE usename = '{USER}'"
                );
                server.execute(&end).await.unwrap();
            }
        }
    }
}

/// The region with the files of its configuration.
struct Rotated<'a> {
    region: &'a Region,
    schedulers: &'a Schedulers,
    hosts: &'a [String],
}

impl Rotated<'_> {
    /// Replaces a text in all configurations, and reloads.
    fn reload(&self, old: &str, new: &str) {
        for entry in std::fs::read_dir(self.region.dir()).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|end| end == "toml") {
                replace(&path, old, new);
            }
        }
        for peer in self.peers() {
            peer.signal(Signal::Hup).unwrap();
        }
        for host in self.hosts {
            self.region.signal_agent(host, Signal::Hup).unwrap();
        }
    }

    fn peers(&self) -> Vec<&Peer> {
        let running = self.schedulers.running.iter();
        running.filter_map(|(_, peer)| peer.as_ref()).collect()
    }

    /// Waits until each scheduler has said this about a key, and shows it in its metrics.
    async fn until_shown(&self, key: &str, words: &str, times: usize, good: u8) {
        self.until_said(&[words, key], times).await;
        let deadline = Deadline::after(PATIENCE);
        for peer in self.peers() {
            let wanted = format!("ebbtide_last_reload_successful{{key=\"{key}\"}} {good}");
            let address = peer.address("http").unwrap().replace("http://", "");
            loop {
                let page = get_raw(&address, "/metrics").await.unwrap();
                if page.lines().any(|line| line == wanted) {
                    break;
                }
                assert!(!deadline.has_passed(), "{wanted}: {page}");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }

    /// Waits until the log of each scheduler has so many lines with all of these words.
    async fn until_said(&self, words: &[&str], times: usize) {
        let deadline = Deadline::after(PATIENCE);
        for peer in self.peers() {
            let said = || {
                let log = peer.log();
                let is_it = |line: &&str| words.iter().all(|word| line.contains(word));
                log.lines().filter(is_it).count()
            };
            while said() < times {
                assert!(!deadline.has_passed(), "{words:?}: {}", peer.log());
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

fn replace(path: &Path, old: &str, new: &str) {
    let text = std::fs::read_to_string(path).unwrap();
    std::fs::write(path, text.replace(old, new)).unwrap();
}

/// Waits until the region has evacuated so many more.
async fn progress(client: &mut RetryingClient, what: &str) {
    let wanted = verification::evacuated(client).await + PROGRESS;
    let deadline = Deadline::after(PATIENCE);
    loop {
        let now = verification::evacuated(client).await;
        if now >= wanted {
            return;
        }
        assert!(
            !deadline.has_passed(),
            "{what}: {now} of {wanted} evacuations"
        );
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Changes the passwords under load: in the right order, in the wrong one, and to a wrong one.
async fn happen(server: Server) {
    let broker = RabbitMq::start().await.unwrap();
    for arguments in [
        ["add_user", USER, "broker-1", "", ""],
        ["set_permissions", USER, ".*", ".*", ".*"],
    ] {
        let arguments: Vec<&str> = arguments.into_iter().filter(|a| !a.is_empty()).collect();
        broker.control(&arguments).await.unwrap();
    }
    let hosts: Vec<String> = (0..HOSTS).map(|n| format!("host-{n}")).collect();
    let drivers = hosts.iter().map(|host| (host.clone(), DRIVER.to_owned()));
    let options = RegionOptions {
        database: match server {
            Server::MariaDb(_) => Database::MariaDb,
            Server::Postgres(_) => Database::Postgres,
        },
        database_url: Some(server.prepare("database-1").await),
        database_options: "lease_seconds = 2\ntimeout_seconds = 10".to_owned(),
        broker_url: Some(format!(
            "amqp://{USER}:broker-1@127.0.0.1:{}/%2f",
            broker.port()
        )),
        hosts: hosts.clone(),
        drivers: drivers.collect(),
        region: LIMITS.to_owned(),
        ..RegionOptions::default()
    };
    let mut region = Region::prepare(options).await.unwrap();
    let names = ["one", "two"];
    let ready: Vec<PathBuf> = names
        .iter()
        .map(|name| region.dir().join(format!("ready-{name}.json")))
        .collect();
    let mut schedulers = Schedulers {
        dir: region.dir().to_owned(),
        config: region.scheduler_config().unwrap(),
        running: names.iter().map(|n| ((*n).to_owned(), None)).collect(),
        programs: BTreeMap::new(),
    };
    schedulers.start().await;
    for host in &hosts {
        region.start_agent(host).unwrap();
    }
    let mut client = RetryingClient::of(&ready, 0);
    flavors(&mut client).await;
    verification::until_hosts_are_up(&mut client, hosts.len()).await;
    let processes: Vec<u32> = region.agent_pids();
    let watch = Watch::start(&region, &hosts);
    let load = Load::new(1);
    let rotated = Rotated {
        region: &region,
        schedulers: &schedulers,
        hosts: &hosts,
    };
    let accepted = "the new login is accepted";
    let refused = "the new login is refused, and the old one stays";
    let say = |what: &str, took: Stopwatch| {
        let seconds = took.elapsed().as_secs_f64();
        println!("rotation: {what}: {seconds:.1} s, {}", load.noticed());
    };
    let trouble = async {
        let took = Stopwatch::start();
        progress(&mut client, "before anything").await;
        say("before", took);

        // As the procedure says: server, configuration, reload; then old connections end.
        let took = Stopwatch::start();
        broker
            .control(&["change_password", USER, "broker-2"])
            .await
            .unwrap();
        rotated.reload(":broker-1@", ":broker-2@");
        rotated.until_shown("bus.urls", accepted, 1, 1).await;
        broker
            .control(&["close_all_user_connections", USER, "rotated"])
            .await
            .unwrap();
        progress(&mut client, "with the broker's new password").await;
        say("the broker's password", took);
        let took = Stopwatch::start();
        server.set_password("database-2").await;
        rotated.reload(":database-1@", ":database-2@");
        rotated.until_shown("database.url", accepted, 1, 1).await;
        server.end_connections().await;
        progress(&mut client, "with the database's new password").await;
        say("the database's password", took);

        // A wrong password in the configurations: the old ones stay, also for new connections.
        let took = Stopwatch::start();
        rotated.reload(":broker-2@", ":wrong-broker@");
        rotated.until_shown("bus.urls", refused, 1, 0).await;
        rotated.until_said(&["EB-BUS-007", refused], 1).await;
        rotated.reload(":database-2@", ":wrong-database@");
        rotated.until_shown("database.url", refused, 1, 0).await;
        rotated.until_said(&["EB-STORE-012", refused], 1).await;
        broker
            .control(&["close_all_user_connections", USER, "test"])
            .await
            .unwrap();
        server.end_connections().await;
        progress(&mut client, "with wrong passwords in the configurations").await;
        say("wrong passwords", took);

        // The servers first, whose connections end at once: nothing works until the reload, which
        // also corrects what was wrong.
        let took = Stopwatch::start();
        broker
            .control(&["change_password", USER, "broker-3"])
            .await
            .unwrap();
        server.set_password("database-3").await;
        broker
            .control(&["close_all_user_connections", USER, "test"])
            .await
            .unwrap();
        server.end_connections().await;
        rotated
            .until_said(&["EB-STORE-001", "EB-STORE-012"], 1)
            .await;
        rotated
            .until_said(&["cannot connect to the broker", "EB-BUS-007"], 1)
            .await;
        rotated.reload(":wrong-broker@", ":broker-3@");
        rotated.reload(":wrong-database@", ":database-3@");
        rotated.until_shown("bus.urls", accepted, 2, 1).await;
        rotated.until_shown("database.url", accepted, 2, 1).await;
        progress(&mut client, "after the correction").await;
        say("no valid login until the correction", took);
        load.end();
    };
    tokio::join!(load.run(&ready, PREEMPTORS, FILLERS), trouble);
    verification::until_all_is_at_rest(&mut client, hosts.len()).await;
    let seen = watch.end();
    let verdict = Verdict::settled(&mut client, &region, &hosts, &load.ledger, &seen).await;
    println!("rotation: {} evacuations: {verdict}", verdict.evacuations);
    verdict.insist();
    assert_eq!(region.agent_pids(), processes, "an agent was started again");
    for peer in schedulers
        .running
        .iter()
        .filter_map(|(_, peer)| peer.as_ref())
    {
        assert!(!peer.has_ended(), "{}", peer.log());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_of_broker_and_mariadb_change_under_load_without_a_restart() {
    happen(Server::MariaDb(MariaDb::start().await.unwrap())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn passwords_of_broker_and_postgresql_change_under_load_without_a_restart() {
    happen(Server::Postgres(Postgres::start().await.unwrap())).await;
}

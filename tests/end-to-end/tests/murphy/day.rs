//! A whole day: everything is started, everything goes wrong, everything comes to rest, and is
//! judged.

use crate::client::RetryingClient;
use crate::faults::{self, FaultLog, FaultSchedule, Schedulers, TestedDatabase};
use crate::load::{FLAVORS, Load};
use crate::verification;
use crate::watch::Watch;
use ebbtide_bench::seeded::SeededNumbers;
use ebbtide_client::Region as Clients;
use ebbtide_harness::{Deadline, MariaDb, Postgres, RabbitMq};
use ebbtide_integration_tests::{Database, Region, RegionOptions};
use ebbtide_proto::v1;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

const HOSTS: u32 = 10;
const PREEMPTORS: u64 = 10;
const FILLERS: u64 = 3;

/// Limits so short that two minutes are many of them.
const LIMITS: &str = "notice_timeout_seconds = 2\nnotice_attempts = 3\nact_timeout_seconds = 6\n\
     start_timeout_seconds = 6\nhost_down_seconds = 6\nfailed_victim_rest_seconds = 1\nmax_attempts = 5";

pub(crate) const DRIVER: &str = "\
[driver]
kind = \"simulated\"
[driver.simulated]
inventory = { VCPU = 8, MEMORY_MB = 8000, DISK_GB = 80 }
start_seconds = 0.05
notice_seconds = 0.01
terminate_seconds = 0.05
delete_seconds = 0.05
";

/// What is to happen.
pub(crate) struct Day {
    pub(crate) database: Database,
    pub(crate) seed: u64,
    /// How long things go wrong at least; longer if that was not enough of it, up to four times.
    pub(crate) seconds: u64,
    pub(crate) evacuations: u64,
    pub(crate) faults: u64,
}

impl Day {
    pub(crate) async fn happen(self) {
        let mut broker = RabbitMq::start().await.unwrap();
        let hosts: Vec<String> = (0..HOSTS).map(|n| format!("host-{n}")).collect();
        let (mut tested, url) = match self.database {
            Database::Sqlite => (None, None),
            Database::MariaDb => {
                let server = MariaDb::start().await.unwrap();
                let url = server.url();
                (Some(TestedDatabase::MariaDb(server)), Some(url))
            }
            Database::Postgres => {
                let server = Postgres::start().await.unwrap();
                let url = server.url();
                (Some(TestedDatabase::Postgres(server)), Some(url))
            }
        };
        let options = RegionOptions {
            database: self.database,
            database_url: url,
            database_options: "lease_seconds = 2\ntimeout_seconds = 5".to_owned(),
            broker_url: Some(broker.url()),
            heartbeat_seconds: Some(1),
            hosts: hosts.clone(),
            region: LIMITS.to_owned(),
            drivers: hosts
                .iter()
                .map(|h| (h.clone(), DRIVER.to_owned()))
                .collect(),
            ..RegionOptions::default()
        };
        let mut region = Region::prepare(options).await.unwrap();
        let (dir, prefix) = (region.dir().to_owned(), region.prefix().to_owned());
        let tested = tested.get_or_insert_with(|| TestedDatabase::Sqlite(dir.join("region.db")));
        // On a file one scheduler writes, so there is no use for another one.
        let names = match self.database {
            Database::Sqlite => vec!["one"],
            _ => vec!["one", "two"],
        };
        let ready: Vec<PathBuf> = names
            .iter()
            .map(|n| dir.join(format!("ready-{n}.json")))
            .collect();
        let mut schedulers = Schedulers {
            dir: dir.clone(),
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

        let watch = Watch::start(&region, &hosts);
        let load = Load::new(self.seed);

        let diary = FaultLog::default();
        let whole = Deadline::after(Duration::from_secs(4 * self.seconds));
        let trouble = async {
            let mut round = 0_u64;
            while round == 0 || !whole.has_passed() {
                // One round is nearly always enough.
                let end = match round {
                    0 => Duration::from_secs(self.seconds),
                    _ => Duration::from_secs(10).min(whole.remaining()),
                };
                let lane = |n: u64| FaultSchedule {
                    dice: SeededNumbers::new(self.seed, 1 + n + 10 * round),
                    end: Deadline::after(end),
                    diary: &diary,
                };
                tokio::join!(
                    faults::agents(lane(0), &mut region, &hosts),
                    faults::schedulers(lane(1), &mut schedulers),
                    faults::broker(lane(2), &mut broker, &prefix, &hosts),
                    faults::database(lane(3), tested),
                );
                round += 1;
                let so_far = verification::evacuated(&mut client).await;
                if so_far >= self.evacuations && diary.total() >= self.faults {
                    break;
                }
            }
            load.end();
        };
        tokio::join!(load.run(&ready, PREEMPTORS, FILLERS), trouble);
        schedulers.start().await;
        verification::until_all_is_at_rest(&mut client, hosts.len()).await;
        let took = whole.elapsed();
        let seen = watch.end();
        let verdict =
            verification::Verdict::settled(&mut client, &region, &hosts, &load.ledger, &seen).await;
        println!(
            "murphy: {:?}, seed {}: {} evacuations under {} faults in {:.0} s: {verdict}\n{:?}",
            self.database,
            self.seed,
            verdict.evacuations,
            diary.total(),
            took.as_secs_f64(),
            diary.counts(),
        );
        verdict.insist();
        assert!(
            verdict.evacuations >= self.evacuations,
            "{} evacuations",
            verdict.evacuations
        );
        assert!(diary.total() >= self.faults, "{:?}", diary.counts());
    }
}

pub(crate) async fn flavors(client: &mut RetryingClient) {
    for (name, vcpus, grace) in FLAVORS {
        let mut flavor = v1::Flavor {
            name: name.to_owned(),
            vcpus,
            ram_mb: 1000 * vcpus,
            disk_gb: 10 * vcpus,
            ..Default::default()
        };
        if let Some(seconds) = grace {
            for (key, value) in [
                ("ebbtide:preemptible", "true".to_owned()),
                ("ebbtide:grace_seconds", seconds.to_string()),
            ] {
                flavor.extra_specs.insert(key.to_owned(), value);
            }
        }
        let create = v1::CreateFlavorRequest {
            flavor: Some(flavor),
        };
        let call = async |mut clients: Clients| clients.admin.create_flavor(create.clone()).await;
        client.ask("flavor", call).await.unwrap();
    }
}

//! The simulated driver keeps the contract, and misbehaves exactly as it was told to.

use super::*;
use crate::clock::{SystemClock, TimerClock};
use crate::driver::conformance::{self, Bench};
use crate::driver::storage::StorageSettings;
use ebbtide_model::{InterruptionBehaviour, Inventory, ResourceClass, Resources, Seconds};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use uuid::Uuid;

fn inventory() -> BTreeMap<ResourceClass, Inventory> {
    let overcommitted = Inventory {
        total: 5,
        reserved: 1,
        allocation_ratio: 1.0,
    };
    [
        (ResourceClass::vcpu(), overcommitted),
        (ResourceClass::memory_mb(), Inventory::of(4096)),
        (ResourceClass::disk_gb(), Inventory::of(20)),
    ]
    .into()
}

fn half() -> Resources {
    let half = [
        (ResourceClass::vcpu(), 2),
        (ResourceClass::memory_mb(), 2048),
        (ResourceClass::disk_gb(), 10),
    ];
    Resources::try_from(BTreeMap::from(half)).unwrap()
}

fn driver(dir: &Path, clock: Arc<dyn Clock>) -> SimulatedDriver {
    let store = SimulatedStore::open(dir).unwrap();
    SimulatedDriver::new(SimulatedSettings::instant(inventory()), store, clock)
}

#[derive(Default)]
struct Simulated {
    dirs: Mutex<Vec<tempfile::TempDir>>,
}

#[async_trait]
impl Bench for Simulated {
    async fn fresh(&self) -> Arc<dyn Driver> {
        let dir = tempfile::tempdir().unwrap();
        let driver = driver(dir.path(), Arc::new(SystemClock));
        self.dirs.lock().unwrap().push(dir);
        Arc::new(driver)
    }

    async fn reopened(&self, old: Arc<dyn Driver>) -> Arc<dyn Driver> {
        drop(old);
        let dirs = self.dirs.lock().unwrap();
        let newest = dirs.last().expect("a driver was opened before");
        Arc::new(driver(newest.path(), Arc::new(SystemClock)))
    }

    async fn sharing(&self) -> Option<(Arc<dyn Driver>, Arc<dyn Driver>)> {
        let dir = tempfile::tempdir().unwrap();
        let open = |host: &str| -> Arc<dyn Driver> {
            let settings = StorageSettings {
                name: "nfs-1".to_owned(),
                dir: dir.path().join("nfs"),
            };
            let storage = SharedStorage::open(settings, host).unwrap();
            let own = dir.path().join(host);
            std::fs::create_dir_all(&own).unwrap();
            let alone = driver(&own, Arc::new(SystemClock));
            Arc::new(alone.sharing(storage))
        };
        let both = (open("host-a"), open("host-b"));
        self.dirs.lock().unwrap().push(dir);
        Some(both)
    }

    fn half_of_everything(&self) -> Resources {
        half()
    }
}

#[tokio::test]
async fn the_simulated_driver_keeps_the_contract_of_drivers() {
    let results = conformance::run(&Simulated::default()).await;
    assert_eq!(results.len(), 20);
    let broken: Vec<_> = results.iter().filter(|r| r.broken.is_some()).collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

/// A hypervisor on a timer that does not need waiting for, with one running server.
struct Scene {
    dir: tempfile::TempDir,
    driver: SimulatedDriver,
    server: ServerId,
}

impl Scene {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let clock = TimerClock::starting_at(Timestamp::from_millis(1_000_000));
        let driver = driver(dir.path(), Arc::new(clock));
        let server = ServerId(Uuid::from_u128(1));
        let start = Start {
            server_id: server,
            name: "one".to_owned(),
            project_id: "p".to_owned(),
            flavor: "half".to_owned(),
            resources: half(),
            preemptible: true,
            attempt: 0,
            resume: false,
            storage: None,
        };
        driver.start(&start).await.unwrap();
        Self {
            dir,
            driver,
            server,
        }
    }

    fn change(&self, change: impl FnOnce(&mut SimulatedState)) {
        let store = SimulatedStore::open(self.dir.path()).unwrap();
        store.change(change).unwrap();
    }

    async fn tell(&self) -> EvacuationId {
        let evacuation_id = EvacuationId(Uuid::from_u128(7));
        let notice = GuestNotice {
            evacuation_id,
            behaviour: InterruptionBehaviour::Terminate,
            grace: Seconds(30),
            not_before: Timestamp::from_millis(1_030_000),
            begin_before: Timestamp::from_millis(4_000_000_000_000),
        };
        self.driver.give_notice(self.server, &notice).await.unwrap();
        evacuation_id
    }

    async fn view(&self) -> ServerView {
        self.driver.list().await.unwrap().remove(0)
    }
}

#[tokio::test(start_paused = true)]
async fn an_action_fails_as_often_as_it_was_told_to() {
    let scene = Scene::new().await;
    scene.change(|state| {
        state.faults.fail.insert(FaultyAction::Hibernate, 2);
    });
    for _ in 0..2 {
        let error = scene.driver.hibernate(scene.server).await.unwrap_err();
        assert_eq!(error.code(), "EB-DRIVER-004");
        assert_eq!(scene.view().await.state, HostedState::Running);
    }
    scene.driver.hibernate(scene.server).await.unwrap();
    assert_eq!(scene.view().await.state, HostedState::Hibernated);
}

#[tokio::test(start_paused = true)]
async fn a_slow_action_takes_its_time_and_a_hanging_one_takes_for_ever() {
    let scene = Scene::new().await;
    scene.change(|state| {
        state.faults.slow.insert(FaultyAction::Stop, 5.0);
        state.faults.hang.insert(FaultyAction::Terminate, 1);
    });
    let before = scene.driver.clock.now();
    scene.driver.stop(scene.server).await.unwrap();
    assert_eq!(scene.driver.clock.now().millis_since(before), 5_000);
    let hour = Duration::from_secs(3_600);
    let hanging = tokio::time::timeout(hour, scene.driver.terminate(scene.server)).await;
    assert!(hanging.is_err(), "it came back");
    scene.driver.terminate(scene.server).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn guests_release_or_power_off_when_they_are_told_to_and_not_before() {
    for on_notice in [OnNotice::Release, OnNotice::PowerOff] {
        let scene = Scene::new().await;
        scene.change(|state| {
            state.faults.guests = GuestHabit {
                on_notice,
                after_seconds: 2.0,
            };
        });
        let evacuation_id = scene.tell().await;
        tokio::time::advance(Duration::from_millis(1_999)).await;
        let early = scene.view().await;
        assert_eq!((early.state, early.released), (HostedState::Running, None));
        tokio::time::advance(Duration::from_millis(1)).await;
        let then = scene.view().await;
        match on_notice {
            OnNotice::Release => assert_eq!(then.released, Some(evacuation_id)),
            _ => assert_eq!(then.state, HostedState::Stopped),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_word_of_a_guest_ends_with_its_notice() {
    let scene = Scene::new().await;
    scene.change(|state| state.faults.guests.on_notice = OnNotice::Release);
    let evacuation_id = scene.tell().await;
    assert_eq!(scene.view().await.released, Some(evacuation_id));
    let withdrawn = scene.driver.withdraw_notice(scene.server, evacuation_id);
    withdrawn.await.unwrap();
    assert_eq!(scene.view().await.released, None);
}

/// What the server on this socket answers, head and body.
async fn ask(socket: &Path, method: &str, target: &str, more: &str, body: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::UnixStream::connect(socket).await.unwrap();
    let length = body.len();
    let request = format!(
        "{method} {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {length}\r\n{more}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).await.unwrap();
    said
}

#[tokio::test]
async fn simulated_guests_read_their_metadata_and_answer_too() {
    let scene = Scene::new().await;
    let sockets = tempfile::tempdir().unwrap();
    let mut settings = SimulatedSettings::instant(inventory());
    settings.metadata_dir = Some(sockets.path().to_owned());
    let store = SimulatedStore::open(scene.dir.path()).unwrap();
    let driver = SimulatedDriver::new(settings, store, Arc::new(SystemClock));
    driver.list().await.unwrap();
    let socket = sockets.path().join(format!("{}.metadata", scene.server));

    let action = "/latest/meta-data/spot/instance-action";
    let none = ask(&socket, "GET", action, "", "").await;
    assert!(none.starts_with("HTTP/1.1 404"), "{none}");
    let preempted = "/computeMetadata/v1/instance/preempted";
    let google = "Metadata-Flavor: Google\r\n";
    let now = ask(&socket, "GET", preempted, google, "").await;
    let tag = now
        .lines()
        .find_map(|line| line.strip_prefix("etag: "))
        .unwrap();
    let preempted = format!("{preempted}?wait_for_change=true&timeout_sec=60&last_etag={tag}");
    let waiting = ask(&socket, "GET", &preempted, google, "");
    let (preempted, evacuation_id) = tokio::join!(waiting, scene.tell());
    assert!(preempted.ends_with("TRUE"), "{preempted}");
    let told = ask(&socket, "GET", action, "", "").await;
    assert!(told.contains("\"action\":\"terminate\""), "{told}");
    let head = ask(&socket, "HEAD", action, "", "").await;
    assert!(
        head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"),
        "{head}"
    );
    let large = "x".repeat(20_000);
    let refused = ask(&socket, "POST", "/ebbtide/v1/release", "", &large).await;
    assert!(refused.starts_with("HTTP/1.1 413"), "{refused}");

    let start = format!("{{\"StartRequests\":[{{\"EventId\":\"{evacuation_id}\"}}]}}");
    let events = "/metadata/scheduledevents?api-version=2020-07-01";
    let done = ask(&socket, "POST", events, "Metadata: true\r\n", &start).await;
    assert!(done.starts_with("HTTP/1.1 200"), "{done}");
    assert_eq!(
        driver.list().await.unwrap()[0].released,
        Some(evacuation_id)
    );
    driver.stop(scene.server).await.unwrap();
    driver.list().await.unwrap();
    assert!(!socket.exists(), "a guest that does not run is served");
}

#[tokio::test]
async fn a_guest_that_hoards_connections_shuts_out_no_one() {
    let dir = tempfile::tempdir().unwrap();
    let sockets = tempfile::tempdir().unwrap();
    let mut settings = SimulatedSettings::instant(inventory());
    settings.metadata_dir = Some(sockets.path().to_owned());
    let store = SimulatedStore::open(dir.path()).unwrap();
    let driver = SimulatedDriver::new(settings, store, Arc::new(SystemClock));
    let mut paths = Vec::new();
    for n in 1..=2 {
        let server_id = ServerId(Uuid::from_u128(n));
        let start = Start {
            server_id,
            name: format!("guest-{n}"),
            project_id: "p".to_owned(),
            flavor: "half".to_owned(),
            resources: half(),
            preemptible: true,
            attempt: 0,
            resume: false,
            storage: None,
        };
        driver.start(&start).await.unwrap();
        paths.push(sockets.path().join(format!("{server_id}.metadata")));
    }
    driver.list().await.unwrap();
    let mut hoard = Vec::new();
    for _ in 0..32 {
        hoard.push(tokio::net::UnixStream::connect(&paths[0]).await.unwrap());
    }
    let hostname = "/latest/meta-data/hostname";
    let other = ask(&paths[1], "GET", hostname, "", "").await;
    assert!(other.ends_with("guest-2"), "{other}");
    // The one that has said nothing for longest makes way.
    let own = ask(&paths[0], "GET", hostname, "", "").await;
    assert!(own.ends_with("guest-1"), "{own}");
    drop(hoard);
}

#[tokio::test]
async fn a_state_file_that_is_not_one_is_named() {
    let scene = Scene::new().await;
    std::fs::write(scene.driver.store.path(), b"{\"servers\": 7}").unwrap();
    let error = scene.driver.health().await.unwrap_err().to_string();
    assert!(
        error.contains("hypervisor.json is not a hypervisor's state"),
        "{error}"
    );
    let error = SimulatedStore::open(scene.dir.path()).unwrap_err();
    assert_eq!(error.code(), "EB-AGENT-004");
}

#[test]
fn changes_from_many_sides_at_once_are_all_kept() {
    let dir = tempfile::tempdir().unwrap();
    let sides: Vec<_> = (0..4u128)
        .map(|side| {
            let store = SimulatedStore::open(dir.path()).unwrap();
            std::thread::spawn(move || {
                for n in 0..25 {
                    let server = ServerId(Uuid::from_u128(side * 100 + n));
                    let habit = GuestHabit::default();
                    let insert = |state: &mut SimulatedState| {
                        state.faults.guest.insert(server, habit);
                    };
                    store.change(insert).unwrap();
                }
            })
        })
        .collect();
    for side in sides {
        side.join().unwrap();
    }
    let store = SimulatedStore::open(dir.path()).unwrap();
    assert_eq!(store.change(|state| state.faults.guest.len()).unwrap(), 100);
}

#[test]
fn settings_are_checked_by_name() {
    let problem = |text: &str| {
        let table: toml::Table = text.parse().unwrap();
        check_settings(&table).unwrap_err().to_string()
    };
    assert!(problem("").contains("driver.simulated.inventory: it is missing or empty"));
    let typo = problem("inventory = { VCPU = 4 }\nstart_second = 1");
    assert!(
        typo.contains("driver.simulated: unknown field `start_second`"),
        "{typo}"
    );
    let negative = problem("inventory = { VCPU = 4 }\nstop_seconds = -1.0");
    assert!(
        negative.contains("driver.simulated.stop_seconds: -1 is out of range"),
        "{negative}"
    );
    let absurd = problem("inventory = { VCPU = { total = 4, reserved = 9 } }");
    assert!(
        absurd.contains("driver.simulated.inventory.VCPU") && absurd.contains("reserved"),
        "{absurd}"
    );
    let class = problem("inventory = { vcpu = 4 }");
    assert!(class.contains("vcpu"), "{class}");
}

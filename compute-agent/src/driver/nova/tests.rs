mod fake;

use super::{NovaSettings, fleet as open_fleet};
use crate::clock::{Clock, SystemClock};
use crate::driver::registry::{self, DriverContext};
use crate::driver::{Driver, DriverError, GuestNotice, NoticeOutcome, Occupancy};
use ebbtide_model::message::HostedState;
use ebbtide_model::{
    EvacuationId, InterruptionBehaviour, ResourceClass, Seconds, ServerId, Timestamp,
};
use fake::FakeNova;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use uuid::Uuid;

const EVACUATION: EvacuationId = EvacuationId(Uuid::from_u128(0xe));

fn server(number: u128) -> ServerId {
    ServerId(Uuid::from_u128(number))
}

fn context(nova: &FakeNova, state_dir: &Path, more: &str) -> DriverContext {
    let settings = format!(
        "refresh_seconds = 0.05\nwatch_seconds = 0.05\npoll_seconds = 0.005\n{more}\n\
         [auth]\nauth_type = \"admin_token\"\ntoken = \"s3cret\"\n[compute]\nendpoint_override = \"{}\"\n",
        nova.url
    );
    DriverContext {
        host: "compute1".to_owned(),
        state_dir: state_dir.to_owned(),
        settings: settings.parse().unwrap(),
        clock: Arc::new(SystemClock),
    }
}

struct TestHarness {
    nova: FakeNova,
    driver: Arc<dyn Driver>,
    dir: tempfile::TempDir,
}

impl TestHarness {
    /// A driver of `compute1`, and there server 1, which has run for an hour and a half.
    async fn new() -> Self {
        let nova = FakeNova::start().await;
        let began = SystemClock.now().minus(Seconds(5_400));
        nova.add(1, "compute1", began);
        let dir = tempfile::tempdir().unwrap();
        let driver = registry::build("nova", &context(&nova, dir.path(), "")).unwrap();
        Self { nova, driver, dir }
    }

    fn restart(&mut self) {
        self.driver = registry::build("nova", &context(&self.nova, self.dir.path(), "")).unwrap();
    }

    async fn notice(&self, behaviour: InterruptionBehaviour) -> Result<NoticeOutcome, DriverError> {
        let (grace, not_before) = (Seconds(30), Timestamp::from_millis(1_000));
        let notice = GuestNotice {
            evacuation_id: EVACUATION,
            behaviour,
            grace,
            not_before,
            begin_before: Timestamp::from_millis(4_000_000_000_000),
        };
        self.driver.give_notice(server(1), &notice).await
    }

    fn usage(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.dir.path().join("usage.jsonl")).unwrap();
        text.lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    }
}

fn is_gone(error: &DriverError) -> bool {
    matches!(error, DriverError::NotFound { .. })
}

#[tokio::test]
async fn a_notice_is_metadata_that_is_removed_again_when_the_guest_is_spared() {
    let rig = TestHarness::new().await;
    assert_eq!(
        rig.notice(InterruptionBehaviour::Hibernate).await,
        Ok(NoticeOutcome::Delivered)
    );
    let metadata = rig.nova.metadata(1);
    assert_eq!(metadata["ebbtide:notice"], "shelve");
    assert_eq!(metadata["ebbtide:notice_deadline"], "1970-01-01T00:00:01Z");
    assert_eq!(
        metadata["ebbtide:notice_evacuation"],
        EVACUATION.to_string()
    );
    assert!(
        metadata["ebbtide:notice_reason"]
            .as_str()
            .unwrap()
            .contains("capacity")
    );
    assert_eq!(metadata["tenant"], "own");
    let before = rig.nova.writes();
    assert_eq!(
        rig.notice(InterruptionBehaviour::Hibernate).await,
        Ok(NoticeOutcome::Delivered)
    );
    assert_eq!(
        rig.nova.writes(),
        before,
        "telling it again changes nothing"
    );

    rig.driver
        .withdraw_notice(server(1), EvacuationId(Uuid::from_u128(0xf)))
        .await
        .unwrap();
    assert_eq!(
        rig.nova.metadata(1),
        metadata,
        "another evacuation's notice is not this one's"
    );
    rig.driver
        .withdraw_notice(server(1), EVACUATION)
        .await
        .unwrap();
    assert_eq!(rig.nova.metadata(1), json!({"tenant": "own"}));
}

#[tokio::test]
async fn a_guest_that_releases_its_time_is_seen_also_after_a_restart() {
    let mut rig = TestHarness::new().await;
    rig.nova.set_metadata(1, "ebbtide:release", "now");
    rig.notice(InterruptionBehaviour::Terminate).await.unwrap();
    let released = |views: Vec<crate::driver::ServerView>| views[0].released;
    assert_eq!(
        released(rig.driver.list().await.unwrap()),
        None,
        "a word about an earlier notice is not about this one"
    );
    rig.restart();
    rig.driver.list().await.unwrap();
    rig.nova.set_metadata(1, "ebbtide:release", "now");
    while released(rig.driver.list().await.unwrap()).is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(released(rig.driver.list().await.unwrap()), Some(EVACUATION));
}

#[tokio::test]
async fn a_terminated_server_is_gone_and_its_last_hour_is_not_billed() {
    let rig = TestHarness::new().await;
    rig.notice(InterruptionBehaviour::Terminate).await.unwrap();
    rig.driver.terminate(server(1)).await.unwrap();
    assert!(!rig.nova.exists(1));
    assert_eq!(rig.driver.occupancy(server(1)).await, Ok(Occupancy::Absent));
    let unbilled = rig.driver.unbilled(server(1)).await.unwrap().0;
    assert!((1_800..1_900).contains(&unbilled), "{unbilled}");
    let usage = rig.usage();
    let events: Vec<_> = usage
        .iter()
        .map(|line| line["event"].as_str().unwrap())
        .collect();
    assert_eq!(events, ["noticed", "ending", "ended"]);
    assert_eq!(
        (&usage[2]["billed_seconds"], &usage[2]["unbilled_seconds"]),
        (&json!(3_600), &json!(unbilled))
    );
    assert_eq!(
        (&usage[2]["project_id"], &usage[2]["flavor"]),
        (&json!("p1"), &json!("small"))
    );
    assert!(is_gone(&rig.driver.terminate(server(1)).await.unwrap_err()));
    assert_eq!(rig.usage().len(), 3, "a repetition bills nothing twice");
    let action = rig
        .nova
        .requests()
        .into_iter()
        .find(|r| r.method == "DELETE")
        .unwrap();
    assert!(action.request_id.unwrap().starts_with("req-"));
}

#[tokio::test]
async fn a_soft_deleted_server_still_holds_its_room_and_is_deleted_for_good() {
    let rig = TestHarness::new().await;
    rig.nova.configure(|faults| faults.soft_delete = true);
    rig.driver.terminate(server(1)).await.unwrap();
    assert!(!rig.nova.exists(1));
}

#[tokio::test]
async fn a_server_that_nova_could_not_delete_to_the_end_is_deleted_again() {
    let rig = TestHarness::new().await;
    rig.notice(InterruptionBehaviour::Terminate).await.unwrap();
    rig.driver.terminate(server(1)).await.unwrap();
    // Its compute has ended the guest, and then it could not tell Placement.
    let broken = |number| {
        rig.nova.add(number, "compute1", SystemClock.now());
        rig.nova.set(number, "status", json!("ERROR"));
    };
    let deletions = |number| {
        let path = format!("/servers/{}", Uuid::from_u128(number));
        let requests = rig.nova.requests().into_iter();
        requests
            .filter(|r| r.method == "DELETE" && r.path == path)
            .count()
    };
    assert_eq!(deletions(1), 1);
    broken(1);
    while deletions(1) < 2 {
        rig.driver.list().await.unwrap();
        rig.nova.next_list().await;
    }
    // The driver does not touch a server in ERROR that it has not ended.
    broken(2);
    for _ in 0..3 {
        rig.driver.list().await.unwrap();
        rig.nova.next_list().await;
    }
    assert_eq!((deletions(1), deletions(2)), (2, 0));
}

#[tokio::test]
async fn a_crash_between_asking_and_the_end_loses_neither_the_end_nor_the_bill() {
    let mut rig = TestHarness::new().await;
    rig.notice(InterruptionBehaviour::Terminate).await.unwrap();
    rig.nova.configure(|faults| faults.slow = true);
    let call = tokio::time::timeout(
        std::time::Duration::from_millis(100),
        rig.driver.terminate(server(1)),
    );
    assert!(call.await.is_err(), "the agent dropped the call");
    rig.restart();
    rig.nova.remove(1);
    assert!(is_gone(&rig.driver.terminate(server(1)).await.unwrap_err()));
    assert!(rig.driver.unbilled(server(1)).await.unwrap().0 >= 1_800);
    assert_eq!(rig.usage().last().unwrap()["event"], "ended");
}

#[tokio::test]
async fn a_stopped_server_shows_when_and_how() {
    let rig = TestHarness::new().await;
    rig.notice(InterruptionBehaviour::Stop).await.unwrap();
    rig.driver.stop(server(1)).await.unwrap();
    assert_eq!(rig.nova.status(1), "SHUTOFF");
    let metadata = rig.nova.metadata(1);
    assert_eq!(metadata["ebbtide:evacuated_how"], "stopped");
    assert!(
        metadata["ebbtide:evacuated_at"]
            .as_str()
            .unwrap()
            .parse::<Timestamp>()
            .is_ok()
    );
    assert!(metadata.get("ebbtide:notice").is_none());
    match rig.driver.occupancy(server(1)).await.unwrap() {
        Occupancy::Present { state, holds, .. } => {
            assert_eq!(state, HostedState::Stopped);
            let classes: Vec<_> = holds.iter().map(|(class, _)| class.clone()).collect();
            assert_eq!(classes, [ResourceClass::disk_gb()]);
        }
        Occupancy::Absent => panic!("it is there"),
    }
    rig.driver.stop(server(1)).await.unwrap();
    assert_eq!(rig.nova.count("os-stop"), 1);
}

#[tokio::test]
async fn a_hibernated_server_is_shelved_and_off_its_host() {
    let rig = TestHarness::new().await;
    rig.notice(InterruptionBehaviour::Hibernate).await.unwrap();
    rig.driver.hibernate(server(1)).await.unwrap();
    assert_eq!(rig.nova.status(1), "SHELVED_OFFLOADED");
    let metadata = rig.nova.metadata(1);
    assert_eq!(metadata["ebbtide:evacuated_how"], "shelved");
    assert!(metadata.get("ebbtide:notice_evacuation").is_none());
    let occupancy = rig.driver.occupancy(server(1)).await.unwrap();
    assert!(occupancy.holds_nothing() && occupancy.is_free_after(InterruptionBehaviour::Hibernate));
    assert_eq!(
        (rig.nova.count("shelve"), rig.nova.count("shelveOffload")),
        (1, 1)
    );
    rig.driver.hibernate(server(1)).await.unwrap();
    assert_eq!(rig.nova.count("shelve"), 1);
    assert!(
        is_gone(&rig.driver.terminate(server(1)).await.unwrap_err()),
        "what is shelved is not on this host"
    );
    assert!(rig.nova.exists(1));
    // For a moment Nova shows the host still.
    rig.nova.set(1, "OS-EXT-SRV-ATTR:host", json!("compute1"));
    assert!(is_gone(&rig.driver.terminate(server(1)).await.unwrap_err()));
    assert!(rig.nova.exists(1));
}

#[tokio::test]
async fn a_server_moves_to_another_host_and_is_never_touched_there() {
    let rig = TestHarness::new().await;
    rig.notice(InterruptionBehaviour::LiveMigrate)
        .await
        .unwrap();
    rig.driver.live_migrate(server(1)).await.unwrap();
    assert_eq!(rig.nova.host(1), "compute2");
    assert_eq!(rig.nova.metadata(1)["ebbtide:evacuated_how"], "migrated");
    assert_eq!(rig.driver.occupancy(server(1)).await, Ok(Occupancy::Absent));
    assert_eq!(
        rig.driver.unbilled(server(1)).await,
        None,
        "it goes on running"
    );
    rig.driver.live_migrate(server(1)).await.unwrap();
    for error in [
        rig.driver.terminate(server(1)).await,
        rig.driver.stop(server(1)).await,
        rig.driver.hibernate(server(1)).await,
    ] {
        assert!(is_gone(&error.unwrap_err()));
    }
    assert_eq!(
        (rig.nova.status(1), rig.nova.count("os-migrateLive")),
        ("ACTIVE".to_owned(), 1)
    );
}

#[tokio::test]
async fn a_server_that_has_nowhere_to_go_is_said_at_once_with_novas_words() {
    let rig = TestHarness::new().await;
    rig.nova.configure(|faults| faults.no_room = true);
    let error = rig.driver.live_migrate(server(1)).await.unwrap_err();
    assert!(
        matches!(&error, DriverError::NoRoom { detail } if detail.contains("No valid host")),
        "{error}"
    );
    assert!(!error.is_worth_a_retry());
    assert_eq!(
        (rig.nova.host(1), rig.nova.count("os-migrateLive")),
        ("compute1".to_owned(), 1)
    );
}

#[tokio::test]
async fn a_nova_that_is_away_is_waited_for() {
    let rig = TestHarness::new().await;
    rig.nova.configure(|faults| faults.away = 12);
    rig.notice(InterruptionBehaviour::Terminate)
        .await
        .unwrap_or(NoticeOutcome::NotRunning);
    rig.nova.configure(|faults| faults.away = 12);
    rig.driver.terminate(server(1)).await.unwrap();
    assert!(!rig.nova.exists(1));
}

#[tokio::test]
async fn a_server_whose_cell_does_not_answer_is_not_taken_for_gone() {
    let rig = TestHarness::new().await;
    assert_eq!(rig.driver.list().await.unwrap().len(), 1);
    rig.nova.configure(|faults| {
        faults.partial = 2;
        faults.partial_lists = true;
    });
    rig.nova.next_list().await;
    rig.nova.next_list().await;
    assert_eq!(rig.driver.list().await.unwrap().len(), 1);
    let seen = rig.driver.occupancy(server(1)).await.unwrap();
    assert!(matches!(seen, Occupancy::Present { .. }), "{seen:?}");
    rig.nova.configure(|faults| faults.partial = 2);
    assert_eq!(
        rig.notice(InterruptionBehaviour::Terminate).await,
        Ok(NoticeOutcome::Delivered)
    );
}

#[tokio::test]
async fn an_action_that_nova_refuses_is_tried_a_few_times_and_told_in_its_words() {
    let rig = TestHarness::new().await;
    rig.nova.configure(|faults| faults.conflict = true);
    let error = rig.driver.stop(server(1)).await.unwrap_err();
    assert!(
        matches!(&error, DriverError::Failed { detail, .. } if detail.contains("while it is in task_state")),
        "{error}"
    );
    assert_eq!(rig.nova.count("os-stop"), 3);
}

#[tokio::test]
async fn a_tenant_cannot_stay_by_filling_its_metadata() {
    let rig = TestHarness::new().await;
    rig.nova.configure(|faults| faults.metadata_is_full = true);
    assert_eq!(
        rig.notice(InterruptionBehaviour::Terminate).await,
        Ok(NoticeOutcome::Delivered)
    );
    rig.driver.terminate(server(1)).await.unwrap();
}

#[tokio::test]
async fn a_server_that_does_not_run_needs_no_notice_and_one_elsewhere_gets_none() {
    let rig = TestHarness::new().await;
    rig.nova.set(1, "status", json!("SHUTOFF"));
    assert_eq!(
        rig.notice(InterruptionBehaviour::Terminate).await,
        Ok(NoticeOutcome::NotRunning)
    );
    rig.nova.set(1, "OS-EXT-SRV-ATTR:host", json!("compute2"));
    assert!(is_gone(
        &rig.notice(InterruptionBehaviour::Terminate)
            .await
            .unwrap_err()
    ));
}

#[tokio::test]
async fn many_hosts_are_one_list() {
    let nova = FakeNova::start().await;
    for number in 1..=40 {
        nova.add(number, &format!("compute{number}"), SystemClock.now());
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = "hosts = [\"*\"]\nfull_list_seconds = 3600";
    let fleet = open_fleet(&context(&nova, dir.path(), settings))
        .unwrap()
        .unwrap();
    let hosts = fleet.hosts().await.unwrap();
    assert_eq!(hosts.len(), 40);
    let drivers: Vec<_> = hosts
        .iter()
        .map(|host| {
            let state_dir = dir.path().join(host);
            std::fs::create_dir(&state_dir).unwrap();
            fleet.driver(host, &state_dir).unwrap()
        })
        .collect();
    for driver in &drivers {
        driver.health().await.unwrap();
        assert_eq!(driver.list().await.unwrap().len(), 1);
        assert_eq!(
            driver.inventory().await.unwrap().inventory[&ResourceClass::vcpu()].total,
            8
        );
    }
    nova.remove_softly(7);
    let seventh = hosts.iter().position(|host| host == "compute7").unwrap();
    while !drivers[seventh].list().await.unwrap().is_empty() {
        nova.next_list().await;
    }
    let lists: Vec<_> = nova
        .requests()
        .into_iter()
        .filter(|r| r.path.starts_with("/servers/detail"))
        .collect();
    let full = lists
        .iter()
        .filter(|r| !r.path.contains("changes-since"))
        .count();
    assert_eq!(full, 1, "later lists say only what has changed: {lists:?}");
    assert_eq!(
        nova.requests()
            .iter()
            .filter(|r| r.path.starts_with("/os-hypervisors"))
            .count(),
        1
    );
}

#[test]
fn settings_that_make_no_sense_are_named_and_passwords_are_not_shown() {
    let read = |text: &str| NovaSettings::from_table(&text.parse().unwrap());
    let auth = "[auth]\nauth_url = \"http://k\"\nuser_id = \"u\"\npassword = 12345\n";
    assert!(!format!("{:?}", read(auth).unwrap()).contains("12345"));
    for (text, key) in [
        ("".to_owned(), "driver.nova.auth"),
        (format!("hosts = [\"a b\"]\n{auth}"), "driver.nova.hosts"),
        (
            format!("watch_seconds = 0\n{auth}"),
            "driver.nova.watch_seconds",
        ),
        (
            format!("wach_seconds = 1\n{auth}"),
            "driver.nova.wach_seconds",
        ),
        (
            "nova_conf = \"/does/not/exist\"".to_owned(),
            "driver.nova.nova_conf",
        ),
        (
            "[auth]\nauth_type = \"none\"".to_owned(),
            "driver.nova.compute.endpoint_override",
        ),
    ] {
        let error = read(&text).unwrap_err().to_string();
        assert!(error.contains(key), "{error}");
        assert!(!error.contains("12345"));
    }
}

#[test]
fn credentials_are_taken_from_nova_conf_but_not_placements_address() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nova.conf");
    let section = "[placement]\nauth_type = password\nauth_url = http://k/v3\nusername = nova\nuser_domain_name = Default\n\
                   password = s3cret\nproject_name = service\nproject_domain_name = Default\nregion_name = R2\n\
                   endpoint_override = http://placement\n";
    std::fs::write(&path, section).unwrap();
    let table = format!("nova_conf = {:?}", path.display().to_string());
    let settings = NovaSettings::from_table(&table.parse().unwrap()).unwrap();
    assert_eq!(
        settings.auth_options().unwrap().auth_url.as_deref(),
        Some("http://k/v3")
    );
    let adapter = settings.adapter_options().unwrap();
    assert_eq!(
        (adapter.region_name.as_deref(), adapter.endpoint_override),
        (Some("R2"), None)
    );
}

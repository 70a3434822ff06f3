//! What can be said of the driver without a hypervisor. The rest is in `tests/hypervisor`, on real
//! virtual machines.

use super::channel::{self, GuestMessage};
use super::records::{Note, NoticeNote, Records};
use super::template::{Template, escaped};
use super::virsh::{VirshRefusal, understood};
use super::*;
use ebbtide_model::{InterruptionBehaviour, Seconds};
use std::collections::BTreeMap;
use uuid::Uuid;

fn id(n: u128) -> ServerId {
    ServerId(Uuid::from_u128(n))
}

fn order(n: u128, name: &str) -> Start {
    let amounts = [("VCPU", 2), ("MEMORY_MB", 512), ("DISK_GB", 10)];
    let amounts = amounts.map(|(class, amount)| (class.parse().unwrap(), amount));
    Start {
        server_id: id(n),
        name: name.to_owned(),
        project_id: "p<1>".to_owned(),
        flavor: "m1".to_owned(),
        resources: Resources::try_from(BTreeMap::from(amounts)).unwrap(),
        preemptible: true,
        attempt: 0,
        resume: false,
        storage: None,
    }
}

fn settings(text: &str) -> Result<LibvirtSettings, String> {
    LibvirtSettings::from_table(&text.parse().unwrap()).map_err(|error| error.to_string())
}

/// Output of virsh: one server in each state, and one foreign machine.
const SAID: &str = "CPU model:           x86_64
CPU(s):              8
CPU frequency:       2596 MHz
Memory size:         16777216 KiB

ebbtide-00000000-0000-0000-0000-000000000002

Domain: 'ebbtide-00000000-0000-0000-0000-000000000001'
  state.state=1
  state.reason=1
  balloon.current=262144
  balloon.maximum=524288
  vcpu.current=2
  vcpu.maximum=4
  vcpu.0.state=1

Domain: 'ebbtide-00000000-0000-0000-0000-000000000002'
  state.state=5
  state.reason=5
  balloon.maximum=524288
  vcpu.current=2

Domain: 'ebbtide-00000000-0000-0000-0000-000000000003'
  state.state=3
  state.reason=7
  balloon.maximum=1048577
  vcpu.current=1

Domain: 'ebbtide-00000000-0000-0000-0000-000000000004'
  state.state=5
  state.reason=3

Domain: 'db = 1: x'
  state.state=1
  balloon.maximum=1048576
  vcpu.current=3
";

#[test]
fn states_and_holdings_are_read_from_what_the_hypervisor_says() {
    let snapshot = Snapshot::read(SAID).unwrap();
    assert_eq!((snapshot.cpus, snapshot.memory_mib), (8, 16_384));
    let states: Vec<_> = snapshot.servers.values().map(|d| d.state()).collect();
    use HostedState::{Hibernated, Running, Stopped};
    assert_eq!(states, [Running, Hibernated, Running, Stopped]);
    let holds = |n| snapshot.servers[&id(n)].holds();
    // The ballooned-out part can be wanted back at any time.
    assert_eq!(holds(1).amount("MEMORY_MB"), 512);
    assert_eq!(holds(1).amount("VCPU"), 2);
    assert!(holds(2).is_empty());
    // A paused guest has its memory, and a part of a MiB is a MiB.
    assert_eq!(holds(3).amount("MEMORY_MB"), 1_025);
    assert_eq!(snapshot.foreign.len(), 1);
    assert_eq!(snapshot.foreign[0].amount("VCPU"), 3);
}

#[test]
fn what_others_hold_is_reserved_and_corrections_are_the_operators() {
    let settings = settings(
        "inventory = { VCPU = { allocation_ratio = 4.0 }, MEMORY_MB = { reserved = 512 }, DISK_GB = { total = 7 } }",
    );
    let facts = inventory::facts(&settings.unwrap(), &Snapshot::read(SAID).unwrap(), 100);
    let of = |class: &str| {
        let found = facts.inventory.iter().find(|(c, _)| c.as_str() == class);
        let inventory = found.unwrap().1;
        (inventory.total, inventory.reserved, inventory.capacity())
    };
    assert_eq!(
        of("VCPU"),
        (8, 1, 28),
        "three foreign processors at four to one"
    );
    assert_eq!(of("MEMORY_MB"), (16_384, 1_536, 14_848));
    assert_eq!(of("DISK_GB"), (7, 0, 7));
}

#[test]
fn nonsense_of_the_hypervisor_is_an_error_and_not_an_empty_host() {
    assert!(
        Snapshot::read("")
            .unwrap_err()
            .contains("how many processors")
    );
    let bad = SAID.replace("state.state=3", "state.state=paused");
    assert!(Snapshot::read(&bad).unwrap_err().contains("\"paused\""));
    let bad = SAID.replace("CPU(s):              8", "CPU(s):              many");
    assert!(Snapshot::read(&bad).unwrap_err().contains("\"many\""));
}

#[test]
fn only_domains_with_our_name_in_its_one_spelling_are_ours() {
    let name = names::domain(id(0xabc));
    assert_eq!(name, "ebbtide-00000000-0000-0000-0000-000000000abc");
    assert_eq!(names::server_of(&name), Some(id(0xabc)));
    for foreign in [
        "ebbtide-00000000-0000-0000-0000-000000000ABC",
        "ebbtide-00000000000000000000000000000abc",
        "instance-00000001",
        "ebbtide-",
    ] {
        assert_eq!(names::server_of(foreign), None, "{foreign}");
    }
    assert_eq!(names::tap(id(1)).len(), 15);
    assert_ne!(names::tap(id(1)), names::tap(id(2)));
}

#[test]
fn a_tenants_names_cannot_become_xml() {
    let template = Template::open(None).unwrap();
    let xml = template.fill(
        &settings("").unwrap(),
        &order(1, "</title><disk a='\"&\u{1}"),
        Path::new("/i"),
    );
    assert!(
        xml.contains("<title>&lt;/title&gt;&lt;disk a=&apos;&quot;&amp;?</title>"),
        "{xml}"
    );
    assert!(
        xml.contains("preemptible='yes'") && xml.contains("project='p&lt;1&gt;'"),
        "{xml}"
    );
    assert!(
        xml.contains("<memory unit='MiB'>512</memory>") && !xml.contains("{{"),
        "{xml}"
    );
    assert_eq!(escaped("a{{uuid}}b"), "a{{uuid}}b");
    // A name that looks like a placeholder stays a name.
    let xml = template.fill(
        &settings("").unwrap(),
        &order(1, "{{uuid}}"),
        Path::new("/i"),
    );
    assert!(xml.contains("<title>{{uuid}}</title>"), "{xml}");
}

#[test]
fn templates_are_checked_before_anything_is_started() {
    let dir = tempfile::tempdir().unwrap();
    let problem = |text: &str| {
        let path = dir.path().join("domain.xml");
        std::fs::write(&path, text).unwrap();
        settings(&format!("template = {path:?}")).unwrap_err()
    };
    assert!(
        problem("<domain>{{ram}}</domain>").contains("{{ram}} is unknown, there are domain, uuid")
    );
    assert!(problem("<domain>{{uuid}}</domain>").contains("{{domain}} is missing"));
    assert!(problem("{{uuid").contains("does not end"));
    let missing = settings("template = \"/nowhere.xml\"").unwrap_err();
    assert!(
        missing.contains("driver.libvirt.template: cannot read /nowhere.xml"),
        "{missing}"
    );
}

#[test]
fn settings_are_checked_by_name() {
    for (text, expected) in [
        ("url = 'x'", "driver.libvirt: unknown field `url`"),
        ("uri = ''", "driver.libvirt.uri"),
        (
            "shutdown_seconds = -1.0",
            "driver.libvirt.shutdown_seconds: -1 is out of range",
        ),
        ("shutdown_seconds = nan", "driver.libvirt.shutdown_seconds"),
        (
            "run_dir = 'r'",
            "driver.libvirt.run_dir: it must be an absolute path",
        ),
        (
            "inventory = { VCPU = { allocation_ratio = 0.0 } }",
            "driver.libvirt.inventory.VCPU",
        ),
        ("domain_type = 'xen'", "unknown value, expected `kvm`"),
        ("[[peers]]\nmigrate_uri = 'x'", "missing field `uri`"),
    ] {
        let problem = settings(text).unwrap_err();
        assert!(problem.contains(expected), "{text}: {problem}");
    }
    let long = settings(&format!("run_dir = '/{}'", "r".repeat(61))).unwrap_err();
    assert!(long.contains("it has 62 bytes, at most 61"), "{long}");
    settings(&format!("run_dir = '/{}'", "r".repeat(60))).unwrap();
}

#[test]
fn complaints_of_libvirt_are_told_apart() {
    let gone = "error: failed to get domain 'ebbtide-x'\n\n";
    assert_eq!(understood(gone), VirshRefusal::Gone);
    let other = "error: Failed to save domain 'x' state\nerror: No space left on device\n\n";
    let told = "Failed to save domain 'x' state; No space left on device";
    assert_eq!(understood(other), VirshRefusal::Because(told.to_owned()));
}

#[tokio::test]
async fn a_libvirt_that_is_not_there_or_hangs_is_a_failure_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let open = |virsh: &str| {
        let text = format!(
            "instances_dir = {0:?}\nrun_dir = {0:?}\nvirsh = {virsh:?}\ncommand_seconds = 0.2",
            dir.path()
        );
        LibvirtDriver::open(
            settings(&text).unwrap(),
            "host-a",
            Arc::new(crate::clock::SystemClock),
        )
        .unwrap()
    };
    let missing = open("/nowhere/virsh").health().await.unwrap_err();
    assert_eq!(missing.code(), "EB-DRIVER-004");
    assert!(
        missing.to_string().contains("cannot run /nowhere/virsh"),
        "{missing}"
    );
    let slow = dir.path().join("slow");
    std::fs::write(&slow, "#!/bin/sh\nexec sleep 600\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&slow, std::fs::Permissions::from_mode(0o755)).unwrap();
    let hangs = open(&slow.display().to_string()).list().await.unwrap_err();
    assert!(
        hangs.to_string().contains("did not answer within 0.2 s"),
        "{hangs}"
    );
}

fn told() -> NoticeNote {
    NoticeNote {
        evacuation_id: EvacuationId(Uuid::from_u128(7)),
        behaviour: InterruptionBehaviour::Hibernate,
        grace: Seconds(30),
        not_before: Timestamp::from_millis(1_800_000_000_000),
        at: Timestamp::from_millis(1_799_999_970_000),
        released: false,
    }
}

#[test]
fn what_a_guest_says_is_understood_or_passed_over() {
    let evacuation = EvacuationId(Uuid::from_u128(7));
    let line = channel::notice_line(&told());
    assert_eq!(
        line,
        "NOTICE {\"action\":\"hibernate\",\"evacuation_id\":\"00000000-0000-0000-0000-000000000007\",\
         \"grace_seconds\":30,\"not_before\":\"2027-01-15T08:00:00Z\"}\n"
    );
    assert_eq!(
        channel::understood(&format!("ACK {evacuation}\r\n")),
        Some(GuestMessage::Heard(evacuation))
    );
    assert_eq!(
        channel::understood(&format!("RELEASE {evacuation}")),
        Some(GuestMessage::Released(evacuation))
    );
    for noise in [
        "",
        "RELEASE",
        "RELEASE now",
        "release x",
        "\u{fffd}\u{0}",
        "RELEASE 7 7",
    ] {
        assert_eq!(channel::understood(noise), None, "{noise}");
    }
}

#[test]
fn notes_are_replaced_whole_and_a_broken_one_is_no_reason_to_lose_a_server() {
    let dir = tempfile::tempdir().unwrap();
    let records = Records::new(dir.path().to_owned());
    assert_eq!(records.get(id(1)).unwrap(), None);
    assert!(
        !records
            .change(id(1), |_| panic!("there is nothing to change"))
            .unwrap()
    );
    let mut note = Note {
        start: order(1, "x"),
        since: Timestamp::from_millis(5),
        notice: Some(told()),
        ended_by: None,
    };
    records.put(&note).unwrap();
    assert!(records.change(id(1), |note| note.notice = None).unwrap());
    note.notice = None;
    assert_eq!(records.get(id(1)).unwrap(), Some(note));
    std::fs::write(records.dir_of(id(1)).join("instance.json"), b"{\"since\":").unwrap();
    assert_eq!(records.get(id(1)).unwrap(), None);
    records.remove(id(1)).unwrap();
    records.remove(id(1)).unwrap();
    assert!(!records.dir_of(id(1)).exists());
}

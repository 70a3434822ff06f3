use super::*;
use crate::audit::CpuKind;
use crate::audit::shortage::suspects;
use ebbtide_model::InterruptionBehaviour;

const HOST: Uuid = Uuid::from_u128(0x10);
const OTHER: Uuid = Uuid::from_u128(0x11);
const SERVER: Uuid = Uuid::from_u128(0x20);

fn amounts(vcpus: u64) -> Amounts {
    BTreeMap::from([("VCPU".to_owned(), vcpus)])
}

/// A host of eight VCPUs with a server of four, in order.
fn in_order() -> AuditSnapshot {
    let host = |name: &str, consumers| Host {
        name: name.to_owned(),
        capacity: amounts(8),
        consumers,
    };
    let server = AuditServer {
        name: "web".to_owned(),
        provider: Some(HOST),
        vm_state: "active".to_owned(),
        task_state: None,
        holds_room: true,
        runs_on: amounts(4),
        due: amounts(4),
        preemptible: None,
    };
    AuditSnapshot {
        hosts: BTreeMap::from([
            (
                HOST,
                host("compute1", BTreeMap::from([(SERVER, amounts(4))])),
            ),
            (OTHER, host("compute2", BTreeMap::new())),
        ]),
        servers: BTreeMap::from([(SERVER, server)]),
        ..AuditSnapshot::default()
    }
}

fn preemption(state: &str, victim: Uuid, newcomer: Uuid) -> Preemption {
    let holding = serde_json::json!({"allocations": {}, "mappings": null, "project_id": "p", "user_id": "u", "generation": 1});
    serde_json::from_value(serde_json::json!({
        "id": Uuid::from_u128(0x30), "request_id": "req-1", "unique_id": "u", "planned_at": "2026-01-01T00:00:00Z", "state": state,
        "answerer": null, "reply_when": "room_free", "answered": false, "in_doubt": false, "caller_seen": null, "give_back_at": null,
        "newcomers": [{"instance": newcomer, "host": "compute1", "claim": holding, "before": null}],
        "victims": [{"server": victim, "evacuation": Uuid::from_u128(0x31), "host": "compute1", "had": holding, "generation": 1,
            "keeps": null, "behaviour": "terminate", "grace": 5, "flavor": "f", "launched_at": null, "state": {"is": "draining", "deadline": "2026-01-01T00:00:05Z"}}],
        "result": null, "reason": null
    }))
    .unwrap()
}

fn row(record: Option<Preemption>) -> PreemptionRow {
    let known = record.as_ref();
    let victims = known
        .iter()
        .flat_map(|r| r.victims.iter().map(|v| v.server.0));
    let newcomers = known
        .iter()
        .flat_map(|r| r.newcomers.iter().map(|n| n.instance));
    PreemptionRow {
        state: known.map_or("", |r| r.state.as_str()).to_owned(),
        victims: victims.collect(),
        newcomers: newcomers.collect(),
        id: Uuid::from_u128(0x30),
        version: 1,
        request_id: "req-1".to_owned(),
        owner: "scheduler1".to_owned(),
        is_driven: true,
        quiet_seconds: 0,
        record,
    }
}

fn codes(picture: &AuditSnapshot) -> Vec<&'static str> {
    compare(picture)
        .findings
        .iter()
        .map(|found| found.code)
        .collect()
}

#[test]
fn a_cloud_in_order_has_no_findings() {
    let report = compare(&in_order());
    assert_eq!((report.hosts, report.servers, report.consumers), (2, 1, 1));
    assert_eq!(report.findings, []);
}

#[test]
fn a_host_that_gave_away_more_than_it_has_is_named_with_the_amounts() {
    let mut picture = in_order();
    picture.hosts.get_mut(&HOST).unwrap().capacity = amounts(3);
    let report = compare(&picture);
    assert_eq!(report.findings[0].code, "EB-AUDIT-001");
    assert_eq!(report.findings[0].what, "4 of 3 VCPU are given away");
    assert_eq!(report.findings[0].subject, "host compute1");
}

#[test]
fn a_consumer_is_orphaned_unless_it_is_a_server_a_migration_or_a_newcomer() {
    let (stranger, mut picture) = (Uuid::from_u128(0x99), in_order());
    picture
        .hosts
        .get_mut(&OTHER)
        .unwrap()
        .consumers
        .insert(stranger, amounts(1));
    assert_eq!(codes(&picture), ["EB-AUDIT-002"]);
    let mut migrating = picture.clone();
    migrating
        .migrations
        .insert(stranger, Migration { server: SERVER });
    assert_eq!(codes(&migrating), Vec::<&str>::new());
    picture
        .rows
        .push(row(Some(preemption("evacuating", SERVER, stranger))));
    assert_eq!(codes(&picture), Vec::<&str>::new());
}

#[test]
fn a_server_holds_room_where_it_is_and_nowhere_else() {
    let mut picture = in_order();
    picture.hosts.get_mut(&HOST).unwrap().consumers.clear();
    picture
        .hosts
        .get_mut(&OTHER)
        .unwrap()
        .consumers
        .insert(SERVER, amounts(4));
    assert_eq!(codes(&picture), ["EB-AUDIT-003", "EB-AUDIT-004"]);
    picture.servers.get_mut(&SERVER).unwrap().task_state = Some("migrating".to_owned());
    assert_eq!(
        codes(&picture),
        Vec::<&str>::new(),
        "what is under way is not judged"
    );
}

#[test]
fn a_victim_on_its_way_out_may_have_given_its_room_away() {
    let mut picture = in_order();
    picture.hosts.get_mut(&HOST).unwrap().consumers.clear();
    assert_eq!(codes(&picture), ["EB-AUDIT-003"]);
    picture.rows.push(row(Some(preemption(
        "evacuating",
        SERVER,
        Uuid::from_u128(0x40),
    ))));
    assert_eq!(codes(&picture), Vec::<&str>::new());
}

#[test]
fn preemptions_that_cannot_be_read_have_no_driver_or_do_not_move_are_named() {
    let mut picture = in_order();
    picture.rows.push(row(None));
    let newcomer = Uuid::from_u128(0x40);
    let record = Some(preemption("evacuating", SERVER, newcomer));
    picture.rows.push(PreemptionRow {
        is_driven: false,
        ..row(record.clone())
    });
    picture.rows.push(PreemptionRow {
        quiet_seconds: STUCK_SECONDS + 1,
        ..row(record)
    });
    assert_eq!(
        codes(&picture),
        ["EB-AUDIT-005", "EB-AUDIT-006", "EB-AUDIT-007"]
    );
}

#[test]
fn a_newcomer_without_its_claim_and_a_victim_that_is_gone_unnoticed_are_named() {
    let (newcomer, mut picture) = (Uuid::from_u128(0x40), in_order());
    picture.servers.insert(
        newcomer,
        AuditServer {
            name: "new".to_owned(),
            ..AuditServer::default()
        },
    );
    let gone = Uuid::from_u128(0x41);
    let record = Some(preemption("evacuating", gone, newcomer));
    picture.rows.push(PreemptionRow {
        quiet_seconds: UNNOTICED_SECONDS + 1,
        ..row(record)
    });
    assert_eq!(codes(&picture), ["EB-AUDIT-008", "EB-AUDIT-009"]);
}

#[test]
fn a_host_on_which_more_runs_than_it_has_is_named_whatever_placement_shows() {
    let mut picture = in_order();
    for n in 1..=2 {
        let other = AuditServer {
            name: format!("other-{n}"),
            ..picture.servers[&SERVER].clone()
        };
        picture.servers.insert(Uuid::from_u128(0x50 + n), other);
    }
    let report = compare(&picture);
    let found = &report.findings;
    let over = found.iter().find(|found| found.code == "EB-AUDIT-010");
    let over = over.expect("twelve of eight run");
    assert_eq!(over.subject, "host compute1");
    assert_eq!(over.what, "servers run there that take 12 of 8 VCPU");
}

/// A victim of which the preemption has taken everything for a newcomer.
fn evacuating() -> (AuditSnapshot, Uuid) {
    let newcomer = Uuid::from_u128(0x40);
    let mut picture = in_order();
    let mut record = preemption("evacuating", SERVER, newcomer);
    record.victims[0].had.allocations =
        serde_json::json!({HOST.to_string(): {"resources": {"VCPU": 4}}});
    picture.rows.push(row(Some(record)));
    let host = picture.hosts.get_mut(&HOST).unwrap();
    host.consumers = BTreeMap::from([(newcomer, amounts(4))]);
    (picture, newcomer)
}

#[test]
fn a_victim_runs_without_room_once_neither_it_nor_its_newcomer_holds_that() {
    let (mut picture, newcomer) = evacuating();
    assert_eq!(codes(&picture), Vec::<&str>::new(), "the newcomer holds it");
    picture.hosts.get_mut(&HOST).unwrap().consumers.clear();
    let report = compare(&picture);
    assert_eq!(report.findings[0].code, "EB-AUDIT-011");
    assert_eq!(
        report.findings[0].what,
        format!("4 VCPU of its victims {SERVER} run on compute1 without an allocation")
    );
    let consumers = &mut picture.hosts.get_mut(&HOST).unwrap().consumers;
    consumers.insert(SERVER, amounts(3));
    assert_eq!(codes(&picture), ["EB-AUDIT-011"], "not all of it");
    picture.servers.remove(&SERVER);
    assert_eq!(
        codes(&picture),
        ["EB-AUDIT-002"],
        "it does not run any more"
    );
    let _ = newcomer;
}

#[test]
fn a_newcomer_that_was_answered_at_once_may_start_beside_who_leaves_for_it() {
    let (mut picture, newcomer) = evacuating();
    let starts = AuditServer {
        name: "new".to_owned(),
        runs_on: amounts(8),
        ..picture.servers[&SERVER].clone()
    };
    picture.servers.insert(newcomer, starts);
    assert_eq!(codes(&picture), ["EB-AUDIT-010"]);
    let record = picture.rows[0].record.as_mut().unwrap();
    (record.answered, record.reply_when) = (true, ReplyWhen::AtOnce);
    assert_eq!(codes(&picture), Vec::<&str>::new());
}

#[test]
fn a_row_whose_columns_contradict_its_record_is_named_with_the_differences() {
    let newcomer = Uuid::from_u128(0x21);
    let mut picture = in_order();
    picture
        .rows
        .push(row(Some(preemption("planned", SERVER, newcomer))));
    assert_eq!(codes(&picture), Vec::<&str>::new());
    let changed = &mut picture.rows[0];
    changed.state = "claimed".to_owned();
    changed.victims = BTreeSet::from([OTHER]);
    changed.newcomers.clear();
    let report = compare(&picture);
    let found = &report.findings[0];
    assert_eq!((report.findings.len(), found.code), (1, "EB-AUDIT-012"));
    for words in [
        "is claimed there and planned".to_owned(),
        format!("has other victims there: {OTHER} too, without {SERVER}"),
        format!("has other newcomers there: without {newcomer}"),
    ] {
        assert!(found.what.contains(&words), "{}", found.what);
    }
}

#[test]
fn a_budget_of_a_group_that_nova_does_not_have_is_named() {
    let mut picture = in_order();
    let groups = [(HOST, true), (OTHER, false)];
    picture.budgeted_groups = groups.map(|(id, exists)| (GroupId(id), exists)).into();
    let report = compare(&picture);
    let found = &report.findings[0];
    assert_eq!((report.findings.len(), found.code), (1, "EB-AUDIT-013"));
    assert!(
        found.subject.contains(&OTHER.to_string()),
        "{}",
        found.subject
    );
}

#[test]
fn a_row_that_no_scheduler_can_read_is_named_with_its_table() {
    let mut picture = in_order();
    picture.unreadable.push(UnreadableRow {
        table: "prices".to_owned(),
        key: "small/5".to_owned(),
        reason: "no number".to_owned(),
    });
    let report = compare(&picture);
    let found = &report.findings[0];
    assert_eq!((report.findings.len(), found.code), (1, "EB-AUDIT-014"));
    for words in ["prices", "small/5"] {
        assert!(found.subject.contains(words), "{}", found.subject);
    }
    assert!(found.what.contains("no number"), "{}", found.what);
}

#[test]
fn a_removed_host_whose_agent_has_a_queue_is_named() {
    let mut picture = in_order();
    let used = |consumers| QueueUse {
        messages: 0,
        consumers,
    };
    let agents = [("gone1", used(1)), ("gone2", used(0))];
    picture.removed_agents = agents.map(|(host, used)| (host.to_owned(), used)).into();
    let report = compare(&picture);
    let codes: Vec<&str> = report.findings.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["EB-AUDIT-015"; 2]);
    for (found, (host, words)) in report.findings.iter().zip([
        ("gone1", "still reads its queue"),
        ("gone2", "still at the broker"),
    ]) {
        assert_eq!(found.subject, format!("host {host}"));
        assert!(found.what.contains(words), "{}", found.what);
    }
}

/// The server of [`in_order`], preemptible, with a flavor that takes this; it holds that.
fn with_flavor(due: &[(&str, u64)], holds: &[(&str, u64)]) -> AuditSnapshot {
    let amounts = |of: &[(&str, u64)]| -> Amounts {
        of.iter()
            .map(|(class, n)| ((*class).to_owned(), *n))
            .collect()
    };
    let mut picture = in_order();
    let server = picture.servers.get_mut(&SERVER).unwrap();
    server.due = amounts(due);
    server.preemptible = Some(PreemptibleServer {
        flavor: "large".to_owned(),
        behaviour: InterruptionBehaviour::Terminate,
        grace: None,
        launched_at: None,
        project_id: "p".to_owned(),
        user_id: "u".to_owned(),
        cpus: CpuKind::Shared,
    });
    let host = picture.hosts.get_mut(&HOST).unwrap();
    host.capacity.insert("MEMORY_MB".to_owned(), 4096);
    host.consumers.insert(SERVER, amounts(holds));
    if suspects(&picture).contains(&SERVER) {
        let whole = WholeHolding {
            allocations: BTreeMap::from([(HOST, amounts(holds))]),
            generation: Some(3),
            ..WholeHolding::default()
        };
        picture.whole.insert(SERVER, whole);
    }
    picture
}

const LARGE: [(&str, u64); 3] = [("VCPU", 4), ("MEMORY_MB", 2048), ("DISK_GB", 10)];

#[test]
fn a_server_that_runs_and_holds_less_than_its_flavor_takes_is_named_with_the_amounts() {
    let picture = with_flavor(&LARGE, &[("VCPU", 1), ("MEMORY_MB", 2048)]);
    let report = compare(&picture);
    let [found] = report.findings.as_slice() else {
        panic!("{:?}", report.findings)
    };
    assert_eq!(found.code, "EB-AUDIT-017");
    assert_eq!(found.subject, format!("server web ({SERVER})"));
    assert_eq!(
        found.what,
        "it is active on compute1 and holds 3 VCPU less than its flavor takes"
    );
    let picture = with_flavor(&LARGE, &[("VCPU", 4), ("MEMORY_MB", 48)]);
    assert!(
        compare(&picture).findings[0]
            .what
            .contains("2000 MEMORY_MB less")
    );
    // A shared disk is of another provider: this one has no DISK_GB at all.
    let picture = with_flavor(&LARGE, &LARGE[..2]);
    assert_eq!(
        suspects(&picture),
        Vec::<Uuid>::new(),
        "nothing more is read"
    );
    assert_eq!(codes(&picture), Vec::<&str>::new());
}

#[test]
fn a_server_that_holds_nothing_at_home_is_named_once() {
    let mut picture = with_flavor(&LARGE, &[]);
    picture.hosts.get_mut(&HOST).unwrap().consumers.clear();
    picture.whole.insert(SERVER, WholeHolding::default());
    assert_eq!(codes(&picture), ["EB-AUDIT-003"]);
}

#[test]
fn a_stopped_victim_without_disk_and_device_holds_nothing() {
    let nothing_held = |due: &[(&str, u64)], change: &dyn Fn(&mut AuditServer)| {
        let mut picture = with_flavor(due, &[]);
        picture.hosts.get_mut(&HOST).unwrap().consumers.clear();
        picture.whole.insert(SERVER, WholeHolding::default());
        let server = picture.servers.get_mut(&SERVER).unwrap();
        server.vm_state = "stopped".to_owned();
        change(server);
        codes(&picture)
    };
    let lost = ["EB-AUDIT-003"];
    let on_volume = [("VCPU", 4), ("MEMORY_MB", 4096), ("DISK_GB", 0)];
    assert_eq!(nothing_held(&on_volume, &|_| ()), Vec::<&str>::new());
    let disk = [("VCPU", 4), ("MEMORY_MB", 4096), ("DISK_GB", 10)];
    assert_eq!(nothing_held(&disk, &|_| ()), lost);
    assert_eq!(nothing_held(&[("VCPU", 4), ("VGPU", 1)], &|_| ()), lost);
    assert_eq!(nothing_held(&[], &|_| ()), lost, "an unknown flavor");
    for state in ["active", "paused", "rescued", "resized", "error"] {
        let other = |server: &mut AuditServer| server.vm_state = state.to_owned();
        assert_eq!(nothing_held(&on_volume, &other), lost, "{state}");
    }
    let normal = |server: &mut AuditServer| server.preemptible = None;
    assert_eq!(nothing_held(&on_volume, &normal), lost);
}

#[test]
fn a_server_that_changes_rests_or_belongs_to_an_open_row_may_hold_less() {
    let short = || with_flavor(&LARGE, &[("VCPU", 1), ("MEMORY_MB", 2048)]);
    let server = |change: &dyn Fn(&mut AuditServer)| {
        let mut picture = short();
        change(picture.servers.get_mut(&SERVER).unwrap());
        codes(&picture)
    };
    assert_eq!(server(&|_| ()), ["EB-AUDIT-017"]);
    let none = Vec::<&str>::new();
    for state in [
        "stopped",
        "suspended",
        "shelved",
        "resized",
        "error",
        "building",
        "rescued",
    ] {
        assert_eq!(server(&|s| s.vm_state = state.to_owned()), none, "{state}");
    }
    assert_eq!(
        server(&|s| s.task_state = Some("resize_prep".to_owned())),
        none
    );
    assert_eq!(
        server(&|s| s.due.clear()),
        none,
        "its flavor cannot be read"
    );
    let mut migrating = short();
    let migration = Migration { server: SERVER };
    migrating
        .migrations
        .insert(Uuid::from_u128(0x98), migration);
    assert_eq!(codes(&migrating), none);
    let mut kept = short();
    kept.retained.insert(SERVER);
    assert_eq!(codes(&kept), none, "it is on its way back");
    let mut leaving = short();
    let record = preemption("evacuating", SERVER, Uuid::from_u128(0x40));
    leaving.rows.push(row(Some(record)));
    assert_eq!(codes(&leaving), none);
    // No program can read the record, and its victims are in the table.
    let mut unread = short();
    unread.rows.push(PreemptionRow {
        victims: BTreeSet::from([SERVER]),
        ..row(None)
    });
    assert_eq!(codes(&unread), ["EB-AUDIT-005"]);
}

#[test]
fn cpus_of_the_other_kind_and_providers_of_devices_count() {
    let dedicated = [("PCPU", 4), ("MEMORY_MB", 2048)];
    let fallback = with_flavor(&dedicated, &[("VCPU", 4), ("MEMORY_MB", 2048)]);
    assert_eq!(codes(&fallback), Vec::<&str>::new());
    let less = with_flavor(&dedicated, &[("VCPU", 3), ("MEMORY_MB", 2048)]);
    assert!(compare(&less).findings[0].what.contains("1 PCPU less"));
    // The compute node has no VGPU: a provider below it may.
    let gpu = [("VCPU", 4), ("MEMORY_MB", 2048), ("VGPU", 1)];
    let mut picture = with_flavor(&gpu, &gpu[..2]);
    assert_eq!(suspects(&picture), [SERVER]);
    assert_eq!(codes(&picture), ["EB-AUDIT-017"]);
    let vgpu = BTreeMap::from([("VGPU".to_owned(), 1)]);
    let whole = picture.whole.get_mut(&SERVER).unwrap();
    whole.allocations.insert(Uuid::from_u128(0x12), vgpu);
    assert_eq!(codes(&picture), Vec::<&str>::new());
    let server = picture.servers.get_mut(&SERVER).unwrap();
    server.preemptible = None;
    assert_eq!(
        suspects(&picture),
        Vec::<Uuid>::new(),
        "no victim, so not read"
    );
}

#[test]
fn a_server_may_hold_more_and_hosts_without_a_class_are_not_judged() {
    let more = with_flavor(&LARGE, &[("VCPU", 8), ("MEMORY_MB", 4096)]);
    assert_eq!(codes(&more), Vec::<&str>::new());
    // A node that reports no CPUs and no memory, as one of bare metal.
    let mut metal = with_flavor(&LARGE, &[("CUSTOM_METAL", 1)]);
    let host = metal.hosts.get_mut(&HOST).unwrap();
    host.capacity = BTreeMap::from([("CUSTOM_METAL".to_owned(), 1)]);
    assert_eq!(codes(&metal), Vec::<&str>::new());
}

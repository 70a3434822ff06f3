use super::*;

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

use super::*;
use std::collections::BTreeSet;

/// What makes a cloud unready.
type Change = fn(&mut UpgradeFacts);

/// A cloud that is ready: Nova 26, three computes with agents, an empty ledger.
fn ready() -> UpgradeFacts {
    let hosts = ["c1", "c2", "c3"].map(str::to_owned);
    let reader = QueueUse {
        messages: 0,
        consumers: 1,
    };
    UpgradeFacts {
        configuration: Vec::new(),
        nova: Ok(NovaFacts {
            cells: 1,
            release: Some(NovaRelease::of_version(64)),
            oldest_compute: 64,
            computes: BTreeSet::from(hosts.clone()),
            flavors: vec![flavor("spot", &[(PREEMPTIBLE, "true")])],
            ..NovaFacts::default()
        }),
        placement: Ok("1.39".to_owned()),
        compute: Some(Ok(())),
        messages: Ok(Some(reader)),
        ledger: Some(Ok(SchemaState::Empty)),
        agents: Some(Ok(hosts.map(|host| (host, Some(reader))).into())),
        differences: Ok(Vec::new()),
        deciding_as: 26,
        release_is_named: false,
        default_grace: Seconds(60),
    }
}

fn flavor(name: &str, specs: &[(&str, &str)]) -> FlavorSpecs {
    let specs = specs.iter();
    FlavorSpecs {
        name: name.to_owned(),
        extra_specs: specs
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect(),
        ..FlavorSpecs::default()
    }
}

/// What is said of one part after a change of the ready cloud. Everything else stays a success.
fn after(check: &str, change: impl FnOnce(&mut UpgradeFacts)) -> CheckResult {
    let mut facts = ready();
    change(&mut facts);
    let (mut of, others): (Vec<_>, Vec<_>) = judge(&facts)
        .into_iter()
        .partition(|result| result.check == check);
    for other in others {
        assert_eq!(other.result, Verdict::Success, "{other:?}");
    }
    of.pop().unwrap()
}

fn nova(facts: &mut UpgradeFacts) -> &mut NovaFacts {
    facts.nova.as_mut().unwrap()
}

#[test]
fn a_cloud_that_is_ready_has_nothing_to_be_done() {
    let results = judge(&ready());
    assert_eq!(results.len(), 12);
    for result in results {
        assert_eq!(result.result, Verdict::Success, "{result:?}");
        assert_eq!(result.next, None);
    }
}

#[test]
fn what_keeps_a_scheduler_from_starting_is_a_failure() {
    fn error() -> String {
        "EB-X-001: away".to_owned()
    }
    let cases: [(&str, Change); 6] = [
        ("Configuration", |facts| facts.configuration.push(error())),
        ("Placement", |facts| facts.placement = Err(error())),
        ("Message broker", |facts| facts.messages = Err(error())),
        ("Options of nova-scheduler", |facts| {
            facts.differences = Err(error());
        }),
        ("Ledger", |facts| facts.ledger = Some(Err(error()))),
        ("Agents", |facts| facts.agents = Some(Err(error()))),
    ];
    for (check, change) in cases {
        let result = after(check, change);
        assert_eq!(result.result, Verdict::Failure, "{check}");
        assert!(result.details.contains("EB-X-001"), "{result:?}");
        assert!(result.next.is_some(), "{result:?}");
    }
}

#[test]
fn a_user_who_may_not_start_servers_is_a_warning() {
    let refused = after("Nova's API", |facts| {
        facts.compute = Some(Err("EB-HTTP-003: not allowed".to_owned()));
    });
    assert_eq!(refused.result, Verdict::Warning);
    assert!(refused.details.contains("EB-HTTP-003"), "{refused:?}");
    let mut facts = ready();
    facts.compute = None;
    assert!(
        judge(&facts)
            .iter()
            .all(|result| result.check != "Nova's API")
    );
}

#[test]
fn without_novas_databases_the_other_parts_are_judged_nevertheless() {
    let mut facts = ready();
    facts.nova = Err("EB-NOVADB-002: away".to_owned());
    let results = judge(&facts);
    let failed: Vec<_> = results
        .iter()
        .filter(|result| result.result == Verdict::Failure)
        .collect();
    assert_eq!(failed.len(), 1);
    assert_eq!(failed[0].check, "Nova's databases");
    assert!(results.iter().any(|result| result.check == "Placement"));
}

#[test]
fn old_computes_stop_a_scheduler_unless_the_operator_tolerates_them() {
    let old = |tolerates: bool| {
        after("Compute services", |facts| {
            nova(facts).oldest_compute = 60;
            nova(facts).tolerates_old_computes = tolerates;
        })
    };
    assert_eq!(old(false).result, Verdict::Failure);
    assert!(old(false).details.contains("60"), "{:?}", old(false));
    assert_eq!(old(true).result, Verdict::Warning);
    let none = after("Compute services", |facts| nova(facts).oldest_compute = 0);
    assert_eq!(none.result, Verdict::Warning);
}

#[test]
fn a_release_that_is_not_the_operators_word_is_named() {
    let other = after("Release of Nova", |facts| facts.deciding_as = 30);
    assert_eq!(other.result, Verdict::Warning);
    assert!(other.details.contains("Nova 30"), "{other:?}");
    assert!(other.details.contains("Nova 26"), "{other:?}");
    let unknown = after("Release of Nova", |facts| nova(facts).release = None);
    assert_eq!(unknown.result, Verdict::Warning);
}

#[test]
fn services_of_two_releases_are_in_doubt_until_the_operator_names_one() {
    let of = |version: i64, deciding_as: u32, named: bool| {
        let result = after("Release of Nova", |facts| {
            nova(facts).release = Some(NovaRelease::of_version(version));
            nova(facts).oldest_compute = version;
            facts.deciding_as = deciding_as;
            facts.release_is_named = named;
        });
        result.result
    };
    assert_eq!(of(66, 28, false), Verdict::Warning);
    for (version, release) in [(66, 27), (66, 28), (67, 29), (67, 30)] {
        assert_eq!(of(version, release, true), Verdict::Success, "{release}");
    }
    assert_eq!(of(66, 29, true), Verdict::Warning);
    assert_eq!(of(67, 28, true), Verdict::Warning);
    // Schedulers of 29 and 30 decide the same: there is nothing to name.
    assert_eq!(of(67, 30, false), Verdict::Success);
}

#[test]
fn hosts_without_an_agent_are_counted_and_the_first_of_them_named() {
    let result = after("Agents", |facts| {
        let unread = Some(QueueUse {
            messages: 3,
            consumers: 0,
        });
        let hosts = (10..20).map(|n| (format!("h{n}"), if n < 15 { unread } else { None }));
        facts.agents = Some(Ok(hosts.collect()));
    });
    assert_eq!(result.result, Verdict::Warning);
    assert_eq!(
        result.details,
        "10 of 10 compute hosts have no agent: h10, h11, h12, h13, h14 and 5 more"
    );
}

#[test]
fn a_misspelt_key_of_a_flavor_is_found_before_a_server_has_it() {
    let result = after("Flavors", |facts| {
        nova(facts).flavors.extend([
            flavor("typo", &[("ebbtide:preemtible", "true")]),
            flavor(
                "soon",
                &[(PREEMPTIBLE, "true"), ("ebbtide:grace_seconds", "soon")],
            ),
            flavor(
                "day",
                &[(PREEMPTIBLE, "true"), (MAX_LIFETIME_SECONDS, "86400")],
            ),
            flavor(
                "minute",
                &[(PREEMPTIBLE, "true"), (MAX_LIFETIME_SECONDS, "60")],
            ),
            flavor("other", &[("hw:cpu_policy", "dedicated")]),
        ]);
    });
    assert_eq!(result.result, Verdict::Warning);
    for said in [
        "6 flavors, 4 of them preemptible",
        "typo: ",
        "ebbtide:preemtible",
        "soon: ",
        "minute: ",
        "EB-DOOR-012",
    ] {
        assert!(result.details.contains(said), "{said}: {result:?}");
    }
    for good in ["other", "day"] {
        assert!(!result.details.contains(good), "{good}: {result:?}");
    }
}

#[test]
fn a_ledger_of_a_newer_program_is_refused_and_none_is_a_warning() {
    let newer = after("Ledger", |facts| {
        facts.ledger = Some(Ok(SchemaState::Newer {
            found: "m2030".to_owned(),
        }));
    });
    assert_eq!(newer.result, Verdict::Failure);
    assert!(newer.details.contains("m2030"), "{newer:?}");
    let none = after("Ledger", |facts| {
        facts.ledger = None;
        facts.agents = None;
    });
    assert_eq!(none.result, Verdict::Warning);
    let older = after("Ledger", |facts| {
        facts.ledger = Some(Ok(SchemaState::Older { pending: 1 }));
    });
    assert_eq!(
        older.details,
        "reachable; the next start applies 1 migration"
    );
}

#[test]
fn a_silent_cell_is_a_warning_because_its_hosts_stay_as_they_were() {
    let result = after("Nova's databases", |facts| {
        nova(facts).cells = 2;
        let silent = ("cell2".to_owned(), "EB-NOVADB-002: away".to_owned());
        nova(facts).silent_cells.push(silent);
    });
    assert_eq!(result.result, Verdict::Warning);
    assert!(result.details.contains("cell2"), "{result:?}");
    let none = after("Nova's databases", |facts| nova(facts).cells = 0);
    assert_eq!(none.result, Verdict::Failure);
}

#[test]
fn schedulers_that_run_are_named() {
    let result = after("Schedulers", |facts| {
        let record = |host: &str| ebbtide_nova_db::SchedulerRecord {
            host: host.to_owned(),
            version: 64,
            last_seen_up: None,
        };
        nova(facts).schedulers = vec![record("a"), record("b")];
        nova(facts).schedulers_up = BTreeSet::from(["b".to_owned()]);
    });
    assert_eq!(
        result.details,
        "up of 2 records: b; records do not tell Nova's from ours"
    );
}

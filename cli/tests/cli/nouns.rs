//! Each noun: what is asked of the region, and what is printed.

use crate::fake::{self, Fake, id, usage};
use crate::run::{Ran, against, program_of};
use ebbtide_proto::v1::{Evacuation, Flavor, Server};

/// A region with a little of everything.
pub async fn region() -> Fake {
    let fake = Fake::start().await;
    fake.with(|state| {
        let mut a = fake::host("host-A", 8, 16_000);
        a.availability_zone = "north".into();
        a.normal_servers = 1;
        a.preemptible_servers = 2;
        a.resources = vec![
            usage("VCPU", 8, 2, 4, 2),
            usage("MEMORY_MB", 16_000, 4000, 8000, 4000),
        ];
        a.traits = vec!["HW_CPU_X86_AVX2".into()];
        let mut b = fake::host("host-B", 8, 16_000);
        b.health = "down".into();
        b.last_seen = "2026-11-20T18:10:12Z".into();
        state.hosts = vec![a, b];
        state.flavors = vec![
            Flavor {
                id: id(700),
                name: "m1.medium".into(),
                vcpus: 2,
                ram_mb: 4000,
                disk_gb: 40,
                ..Default::default()
            },
            Flavor {
                id: id(701),
                name: "spot".into(),
                vcpus: 2,
                ram_mb: 4000,
                disk_gb: 40,
                preemptible: true,
                extra_specs: [
                    ("ebbtide:preemptible".to_owned(), "true".to_owned()),
                    ("ebbtide:grace_seconds".to_owned(), "60".to_owned()),
                ]
                .into(),
            },
        ];
        let server = |number: u32, name: &str, project: &str, status: &str| Server {
            id: id(number),
            name: name.into(),
            project_id: project.into(),
            flavor_name: "spot".into(),
            preemptible: true,
            status: status.into(),
            state: match status {
                "evacuating" => "draining",
                "preempted" => "gone",
                other => other,
            }
            .into(),
            state_since: format!("2026-11-20T20:3{number}:30Z"),
            host: "host-A".into(),
            decision_id: id(900),
            created_at: format!("2026-11-20T20:3{number}:00Z"),
            resources: [("VCPU".to_owned(), 2), ("MEMORY_MB".to_owned(), 4000)].into(),
            interruption: "terminate".into(),
            ..Default::default()
        };
        state.servers = vec![
            server(1, "worker-1", "default", "active"),
            server(2, "worker-2", "default", "evacuating"),
            server(3, "worker-1", "research", "active"),
            server(4, "old", "default", "preempted"),
            server(5, "old", "default", "preempted"),
            server(6, "twin", "default", "active"),
            server(7, "twin", "default", "active"),
        ];
        state.servers[1].evacuation_id = id(800);
        state.servers[1].deadline_at = "2026-11-20T20:40:37Z".into();
        state.servers[1].state_until = "2026-11-20T20:40:37Z".into();
        state.servers[1].state_reason =
            "a normal request needs its capacity (terminate, 30 s grace)".into();
        state.evacuations = vec![Evacuation {
            id: id(800),
            victim_id: id(2),
            victim_project_id: "default".into(),
            host: "host-A".into(),
            preemptor_id: id(3),
            decision_id: id(900),
            behaviour: "terminate".into(),
            grace_seconds: 60,
            cost: 11.5,
            state: "draining".into(),
            attempts: 1,
            claimed_at: "2026-11-20T20:39:36Z".into(),
            deadline_at: "2026-11-20T20:40:37Z".into(),
            ..Default::default()
        }];
        // The server is gone: the evacuation alone knows its name.
        state.evacuations.push(Evacuation {
            id: id(801),
            victim_id: id(70),
            victim_name: "worker-7".into(),
            victim_project_id: "default".into(),
            host: "host-A".into(),
            behaviour: "terminate".into(),
            cause: "reclaim".into(),
            reclaim_owner: "slurm:7".into(),
            cost: 2.5,
            state: "evacuated".into(),
            claimed_at: "2026-11-20T20:38:36Z".into(),
            ..Default::default()
        });
    });
    fake
}

/// Runs a command line without quotes.
async fn ebbtide(fake: &Fake, line: &str) -> Ran {
    against(fake, &line.split_whitespace().collect::<Vec<_>>()).await
}

/// Runs several and puts all that they said into one snapshot.
async fn told(name: &str, lines: &[&str]) {
    let fake = region().await;
    let mut all = String::new();
    for line in lines {
        all.push_str(&format!(
            "$ {} {line}\n{}\n",
            program_of(line.split_whitespace()),
            ebbtide(&fake, line).await.all()
        ));
    }
    insta::assert_snapshot!(name, all);
}

#[tokio::test]
async fn hosts_are_listed_shown_disabled_and_enabled() {
    told(
        "hosts",
        &[
            "host list",
            "host list -o value -c name -c last_seen",
            "host list -c Name -c nonsense",
            "host show host-A",
            "host show host-A -o json",
            "host disable host-A --reason maintenance",
            "host enable host-A -q",
            "host show host-Z",
        ],
    )
    .await;
}

#[tokio::test]
async fn a_removed_host_leaves_what_an_administrator_of_the_broker_removes() {
    told("removal", &["host remove host-A", "host readmit host-A"]).await;
}

#[tokio::test]
async fn hosts_are_reclaimed_waited_for_and_returned() {
    told(
        "reclaims",
        &[
            "host reclaims",
            "host reclaim host-A --owner slurm:7 --reason maintenance --deadline 90s --dry-run",
            "host reclaims -o json",
            "host reclaim host-A host-B --owner slurm:7 --reason maintenance --deadline 90s --wait",
            "host reclaim host-A --owner other --reason maintenance",
            "host reclaim host-A --owner slurm:7 --reason x --deadline tomorrow",
            "host reclaim host-A --owner slurm:7 --reason x --dry-run --wait",
            "host reclaims host-A -o json",
            "host return host-A host-B -o value -c name",
            "host reclaims host-A",
            "host return host-Z",
        ],
    )
    .await;
}

#[tokio::test]
async fn flavors_are_created_with_shortcuts_listed_shown_and_deleted() {
    told(
        "flavors",
        &[
            "flavor create s --vcpus 1 --ram 2000 --disk 20 --preemptible --interruption stop --grace 45 --property trait:CUSTOM_X=required -o json",
            "flavor create t --vcpus 1 --ram 1 --preemptible --property ebbtide:preemptible=false",
            "flavor list",
            "flavor show spot",
            "flavor delete s",
            "flavor show s",
        ],
    )
    .await;
}

#[tokio::test]
async fn servers_are_found_by_name_within_their_project() {
    told(
        "servers",
        &[
            "server list",
            "server list --all-projects --deleted -o value -c name -c project_id -c status",
            "server list --status evacuating -o json",
            "server show worker-1",
            "server show worker-1 --project research -o value -c id",
            "server show old -o value -c id",
            "server show twin",
            "server show absent",
            "server show 01900000-0000-7000-8000-000000000999",
            "server release worker-2",
            "server release worker-1",
            "server delete old",
            "server delete worker-1 --wait",
            "server list --limit 1 -o value -c name -c status",
        ],
    )
    .await;
}

#[tokio::test]
async fn groups_aggregates_and_budgets_are_kept() {
    told(
        "groups_aggregates_budgets",
        &[
            "server group create --policy anti-affinity web",
            "server group list -o json",
            "budget set --group web --max-victims 1 --window 600",
            "budget set --of-project research --max-victims 3 --window 7200 -o json",
            "budget list",
            "budget delete --group web",
            "budget set --group absent --max-victims 1 --window 600",
            "server group delete web",
            "server group list",
            "aggregate create rack --host host-A --zone north",
            "aggregate create rack --host host-B",
            "aggregate set rack --host host-B --no-host host-A --property a=b --no-property availability_zone",
            "aggregate set absent --host host-B",
            "aggregate list",
            "aggregate delete rack",
        ],
    )
    .await;
}

#[tokio::test]
async fn evacuations_call_servers_by_their_names() {
    told(
        "evacuations",
        &[
            "evacuation list",
            "evacuation list --server worker-2 -o value",
            "evacuation list --project research",
            "evacuation show worker-2",
            "evacuation show 01900000-0000-7000-8000-000000000800 -o json",
            "evacuation show worker-1",
            "evacuation show 01900000-0000-7000-8000-000000000801",
        ],
    )
    .await;
}

#[tokio::test]
async fn the_status_shows_both_states() {
    told("status", &["status", "status -o json -c policy -c servers"]).await;
}

#[tokio::test]
async fn pages_are_put_together_and_a_limit_is_kept() {
    let fake = Fake::start().await;
    fake.with(|state| {
        state.servers = (0..2500)
            .map(|number| Server {
                id: id(number),
                name: format!("s{number}"),
                project_id: "default".into(),
                status: "active".into(),
                ..Default::default()
            })
            .collect();
    });
    for (line, expected) in [("server list", 2500), ("server list --limit 1500", 1500)] {
        let ran = ebbtide(&fake, &format!("{line} -o value -c name")).await;
        let names: Vec<&str> = ran.out.lines().collect();
        assert_eq!(names.len(), expected, "{line}");
        assert_eq!(names[expected - 1], format!("s{}", expected - 1));
    }
}

#[tokio::test]
async fn colours_come_only_when_asked_for() {
    let fake = region().await;
    assert!(!ebbtide(&fake, "host list").await.out.contains('\u{1b}'));
    assert!(
        ebbtide(&fake, "host list --color always")
            .await
            .out
            .contains("\u{1b}[")
    );
    assert!(
        !ebbtide(&fake, "host list --color never")
            .await
            .out
            .contains('\u{1b}')
    );
    // Never where a program reads.
    for format in ["json", "value"] {
        let ran = ebbtide(&fake, &format!("host list --color always -o {format}")).await;
        assert!(!ran.out.contains('\u{1b}'), "{format}");
    }
}

#[tokio::test]
async fn an_audit_names_what_it_finds_and_says_so_by_its_exit_code() {
    told(
        "audit",
        &["audit", "audit -o json", "audit --config-dir /etc/nova"],
    )
    .await;
}

#[tokio::test]
async fn a_reconciliation_is_shown_before_it_is_done() {
    let fake = Fake::start().await;
    let shown = ebbtide(&fake, "reconcile").await;
    assert_eq!(shown.code, 0);
    assert!(shown.out.contains("| adopt"), "{}", shown.out);
    assert!(shown.err.contains("Nothing was changed"), "{}", shown.err);
    let done = ebbtide(&fake, "reconcile --apply").await;
    assert!(done.err.contains("Done."), "{}", done.err);
}

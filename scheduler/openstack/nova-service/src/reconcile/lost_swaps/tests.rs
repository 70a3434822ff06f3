//! Victims of swaps that the backup does not have, as plans.

use super::*;
use crate::audit::{AuditServer, CpuKind, Host, WholeHolding};
use crate::preemption::{PreemptionPolicy, PreemptionState};
use crate::reconcile::plan::plan;
use ebbtide_model::InterruptionBehaviour;

const HOST: Uuid = Uuid::from_u128(0x10);
const GRACE: Seconds = Seconds(120);

fn amounts(vcpus: u64, memory: u64) -> Amounts {
    let both = [("VCPU", vcpus), ("MEMORY_MB", memory)];
    let both = both.into_iter().filter(|(_, n)| *n > 0);
    both.map(|(class, n)| (class.to_owned(), n)).collect()
}

fn server(n: u128) -> Uuid {
    Uuid::from_u128(0x20 + n)
}

fn holding(amounts: Amounts) -> WholeHolding {
    WholeHolding {
        allocations: BTreeMap::from([(HOST, amounts)]),
        generation: Some(5),
        project_id: Some("p".to_owned()),
        user_id: Some("u".to_owned()),
    }
}

/// A host of eight CPUs with two preemptible servers that take four each, of which they hold so
/// many.
fn host(first: u64, second: u64) -> RestoredLedger {
    let mut backup = RestoredLedger::default();
    let picture = &mut backup.picture;
    let mut on_host = Host {
        name: "compute1".to_owned(),
        capacity: amounts(8, 8192),
        ..Host::default()
    };
    for (n, vcpus) in [(1, first), (2, second)] {
        let terms = PreemptibleServer {
            flavor: "large".to_owned(),
            behaviour: InterruptionBehaviour::Terminate,
            grace: (n == 2).then_some(Seconds(30)),
            // The second one runs longer.
            launched_at: Some(Timestamp::from_millis(1_000_000 - 1000 * i64::from(n == 2))),
            project_id: "own".to_owned(),
            user_id: "own".to_owned(),
            cpus: CpuKind::Shared,
        };
        let runs = AuditServer {
            name: format!("s{n}"),
            provider: Some(HOST),
            vm_state: "active".to_owned(),
            holds_room: true,
            due: amounts(4, 1024),
            preemptible: Some(terms),
            ..AuditServer::default()
        };
        picture.servers.insert(server(n), runs);
        on_host.consumers.insert(server(n), amounts(vcpus, 1024));
        if vcpus < 4 {
            picture
                .whole
                .insert(server(n), holding(amounts(vcpus, 1024)));
        }
    }
    picture.hosts.insert(HOST, on_host);
    backup
}

fn also_holds(backup: &mut RestoredLedger, consumer: Uuid, of: Amounts) {
    let host = backup.picture.hosts.get_mut(&HOST).unwrap();
    host.consumers.insert(consumer, of);
}

fn planned(backup: &RestoredLedger) -> (Vec<(ReconcileAction, String)>, Vec<Preemption>) {
    let now = Timestamp::from_millis(2_000_000);
    let planned = plan(backup, now, &PreemptionPolicy::default(), GRACE);
    let steps = planned.steps.into_iter();
    let steps = steps.map(|step| (step.action, step.subject));
    let rows = planned.work.lost.into_iter();
    let records = rows.map(|row| {
        let record: Preemption = serde_json::from_value(row.document).unwrap();
        let victims: Vec<Uuid> = record.victims.iter().map(|v| v.server.0).collect();
        assert_eq!((row.id, row.victims), (record.id, victims));
        assert_eq!(row.state, record.state.as_str());
        assert!(record.has_swap() && record.answered);
        record
    });
    (steps.collect(), records.collect())
}

fn spare(n: u128) -> (ReconcileAction, String) {
    (ReconcileAction::Spare, format!("server {}", server(n)))
}

#[test]
fn a_host_in_order_needs_nothing() {
    assert_eq!(planned(&host(4, 4)), (vec![], vec![]));
}

#[test]
fn a_victim_whose_capacity_is_free_has_all_of_its_flavor_again() {
    let (steps, records) = planned(&host(1, 4));
    assert_eq!(steps, [spare(1)]);
    let [record] = records.as_slice() else {
        panic!("{records:?}")
    };
    assert_eq!(record.state, PreemptionState::Withdrawing);
    assert_eq!(record.newcomers, []);
    let victim = &record.victims[0];
    assert_eq!(victim.state, VictimState::Spared);
    let had = crate::facts::amounts(&victim.had.allocations);
    assert_eq!(had, BTreeMap::from([(HOST, amounts(4, 1024))]));
    let keeps = victim.keeps.as_ref().map(|keeps| &keeps.allocations);
    let keeps = keeps.map(crate::facts::amounts);
    assert_eq!(keeps, Some(BTreeMap::from([(HOST, amounts(1, 1024))])));
    assert_eq!((victim.generation, victim.grace), (5, GRACE));
    assert_eq!(victim.had.project_id, "p", "as Placement has it");
}

#[test]
fn a_victim_that_holds_nothing_has_its_owner_from_nova() {
    let mut backup = host(0, 4);
    let host = backup.picture.hosts.get_mut(&HOST).unwrap();
    host.consumers.remove(&server(1));
    backup
        .picture
        .whole
        .insert(server(1), WholeHolding::default());
    let (steps, records) = planned(&backup);
    assert_eq!(steps, [spare(1)]);
    let victim = &records[0].victims[0];
    assert_eq!((victim.generation, &victim.keeps), (0, &None));
    assert_eq!(
        victim.had.generation, None,
        "Placement makes the consumer anew"
    );
    assert_eq!(victim.had.project_id, "own");
}

#[test]
fn a_newcomer_on_no_host_loses_its_claim_only_if_a_victim_needs_it() {
    let newcomer = Uuid::from_u128(0x40);
    let mut backup = host(1, 4);
    also_holds(&mut backup, newcomer, amounts(3, 512));
    let leaves = |backup: &RestoredLedger| planned(backup).1[0].state;
    assert_eq!(
        leaves(&backup),
        PreemptionState::Evacuating,
        "no server of Nova's"
    );
    backup.building.insert(newcomer);
    let (steps, records) = planned(&backup);
    assert_eq!(records, [], "the victim neither leaves nor gets anything");
    let wait = (ReconcileAction::Look, format!("server {}", server(1)));
    assert!(steps.contains(&wait), "{steps:?}");
    backup.building.clear();
    backup.abandoned.insert(newcomer, holding(amounts(3, 512)));
    let (steps, records) = planned(&backup);
    let close = (ReconcileAction::Close, format!("consumer {newcomer}"));
    assert_eq!(steps, [close, spare(1)]);
    assert_eq!(records[0].newcomers[0].instance, newcomer);
    assert_eq!(records[0].newcomers[0].claim.generation, Some(5));
    let host = backup.picture.hosts.get_mut(&HOST).unwrap();
    host.capacity = amounts(16, 8192);
    let (steps, records) = planned(&backup);
    let left = (ReconcileAction::Look, format!("consumer {newcomer}"));
    assert_eq!(steps, [spare(1), left]);
    assert_eq!(records[0].newcomers, []);
}

#[test]
fn of_victims_whose_capacity_others_took_the_one_that_runs_longest_stays() {
    let mut backup = host(1, 1);
    let newcomer = Uuid::from_u128(0x41);
    also_holds(&mut backup, newcomer, amounts(3, 512));
    let runs = AuditServer {
        provider: Some(HOST),
        vm_state: "active".to_owned(),
        holds_room: true,
        ..AuditServer::default()
    };
    backup.picture.servers.insert(newcomer, runs);
    let (steps, records) = planned(&backup);
    let goes = (ReconcileAction::Continue, format!("server {}", server(1)));
    assert_eq!(steps, [goes, spare(2)]);
    let [leaves, stays] = records.as_slice() else {
        panic!("{records:?}")
    };
    assert_eq!(leaves.state, PreemptionState::Evacuating);
    assert_eq!(leaves.victims[0].server.0, server(1));
    assert_eq!(leaves.victims[0].state, VictimState::Claimed);
    assert_eq!(leaves.victims[0].grace, GRACE, "its flavor says none");
    assert_eq!(stays.victims[0].grace, Seconds(30));
}

#[test]
fn what_cannot_be_told_is_left_to_the_operator() {
    let look = |backup: &RestoredLedger| {
        let (steps, records) = planned(backup);
        assert_eq!(records, []);
        let name = format!("server s1 ({})", server(1));
        assert_eq!(steps, [(ReconcileAction::Look, name)]);
    };
    let change = |with: &dyn Fn(&mut AuditServer)| {
        let mut backup = host(1, 4);
        with(backup.picture.servers.get_mut(&server(1)).unwrap());
        backup
    };
    look(&change(&|server| server.preemptible = None));
    // Both kinds of CPUs, and its image decides.
    let mut both = change(&|server| {
        server.preemptible.as_mut().unwrap().cpus = CpuKind::Unclear;
    });
    let host = both.picture.hosts.get_mut(&HOST).unwrap();
    host.capacity.insert("PCPU".to_owned(), 4);
    look(&both);
    // Some provider below the node had the device.
    look(&change(&|server| {
        server.due.insert("VGPU".to_owned(), 1);
    }));
}

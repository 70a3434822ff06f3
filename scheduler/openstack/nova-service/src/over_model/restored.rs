//! A ledger that was restored from a backup, while Placement and Nova went on.

use super::full_host::{FullHost, VICTIM, on_host, open_ledger, victim, write};
use super::newcomer;
use super::preemptions::Stage;
use crate::NovaServiceError;
use crate::audit::{AuditSources, compare};
use crate::evacuate::register;
use crate::preemption::{Preemption, PreemptionState};
use crate::reclaims::ReclaimRecord;
use crate::reconcile::{LedgerReport, ReconcileSettings, run};
use ebbtide_model::{Reclaim, ReclaimDeadline, ReclaimTerms, ReconcileAction};
use ebbtide_runtime::clock;
use ebbtide_store::ledger::UpdateResult;
use serde_json::json;

const CLAIM: [(&str, u64); 3] = [("VCPU", 4), ("MEMORY_MB", 512), ("DISK_GB", 1)];

/// The sources of the command, with connections of its own.
async fn sources(full: &FullHost) -> AuditSources {
    AuditSources {
        ledger: Some(open_ledger(&full.ledger_url()).await),
        nova: full.bench.nova.open().await,
        placement: full.bench.placement.client(),
    }
}

async fn reconcile(full: &FullHost, apply: bool) -> Result<LedgerReport, NovaServiceError> {
    let sources = sources(full).await;
    let report = run(&sources, &ReconcileSettings::default(), apply, |_, _| {}).await;
    sources.close().await;
    report
}

fn actions(report: &LedgerReport) -> Vec<ReconcileAction> {
    report.steps.iter().map(|step| step.action).collect()
}

/// A host with a preemption of two victims in the ledger, whose swap Placement has taken, and no
/// scheduler.
async fn backup() -> (FullHost, Preemption) {
    let full = FullHost::new().await;
    let plan = full.plan(newcomer(1), &[1, 2], 4).await;
    full.written_by_another(&plan).await;
    full.swap_as_planned(&plan);
    (full, plan)
}

/// Nova runs the newcomer on the host.
async fn newcomer_comes(full: &FullHost) {
    full.comes(newcomer(1), 9).await;
    let sql = "UPDATE instances SET node = 'node1'";
    full.bench.nova.cell.sql(sql).await;
}

async fn nova_has_deleted(full: &FullHost, n: i64) {
    let uuid = victim(n);
    let sql = format!(
        "UPDATE instances SET deleted = id, host = NULL, updated_at = '2026-01-02 00:00:00' WHERE uuid = '{uuid}'"
    );
    full.bench.nova.cell.sql(&sql).await;
}

#[tokio::test]
async fn a_held_ledger_takes_no_scheduler_until_it_is_reconciled() {
    let (full, plan) = backup().await;
    let mark = full.ledger.mark_restored().await.unwrap();
    let url = full.ledger_url();
    let refused = register(&open_ledger(&url).await, "scheduler-1").await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.code(), "EB-DOOR-006");
    assert!(refused.is_passing(), "the scheduler tries again");
    assert!(refused.to_string().contains(&mark.at.to_string()));
    let looked = reconcile(&full, false).await.unwrap();
    assert_eq!(looked.mark, Some(mark));
    assert_eq!(full.row(plan.id).await.version, 1, "a look changes nothing");
    let done = reconcile(&full, true).await.unwrap();
    assert_eq!(done.steps, looked.steps);
    register(&open_ledger(&url).await, "scheduler-1")
        .await
        .unwrap();
    let again = reconcile(&full, true).await.unwrap();
    assert_eq!(again, LedgerReport::default(), "nothing is left to do");
}

#[tokio::test]
async fn a_preemption_that_has_ended_since_is_over_and_its_victims_are_on_the_bill() {
    let (full, plan) = backup().await;
    for n in [1, 2] {
        nova_has_deleted(&full, n).await;
    }
    newcomer_comes(&full).await;
    full.ledger.mark_restored().await.unwrap();
    let done = reconcile(&full, true).await.unwrap();
    assert_eq!(actions(&done), [ReconcileAction::Leave]);
    let stage = Stage::of(full).await;
    let end = stage.end_of(plan.id).await;
    assert_eq!(end.state, PreemptionState::Done);
    let usage = stage.ledger.usage(&Default::default()).await.unwrap();
    // 2 January 2026, from Nova.
    let ended: Vec<i64> = usage.iter().map(|record| record.usage.ended_at).collect();
    assert_eq!(ended, [1_767_312_000_000; 2]);
    assert_eq!(stage.has(newcomer(1)), on_host(&CLAIM));
    assert!(stage.posts().is_empty(), "nothing was moved");
}

#[tokio::test]
async fn victims_that_run_for_no_newcomer_have_their_allocations_again() {
    let (full, plan) = backup().await;
    full.caller_leaves(newcomer(1)).await;
    full.ledger.mark_restored().await.unwrap();
    let done = reconcile(&full, true).await.unwrap();
    assert_eq!(actions(&done)[0], ReconcileAction::Spare);
    let mut stage = Stage::of(full).await;
    let mut agent = stage.take_agent();
    for _ in 0..2 {
        let spare = agent.spare().await;
        agent.lets_live(&spare).await;
    }
    assert_eq!(
        stage.end_of(plan.id).await.state,
        PreemptionState::Withdrawn
    );
    for n in [1, 2] {
        assert_eq!(stage.has(victim(n)), on_host(&VICTIM));
    }
    assert!(stage.has(newcomer(1)).is_empty());
}

#[tokio::test]
async fn a_victim_that_runs_in_the_room_of_its_newcomer_gets_its_notice_again() {
    let (full, plan) = backup().await;
    nova_has_deleted(&full, 1).await;
    newcomer_comes(&full).await;
    full.ledger.mark_restored().await.unwrap();
    let done = reconcile(&full, true).await.unwrap();
    assert_eq!(actions(&done)[0], ReconcileAction::Continue);
    let mut stage = Stage::of(full).await;
    let mut agent = stage.take_agent();
    let notice = agent.notice().await;
    assert_eq!(notice.server_id.0, victim(2));
    nova_has_deleted(&stage, 2).await;
    agent.gone(&notice).await;
    assert_eq!(stage.end_of(plan.id).await.state, PreemptionState::Done);
    assert_eq!(stage.has(newcomer(1)), on_host(&CLAIM));
}

#[tokio::test]
async fn a_claim_of_a_server_that_is_being_built_is_named_and_nothing_is_taken_from_it() {
    let full = FullHost::new().await;
    full.ledger.mark_restored().await.unwrap();
    let plan = full.plan(newcomer(1), &[1], 2).await;
    full.swap_as_planned(&plan);
    let looked = reconcile(&full, false).await.unwrap();
    let named = |action, subject: &str, why: &str| {
        let mut steps = looked.steps.iter();
        steps.any(|step| {
            step.action == action && step.subject.contains(subject) && step.why.contains(why)
        })
    };
    let victim = victim(1).to_string();
    assert!(
        named(ReconcileAction::Look, &victim, "2 VCPU"),
        "{:?}",
        looked.steps
    );
    let consumer = newcomer(1).to_string();
    assert!(named(ReconcileAction::Look, &consumer, "EB-AUDIT-002"));
    let before = full.has(newcomer(1));
    reconcile(&full, true).await.unwrap();
    assert_eq!(full.has(newcomer(1)), before, "nothing is taken from it");
    assert_eq!(full.ledger.open_rows().await.unwrap(), []);
}

/// The codes of an audit.
async fn audited(full: &FullHost) -> Vec<&'static str> {
    let sources = sources(full).await;
    let picture = sources.read(|_, _| {}).await.unwrap();
    sources.close().await;
    let report = compare(&picture);
    report.findings.iter().map(|found| found.code).collect()
}

/// Placement has taken a swap after the backup, which leaves `left` to the victim and gives the
/// newcomer `claim`.
async fn lost_swap(full: &FullHost, left: &[(&str, u64)], claim: &[(&str, u64)]) {
    full.bench.expect(newcomer(1)).await;
    full.bench.placement.model(|model| {
        assert_eq!(write(model, victim(1), left), 204);
        assert_eq!(write(model, newcomer(1), claim), 204);
    });
    full.ledger.mark_restored().await.unwrap();
}

/// Nova's conductor has waited for too long and has buried the newcomer.
async fn newcomer_is_buried(full: &FullHost) {
    full.caller_leaves(newcomer(1)).await;
    let sql = format!(
        "UPDATE instance_mappings SET cell_id = 1 WHERE instance_uuid = '{}'",
        newcomer(1)
    );
    full.bench.nova.api.sql(&sql).await;
}

const LEFT: [(&str, u64); 3] = [("VCPU", 1), ("MEMORY_MB", 1024), ("DISK_GB", 1)];
const SMALL: [(&str, u64); 2] = [("VCPU", 1), ("MEMORY_MB", 64)];

#[tokio::test]
async fn a_victim_of_a_lost_swap_has_its_allocations_again_and_the_buried_newcomer_none() {
    let full = FullHost::new().await;
    lost_swap(&full, &LEFT, &SMALL).await;
    newcomer_is_buried(&full).await;
    let before = audited(&full).await;
    assert_eq!(before, ["EB-AUDIT-002", "EB-AUDIT-016", "EB-AUDIT-017"]);
    let looked = reconcile(&full, false).await.unwrap();
    let expected = [ReconcileAction::Close, ReconcileAction::Spare];
    assert_eq!(actions(&looked), expected);
    assert_eq!(
        full.has(victim(1)),
        on_host(&LEFT),
        "a look changes nothing"
    );
    let done = reconcile(&full, true).await.unwrap();
    assert_eq!(done.steps, looked.steps);
    let id = full.ledger.open_rows().await.unwrap()[0].id;
    let stage = Stage::of(full).await;
    let end = stage.end_of(id).await;
    assert_eq!(end.state, PreemptionState::Withdrawn);
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM));
    assert!(stage.has(newcomer(1)).is_empty());
    // One transaction of Placement, with the generations that were read.
    let posts = stage.posts();
    assert_eq!(posts[0].as_object().unwrap().len(), 2, "{posts:?}");
    assert_eq!(audited(&stage).await, Vec::<&str>::new());
    let usage = stage.ledger.usage(&Default::default()).await.unwrap();
    assert_eq!(usage, [], "nothing has ended");
}

#[tokio::test]
async fn a_victim_from_which_a_lost_swap_took_everything_has_it_again() {
    let full = FullHost::new().await;
    let plan = full.plan(newcomer(1), &[1], 2).await;
    full.swap_as_planned(&plan);
    full.ledger.mark_restored().await.unwrap();
    newcomer_is_buried(&full).await;
    assert!(audited(&full).await.contains(&"EB-AUDIT-003"));
    reconcile(&full, true).await.unwrap();
    let id = full.ledger.open_rows().await.unwrap()[0].id;
    let stage = Stage::of(full).await;
    stage.end_of(id).await;
    assert_eq!(stage.has(victim(1)), on_host(&VICTIM));
    assert!(stage.has(newcomer(1)).is_empty());
    assert_eq!(audited(&stage).await, Vec::<&str>::new());
}

#[tokio::test]
async fn a_victim_whose_room_another_server_took_leaves_with_notice() {
    let full = FullHost::new().await;
    lost_swap(&full, &LEFT, &SMALL).await;
    newcomer_comes(&full).await;
    let done = reconcile(&full, true).await.unwrap();
    assert!(actions(&done).contains(&ReconcileAction::Continue));
    let id = full.ledger.open_rows().await.unwrap()[0].id;
    let mut stage = Stage::of(full).await;
    let mut agent = stage.take_agent();
    let notice = agent.notice().await;
    assert_eq!(notice.server_id.0, victim(1));
    assert_eq!(
        stage.has(victim(1)),
        on_host(&LEFT),
        "nothing is overwritten"
    );
    nova_has_deleted(&stage, 1).await;
    let placement = &stage.bench.placement;
    placement.model(|model| assert_eq!(write(model, victim(1), &[]), 204));
    agent.gone(&notice).await;
    assert_eq!(stage.end_of(id).await.state, PreemptionState::Done);
    assert_eq!(stage.has(newcomer(1)), on_host(&SMALL));
    let usage = stage.ledger.usage(&Default::default()).await.unwrap();
    assert_eq!(usage.len(), 1, "its end is on the bill");
    assert_eq!(audited(&stage).await, Vec::<&str>::new());
}

#[tokio::test]
async fn allocations_that_changed_after_the_look_are_not_overwritten() {
    let full = FullHost::new().await;
    lost_swap(&full, &LEFT, &SMALL).await;
    newcomer_is_buried(&full).await;
    reconcile(&full, true).await.unwrap();
    let id = full.ledger.open_rows().await.unwrap()[0].id;
    // Its owner has had it resized since.
    let other = [("VCPU", 1), ("MEMORY_MB", 512)];
    let placement = &full.bench.placement;
    placement.model(|model| assert_eq!(write(model, victim(1), &other), 204));
    let stage = Stage::of(full).await;
    assert_eq!(stage.end_of(id).await.state, PreemptionState::Withdrawn);
    assert_eq!(stage.has(victim(1)), on_host(&other));
}

#[tokio::test]
async fn a_server_that_was_stopped_to_make_room_since_is_named() {
    let full = FullHost::new().await;
    full.ledger.mark_restored().await.unwrap();
    let sql = format!(
        "UPDATE instances SET vm_state = 'stopped' WHERE uuid = '{}'",
        victim(3)
    );
    full.bench.nova.cell.sql(&sql).await;
    let placement = &full.bench.placement;
    assert_eq!(reconcile(&full, false).await.unwrap().steps, []);
    let disk = [("DISK_GB", 1)];
    placement.model(|model| assert_eq!(write(model, victim(3), &disk), 204));
    let looked = reconcile(&full, false).await.unwrap();
    assert_eq!(actions(&looked), [ReconcileAction::Look]);
    assert!(looked.steps[0].subject.contains(&victim(3).to_string()));
    assert!(looked.steps[0].next.contains("shelve"));
}

#[tokio::test]
async fn a_scheduler_that_does_not_wait_is_an_obstacle_and_nothing_is_written() {
    let (full, plan) = backup().await;
    let mark = full.ledger.mark_restored().await.unwrap();
    // As a scheduler of an earlier version does.
    full.ledger.register("scheduler-9").await.unwrap();
    let looked = reconcile(&full, false).await.unwrap();
    assert_eq!(looked.obstacles.len(), 1);
    assert!(looked.obstacles[0].subject.contains("scheduler-9"));
    let refused = reconcile(&full, true).await.unwrap_err();
    assert_eq!(refused.code(), "EB-DOOR-007");
    assert!(refused.to_string().contains("scheduler-9"), "{refused}");
    assert_eq!(full.row(plan.id).await.version, 1);
    assert_eq!(full.ledger.restore_mark().await.unwrap(), Some(mark));
}

#[tokio::test]
async fn a_row_that_cannot_be_read_is_named_and_stays_as_it_is() {
    let (full, plan) = backup().await;
    let mark = full.ledger.mark_restored().await.unwrap();
    let stale = json!({"stale": true});
    let written = full.ledger.update(plan.id, 1, "planned", &stale).await;
    assert_eq!(written.unwrap(), UpdateResult::Updated(2));
    let done = reconcile(&full, true).await.unwrap();
    assert_eq!(actions(&done)[0], ReconcileAction::Look);
    assert_eq!(full.row(plan.id).await.document, stale);
    assert_eq!(done.mark, Some(mark));
}

#[tokio::test]
async fn a_host_that_its_owner_has_returned_since_is_not_reclaimed_again() {
    let full = FullHost::new().await;
    let terms = ReclaimTerms {
        owner: "slurm:1".to_owned(),
        reason: "a job".to_owned(),
        deadline: ReclaimDeadline::None,
        max_cost: None,
    };
    let reclaim = ReclaimRecord::new(Reclaim::new(terms, None, clock::now())).document();
    let put = full.ledger.put_reclaim("compute1", None, &reclaim).await;
    assert!(put.unwrap());
    full.ledger.mark_restored().await.unwrap();
    let done = reconcile(&full, true).await.unwrap();
    assert_eq!(actions(&done), [ReconcileAction::Close]);
    assert_eq!(full.ledger.reclaims().await.unwrap(), []);
}

#[tokio::test]
async fn an_audit_of_a_held_ledger_says_so() {
    let full = FullHost::new().await;
    full.ledger.mark_restored().await.unwrap();
    let sources = sources(&full).await;
    let picture = sources.read(|_, _| {}).await.unwrap();
    sources.close().await;
    let report = compare(&picture);
    let codes: Vec<&str> = report.findings.iter().map(|found| found.code).collect();
    assert_eq!(codes, ["EB-AUDIT-016"]);
}

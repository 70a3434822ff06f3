//! A ledger that was restored from a backup, while Placement and Nova went on.

use super::full_host::{FullHost, VICTIM, on_host, open_ledger, victim, write};
use super::newcomer;
use super::preemptions::Stage;
use crate::NovaServiceError;
use crate::audit::{AuditSources, compare};
use crate::evacuate::register;
use crate::preemption::{Preemption, PreemptionPolicy, PreemptionState};
use crate::reclaims::ReclaimRecord;
use crate::reconcile::{LedgerReport, run};
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
    let report = run(&sources, &PreemptionPolicy::default(), apply, |_, _| {}).await;
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
async fn a_swap_that_the_backup_does_not_know_is_named_and_left_to_the_operator() {
    let full = FullHost::new().await;
    full.ledger.mark_restored().await.unwrap();
    let plan = full.plan(newcomer(1), &[1], 2).await;
    full.swap_as_planned(&plan);
    let looked = reconcile(&full, false).await.unwrap();
    let named = |subject: &str, code: &str| {
        let mut steps = looked.steps.iter();
        steps.any(|step| {
            step.action == ReconcileAction::Look
                && step.subject.contains(subject)
                && step.why.starts_with(code)
                && !step.next.is_empty()
        })
    };
    assert!(
        named(&victim(1).to_string(), "EB-AUDIT-003"),
        "{:?}",
        looked.steps
    );
    assert!(named(&newcomer(1).to_string(), "EB-AUDIT-002"));
    let before = full.has(newcomer(1));
    reconcile(&full, true).await.unwrap();
    assert_eq!(full.has(newcomer(1)), before, "nothing is taken from it");
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

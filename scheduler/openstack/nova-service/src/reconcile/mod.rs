//! Reconciles a ledger that was restored from a backup with Placement and Nova.
//!
//! The ledger is of an earlier time: preemptions that it names are over, and others began since.
//! Until it is reconciled, schedulers answer requests and preempt no server. [`plan`] is pure: it
//! compares each row with where its servers are. What has to be done in Placement or at agents, the
//! schedulers do afterwards by the ordinary steps of a preemption.
//!
//! `docs/operate/backup.md` has the whole of it for operators, ADR 77 the reasons.

mod lost_swaps;
mod plan;
mod read;

use self::plan::plan;
use self::read::read;
use crate::audit::{AuditSources, Disagreement};
use crate::configure;
use crate::error::NovaServiceError;
use crate::preemption::PreemptionPolicy;
use ebbtide_model::record::RestoreMark;
use ebbtide_model::{ReconcileStep, Seconds};
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_runtime::clock;

/// What a reconciliation does, or has done.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LedgerReport {
    /// `None`: the ledger is not marked as restored, and there is nothing to reconcile.
    pub mark: Option<RestoreMark>,
    /// Compute nodes that were compared.
    pub hosts: usize,
    /// By action and subject.
    pub steps: Vec<ReconcileStep>,
    /// Why it may not be done now.
    pub obstacles: Vec<Disagreement>,
}

/// Marks the ledger as restored from a backup.
///
/// # Errors
/// No ledger is configured; those of its database.
pub async fn mark_restored(conf: &NovaConf) -> Result<RestoreMark, NovaServiceError> {
    let config = configure::ledger_database(conf)?;
    let config = config.ok_or_else(no_ledger)?;
    let ledger = ebbtide_store::ledger::Ledger::open(&config).await?;
    let marked = ledger.mark_restored().await;
    ledger.close().await;
    Ok(marked?)
}

/// Says what has to be done, and does it with `apply`. `progress` gets the number of compute nodes
/// that were read, and the total.
///
/// # Errors
/// [`NovaServiceError::NotReconcilable`] with `apply` and an obstacle; any source that is
/// unavailable.
pub async fn reconcile(
    conf: &NovaConf,
    apply: bool,
    progress: impl Fn(usize, usize),
) -> Result<LedgerReport, NovaServiceError> {
    let sources = AuditSources::open(conf).await?;
    let settings = ReconcileSettings {
        policy: configure::settings(conf).evacuation,
        default_grace: configure::cloud(conf).grace,
    };
    let done = run(&sources, &settings, apply, progress).await;
    sources.close().await;
    done
}

/// What nova.conf says about the records that a reconciliation writes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReconcileSettings {
    pub(crate) policy: PreemptionPolicy,
    /// Grace period of flavors that say none.
    pub(crate) default_grace: Seconds,
}

pub(crate) async fn run(
    sources: &AuditSources,
    settings: &ReconcileSettings,
    apply: bool,
    progress: impl Fn(usize, usize),
) -> Result<LedgerReport, NovaServiceError> {
    let ledger = sources.ledger.as_ref().ok_or_else(no_ledger)?;
    let Some(mark) = ledger.restore_mark().await? else {
        return Ok(LedgerReport::default());
    };
    let backup = read(ledger, sources, progress).await?;
    let planned = plan(
        &backup,
        clock::now(),
        &settings.policy,
        settings.default_grace,
    );
    let report = LedgerReport {
        mark: Some(mark),
        hosts: backup.picture.hosts.len(),
        steps: planned.steps,
        obstacles: planned.obstacles,
    };
    if apply {
        if !report.obstacles.is_empty() {
            let all = report.obstacles.iter();
            let words = all.map(|o| format!("{}: {}; {}", o.subject, o.what, o.next));
            let words: Vec<String> = words.collect();
            return Err(NovaServiceError::NotReconcilable(words.join(". ")));
        }
        ledger.end_restore(mark, &planned.work).await?;
    }
    Ok(report)
}

fn no_ledger() -> NovaServiceError {
    NovaServiceError::Config(format!(
        "{} is not set: there is no ledger, so there is nothing to restore or reconcile",
        configure::LEDGER
    ))
}

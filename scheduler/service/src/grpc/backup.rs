//! Reconciles a region whose database was restored from a backup.

use super::ApiHandlers;
use super::audit::{finding, on_duty_elsewhere};
use crate::error::ServiceError;
use ebbtide_proto::v1;
use ebbtide_region::{ReconcileRegion, ReconcileStep, Reconciliation, RegionError};
use ebbtide_runtime::clock;
use std::collections::BTreeSet;

impl ApiHandlers {
    /// Says what has to be done, and does it if the request says so.
    pub(super) async fn reconcile_restored(
        &self,
        request: v1::ReconcileRequest,
    ) -> Result<v1::ReconcileResponse, ServiceError> {
        let command = "ebbtide-manage audit --config-file /etc/nova/nova.conf";
        let region = self.api.standalone(command)?;
        // Only the scheduler on duty hears the agents.
        if region.duty.present().is_none() {
            let holder = on_duty_elsewhere(region).await?;
            let holder = match holder.is_empty() {
                true => "no scheduler".to_owned(),
                false => holder,
            };
            return Err(ServiceError::Region(RegionError::NotReconcilable(format!(
                "this scheduler does not hear the agents, {holder} is on duty; ask that one (--endpoint)"
            ))));
        }
        let without: BTreeSet<String> = request.without_hosts.into_iter().collect();
        let done = match request.apply {
            true => {
                let input = ReconcileRegion {
                    without_hosts: without,
                };
                region.region_actor.handle(input).await?
            }
            false => {
                let now = clock::now();
                let look =
                    move |region: &ebbtide_region::Region| region.reconciliation(now, &without);
                region.region_actor.read(look).await?
            }
        };
        Ok(answer(done, request.apply))
    }
}

fn answer(done: Reconciliation, applied: bool) -> v1::ReconcileResponse {
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    let backup_at = done.mark.and_then(|mark| mark.backup_at);
    v1::ReconcileResponse {
        held: done.mark.is_some(),
        backup_at: backup_at.map(|at| at.to_string()).unwrap_or_default(),
        applied: applied && done.mark.is_some(),
        hosts: count(done.hosts),
        compared_hosts: count(done.compared_hosts),
        steps: done.steps.into_iter().map(step).collect(),
        obstacles: done.obstacles.into_iter().map(finding).collect(),
    }
}

fn step(step: ReconcileStep) -> v1::ReconcileStep {
    v1::ReconcileStep {
        action: step.action.as_str().to_owned(),
        subject: step.subject,
        host: step.host,
        why: step.why,
        next: step.next,
    }
}

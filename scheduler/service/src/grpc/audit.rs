//! The audit compares database, memory and agent reports.

use super::ApiHandlers;
use crate::cloud::Standalone;
use crate::error::ServiceError;
use crate::region_actor::not_read;
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_proto::v1;
use ebbtide_region::Disagreement;
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use std::collections::BTreeSet;
use std::time::Duration;

/// How often memory and database are compared. A finding is a record that differs each time, so
/// that a change in progress is none.
const ROUNDS: u32 = 3;
const BETWEEN: Duration = Duration::from_millis(300);
/// Age from which an unsent message is a finding.
const UNSENT: Seconds = Seconds(60);

impl ApiHandlers {
    /// Examines everything once.
    pub(super) async fn examine(&self) -> Result<v1::AuditResponse, ServiceError> {
        let command = "ebbtide-manage audit --config-file /etc/nova/nova.conf";
        let region = self.api.standalone(command)?;
        let now = clock::now();
        let on_duty = region.duty.present().is_some();
        let examined = region
            .region_actor
            .read(move |region| region.examine(now, on_duty))
            .await?;
        let mut findings = examined.findings;
        let (differs, outbox) = self.differs(region, now).await?;
        findings.extend(differs.into_iter().map(|subject| Disagreement {
            code: "EB-AUDIT-107",
            subject,
            what: "this scheduler has something else in memory than the database".to_owned(),
            next: "restart this scheduler, it reads everything anew; report what was found",
        }));
        let late = outbox.iter().filter(|at| at.plus(UNSENT) < now).count();
        if late > 0 {
            findings.push(Disagreement {
                code: "EB-AUDIT-108",
                subject: "region".to_owned(),
                what: format!("{late} messages to agents have waited for longer than {UNSENT}"),
                next: "see whether the broker takes messages, and whether a scheduler is on duty",
            });
        }
        findings.sort();
        let duty = match on_duty {
            true => String::new(),
            false => on_duty_elsewhere(region).await?,
        };
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Ok(v1::AuditResponse {
            hosts: count(examined.hosts),
            compared_hosts: count(examined.compared_hosts),
            servers: count(examined.servers),
            evacuations: count(examined.evacuations),
            unsent_messages: count(outbox.len()),
            on_duty,
            duty,
            findings: findings.into_iter().map(finding).collect(),
        })
    }

    /// Records that differ between memory and database, and the creation times of unsent messages.
    async fn differs(
        &self,
        region: &Standalone,
        now: Timestamp,
    ) -> Result<(BTreeSet<String>, Vec<Timestamp>), ServiceError> {
        let mut always: Option<BTreeSet<String>> = None;
        let mut outbox = Vec::new();
        for round in 0..ROUNDS {
            if round > 0 && !pause(&self.stop, BETWEEN).await {
                return Err(ServiceError::Stopping);
            }
            let snapshot = region.store.load(now).await;
            let snapshot = snapshot.map_err(|error| not_read(&error))?;
            outbox = snapshot.outbox.iter().map(|m| m.created_at).collect();
            let differs = region
                .region_actor
                .read(move |region| region.differs(&snapshot))
                .await?;
            let differs = match always {
                Some(before) => before.intersection(&differs).cloned().collect(),
                None => differs,
            };
            if differs.is_empty() {
                return Ok((differs, outbox));
            }
            always = Some(differs);
        }
        Ok((always.unwrap_or_default(), outbox))
    }
}

pub(super) async fn on_duty_elsewhere(region: &Standalone) -> Result<String, ServiceError> {
    let holder = region.store.lease_holder().await;
    Ok(holder
        .map_err(|error| not_read(&error))?
        .unwrap_or_default())
}

pub(super) fn finding(found: Disagreement) -> v1::Finding {
    v1::Finding {
        code: found.code.to_owned(),
        subject: found.subject,
        what: found.what,
        next: found.next.to_owned(),
    }
}

//! Processes agents' reports. A report is acknowledged once it is in the ledger.

use super::agent_sessions::HeartbeatResult;
use super::{Evacuations, Report, read};
use crate::error::NovaServiceError;
use crate::preemption::PreemptionInput;
use ebbtide_bus::{Delivery, RejectResult, Rejects};
use ebbtide_model::EvacuationId;
use ebbtide_model::message::{Body, Heartbeat, Message, Spare};
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::ledger::{LedgerError, UpdateResult};
use ebbtide_telemetry::TraceContext;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

/// Reports that are processed at the same time. Each may have the maximum size that the broker
/// allows until it is parsed.
const PREFETCH: u16 = 64;
/// Pause before a report that could not be written returns to the queue.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

impl Evacuations {
    pub(super) async fn listen(&self) -> Result<(), NovaServiceError> {
        let queue = self.shared.prefix.scheduler();
        let mut reports = self.shared.bus.consume(&queue, PREFETCH).await?;
        let all = self.clone();
        let tasks = self.shared.tasks.clone();
        let rejects = Arc::new(Rejects::default());
        self.shared.tasks.spawn("agents", async move {
            loop {
                let delivery = tokio::select! {
                    delivery = reports.next() => delivery,
                    () = tasks.stop().cancelled() => return,
                };
                let Some(delivery) = delivery else { return };
                all.deal_with(delivery, &rejects).await;
            }
        });
        Ok(())
    }

    /// Processes one delivery without waiting for other services. Slower work runs in a task of its
    /// own, beside the reports of other agents.
    async fn deal_with(&self, mut delivery: Delivery, rejects: &Arc<Rejects>) {
        let message = match Message::from_bytes(&delivery.body) {
            Ok(message) => message,
            Err(error) => {
                delivery.cut_short();
                self.shared.metrics.unusable_report();
                let rejects = Arc::clone(rejects);
                self.shared.tasks.spawn("agents-reject", async move {
                    let sender = Rejects::sender(&delivery).to_owned();
                    let reason = format!("{}: {error}", error.code());
                    if rejects.reject(delivery, &reason).await == RejectResult::Kept {
                        tracing::warn!(
                            code = error.code(),
                            sender,
                            "a report is in the dead letters: {error}"
                        );
                    }
                });
                return;
            }
        };
        delivery.cut_short();
        let Some(evacuation) = evacuation_of(&message.body) else {
            // Heartbeats are not stored: Nova itself knows its hosts.
            if let Body::Heartbeat(beat) = &message.body {
                self.listen_for_a_second_agent(beat);
            }
            delivery.ack().await;
            return;
        };
        let server = message.body.server_id();
        let trace = TraceContext::received(delivery.traceparent.as_deref());
        let driven_here = self.driven(|driven| {
            let (tell, told) = oneshot::channel();
            let report = Report {
                body: message.body.clone(),
                written: tell,
                trace,
            };
            driven
                .values()
                .find(|driven| server.is_some_and(|server| driven.victims.contains(&server)))
                .is_some_and(|driven| driven.reports.send(report).is_ok())
                .then_some(told)
        });
        if let Some(told) = driven_here {
            // A separate task waits, so that one waiting record does not delay the reports of the
            // others.
            let stop = self.shared.tasks.stop().clone();
            self.shared.tasks.spawn("agents-report", async move {
                if matches!(told.await, Ok(true)) {
                    delivery.ack().await;
                } else {
                    pause(&stop, RETRY_PAUSE).await;
                    delivery.retry().await;
                }
            });
            return;
        }
        let all = self.clone();
        self.shared.tasks.spawn("agents-report", async move {
            match all.write_elsewhere(evacuation, &message.body).await {
                Ok(()) => delivery.ack().await,
                Err(error) => {
                    tracing::warn!(code = error.code(), "a report waits: {error}");
                    pause(all.shared.tasks.stop(), RETRY_PAUSE).await;
                    delivery.retry().await;
                }
            }
        });
    }

    fn listen_for_a_second_agent(&self, beat: &Heartbeat) {
        let facts = &self.shared.facts;
        if !facts.read(|cloud| cloud.has_service(&beat.host)) {
            return self.refuse_agent(beat);
        }
        let heard = self.hear_agent(beat);
        if heard != HeartbeatResult::One {
            self.shared.metrics.second_agent();
        }
        if heard == HeartbeatResult::TwoNow {
            tracing::error!(
                code = "EB-DOOR-050",
                host = beat.host,
                session = %beat.session,
                "two agents speak for one host; give each machine a name of its own, or stop one of them"
            );
        }
    }

    /// Writes a report into the ledger if no task of this process drives its record. The record's
    /// driver finds it there.
    async fn write_elsewhere(
        &self,
        evacuation: EvacuationId,
        body: &Body,
    ) -> Result<(), LedgerError> {
        let server = body.server_id().map(|server| server.0);
        loop {
            let row = match server {
                Some(server) => self.shared.ledger.open_row_of_victim(server).await?,
                None => None,
            };
            let Some(row) = row else {
                return self.answer_unknown_victim(evacuation, body).await;
            };
            let Some(mut record) = read(&row) else {
                return Ok(());
            };
            if record.is_about_earlier_record(body) {
                return self.answer_unknown_victim(evacuation, body).await;
            }
            if !record.feed(
                &PreemptionInput::Report(body),
                clock::now(),
                &self.shared.policy,
            ) {
                return Ok(());
            }
            let document = super::document(&record);
            let written = self
                .shared
                .ledger
                .update(row.id, row.version, record.state.as_str(), &document)
                .await?;
            if matches!(written, UpdateResult::Updated(_)) {
                return Ok(());
            }
        }
    }

    /// Handles a report about an evacuation that no open record contains, or that an earlier record
    /// about the same server contained. If the agent still
    /// follows its notice, the scheduler asks it to spare the server.
    pub(super) async fn answer_unknown_victim(
        &self,
        evacuation: EvacuationId,
        body: &Body,
    ) -> Result<(), LedgerError> {
        let Body::Draining(report) = body else {
            tracing::info!(%evacuation, "a report about an evacuation that is over: {}", body.event_type());
            return Ok(());
        };
        tracing::warn!(
            code = "EB-DOOR-024",
            %evacuation,
            server = %report.server_id,
            "an agent follows a notice that was withdrawn; it is asked to let the server live"
        );
        let spare = Body::Spare(Spare {
            evacuation_id: evacuation,
            server_id: report.server_id,
        });
        let id = Uuid::new_v5(&evacuation.0, b"spare a stranger");
        if let Err(error) = self.send(&report.host, id, spare).await {
            tracing::warn!(code = error.code(), "{error}");
        }
        Ok(())
    }
}

fn evacuation_of(body: &Body) -> Option<EvacuationId> {
    match body {
        Body::Draining(report) => Some(report.evacuation_id),
        Body::Evacuated(report) => Some(report.evacuation_id),
        Body::EvacuationFailed(report) => Some(report.evacuation_id),
        Body::Spared(report) => Some(report.evacuation_id),
        _ => None,
    }
}

//! What agents say. Acknowledged once it is in the ledger.

use super::{Evacuations, Report, read};
use crate::clock;
use crate::error::DoorError;
use crate::preemption::Input;
use crate::task::pause;
use ebbtide_bus::Delivery;
use ebbtide_model::EvacuationId;
use ebbtide_model::message::{Body, Message, Spare};
use ebbtide_store::ledger::{LedgerError, Written};
use std::time::Duration;
use tokio::sync::oneshot;
use uuid::Uuid;

/// Reports in hand at the same time.
const PREFETCH: u16 = 256;
/// How long a report rests that could not be written, before it goes back to the queue.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

impl Evacuations {
    pub(super) async fn listen(&self) -> Result<(), DoorError> {
        let queue = self.shared.prefix.scheduler();
        let mut reports = self.shared.bus.consume(&queue, PREFETCH).await?;
        let all = self.clone();
        let tasks = self.shared.tasks.clone();
        self.shared.tasks.spawn("agents", async move {
            loop {
                let delivery = tokio::select! {
                    delivery = reports.next() => delivery,
                    () = tasks.stop().cancelled() => return,
                };
                let Some(delivery) = delivery else { return };
                all.deal_with(delivery).await;
            }
        });
        Ok(())
    }

    async fn deal_with(&self, delivery: Delivery) {
        let message = match Message::from_bytes(&delivery.body) {
            Ok(message) => message,
            Err(error) => {
                tracing::warn!(
                    code = error.code(),
                    "a report goes to the dead letters: {error}"
                );
                if let Err(error) = delivery.dead_letter(&error.to_string()).await {
                    tracing::warn!(code = error.code(), "the dead letter comes again: {error}");
                }
                return;
            }
        };
        let Some(evacuation) = evacuation_of(&message.body) else {
            // Heartbeats: Nova itself knows its hosts.
            delivery.ack().await;
            return;
        };
        let server = message.body.server_id();
        let driven_here = self.driven(|driven| {
            let (tell, told) = oneshot::channel();
            let report = Report {
                body: message.body.clone(),
                written: tell,
            };
            driven
                .values()
                .find(|driven| server.is_some_and(|server| driven.victims.contains(&server)))
                .is_some_and(|driven| driven.reports.send(report).is_ok())
                .then_some(told)
        });
        if let Some(told) = driven_here {
            // Waited for elsewhere: one record that waits must not hold up the reports of the others.
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
        match self.write_elsewhere(evacuation, &message.body).await {
            Ok(()) => delivery.ack().await,
            Err(error) => {
                tracing::warn!(code = error.code(), "a report waits: {error}");
                pause(self.shared.tasks.stop(), RETRY_PAUSE).await;
                delivery.retry().await;
            }
        }
    }

    /// A report about a record that another scheduler drives, or nobody: written into the ledger, where its driver finds it.
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
                return self.answer_stranger(evacuation, body).await;
            };
            let Some(mut record) = read(&row) else {
                return Ok(());
            };
            if !record.feed(&Input::Report(body), clock::now(), &self.shared.policy) {
                return Ok(());
            }
            let document = super::document(&record);
            let written = self
                .shared
                .ledger
                .update(row.id, row.version, record.state.as_str(), &document)
                .await?;
            if matches!(written, Written::Updated(_)) {
                return Ok(());
            }
        }
    }

    /// An agent follows a notice that nobody stands by any more: it is asked to let its server live.
    async fn answer_stranger(
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
            "an agent follows a notice that nobody stands by any more; it is asked to let the server live"
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

//! What agents say, from the scheduler's queue to the region. Acknowledged once its effect is durable.

use crate::duty::Duty;
use crate::error::ServiceError;
use crate::keeper::Keeper;
use crate::metrics::Metrics;
use crate::places;
use crate::speakers::Speakers;
use crate::task::{Tasks, pause};
use ebbtide_access::AccessError;
use ebbtide_bus::{Bus, BusError, Delivery, QueuePrefix, Subscription};
use ebbtide_model::ModelError;
use ebbtide_model::message::Message;
use ebbtide_region::Input;
use std::sync::Arc;
use std::time::Duration;

/// Reports in hand at the same time: they share commits.
const PREFETCH: u16 = 512;
/// How long a report rests that could not be written, before it goes back to the queue.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// What the reader needs.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) prefix: QueuePrefix,
    pub(crate) keeper: Keeper,
    pub(crate) metrics: Metrics,
    pub(crate) duty: Duty,
    pub(crate) speakers: Speakers,
    /// Larger reports are not looked at. Bytes.
    pub(crate) most_bytes: usize,
}

/// Starts reading while this scheduler is on duty. The broker need not be there yet: reports wait in its queue, and the rest of the service
/// works meanwhile.
pub(crate) fn start(reader: Reader, tasks: &Tasks) {
    let workers = tasks.clone();
    tasks.spawn("inbox", async move {
        loop {
            tokio::select! {
                () = reader.duty.begins() => {}
                () = workers.stop().cancelled() => return,
            }
            if !reader.read(&workers).await {
                return;
            }
        }
    });
}

impl Reader {
    /// Reads until somebody else is on duty. False if this has to end altogether.
    async fn read(&self, workers: &Tasks) -> bool {
        // Somebody else has the duty already, if there is no lease any more.
        let Some(lease) = self.duty.present() else {
            return true;
        };
        let opened = tokio::select! {
            opened = open(&*self.bus, &self.prefix, lease.epoch()) => opened,
            () = self.duty.ends() => return true,
            () = workers.stop().cancelled() => return false,
        };
        let mut reports = match opened {
            Ok(reports) => reports,
            Err(_) if workers.stop().is_cancelled() => return false,
            Err(error) => {
                // Waiting does not heal this: without reports the scheduler would be blind, so it ends.
                tracing::error!(
                    code = error.code(),
                    "the scheduler's queue cannot be read: {error}"
                );
                workers.stop().cancel();
                return false;
            }
        };
        loop {
            let delivery = tokio::select! {
                delivery = reports.next() => delivery,
                () = self.duty.ends() => return true,
                () = workers.stop().cancelled() => return false,
            };
            let Some(delivery) = delivery else {
                return false;
            };
            self.deal_with(delivery, workers).await;
        }
    }

    async fn deal_with(&self, delivery: Delivery, tasks: &Tasks) {
        let (keeper, metrics) = (&self.keeper, &self.metrics);
        let message = match self.read_report(&delivery) {
            Ok(message) => message,
            Err((code, why)) => {
                metrics.dead_lettered();
                tracing::warn!(
                    code,
                    "report {} goes to the dead letters: {why}",
                    delivery.message_id
                );
                let reason = format!("{code}: {why}");
                if let Err(error) = delivery.dead_letter(&reason).await {
                    tracing::warn!(code = error.code(), "the dead letter comes again: {error}");
                }
                return;
            }
        };
        let place = places::acknowledges(&message);
        // Handed over here, so that reports keep their order; waited for elsewhere, so that they share a commit.
        match keeper.submit(Input::Report(message)).await {
            Err(_) => delivery.retry().await,
            Ok(answered) => {
                let (stop, counted) = (tasks.stop().clone(), metrics.clone());
                let duty = self.duty.clone();
                tasks.spawn("inbox-report", async move {
                    let answer = tokio::select! {
                        biased;
                        answer = answered => answer,
                        // The database may not answer for long. Whoever is on duty now can deal with the report; a second time it changes nothing.
                        () = duty.ends() => return delivery.retry().await,
                    };
                    match answer {
                        Ok(Ok(_)) => {
                            delivery.ack().await;
                            places::acknowledged(place);
                        }
                        Ok(Err(error @ ServiceError::NotWritten { passing: false, .. })) => {
                            // It would not be written the next time either.
                            counted.dead_lettered();
                            tracing::warn!(
                                code = error.code(),
                                "report {} goes to the dead letters: {error}",
                                delivery.message_id
                            );
                            let reason = format!("{}: {error}", error.code());
                            if let Err(error) = delivery.dead_letter(&reason).await {
                                tracing::warn!(
                                    code = error.code(),
                                    "the dead letter comes again: {error}"
                                );
                            }
                        }
                        // Whoever is on duty reads it from the queue.
                        Ok(Err(ServiceError::NotOnDuty)) => delivery.retry().await,
                        Ok(Err(error)) => {
                            tracing::warn!(
                                code = error.code(),
                                "report {} waits: {error}",
                                delivery.message_id
                            );
                            pause(&stop, RETRY_PAUSE).await;
                            delivery.retry().await;
                        }
                        Err(_) => delivery.retry().await,
                    }
                });
            }
        }
    }

    /// What a report says, if whoever sent it may say it. Otherwise the code and the words of the refusal.
    fn read_report(&self, delivery: &Delivery) -> Result<Message, (&'static str, String)> {
        let told = |error: &ModelError| (error.code(), error.to_string());
        if delivery.body.len() > self.most_bytes {
            return Err(told(&ModelError::Message(format!(
                "it has {} bytes, at most {} are looked at (limits.bus_message_bytes)",
                delivery.body.len(),
                self.most_bytes
            ))));
        }
        let message = Message::from_bytes(&delivery.body).map_err(|error| told(&error))?;
        // What is no report has no effect in the region, whoever sends it.
        if let Some(host) = message.body.reporting_host() {
            self.speakers
                .check(delivery.user.as_deref(), host)
                .map_err(|error: AccessError| {
                    self.metrics.refused("report");
                    (error.code(), error.to_string())
                })?;
        }
        Ok(message)
    }
}

/// Each lease has a higher epoch than the one before: reports come to whoever is on duty, also while one that hangs still has its connection.
async fn open(bus: &dyn Bus, prefix: &QueuePrefix, epoch: i64) -> Result<Subscription, BusError> {
    let scheduler = prefix.scheduler();
    let reports = bus.consume_before(&scheduler, PREFETCH, epoch).await?;
    // Made now so that an operator finds it before there is anything in it; if the broker is away, the first dead letter makes it.
    if let Err(error) = bus.declare(&prefix.dead_letter()).await {
        tracing::warn!(
            code = error.code(),
            "the dead letter queue could not be made yet: {error}"
        );
    }
    Ok(reports)
}

//! Agent reports: from the scheduler's queue to the region. A report is acknowledged once its
//! effect is durable.

use crate::Tasks;
use crate::agent_logins::AgentLogins;
use crate::error::ServiceError;
use crate::fail_points;
use crate::lease::HeldLease;
use crate::metrics::Metrics;
use crate::region_actor::RegionActor;
use ebbtide_access::AccessError;
use ebbtide_bus::{
    BodyLimit, Bus, BusError, Delivery, MAX_BODY_BYTES, QueuePrefix, RejectResult, Rejects,
    Subscription,
};
use ebbtide_model::ModelError;
use ebbtide_model::message::Message;
use ebbtide_region::Report;
use ebbtide_runtime::task::pause;
use ebbtide_telemetry::TraceContext;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Reports in progress at the same time, which share commits. Each may be as large as the broker's
/// limit, including those that the bus has prefetched; with the limit at the size of agent messages
/// (4 MiB) that is 256 MiB at most.
const PREFETCH: u16 = 64;
/// Bytes of reports that are parsed and not settled at the same time. A parsed report takes several
/// times its length.
const BYTES_IN_HAND: usize = 32 * 1024 * 1024;
/// Pause before a report that could not be written returns to the queue.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// The state of the reader.
#[derive(Clone)]
pub(crate) struct Reader {
    pub(crate) bus: Arc<dyn Bus>,
    pub(crate) prefix: QueuePrefix,
    pub(crate) region_actor: RegionActor,
    pub(crate) metrics: Metrics,
    pub(crate) duty: HeldLease,
    pub(crate) speakers: AgentLogins,
    /// Size limit of reports in bytes. Larger ones are rejected without parsing.
    pub(crate) most_bytes: usize,
    /// Dead-letter counts by sender.
    pub(crate) rejects: Arc<Rejects>,
}

/// Starts reading while this scheduler is on duty. The broker need not be available yet: reports
/// wait in its queue, and the rest of the service works in the meantime.
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
    /// Reads until another scheduler is on duty. False if the service has to end.
    async fn read(&self, workers: &Tasks) -> bool {
        // Without a lease another scheduler is on duty already.
        let Some(lease) = self.duty.present() else {
            return true;
        };
        let opened = tokio::select! {
            opened = open(&*self.bus, &self.prefix, lease.epoch()) => opened,
            () = self.duty.ends() => return true,
            () = workers.stop().cancelled() => return false,
        };
        self.look_at_the_broker(workers);
        let room = Arc::new(Semaphore::new(BYTES_IN_HAND));
        let mut reports = match opened {
            Ok(reports) => reports,
            Err(_) if workers.stop().is_cancelled() => return false,
            Err(error) => {
                // Waiting does not solve this. A scheduler without reports must not continue, so
                // the service ends.
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
            self.deal_with(delivery, &room, workers).await;
        }
    }

    /// Warns if the broker accepts larger messages than the scheduler reads: the broker stores and
    /// delivers them all the same.
    fn look_at_the_broker(&self, tasks: &Tasks) {
        let (bus, prefix, duty) = (
            Arc::clone(&self.bus),
            self.prefix.clone(),
            self.duty.clone(),
        );
        tasks.spawn("broker-limit", async move {
            let limit = tokio::select! {
                limit = bus.body_limit(&prefix) => limit,
                () = duty.ends() => return,
            };
            match limit {
                Ok(BodyLimit::Larger) => tracing::warn!(
                    code = "EB-BUS-013",
                    "the broker takes messages of more than {MAX_BODY_BYTES} bytes from everybody who may write a report; no agent \
                     sends such, and each costs its size in the broker and here: set max_message_size = {MAX_BODY_BYTES} in its \
                     rabbitmq.conf, unless others on this broker need more"
                ),
                Ok(BodyLimit::AtMost(bytes)) => tracing::info!(bytes, "the broker's largest message"),
                Err(error) => tracing::debug!(code = error.code(), "the broker's limit is not known: {error}"),
            }
        });
    }

    async fn deal_with(&self, mut delivery: Delivery, room: &Arc<Semaphore>, tasks: &Tasks) {
        let region_actor = &self.region_actor;
        if delivery.body.len() > self.most_bytes {
            let error = ModelError::Message(format!(
                "it has {} bytes, at most {} are looked at (limits.bus_message_bytes)",
                delivery.body.len(),
                self.most_bytes
            ));
            delivery.cut_short();
            let reason = (error.code(), error.to_string());
            return self.reject_beside(delivery, reason, tasks);
        }
        // A report is never larger than the whole budget, because `limits.bus_message_bytes` cannot
        // be.
        let bytes = u32::try_from(delivery.body.len().min(BYTES_IN_HAND)).unwrap_or(u32::MAX);
        let held = tokio::select! {
            held = Arc::clone(room).acquire_many_owned(bytes) => held,
            () = tasks.stop().cancelled() => return delivery.retry().await,
        };
        let message = match self.read_report(&delivery) {
            Ok(message) => message,
            Err(reason) => return self.reject_beside(delivery, reason, tasks),
        };
        // Neither the bus nor the acknowledgement needs the body.
        delivery.cut_short();
        let trace = TraceContext::received(delivery.traceparent.as_deref());
        let place = fail_points::acknowledges(&message);
        // Submitted here, so that reports keep their order. A task waits for the answer, so that
        // reports share a commit.
        match ebbtide_telemetry::within(trace, region_actor.submit(Report(message))).await {
            Err(_) => delivery.retry().await,
            Ok(answered) => {
                let stop = tasks.stop().clone();
                let (reader, duty) = (self.clone(), self.duty.clone());
                tasks.spawn("inbox-report", async move {
                    let _held = held;
                    let answer = tokio::select! {
                        biased;
                        answer = answered => answer,
                        // The database may not answer for long. The scheduler on duty now can
                        // handle the report; a second time it changes nothing.
                        () = duty.ends() => return delivery.retry().await,
                    };
                    match answer {
                        Ok(Ok(())) => {
                            delivery.ack().await;
                            fail_points::acknowledged(place);
                        }
                        Ok(Err(error @ ServiceError::NotWritten { passing: false, .. })) => {
                            // The next attempt would fail in the same way.
                            reader
                                .reject(delivery, (error.code(), error.to_string()))
                                .await;
                        }
                        // The scheduler on duty reads it from the queue.
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

    /// Rejects an unusable report in a separate task, because the broker may need time for the dead
    /// letter.
    fn reject_beside(&self, delivery: Delivery, reason: (&'static str, String), tasks: &Tasks) {
        let reader = self.clone();
        tasks.spawn("inbox-reject", async move {
            reader.reject(delivery, reason).await;
        });
    }

    async fn reject(&self, delivery: Delivery, (code, why): (&'static str, String)) {
        let sender = Rejects::sender(&delivery).to_owned();
        let id = delivery.message_id;
        match self
            .rejects
            .reject(delivery, &format!("{code}: {why}"))
            .await
        {
            RejectResult::Kept => {
                self.metrics.dead_lettered(&sender);
                tracing::warn!(code, sender, "report {id} is in the dead letters: {why}");
            }
            RejectResult::Discarded => self.metrics.discarded(&sender),
            // The bus has logged this.
            RejectResult::Returned(_) => {}
        }
    }

    /// The contents of a report, if its sender may report for the host. Otherwise the code and text
    /// of the refusal.
    fn read_report(&self, delivery: &Delivery) -> Result<Message, (&'static str, String)> {
        let told = |error: &ModelError| (error.code(), error.to_string());
        let message = Message::from_bytes(&delivery.body).map_err(|error| told(&error))?;
        // Messages of other types have no effect in the region, regardless of their sender.
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

/// Each lease has a higher epoch than the one before, so the broker delivers reports to the
/// scheduler on duty, even while the connection of a hung one is still open.
async fn open(bus: &dyn Bus, prefix: &QueuePrefix, epoch: i64) -> Result<Subscription, BusError> {
    let scheduler = prefix.scheduler();
    let reports = bus.consume_before(&scheduler, PREFETCH, epoch).await?;
    // Declared now, so that an operator finds the queue while it is empty. If the broker is
    // unavailable, the first dead letter declares it.
    if let Err(error) = bus.declare(&prefix.dead_letter()).await {
        tracing::warn!(
            code = error.code(),
            "the dead letter queue could not be made yet: {error}"
        );
    }
    Ok(reports)
}

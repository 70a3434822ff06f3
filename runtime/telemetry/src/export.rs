//! From the end of a span to the collector.

use crate::{TelemetrySettings, span};
use ebbtide_runtime::task::{self, Task};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry::{Context, KeyValue};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::transform::common::tonic::ResourceAttributesWithSchema;
use opentelemetry_proto::transform::trace::tonic::group_spans_by_resource_and_scope;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{
    Sampler, SdkTracerProvider, Span, SpanData, SpanLimits, SpanProcessor,
};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use std::sync::{LazyLock, OnceLock};
use std::time::Duration;
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Status};

/// Spans that may wait for the collector, about 8 MiB. A preemption has some twenty.
const QUEUE: usize = 8192;
/// Spans in one call.
const BATCH: usize = 512;
/// How long a span waits for others of its batch.
const GATHER: Duration = Duration::from_secs(1);
/// How long a call may take.
const CALL: Duration = Duration::from_secs(5);
/// How often a batch is sent if the collector is away, with `GATHER` in between.
const TRIES: u32 = 3;
/// How long the end of the process may wait for the last spans.
const FLUSH: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
pub struct OutcomeLabel {
    outcome: &'static str,
}

/// Spans by outcome: `sent`, `refused` by the collector, `lost` because it was away too long,
/// `dropped` because too many waited.
pub type SpanCounts = Family<OutcomeLabel, Counter>;

static COUNTS: LazyLock<SpanCounts> = LazyLock::new(|| {
    let counts = SpanCounts::default();
    for outcome in ["sent", "refused", "lost", "dropped"] {
        drop(counts.get_or_create(&OutcomeLabel { outcome }));
    }
    counts
});

/// What became of the spans of this process, for its page of metrics.
#[must_use]
pub fn span_counts() -> SpanCounts {
    COUNTS.clone()
}

fn count(outcome: &'static str, spans: usize) {
    let spans = u64::try_from(spans).unwrap_or(u64::MAX);
    COUNTS
        .get_or_create(&OutcomeLabel { outcome })
        .inc_by(spans);
}

/// The endpoint is no address: traces cannot be turned on.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("telemetry.otlp_endpoint: {problem}")]
pub struct TelemetryError {
    /// What is wrong with the value, and what is possible.
    pub problem: String,
}

impl TelemetrySettings {
    /// Checks the endpoint.
    ///
    /// # Errors
    /// [`TelemetryError`].
    pub fn check(&self) -> Result<(), TelemetryError> {
        match self.otlp_endpoint.as_deref() {
            Some(text) => endpoint(text).map(drop),
            None => Ok(()),
        }
    }
}

fn endpoint(text: &str) -> Result<Endpoint, TelemetryError> {
    let wrong = |problem: String| TelemetryError {
        problem: format!("{text:?}: {problem}; it is http://HOST:PORT or https://HOST:PORT"),
    };
    let made = Endpoint::from_shared(text.to_owned()).map_err(|e| wrong(e.to_string()))?;
    let made = match made.uri().scheme_str() {
        Some("http") => made,
        Some("https") => made
            .tls_config(ClientTlsConfig::new().with_native_roots())
            .map_err(|e| wrong(e.to_string()))?,
        _ => return Err(wrong("its scheme is neither http nor https".to_owned())),
    };
    Ok(made.connect_timeout(CALL).timeout(CALL))
}

/// The way to the collector. Drop it at the end of the process, after [`Telemetry::finish`].
#[derive(Debug, Default)]
pub struct Telemetry(Option<Running>);

#[derive(Debug)]
struct Running {
    queue: mpsc::Sender<Item>,
    _sender: Task,
}

#[derive(Debug)]
enum Item {
    Span(Box<SpanData>),
    /// Everything before this was sent, or will not be.
    Flush(oneshot::Sender<()>),
}

/// Turns traces on, if the settings have an endpoint. `instance` tells the processes of a `service`
/// apart.
///
/// # Errors
/// [`TelemetryError`].
///
/// # Panics
/// Outside a tokio runtime.
pub fn start(
    settings: &TelemetrySettings,
    service: &'static str,
    instance: &str,
) -> Result<Telemetry, TelemetryError> {
    let Some(text) = settings.otlp_endpoint.as_deref() else {
        return Ok(Telemetry::default());
    };
    let channel = endpoint(text)?.connect_lazy();
    let (queue, waiting) = mpsc::channel(QUEUE);
    let resource = Resource::builder_empty()
        .with_service_name(service)
        .with_attribute(KeyValue::new("service.instance.id", instance.to_owned()))
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let sampler = Sampler::ParentBased(Box::new(Sampler::TraceIdRatioBased(settings.sample)));
    let sender = Sender {
        client: TraceServiceClient::new(channel),
        resource: ResourceAttributesWithSchema::from(&resource),
        is_away: false,
    };
    // Explicit, so that no variable of the environment decides.
    let provider = SdkTracerProvider::builder()
        .with_sampler(sampler)
        .with_span_limits(SpanLimits::default())
        .with_resource(resource)
        .with_span_processor(Queue {
            queue: queue.clone(),
        })
        .build();
    let is_first = span::turn_on(provider.tracer("ebbtide"));
    // The tracer only refers to the provider, whose end would end all spans.
    static PROVIDER: OnceLock<SdkTracerProvider> = OnceLock::new();
    if !is_first || PROVIDER.set(provider).is_err() {
        tracing::warn!("traces are on already in this process; its first configuration stays");
        return Ok(Telemetry::default());
    }
    tracing::info!(endpoint = text, sample = settings.sample, "traces are on");
    Ok(Telemetry(Some(Running {
        queue,
        _sender: task::spawn("traces", sender.run(waiting)),
    })))
}

impl Telemetry {
    /// Sends what still waits, for three seconds at most.
    pub async fn finish(self) {
        let Some(Running { queue, _sender }) = self.0 else {
            return;
        };
        let (done, flushed) = oneshot::channel();
        let flush = async {
            // Fails only if the sender is gone, and then there is nothing to wait for.
            let _ = queue.send(Item::Flush(done)).await;
            let _ = flushed.await;
        };
        if tokio::time::timeout(FLUSH, flush).await.is_err() {
            tracing::warn!("the last spans were not sent within {FLUSH:?}");
        }
    }
}

/// Takes spans that have ended, and never waits.
#[derive(Debug)]
struct Queue {
    queue: mpsc::Sender<Item>,
}

impl SpanProcessor for Queue {
    fn on_start(&self, _: &mut Span, _: &Context) {}

    fn on_end(&self, span: SpanData) {
        if self.queue.try_send(Item::Span(Box::new(span))).is_err() {
            count("dropped", 1);
        }
    }

    /// [`Telemetry::finish`] flushes.
    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

struct Sender {
    client: TraceServiceClient<Channel>,
    resource: ResourceAttributesWithSchema,
    /// The last call failed; said once in the log.
    is_away: bool,
}

impl Sender {
    async fn run(mut self, mut waiting: mpsc::Receiver<Item>) {
        while let Some(first) = waiting.recv().await {
            let (mut spans, mut flush) = (Vec::new(), None);
            let mut next = Some(first);
            let full = tokio::time::sleep(GATHER);
            tokio::pin!(full);
            while let Some(item) = next.take() {
                match item {
                    Item::Span(span) => spans.push(*span),
                    Item::Flush(done) => flush = Some(done),
                }
                if flush.is_none() && spans.len() < BATCH {
                    tokio::select! {
                        item = waiting.recv() => next = item,
                        () = &mut full => {}
                    }
                }
            }
            self.send(spans).await;
            if let Some(done) = flush {
                // Its waiter may have given up.
                let _ = done.send(());
            }
        }
    }

    async fn send(&mut self, spans: Vec<SpanData>) {
        let number = spans.len();
        if number == 0 {
            return;
        }
        let resource_spans = group_spans_by_resource_and_scope(spans, &self.resource);
        let request = ExportTraceServiceRequest { resource_spans };
        for attempt in 1..=TRIES {
            let call = self.client.export(request.clone());
            let answer = match tokio::time::timeout(CALL, call).await {
                Ok(answer) => answer,
                Err(_) => Err(Status::deadline_exceeded("no answer")),
            };
            match answer {
                Ok(answer) => {
                    let partial = answer.into_inner().partial_success.unwrap_or_default();
                    let refused = usize::try_from(partial.rejected_spans).unwrap_or(0);
                    let refused = refused.min(number);
                    count("sent", number - refused);
                    count("refused", refused);
                    if std::mem::take(&mut self.is_away) {
                        tracing::info!("the collector of traces is back");
                    }
                    return;
                }
                Err(status) => {
                    if !std::mem::replace(&mut self.is_away, true) {
                        let code = status.code();
                        let text = status.message();
                        tracing::warn!(
                            code = "EB-TELEMETRY-001",
                            "the collector of traces does not take spans ({code:?}: {text}); requests go on, spans get lost"
                        );
                    }
                    if !may_pass(status.code()) {
                        count("refused", number);
                        return;
                    }
                }
            }
            if attempt < TRIES {
                tokio::time::sleep(GATHER).await;
            }
        }
        count("lost", number);
    }
}

/// As the specification of OTLP says of its codes.
fn may_pass(code: Code) -> bool {
    matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
            | Code::ResourceExhausted
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry::trace::Tracer as _;

    fn counted(outcome: &'static str) -> u64 {
        COUNTS.get_or_create(&OutcomeLabel { outcome }).get()
    }

    #[test]
    fn a_full_queue_drops_spans_and_counts_them() {
        let (queue, mut waiting) = mpsc::channel(2);
        let provider = SdkTracerProvider::builder()
            .with_sampler(Sampler::AlwaysOn)
            .with_span_processor(Queue { queue })
            .build();
        let tracer = provider.tracer("test");
        for name in ["first", "second", "third", "fourth"] {
            drop(tracer.start(name));
        }
        assert_eq!(counted("dropped"), 2);
        let mut name = || match waiting.try_recv() {
            Ok(Item::Span(span)) => Some(span.name.to_string()),
            _ => None,
        };
        assert_eq!(name().as_deref(), Some("first"));
        assert_eq!(name().as_deref(), Some("second"));
        assert_eq!(name(), None);
    }

    #[test]
    fn an_endpoint_is_http_or_https() {
        let check = |text: &str| {
            let settings = TelemetrySettings {
                otlp_endpoint: Some(text.to_owned()),
                ..TelemetrySettings::default()
            };
            settings.check()
        };
        assert_eq!(TelemetrySettings::default().check(), Ok(()));
        assert_eq!(check("http://127.0.0.1:4317"), Ok(()));
        assert_eq!(check("https://collector.example:4317"), Ok(()));
        for text in ["127.0.0.1:4317", "collector", "grpc://collector:4317", ""] {
            let problem = check(text).unwrap_err().to_string();
            assert!(problem.contains("http://HOST:PORT"), "{problem}");
        }
    }
}

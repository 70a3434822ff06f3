//! Metrics and health over HTTP (`[ebbtide] metrics_listen`).

use crate::Tasks;
use crate::configure::{metrics_address, wrong_address};
use crate::error::NovaServiceError;
use crate::evacuate::PreemptionDriver;
use crate::facts::Facts;
use crate::market::Market;
use crate::metrics::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::IntoResponse;
use axum::routing::get;
use ebbtide_engine::class_totals;
use ebbtide_listen::{ConnectionLimits, ConnectionSlots, Deadlines, Reporter, http};
use ebbtide_runtime::clock;
use oslo_messaging::{Transport, TransportStatus};
use tokio::net::TcpListener;

/// The data that the pages show.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) facts: Facts,
    pub(crate) metrics: Metrics,
    pub(crate) preempting: PreemptionDriver,
    pub(crate) market: Market,
    pub(crate) transport: Transport,
}

/// Starts listening.
///
/// # Errors
/// The address is invalid, or another process uses it.
pub(crate) async fn start(
    address: &str,
    pages: Pages,
    tasks: &Tasks,
) -> Result<(), NovaServiceError> {
    let listener = TcpListener::bind(metrics_address(address)?)
        .await
        .map_err(|error| wrong_address(address, &error.to_string()))?;
    let counted = pages.metrics.clone();
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .layer(middleware::from_fn(http::calls))
        .with_state(pages)
        .into_make_service_with_connect_info::<http::Connection>();
    let reporter = Reporter::new("metrics", move |why| counted.refused(why.as_str()));
    let slots = ConnectionSlots::new(ConnectionLimits::default(), reporter);
    let listener = http::LimitedListener::new(listener, slots, Deadlines::default());
    let stop = tasks.stop().clone();
    tasks.spawn("http", async move {
        let served = axum::serve(listener, router)
            .with_graceful_shutdown(stop.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!("HTTP ended: {error}");
        }
    });
    Ok(())
}

async fn metrics(State(pages): State<Pages>) -> impl IntoResponse {
    let Pages {
        facts,
        metrics,
        preempting,
        market,
        ..
    } = &pages;
    (
        [(header::CONTENT_TYPE, ebbtide_metrics::CONTENT_TYPE)],
        metrics_text(facts, metrics, preempting, market),
    )
}

/// The page of metrics. Reads the cloud once; changes of it wait for that long.
pub(crate) fn metrics_text(
    facts: &Facts,
    metrics: &Metrics,
    preempting: &PreemptionDriver,
    market: &Market,
) -> String {
    let now = clock::unix_micros();
    let counts = facts.read(|cloud| {
        let running = cloud.running_preemptible().into_iter();
        let running = running.map(|((project, flavor), count)| (project, flavor, count));
        metrics.cloud.set_running(running);
        let priced = cloud.running_flavors().into_iter();
        let prices = priced.map(|(name, (id, base))| (name.to_owned(), market.price_now(id, base)));
        metrics.cloud.set_prices(prices);
        let totals = class_totals(&cloud.host_summaries(now));
        metrics.cloud.set_totals(&totals);
        cloud.counts()
    });
    metrics.cloud.set_overtime(preempting.overtime_millis());
    metrics.text(counts, preempting.under_way())
}

/// Readiness: the scheduler receives requests.
async fn ready(State(pages): State<Pages>) -> impl IntoResponse {
    let why = match pages.transport.status() {
        TransportStatus::Up => return (StatusCode::OK, "ready\n".to_owned()),
        TransportStatus::Blocked(reason) => format!("the broker takes no messages: {reason}"),
        TransportStatus::Closed => "the connection to the broker is closed".to_owned(),
        TransportStatus::Down(Some(error)) => error.to_string(),
        TransportStatus::Down(None) => "the broker does not answer yet".to_owned(),
    };
    (
        StatusCode::SERVICE_UNAVAILABLE,
        format!("not ready: {why}\n"),
    )
}

//! `GET /metrics`, `/healthz` and `/readyz`, over HTTP without TLS or login, of the programs beside
//! the scheduler. They show no secrets, and belong on loopback or a network for administrators.

use crate::http;
use crate::{ConnectionLimits, ConnectionSlots, Deadlines, Reporter};
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::IntoResponse;
use axum::routing::get;
use ebbtide_runtime::task::{self, Task};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// Prometheus, a load balancer and a person use a few.
const MOST: ConnectionLimits = ConnectionLimits {
    all: 32,
    of_one_address: 16,
    unauthenticated: 32,
};

/// How long a connection may be without a request: longer than a usual scrape interval.
const DEADLINES: Deadlines = Deadlines {
    first_bytes: Duration::from_secs(5),
    opening: Duration::from_secs(10),
    unauthenticated_idle: Duration::from_secs(90),
    idle: Duration::from_secs(90),
    longest: None,
};

/// Number of reasons that a page names.
const NAMED: usize = 20;

/// What the pages show.
pub trait HealthSource: Clone + Send + Sync + 'static {
    /// Media type and text of the metrics.
    fn metrics(&self) -> (&'static str, String);
    /// The parts that show no sign of life; one restarts the program then.
    fn stuck(&self) -> Vec<String>;
    /// Why the program cannot do all of its work now. It goes on by itself once that is over.
    fn not_ready(&self) -> Vec<String>;
}

/// The pages at work; dropping them ends them.
#[derive(Debug)]
pub struct Pages {
    /// Where they are.
    pub address: SocketAddr,
    _serving: Task,
}

impl Pages {
    /// Serves the pages at `listen`.
    ///
    /// # Errors
    /// The address cannot be had; the text names it.
    pub async fn serve(health: impl HealthSource, listen: SocketAddr) -> io::Result<Self> {
        let taken = |e: io::Error| io::Error::new(e.kind(), format!("{listen}: {e}"));
        let listener = TcpListener::bind(listen).await.map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        let app = router(health).into_make_service_with_connect_info::<http::Connection>();
        let reporter = Reporter::new("metrics and health", |_| {});
        let listener =
            http::LimitedListener::new(listener, ConnectionSlots::new(MOST, reporter), DEADLINES);
        tracing::info!(%address, "metrics and health");
        let serving = async move {
            if let Err(error) = axum::serve(listener, app).await {
                tracing::error!(%error, "metrics and health are not served any more");
            }
        };
        Ok(Self {
            address,
            _serving: task::spawn("http", serving),
        })
    }
}

fn router<H: HealthSource>(health: H) -> Router {
    Router::new()
        .route("/metrics", get(metrics::<H>))
        .route("/healthz", get(healthy::<H>))
        .route("/readyz", get(ready::<H>))
        .layer(middleware::from_fn(http::calls))
        .with_state(health)
}

async fn metrics<H: HealthSource>(State(health): State<H>) -> impl IntoResponse {
    let (kind, text) = health.metrics();
    ([(header::CONTENT_TYPE, kind)], text)
}

/// 503 means: restart it.
async fn healthy<H: HealthSource>(State(health): State<H>) -> impl IntoResponse {
    let stuck = health.stuck();
    match stuck.is_empty() {
        true => (StatusCode::OK, "ok\n".to_owned()),
        false => unavailable("no sign of life from", &stuck),
    }
}

/// 503 means: something that the program needs is away.
async fn ready<H: HealthSource>(State(health): State<H>) -> impl IntoResponse {
    let reasons = health.not_ready();
    match reasons.is_empty() {
        true => (StatusCode::OK, "ready\n".to_owned()),
        false => unavailable("not ready", &reasons),
    }
}

fn unavailable(what: &str, reasons: &[String]) -> (StatusCode, String) {
    let mut text = format!("{what}:\n");
    for reason in reasons.iter().take(NAMED) {
        text.push_str(reason);
        text.push('\n');
    }
    if reasons.len() > NAMED {
        text.push_str(&format!("and {} more\n", reasons.len() - NAMED));
    }
    (StatusCode::SERVICE_UNAVAILABLE, text)
}

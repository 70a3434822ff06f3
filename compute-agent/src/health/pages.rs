//! `GET /metrics`, `/healthz` and `/readyz`, over HTTP without TLS or login: they show no names
//! but those of hosts, and belong on loopback or a network for administrators.

use super::{Health, NAMED};
use crate::error::AgentError;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::middleware;
use axum::response::IntoResponse;
use axum::routing::get;
use ebbtide_listen::{ConnectionLimits, ConnectionSlots, Deadlines, Reporter, http};
use ebbtide_runtime::task::{self, Task};
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
    /// [`AgentError::Config`] with the address, if it cannot be had.
    pub async fn serve(health: Health, listen: SocketAddr) -> Result<Self, AgentError> {
        let taken = |e: std::io::Error| AgentError::config("http.listen", format!("{listen}: {e}"));
        let listener = TcpListener::bind(listen).await.map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        let app = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(healthy))
            .route("/readyz", get(ready))
            .layer(middleware::from_fn(http::calls))
            .with_state(health)
            .into_make_service_with_connect_info::<http::Connection>();
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

async fn metrics(State(health): State<Health>) -> impl IntoResponse {
    (
        [(header::CONTENT_TYPE, ebbtide_metrics::CONTENT_TYPE)],
        health.metrics(),
    )
}

/// 503 means: restart it.
async fn healthy(State(health): State<Health>) -> impl IntoResponse {
    let stuck = health.stuck();
    match stuck.is_empty() {
        true => (StatusCode::OK, "ok\n".to_owned()),
        false => unavailable("no sign of life from the sessions of", &stuck),
    }
}

/// 503 means: something that the agent needs is away. It goes on by itself once that is back.
async fn ready(State(health): State<Health>) -> impl IntoResponse {
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

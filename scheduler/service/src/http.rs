//! Metrics and health over HTTP.

use crate::duty::Duty;
use crate::error::ServiceError;
use crate::keeper::Keeper;
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::task::Tasks;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use ebbtide_bus::BusStatus;
use ebbtide_region::Region;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What the pages show.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) keeper: Keeper,
    pub(crate) outbox: Outbox,
    pub(crate) duty: Duty,
    pub(crate) metrics: Metrics,
    pub(crate) bus: watch::Receiver<BusStatus>,
}

/// Starts listening; returns the address that was bound.
pub(crate) async fn start(
    address: SocketAddr,
    pages: Pages,
    tasks: &Tasks,
) -> Result<SocketAddr, ServiceError> {
    let refused = |e: std::io::Error| ServiceError::Listen {
        what: "HTTP (metrics)",
        address: address.to_string(),
        problem: e.to_string(),
        option: "--http-listen",
    };
    let listener = TcpListener::bind(address).await.map_err(refused)?;
    let bound = listener.local_addr().map_err(refused)?;
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .with_state(pages);
    let stop = tasks.stop().clone();
    tasks.spawn("http", async move {
        let served = axum::serve(listener, router)
            .with_graceful_shutdown(stop.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!("HTTP ended: {error}");
        }
    });
    Ok(bound)
}

async fn metrics(State(pages): State<Pages>) -> impl IntoResponse {
    pages.metrics.set_duty(pages.duty.present().is_some());
    if let Ok(summary) = pages.keeper.look(Region::summary).await {
        pages.metrics.set(
            &summary,
            pages.outbox.depth(),
            pages.bus.borrow().is_ready(),
        );
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], pages.metrics.text())
}

/// Ready: the region can be read, and messages flow.
async fn ready(State(pages): State<Pages>) -> impl IntoResponse {
    let status = pages.bus.borrow().clone();
    let waiting = match status {
        BusStatus::Connected => None,
        BusStatus::Blocked { reason, .. } => {
            Some(format!("the broker takes no messages: {reason}"))
        }
        BusStatus::Reconnecting {
            attempts,
            last_error,
            ..
        } => {
            let why = last_error.unwrap_or_else(|| "connecting".to_owned());
            Some(format!("no broker after {attempts} attempts: {why}"))
        }
        BusStatus::Closed => Some("the bus is closed".to_owned()),
    };
    if let Some(why) = waiting {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "not ready: {why}
"
            ),
        );
    }
    match pages.keeper.look(|_| ()).await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(error) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {error}\n"),
        ),
    }
}

//! Metrics and health over HTTP.

use crate::Tasks;
use crate::gate::{Credentials, Gate, counted_as};
use crate::lease::HeldLease;
use crate::metrics::Metrics;
use crate::outbox::Outbox;
use crate::plugins::Plugins;
use crate::region_actor::RegionActor;
use crate::wire::{Connections, Peer};
use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::IncomingStream;
use ebbtide_bus::BusStatus;
use ebbtide_region::Region;
use ebbtide_runtime::clock;
use tokio::sync::watch;

/// The sources of the pages.
#[derive(Clone)]
pub(crate) struct Pages {
    pub(crate) region_actor: RegionActor,
    pub(crate) outbox: Outbox,
    pub(crate) duty: HeldLease,
    pub(crate) metrics: Metrics,
    pub(crate) bus: watch::Receiver<BusStatus>,
    pub(crate) gate: Gate,
    pub(crate) plugins: Plugins,
}

/// Starts serving.
pub(crate) fn serve(connections: Connections, pages: Pages, tasks: &Tasks) {
    let router = Router::new()
        .route("/metrics", get(metrics))
        .route("/healthz", get(|| async { "ok\n" }))
        .route("/readyz", get(ready))
        .layer(middleware::from_fn_with_state(pages.clone(), limit_time))
        .with_state(pages);
    let service = router.into_make_service_with_connect_info::<Peer>();
    let stop = tasks.stop().clone();
    tasks.spawn("http", async move {
        let served = axum::serve(connections, service)
            .with_graceful_shutdown(stop.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!("HTTP ended: {error}");
        }
    });
}

impl axum::extract::connect_info::Connected<IncomingStream<'_, Connections>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Connections>) -> Self {
        stream.remote_addr().clone()
    }
}

/// Limits the time of each page to that of a request.
async fn limit_time(
    State(pages): State<Pages>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    request: Request,
    next: Next,
) -> Response {
    let answer = async {
        match &peer.session {
            Some(session) => ebbtide_listen::http::answer(session, request, next).await,
            None => next.run(request).await,
        }
    };
    match tokio::time::timeout(pages.gate.limits().request(), answer).await {
        Ok(response) => response,
        Err(_) => {
            pages.gate.refused("timeout");
            StatusCode::GATEWAY_TIMEOUT.into_response()
        }
    }
}

async fn metrics(
    State(pages): State<Pages>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    headers: HeaderMap,
) -> Response {
    let credentials = Credentials::of_page(&headers, "/metrics");
    if let Err(error) = pages.gate.metrics_for(&credentials, &peer).await {
        let why = counted_as(&error);
        pages.gate.refused(why);
        tracing::debug!(code = error.code(), from = %peer.address, "refused: {error}");
        let status = match why {
            "unauthenticated" => StatusCode::UNAUTHORIZED,
            "rate" => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::FORBIDDEN,
        };
        return (status, format!("{}: {error}\n", error.code())).into_response();
    }
    pages.metrics.set_duty(pages.duty.present().is_some());
    pages.metrics.set_plugins(&pages.plugins.live().list());
    let now = clock::now();
    let look = move |region: &Region| (region.summary(), region.figures(now));
    if let Ok((summary, figures)) = pages.region_actor.read(look).await {
        pages.metrics.set(
            &summary,
            pages.outbox.depth(),
            pages.bus.borrow().is_ready(),
        );
        pages.metrics.set_figures(&figures);
    }
    (
        [(header::CONTENT_TYPE, ebbtide_metrics::CONTENT_TYPE)],
        pages.metrics.text(),
    )
        .into_response()
}

/// Ready if the region can be read and the bus is connected.
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
    match pages.region_actor.read(|_| ()).await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        Err(error) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!("not ready: {error}\n"),
        ),
    }
}

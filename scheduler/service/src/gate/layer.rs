//! The gate in front of every gRPC service. Every request passes through it before it reaches a
//! handler.

use super::{Credentials, Gate, counted_as};
use crate::error::ServiceError;
use crate::wire::Peer;
use ebbtide_access::{AccessRequirement, rule_of};
use ebbtide_listen::{CallBody, CallGuard};
use ebbtide_telemetry::{Span, TRACEPARENT, TraceContext};
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::{Code, Status};
use tower::{Layer, Service};

/// Puts the gate in front of a service.
#[derive(Debug, Clone)]
pub(crate) struct GateLayer(pub(crate) Gate);

impl<S> Layer<S> for GateLayer {
    type Service = GatedService<S>;

    fn layer(&self, inner: S) -> GatedService<S> {
        GatedService {
            gate: self.0.clone(),
            inner,
        }
    }
}

/// A service behind the gate.
#[derive(Debug, Clone)]
pub(crate) struct GatedService<S> {
    gate: Gate,
    inner: S,
}

impl<S> Service<Request<Body>> for GatedService<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>
        + Clone
        + Send
        + 'static,
    S::Future: Send,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let credentials = Credentials::take(&mut request);
        let session = request
            .extensions()
            .get::<Peer>()
            .and_then(|peer| peer.session.clone());
        let path = request.uri().path();
        let Some(rule) = rule_of(path) else {
            self.gate.refused("unknown");
            let status = Status::unimplemented(format!(
                "there is no call {:?} in this version",
                ebbtide_model::names::shorten(path)
            ));
            return Box::pin(std::future::ready(Ok(status.into_http())));
        };
        // What anyone may ask (health) is asked by probes, every few seconds.
        let mut span = match rule.need {
            AccessRequirement::Nothing => Span::default(),
            _ => begin_span(path, request.headers()),
        };
        let trace = span.context();
        let gate = self.gate.clone();
        // `poll_ready` was called on the present service, so that one handles the request; the
        // clone replaces it.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        let admitted = async move {
            if rule.need != AccessRequirement::Nothing {
                let peer = request.extensions().get::<Peer>();
                match gate.admit(rule, &credentials, peer).await {
                    Ok(caller) => {
                        if let Some(session) = &session {
                            session.authenticated();
                        }
                        request.extensions_mut().insert(caller);
                    }
                    Err(error) => {
                        let from = peer.map(|peer| peer.address);
                        return Ok(refuse(&gate, error, rule.method, from));
                    }
                }
            }
            let call = session.map(|session| session.call());
            if rule.waits {
                return Ok(held(inner.call(request).await?, call));
            }
            let limit = gate.limits().request();
            match tokio::time::timeout(limit, inner.call(request)).await {
                Ok(answer) => Ok(held(answer?, call)),
                Err(_) => {
                    gate.refused("timeout");
                    Ok(Status::from(ServiceError::TooSlow {
                        seconds: limit.as_secs_f64(),
                    })
                    .into_http())
                }
            }
        };
        if trace.is_none() {
            return Box::pin(admitted);
        }
        Box::pin(async move {
            let answer = ebbtide_telemetry::within(trace, admitted).await?;
            if let Some(status) = Status::from_header_map(answer.headers()) {
                span.set("rpc.grpc.status_code", || {
                    i64::from(i32::from(status.code()))
                });
                if status.code() != Code::Ok {
                    span.fail(|| status.message().to_owned());
                }
            }
            Ok(answer)
        })
    }
}

/// The span of a call, which ends with the beginning of its answer; the parent is what the caller
/// says.
fn begin_span(path: &str, headers: &HeaderMap) -> Span {
    let parent = headers.get(TRACEPARENT).and_then(|text| text.to_str().ok());
    let path = path.trim_start_matches('/');
    let mut span = Span::request(|| path.to_owned(), TraceContext::received(parent));
    if let Some((service, method)) = path.split_once('/') {
        span.set("rpc.system", || "grpc");
        span.set("rpc.service", || service.to_owned());
        span.set("rpc.method", || method.to_owned());
    }
    span
}

/// A call is in progress until the last byte of its answer. A connection without calls is idle.
fn held(answer: Response<Body>, call: Option<CallGuard>) -> Response<Body> {
    match call {
        None => answer,
        Some(call) => answer.map(|body| Body::new(CallBody::new(body, call))),
    }
}

fn refuse(
    gate: &Gate,
    error: ServiceError,
    path: &str,
    from: Option<std::net::SocketAddr>,
) -> Response<Body> {
    gate.refused(counted_as(&error));
    // At debug level, because any client could otherwise fill the disk. The metrics count all
    // refusals.
    tracing::debug!(code = error.code(), call = path, ?from, "refused: {error}");
    Status::from(error).into_http()
}

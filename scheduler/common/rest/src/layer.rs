//! The layer in front of a gRPC router.

use crate::call;
use crate::contract::Contract;
use crate::error::RestError;
use crate::openapi;
use axum::http::{Request, header};
use axum::response::Response;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::body::Body;
use tower::{Layer, Service};

/// What the layer has to know of its service.
#[derive(Debug, Clone)]
pub struct RestConfig {
    /// The service is reached by TLS: links in version documents begin with `https`.
    pub https: bool,
    /// The header `www-authenticate` of answers with 401.
    pub challenge: String,
    /// Most bytes of a JSON body.
    pub body_bytes: usize,
    /// Most bytes of a JSON body that may be as large as a plugin.
    pub large_body_bytes: usize,
}

/// Transcodes REST into gRPC of the service behind it. Put it outside of every other layer.
#[derive(Debug, Clone)]
pub struct RestLayer {
    rest: Arc<Rest>,
}

/// The request behind a call, as an extension of the call: for rules that are about paths.
#[derive(Debug, Clone)]
pub struct RestRequest {
    pub method: axum::http::Method,
    /// Its path, as it was routed.
    pub path: String,
}

/// What all requests share.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) config: RestConfig,
    pub(crate) contract: Contract,
    /// The OpenAPI document as text.
    pub(crate) openapi: String,
}

impl RestLayer {
    /// Binds the table of routes to the contracts.
    ///
    /// # Errors
    /// [`RestError::Contract`] if they do not fit; a test of this crate holds that they do.
    pub fn new(config: RestConfig) -> Result<Self, RestError> {
        Ok(Self {
            rest: Arc::new(Rest {
                config,
                contract: Contract::load()?,
                openapi: openapi::document()?.to_string(),
            }),
        })
    }
}

impl<S> Layer<S> for RestLayer {
    type Service = RestService<S>;

    fn layer(&self, inner: S) -> RestService<S> {
        RestService {
            rest: Arc::clone(&self.rest),
            inner,
        }
    }
}

/// A gRPC service with REST beside it.
#[derive(Debug, Clone)]
pub struct RestService<S> {
    rest: Arc<Rest>,
    inner: S,
}

impl<S> Service<Request<Body>> for RestService<S>
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

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // `poll_ready` was called on the present service, so that one handles the request; the
        // clone replaces it.
        let ready = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, ready);
        if is_grpc(&request) {
            return Box::pin(inner.call(request));
        }
        let rest = Arc::clone(&self.rest);
        Box::pin(async move { Ok(call::answer(rest, inner, request).await) })
    }
}

/// True for `application/grpc` with or without the name of a codec.
fn is_grpc(request: &Request<Body>) -> bool {
    let kind = request.headers().get(header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

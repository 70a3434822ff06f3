//! The console in front of REST and gRPC, on their port.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

/// Answers requests for the console, and passes all others on. Put it outside of every other layer:
/// the console's files need no token.
#[derive(Debug, Clone)]
pub(crate) struct ConsoleLayer;

impl<S> Layer<S> for ConsoleLayer {
    type Service = ConsoleService<S>;

    fn layer(&self, inner: S) -> ConsoleService<S> {
        ConsoleService { inner }
    }
}

/// A service with the console beside it.
#[derive(Debug, Clone)]
pub(crate) struct ConsoleService<S> {
    inner: S,
}

impl<S> Service<Request<Body>> for ConsoleService<S>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible>,
    S::Future: Send + 'static,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path();
        match ebbtide_console::answer(request.method(), path, request.headers()) {
            Some(answer) => {
                let answer = answer.map(|body| Body::new(axum::body::Body::from(body)));
                Box::pin(std::future::ready(Ok(answer)))
            }
            None => Box::pin(self.inner.call(request)),
        }
    }
}

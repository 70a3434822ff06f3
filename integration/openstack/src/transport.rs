//! What a request travels over instead of HTTP: a service in the same process, for tests and
//! simulations.

use crate::error::RequestEffect;
use serde_json::Value;
use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

/// One request, as a [`Transport`] gets it.
#[derive(Debug, Clone, Copy)]
pub struct TransportRequest<'a> {
    /// The service type: `placement`, `compute`, `keystone`.
    pub service: &'a str,
    /// The HTTP method.
    pub method: &'a str,
    /// Behind the endpoint, with its query.
    pub path: &'a str,
    /// As the header has it, for example `1.36`; `None`: the service's oldest.
    pub microversion: Option<&'a str>,
    pub body: Option<&'a Value>,
}

/// What the service answers.
#[derive(Debug, Clone, PartialEq)]
pub struct TransportResponse {
    /// The HTTP status.
    pub status: u16,
    /// Names in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body; `Null` for an empty one.
    pub body: Value,
}

/// No answer came.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoResponse {
    /// What happened, for the error's text.
    pub problem: String,
    /// Whether the service may have done what it was asked for.
    pub effect: RequestEffect,
}

/// What a transport returns: the answer of one request, later.
pub type ExchangeFuture<'a> =
    Pin<Box<dyn Future<Output = Result<TransportResponse, NoResponse>> + Send + 'a>>;

/// Carries requests to services. Everything above it (errors, retries, microversions, what a lost
/// answer means) is the same as over HTTP.
pub trait Transport: Send + Sync + Debug {
    /// Carries one request, once.
    fn exchange<'a>(&'a self, request: TransportRequest<'a>) -> ExchangeFuture<'a>;
}

//! One request, from its path to its answer.

use crate::answer::{self, RequestParts};
use crate::body::{self, Outline};
use crate::codec::DynamicCodec;
use crate::contract::BoundRoute;
use crate::error::RestError;
use crate::layer::{Rest, RestRequest};
use crate::problem::Problem;
use crate::request_id::{self, RequestIds};
use crate::table::Answer;
use crate::{discovery, origin, query, stream};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::response::Response;
use ebbtide_proto::MAX_MESSAGE_BYTES;
use prost_reflect::DynamicMessage;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use tonic::body::Body;
use tonic::client::Grpc;
use tonic::metadata::MetadataMap;
use tonic::{Status, Streaming};
use tower::Service;
use tracing::Instrument as _;

/// The header of OpenStack's clients with their token.
const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
/// The header of a service that asks on behalf of a user, with the service's own token.
const SERVICE_TOKEN: HeaderName = HeaderName::from_static("x-service-token");
/// The context of the caller's trace (W3C Trace Context).
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// The header of a reader of events that has read some before.
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// Why a request has no answer but a problem.
enum Failure {
    /// The REST layer refused it.
    Rest(RestError),
    /// The call has failed.
    Call(Box<Status>),
}

impl From<RestError> for Failure {
    fn from(error: RestError) -> Self {
        Self::Rest(error)
    }
}

/// Answers a request that is not gRPC.
pub(crate) async fn answer<S>(rest: Arc<Rest>, inner: S, request: Request<Body>) -> Response<Body>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Send + 'static,
    S::Future: Send,
{
    let ids = RequestIds::of(request.headers());
    let span = tracing::info_span!(
        "rest",
        request_id = ids.own,
        global_request_id = ids.global,
        method = %request.method(),
        path = request.uri().path(),
    );
    let challenge = &rest.config.challenge;
    async {
        let mut answer = match routed(&rest, inner, request, &ids).await {
            Ok(answer) => answer,
            Err(Failure::Rest(error)) => Problem::of_error(&error, &ids).answer(challenge),
            Err(Failure::Call(status)) => Problem::of_status(&status, &ids).answer(challenge),
        };
        // Browsers take an answer for nothing but what its type says.
        let nosniff = HeaderValue::from_static("nosniff");
        answer
            .headers_mut()
            .insert(header::X_CONTENT_TYPE_OPTIONS, nosniff);
        if let Ok(id) = HeaderValue::from_str(&ids.own) {
            answer.headers_mut().insert(request_id::HEADER, id);
        }
        tracing::debug!(status = answer.status().as_u16(), "answered");
        answer
    }
    .instrument(span)
    .await
}

async fn routed<S>(
    rest: &Rest,
    inner: S,
    request: Request<Body>,
    ids: &RequestIds,
) -> Result<Response<Body>, Failure>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Send + 'static,
    S::Future: Send,
{
    let (parts, body) = request.into_parts();
    if let Some(answer) = public_document(rest, &parts)? {
        return Ok(answer);
    }
    let path = parts.uri.path();
    let found = rest.contract.find(&parts.method, path)?;
    if !parts.method.is_safe() {
        origin::same(parts.uri.authority(), &parts.headers)?;
    }
    for (name, shown) in [
        (header::IF_MATCH, "If-Match"),
        (header::IF_UNMODIFIED_SINCE, "If-Unmodified-Since"),
    ] {
        if parts.headers.contains_key(name) {
            return Err(RestError::Condition { header: shown }.into());
        }
    }
    body::check_type(&found.route, &parts.headers)?;
    let pairs = query::pairs(parts.uri.query());
    let outline = Outline {
        values: found.values,
        query: query::fields(&found.route, &pairs)?,
        most: match found.route.route.large {
            true => rest.config.large_body_bytes,
            false => rest.config.body_bytes,
        },
    };
    let asked = RequestParts {
        path: path.to_owned(),
        query: pairs,
        headers: parts.headers.clone(),
    };
    // The message is made while the call reads it: a caller that the service refuses has its body
    // never read.
    let refused = Arc::new(Mutex::new(None));
    let message = {
        let (route, refused) = (Arc::clone(&found.route), Arc::clone(&refused));
        async move {
            match body::message(&route, outline, body).await {
                Ok(message) => Some(message),
                Err(error) => {
                    *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    None
                }
            }
        }
    };
    let called = call(&found.route, inner, message, &parts, ids).await;
    if let Some(error) = refused
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take()
    {
        return Err(error.into());
    }
    let mut messages = called.map_err(|status| Failure::Call(Box::new(status)))?;
    match found.route.route.answer {
        Answer::Json(status) => {
            let message = only(&mut messages).await;
            let message = message.map_err(|status| Failure::Call(Box::new(status)))?;
            Ok(answer::of(&found.route, status, &message, &asked)?)
        }
        Answer::Events(position) => {
            let last = asked.headers.get(LAST_EVENT_ID);
            let last = last.and_then(|id| id.to_str().ok()).map(str::to_owned);
            Ok(stream::events(messages, position, last, ids.clone()))
        }
        Answer::Document(field) => Ok(stream::document(messages, field)),
    }
}

/// Makes the call. The token is passed on as gRPC has it.
async fn call<S, M>(
    route: &BoundRoute,
    inner: S,
    message: M,
    parts: &Parts,
    ids: &RequestIds,
) -> Result<Streaming<DynamicMessage>, Status>
where
    S: Service<Request<Body>, Response = Response<Body>, Error = Infallible> + Send + 'static,
    S::Future: Send,
    M: Future<Output = Option<DynamicMessage>> + Send + 'static,
{
    use futures::StreamExt as _;
    let mut metadata = HeaderMap::new();
    if let Some(token) = authorization(&parts.headers) {
        metadata.insert(header::AUTHORIZATION, token);
    }
    if let Some(token) = parts.headers.get(SERVICE_TOKEN) {
        metadata.insert(SERVICE_TOKEN, token.clone());
    }
    if let Some(context) = parts.headers.get(TRACEPARENT) {
        metadata.insert(TRACEPARENT, context.clone());
    }
    ids.add_to(&mut metadata);
    let mut extensions = parts.extensions.clone();
    extensions.insert(RestRequest {
        method: parts.method.clone(),
        path: parts.uri.path().to_owned(),
    });
    let message = futures::stream::once(message).filter_map(std::future::ready);
    let request = tonic::Request::from_parts(
        MetadataMap::from_headers(metadata),
        // The peer of the connection is in there.
        extensions,
        message,
    );
    let mut grpc = Grpc::new(inner).max_decoding_message_size(MAX_MESSAGE_BYTES);
    let codec = DynamicCodec {
        answer: route.method.output(),
    };
    let answer = grpc.streaming(request, route.call.clone(), codec).await?;
    Ok(answer.into_inner())
}

/// The answer of a call that has one.
async fn only(messages: &mut Streaming<DynamicMessage>) -> Result<DynamicMessage, Status> {
    let message = messages.message().await?;
    let message = message.ok_or_else(|| Status::internal("the call has no answer"))?;
    // A status other than OK comes behind the message.
    messages.trailers().await?;
    Ok(message)
}

/// The token as gRPC has it: the header `authorization`, or OpenStack's `x-auth-token`.
fn authorization(headers: &HeaderMap) -> Option<HeaderValue> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        return Some(value.clone());
    }
    let token = headers.get(AUTH_TOKEN)?;
    let mut value = b"Bearer ".to_vec();
    value.extend_from_slice(token.as_bytes());
    let mut value = HeaderValue::from_bytes(&value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

/// The documents that are the same in every region and for every caller, without authentication.
fn public_document(rest: &Rest, parts: &Parts) -> Result<Option<Response<Body>>, RestError> {
    let base = || {
        let authority = parts.uri.authority();
        discovery::base(rest.config.https, authority, &parts.headers)
    };
    let path = parts.uri.path();
    let value = match path {
        "/" | "" => discovery::versions(&base()).to_string(),
        "/v1" | "/v1/" => discovery::version(&base()).to_string(),
        "/v1/openapi.json" => rest.openapi.clone(),
        _ => return Ok(None),
    };
    if parts.method != Method::GET {
        return Err(RestError::Method {
            path: path.to_owned(),
            method: parts.method.to_string(),
            allow: "GET".to_owned(),
        });
    }
    Ok(Some(answer::text(StatusCode::OK, value)))
}

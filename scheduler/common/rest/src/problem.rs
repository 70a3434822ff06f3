//! Errors as problem documents (RFC 9457).

use crate::error::RestError;
use crate::request_id::RequestIds;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use serde::Serialize;
use std::time::Duration;
use tonic::body::Body;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

/// The media type of a problem document.
const MEDIA_TYPE: &str = "application/problem+json";

/// A problem document.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Problem {
    /// `urn:ebbtide:error:` and the code.
    #[serde(rename = "type")]
    kind: String,
    /// The words of the HTTP status.
    title: &'static str,
    status: u16,
    /// What was wrong, and where.
    detail: String,
    /// The stable code, as in `docs/reference/errors.md`.
    code: String,
    /// What to do next.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<String>,
    /// The field or parameter that does not fit.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    request_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    global_request_id: Option<String>,
    #[serde(skip)]
    allow: Option<String>,
    #[serde(skip)]
    retry_after: Option<Duration>,
}

impl Problem {
    fn new(status: StatusCode, code: String, detail: String, ids: &RequestIds) -> Self {
        Self {
            kind: format!("urn:ebbtide:error:{code}"),
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail,
            code,
            next: None,
            field: None,
            request_id: ids.own.clone(),
            global_request_id: ids.global.clone(),
            allow: None,
            retry_after: None,
        }
    }

    /// The problem of an error of this layer.
    pub(crate) fn of_error(error: &RestError, ids: &RequestIds) -> Self {
        let code = error.code().to_owned();
        let mut problem = Self::new(error.status(), code, error.to_string(), ids);
        problem.next = Some(error.next().to_owned());
        problem.field = error.field().map(str::to_owned);
        if let RestError::Method { allow, .. } = error {
            problem.allow = Some(allow.clone());
        }
        problem
    }

    /// The problem of a call that has failed.
    pub(crate) fn of_status(status: &Status, ids: &RequestIds) -> Self {
        let details = status.get_error_details();
        let info = details.error_info();
        let code = match info {
            Some(info) => info.reason.clone(),
            None => format!("EB-GRPC-{}", status.code() as i32),
        };
        let detail = match status.message() {
            "" => status.code().description().to_owned(),
            message => message.to_owned(),
        };
        let http = http_status(status.code());
        let mut problem = Self::new(http, code, detail, ids);
        let said = info.and_then(|info| info.metadata.get("next").cloned());
        problem.next = said.or_else(|| default_next(status.code()).map(str::to_owned));
        problem.field = details
            .bad_request()
            .and_then(|request| request.field_violations.first())
            .map(|violation| violation.field.clone());
        problem.retry_after = details.retry_info().and_then(|info| info.retry_delay);
        problem
    }

    /// The document as text.
    pub(crate) fn text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// The answer to the request; `challenge` says how to authenticate.
    pub(crate) fn answer(&self, challenge: &str) -> Response<Body> {
        let mut answer = Response::new(Body::new(axum::body::Body::from(self.text())));
        let status = StatusCode::from_u16(self.status);
        *answer.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = answer.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        if let Some(Ok(allow)) = self.allow.as_deref().map(HeaderValue::from_str) {
            headers.insert(header::ALLOW, allow);
        }
        if let Some(wait) = self.retry_after {
            // Whole seconds, rounded up: a request that comes too early is refused again.
            let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED
            && let Ok(scheme) = HeaderValue::from_str(challenge)
        {
            headers.insert(header::WWW_AUTHENTICATE, scheme);
        }
        answer
    }
}

/// The HTTP status of a gRPC code.
pub(crate) fn http_status(code: Code) -> StatusCode {
    match code {
        Code::Ok => StatusCode::OK,
        Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        // The state of the named object forbids it, as OpenStack's services answer.
        Code::AlreadyExists | Code::FailedPrecondition | Code::Aborted => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::Unavailable | Code::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// What to do where the service does not say it apart from its message.
fn default_next(code: Code) -> Option<&'static str> {
    match code {
        Code::Unauthenticated => Some("send the header authorization: Bearer TOKEN"),
        Code::ResourceExhausted => Some("repeat the request later, or ask for a higher limit"),
        Code::Unavailable => Some("repeat the request"),
        Code::DeadlineExceeded => Some("read whether it has happened, then repeat the request"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonic_types::ErrorDetails;

    fn ids() -> RequestIds {
        RequestIds {
            own: "req-1".to_owned(),
            global: None,
        }
    }

    #[test]
    fn a_refusal_by_rate_says_when_to_come_again() {
        let mut details = ErrorDetails::with_error_info("EB-ACCESS-005", "ebbtide.org", []);
        details.set_retry_info(Some(Duration::from_millis(1500)));
        let status = Status::with_error_details(Code::ResourceExhausted, "too often", details);
        let problem = Problem::of_status(&status, &ids());
        assert_eq!(problem.kind, "urn:ebbtide:error:EB-ACCESS-005");
        let answer = problem.answer("Bearer");
        assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(answer.headers()[header::RETRY_AFTER], "2");
        assert_eq!(answer.headers()[header::CONTENT_TYPE], MEDIA_TYPE);
    }

    #[test]
    fn a_status_without_a_code_of_ours_gets_one_that_says_so() {
        let problem = Problem::of_status(&Status::unimplemented(""), &ids());
        assert_eq!((problem.code.as_str(), problem.status), ("EB-GRPC-12", 501));
        assert!(!problem.detail.is_empty());
    }

    #[test]
    fn the_next_step_of_the_service_wins() {
        let next = [("next".to_owned(), "look there".to_owned())];
        let details = ErrorDetails::with_error_info("EB-SERVICE-001", "ebbtide.org", next);
        let status = Status::with_error_details(Code::Unavailable, "no", details);
        let problem = Problem::of_status(&status, &ids());
        assert_eq!(problem.next.as_deref(), Some("look there"));
    }
}

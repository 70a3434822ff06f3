//! One request and its answer.

use super::{Connection, Session};
use crate::error::{ConflictCode, OpenStackError, RequestEffect};
use crate::keystone::Token;
use crate::secret::Secret;
use crate::transport::{TransportRequest, TransportResponse};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Method, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;

/// How much of a service's words is repeated in an error.
const MAX_TEXT: usize = 500;

/// What is asked of a service.
#[derive(Debug, Clone)]
pub(crate) struct ServiceCall<'a> {
    pub(crate) service: &'a str,
    pub(crate) method: Method,
    /// Behind the endpoint, with its query.
    pub(crate) path: String,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Option<&'a Value>,
    /// The token that the call is about. What the service says is then in no error: Keystone
    /// quotes tokens that it does not know.
    pub(crate) subject: Option<&'a Secret>,
    pub(crate) timeout: Duration,
}

impl<'a> ServiceCall<'a> {
    pub(crate) fn new(service: &'a str, method: Method, path: impl Into<String>) -> Self {
        let (headers, body) = (Vec::new(), None);
        let timeout = Duration::from_secs(120);
        Self {
            service,
            method,
            path: path.into(),
            headers,
            body,
            subject: None,
            timeout,
        }
    }

    /// Method and path, for messages. A long query is cut.
    pub(crate) fn what(&self) -> String {
        let short: String = self.path.chars().take(160).collect();
        format!("{} {short}", self.method)
    }

    /// The same as a transport in the process gets it.
    fn sent(&self) -> TransportRequest<'_> {
        let version = self
            .headers
            .iter()
            .find(|(name, _)| *name == "openstack-api-version")
            .and_then(|(_, value)| value.rsplit(' ').next());
        TransportRequest {
            service: self.service,
            method: self.method.as_str(),
            path: &self.path,
            microversion: version,
            body: self.body,
        }
    }

    fn unavailable(&self, problem: impl Into<String>, effect: RequestEffect) -> OpenStackError {
        let (service, what) = (self.service.to_owned(), self.what());
        OpenStackError::Unavailable {
            service,
            what,
            problem: problem.into(),
            effect,
        }
    }
}

/// What the service answered.
#[derive(Debug)]
pub(crate) struct ServiceResponse {
    pub(crate) status: u16,
    pub(crate) body: Vec<u8>,
    pub(crate) subject_token: Option<Secret>,
    /// The service's own id of the request: what it logs, and what an instance action names.
    pub(crate) request_id: Option<String>,
}

impl From<TransportResponse> for ServiceResponse {
    fn from(received: TransportResponse) -> Self {
        let header = |wanted: &str| {
            let found = received.headers.iter().find(|(name, _)| name == wanted);
            found.map(|(_, value)| value.clone())
        };
        Self {
            status: received.status,
            subject_token: header("x-subject-token").map(Secret::new),
            request_id: header("x-openstack-request-id"),
            body: match received.body {
                Value::Null => Vec::new(),
                body => body.to_string().into_bytes(),
            },
        }
    }
}

impl ServiceResponse {
    /// Reads the body.
    pub(crate) fn json<T: DeserializeOwned>(
        &self,
        call: &ServiceCall<'_>,
    ) -> Result<T, OpenStackError> {
        serde_json::from_slice(&self.body).map_err(|error| match call.subject {
            None => self.bad(call, error.to_string()),
            Some(_) => self.bad(call, format!("line {}: no token", error.line())),
        })
    }

    pub(crate) fn bad(&self, call: &ServiceCall<'_>, problem: impl Into<String>) -> OpenStackError {
        let (service, what) = (call.service.to_owned(), call.what());
        OpenStackError::BadAnswer {
            service,
            what,
            // What is wrong may be quoted, and be as large as the answer.
            problem: shorten(&problem.into()),
        }
    }

    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// The code and the words of a failure, in whichever of OpenStack's forms they come.
    pub(crate) fn explanation(&self) -> (Option<String>, String) {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or(Value::Null);
        let text_of = |value: &Value| value.as_str().map(str::to_owned);
        // Placement: {"errors": [{"code", "detail"}]}. Nova and Keystone: {"conflictingRequest":
        // {"code": 409, "message"}}.
        let first = &body["errors"][0];
        let code = text_of(&first["code"]);
        let in_object = || {
            body.as_object()?
                .values()
                .find_map(|fault| text_of(&fault["message"]))
        };
        let text = text_of(&first["detail"]).or_else(in_object);
        let text = text.unwrap_or_else(|| String::from_utf8_lossy(&self.body).into_owned());
        (code, shorten(&text))
    }

    /// The error of a status that is no success.
    pub(crate) fn into_error(self, call: &ServiceCall<'_>) -> OpenStackError {
        let (service, what) = (call.service.to_owned(), call.what());
        let (code, text) = match call.subject {
            None => self.explanation(),
            Some(_) => (
                None,
                "(its words are left out, they may quote a token)".to_owned(),
            ),
        };
        match self.status {
            401 => OpenStackError::Unauthorized {
                service,
                problem: format!("{what} is answered with 401"),
            },
            403 => OpenStackError::Forbidden {
                service,
                what,
                text,
            },
            404 => OpenStackError::NotFound {
                service,
                what,
                text,
            },
            409 => OpenStackError::Conflict {
                service,
                what,
                code: ConflictCode::from_code(code.as_deref()),
                text,
            },
            // A proxy in front says 502 to 504 also when the service has done its work.
            status @ 500..=599 => {
                call.unavailable(format!("status {status}: {text}"), RequestEffect::Unknown)
            }
            status => OpenStackError::Refused {
                service,
                what,
                status,
                text,
            },
        }
    }
}

fn shorten(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words
        .join(" ")
        .chars()
        .filter(|c| !c.is_control())
        .take(MAX_TEXT)
        .collect()
}

impl Session {
    /// Sends one request once. Whatever status comes is an answer.
    pub(crate) async fn exchange(
        &self,
        url: &str,
        call: &ServiceCall<'_>,
        token: Option<&Token>,
    ) -> Result<ServiceResponse, OpenStackError> {
        let http = match &self.inner.way {
            Connection::Http(http) => http,
            Connection::InProcess(transport) => {
                let _permit = self.request_permit().await;
                let carried = transport.exchange(call.sent()).await;
                return carried
                    .map(ServiceResponse::from)
                    .map_err(|silence| call.unavailable(silence.problem, silence.effect));
            }
        };
        let url = Url::parse(url).map_err(|error| {
            OpenStackError::config(
                call.service,
                "endpoint",
                format!("{url:?} is no URL: {error}"),
            )
        })?;
        let mut request = http.request(call.method.clone(), url).timeout(call.timeout);
        request = request.header("Accept", "application/json");
        for (name, value) in &call.headers {
            // What cannot be a header (a request id from outside with strange bytes) is left out.
            if let Ok(value) = HeaderValue::from_str(value) {
                request = request.header(HeaderName::from_static(name), value);
            }
        }
        let secrets = [
            ("X-Auth-Token", token.map(|token| &token.id)),
            ("X-Subject-Token", call.subject),
        ];
        for (name, secret) in secrets {
            let Some(secret) = secret else { continue };
            let problem = "the token holds bytes that no header can";
            let mut value = HeaderValue::from_str(secret.reveal())
                .map_err(|_| OpenStackError::config(call.service, name, problem))?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        if let Some(body) = call.body {
            request = request.json(body);
        }
        // Held until the whole answer is here; the time limit begins with the request itself.
        let _permit = self.request_permit().await;
        let mut response = request.send().await.map_err(|error| failure(call, error))?;
        let status = response.status().as_u16();
        let subject_token = response
            .headers()
            .get("x-subject-token")
            .and_then(|value| value.to_str().ok())
            .map(Secret::new);
        let request_id = response
            .headers()
            .get("x-openstack-request-id")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let mut body = Vec::new();
        while let Some(chunk) = response
            .chunk()
            .await
            .map_err(|error| failure(call, error))?
        {
            if body.len() + chunk.len() > self.max_answer_bytes() {
                let (service, what) = (call.service.to_owned(), call.what());
                let problem = format!("it is larger than {} bytes", self.max_answer_bytes());
                return Err(OpenStackError::BadAnswer {
                    service,
                    what,
                    problem,
                });
            }
            body.extend_from_slice(&chunk);
        }
        Ok(ServiceResponse {
            status,
            body,
            subject_token,
            request_id,
        })
    }
}

fn failure(call: &ServiceCall<'_>, error: reqwest::Error) -> OpenStackError {
    // Nothing was sent while there was no connection.
    let effect = if error.is_connect() || error.is_builder() {
        RequestEffect::None
    } else {
        RequestEffect::Unknown
    };
    let kind = if error.is_timeout() {
        "no answer in time"
    } else {
        "the connection failed"
    };
    let error = error.without_url();
    let mut problem = format!("{kind}: {error}");
    let mut cause = std::error::Error::source(&error);
    while let Some(inner) = cause {
        problem = format!("{problem}: {inner}");
        cause = inner.source();
    }
    call.unavailable(problem, effect)
}

//! One service over a session: endpoint, microversion, renewal of a refused token, and trying a
//! failed connection again.

use crate::error::{OpenStackError, RequestEffect};
use crate::keystone;
use crate::options::AdapterOptions;
use crate::secret::Secret;
use crate::session::{ServiceCall, ServiceResponse, Session};
use crate::version::Microversion;
use ebbtide_runtime::ids;
use reqwest::Method;
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;

/// keystoneauth's first wait and longest wait between two tries.
const FIRST_DELAY: Duration = Duration::from_millis(500);
const LONGEST_DELAY: Duration = Duration::from_secs(60);
/// How long an answer may take if nothing is configured.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// A service. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Adapter {
    session: Session,
    options: Arc<AdapterOptions>,
    request_id: Option<Arc<str>>,
}

/// What to ask, before the service's address and the token are known.
#[derive(Debug, Clone)]
pub(crate) struct AdapterRequest<'a> {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) microversion: Option<Microversion>,
    pub(crate) body: Option<&'a Value>,
    /// Header `X-Subject-Token`: the token that the request is about.
    pub(crate) subject: Option<&'a Secret>,
    /// Further headers, names in lower case.
    pub(crate) headers: Vec<(&'static str, String)>,
}

impl<'a> AdapterRequest<'a> {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self {
            method,
            path: path.into(),
            microversion: None,
            body: None,
            subject: None,
            headers: Vec::new(),
        }
    }

    pub(crate) fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub(crate) fn at(mut self, version: Microversion) -> Self {
        self.microversion = Some(version);
        self
    }

    pub(crate) fn with(mut self, body: &'a Value) -> Self {
        self.body = Some(body);
        self
    }

    pub(crate) fn about(mut self, subject: &'a Secret) -> Self {
        self.subject = Some(subject);
        self
    }

    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl Adapter {
    /// A service of this session.
    #[must_use]
    pub fn new(session: Session, options: AdapterOptions) -> Self {
        Self {
            session,
            options: Arc::new(options),
            request_id: None,
        }
    }

    /// The same service; what it is asked carries this request id (`X-Openstack-Request-Id`), so
    /// that its log can be searched.
    #[must_use]
    pub fn for_request(&self, request_id: &str) -> Self {
        Self {
            request_id: Some(request_id.into()),
            ..self.clone()
        }
    }

    /// The session below.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    pub(crate) fn service(&self) -> &str {
        &self.options.service_type
    }

    /// Asks, and takes every status below 500 as an answer, but 401.
    pub(crate) async fn exchange<'s>(
        &'s self,
        ask: &AdapterRequest<'s>,
    ) -> Result<(ServiceResponse, ServiceCall<'s>), OpenStackError> {
        let mut call = ServiceCall::new(self.service(), ask.method.clone(), ask.path.clone());
        call.timeout = self.options.timeout.unwrap_or(DEFAULT_TIMEOUT);
        call.body = ask.body;
        call.subject = ask.subject;
        call.headers.clone_from(&ask.headers);
        if let Some(version) = ask.microversion {
            call.headers.push((
                "openstack-api-version",
                format!("{} {version}", self.service()),
            ));
            if self.service() == "compute" {
                // keystoneauth sends both; only old Novas look at this one.
                call.headers
                    .push(("x-openstack-nova-api-version", version.to_string()));
            }
        }
        if let Some(id) = &self.request_id {
            call.headers
                .push(("x-openstack-request-id", id.to_string()));
        }
        let answer = self.authorized(&call).await?;
        if answer.status == 401 || answer.status >= 500 {
            return Err(answer.into_error(&call));
        }
        Ok((answer, call))
    }

    /// Asks, and takes every status that is no success for an error.
    pub(crate) async fn call<'s>(
        &'s self,
        ask: &AdapterRequest<'s>,
    ) -> Result<(ServiceResponse, ServiceCall<'s>), OpenStackError> {
        let (answer, call) = self.exchange(ask).await?;
        if answer.is_success() {
            Ok((answer, call))
        } else {
            Err(answer.into_error(&call))
        }
    }

    /// Asks without a token: version discovery.
    pub(crate) async fn discover<'s>(
        &'s self,
        ask: &AdapterRequest<'s>,
    ) -> Result<(ServiceResponse, ServiceCall<'s>), OpenStackError> {
        let mut call = ServiceCall::new(self.service(), ask.method.clone(), ask.path.clone());
        call.timeout = self.options.timeout.unwrap_or(DEFAULT_TIMEOUT);
        let url = format!("{}{}", self.root().await?, call.path);
        let answer = self.patiently(&url, &call, None).await?;
        if answer.is_success() {
            Ok((answer, call))
        } else {
            Err(answer.into_error(&call))
        }
    }

    /// What paths are appended to. Keystone's endpoint may name a version (`/v3`), which the paths
    /// of [`crate::Identity`] name themselves.
    async fn root(&self) -> Result<String, OpenStackError> {
        let endpoint = self.session.endpoint(&self.options).await?;
        Ok(match self.service() {
            "identity" => keystone::root(&endpoint).to_owned(),
            _ => endpoint,
        })
    }

    /// With a token; a second time with a new one if the service does not know the first one (any
    /// more).
    async fn authorized(&self, call: &ServiceCall<'_>) -> Result<ServiceResponse, OpenStackError> {
        let mut renewed = false;
        loop {
            let token = self.session.token().await?;
            let url = format!("{}{}", self.root().await?, call.path);
            let answer = self.patiently(&url, call, token.as_deref()).await?;
            match token {
                Some(token) if answer.status == 401 && !renewed => {
                    self.session.forget(&token);
                    renewed = true;
                }
                _ => return Ok(answer),
            }
        }
    }

    /// A connection that fails is tried again as often as configured. What may have been done is
    /// repeated only if repeating changes nothing.
    async fn patiently(
        &self,
        url: &str,
        call: &ServiceCall<'_>,
        token: Option<&crate::keystone::Token>,
    ) -> Result<ServiceResponse, OpenStackError> {
        let mut delay = self.options.connect_retry_delay.unwrap_or(FIRST_DELAY);
        let mut left = self.options.connect_retries;
        loop {
            let error = match self.session.exchange(url, call, token).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let harmless = call.method == Method::GET || error.effect() == RequestEffect::None;
            if left == 0 || !harmless || !matches!(error, OpenStackError::Unavailable { .. }) {
                return Err(error);
            }
            left -= 1;
            tracing::debug!(service = self.service(), %error, "trying again");
            // Many of us must not come back at the same moment.
            tokio::time::sleep(delay.mul_f64(0.5 + ids::fraction() / 2.0)).await;
            delay = (delay * 2).min(LONGEST_DELAY);
        }
    }
}

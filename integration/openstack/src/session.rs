//! A session: the connections, the token, and the sending of one request with all that belongs to
//! it.

mod exchange;

pub(crate) use exchange::{ServiceCall, ServiceResponse};

use crate::error::{OpenStackError, RequestEffect};
use crate::keystone::{self, CatalogEndpoint, Token};
use crate::options::{AdapterOptions, AuthMethod, AuthOptions, SessionOptions, TlsOptions};
use crate::tls;
use crate::transport::Transport;
use ebbtide_runtime::login::{Login, Renewal};
use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// How long Keystone may take if nothing is configured.
const KEYSTONE_TIMEOUT: Duration = Duration::from_secs(60);

/// Who we are towards an OpenStack. Cheap to clone; all clones share connections and token.
#[derive(Clone)]
pub struct Session {
    inner: Arc<Inner>,
}

struct Inner {
    way: Connection,
    // A reload replaces it; each token is got with what is here then.
    auth: Login<Arc<AuthOptions>>,
    options: SessionOptions,
    token: RwLock<Option<Arc<Token>>>,
    // Held by the one who gets a token, so that a hundred requests with an old token cause one
    // question to Keystone.
    renewing: tokio::sync::Mutex<()>,
    // One permit for each request that may be under way.
    permits: tokio::sync::Semaphore,
}

/// How requests reach a service.
enum Connection {
    Http(reqwest::Client),
    InProcess(Arc<dyn Transport>),
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("auth_url", &self.auth().auth_url)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// A session; nothing is sent yet.
    ///
    /// # Errors
    /// [`OpenStackError::Config`] if certificates cannot be read.
    pub fn new(auth: AuthOptions, options: SessionOptions) -> Result<Self, OpenStackError> {
        let way = Connection::Http(tls::client(&auth.tls, &options)?);
        Ok(Self::over_way(way, auth, options))
    }

    /// A session whose requests go to `transport` instead of over HTTP, without credentials.
    #[must_use]
    pub fn in_process(transport: Arc<dyn Transport>) -> Self {
        let auth = AuthOptions {
            auth_url: None,
            method: AuthMethod::None,
            endpoint: Some("http://in-process".to_owned()),
            tls: TlsOptions::default(),
            timeout: None,
        };
        Self::over_way(
            Connection::InProcess(transport),
            auth,
            SessionOptions::new("in-process"),
        )
    }

    fn over_way(way: Connection, auth: AuthOptions, options: SessionOptions) -> Self {
        let token = match &auth.method {
            AuthMethod::AdminToken { token } => Some(Arc::new(Token::fixed(token.clone()))),
            _ => None,
        };
        let (token, renewing) = (RwLock::new(token), tokio::sync::Mutex::new(()));
        let permits = tokio::sync::Semaphore::new(options.max_in_flight.max(1));
        Self {
            inner: Arc::new(Inner {
                way,
                auth: Login::new(Arc::new(auth)),
                options,
                token,
                renewing,
                permits,
            }),
        }
    }

    /// Gets a token now, unless there is a good one: to find wrong credentials at start.
    ///
    /// # Errors
    /// [`OpenStackError::Unauthorized`], [`OpenStackError::Unavailable`] and the like.
    pub async fn authenticate(&self) -> Result<(), OpenStackError> {
        self.token().await.map(drop)
    }

    /// The project of the token, if it has one.
    ///
    /// # Errors
    /// As [`authenticate`](Self::authenticate).
    pub async fn project_id(&self) -> Result<Option<String>, OpenStackError> {
        Ok(self
            .token()
            .await?
            .and_then(|token| token.project_id.clone()))
    }

    /// The user of the token.
    ///
    /// # Errors
    /// As [`authenticate`](Self::authenticate).
    pub async fn user_id(&self) -> Result<Option<String>, OpenStackError> {
        Ok(self.token().await?.and_then(|token| token.user_id.clone()))
    }

    /// The token, for calls that are not made over this session; `None` if none is to be sent.
    ///
    /// # Errors
    /// As [`authenticate`](Self::authenticate).
    pub async fn auth_token(&self) -> Result<Option<crate::Secret>, OpenStackError> {
        Ok(self.token().await?.map(|token| token.id.clone()))
    }

    /// Drops a token that a service did not accept; the next one is new. A token that has been
    /// replaced already is left alone.
    pub fn drop_token(&self, refused: &crate::Secret) {
        if let Some(held) = self.held().filter(|held| held.id == *refused) {
            self.forget(&held);
        }
    }

    /// A service's endpoint as the catalog of our own token has it, with its ids.
    ///
    /// # Errors
    /// [`OpenStackError::NoEndpoint`], and those of getting a token.
    pub async fn catalog_endpoint(
        &self,
        wanted: &AdapterOptions,
    ) -> Result<CatalogEndpoint, OpenStackError> {
        let token = self.token().await?;
        if let Some(found) = token.as_ref().and_then(|t| t.catalog.endpoint(wanted)) {
            return Ok(found);
        }
        if let Some(token) = token {
            // The endpoint may have been registered since; the next one to ask gets a new catalog.
            self.forget(&token);
        }
        Err(no_endpoint(wanted))
    }

    /// Where a service is, without a slash at the end.
    ///
    /// # Errors
    /// [`OpenStackError::NoEndpoint`], and those of getting a token.
    pub async fn endpoint(&self, wanted: &AdapterOptions) -> Result<String, OpenStackError> {
        let auth = self.auth();
        if let Some(url) = wanted.endpoint_override.as_ref().or(auth.endpoint.as_ref()) {
            return Ok(url.trim().trim_end_matches('/').to_owned());
        }
        Ok(self.catalog_endpoint(wanted).await?.url)
    }

    fn held(&self) -> Option<Arc<Token>> {
        self.inner
            .token
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    fn hold(&self, token: Option<Arc<Token>>) {
        *self
            .inner
            .token
            .write()
            .unwrap_or_else(PoisonError::into_inner) = token;
    }

    /// The token to send; `None` if none is to be sent.
    pub(crate) async fn token(&self) -> Result<Option<Arc<Token>>, OpenStackError> {
        if keystone::request_body(&self.auth().method).is_none() {
            return Ok(self.held());
        }
        let fresh = |token: &Arc<Token>| token.is_fresh();
        if let Some(token) = self.held().filter(fresh) {
            return Ok(Some(token));
        }
        let _one_at_a_time = self.inner.renewing.lock().await;
        if let Some(token) = self.held().filter(fresh) {
            return Ok(Some(token));
        }
        match self.get_token(&self.auth()).await {
            Ok(token) => {
                let token = Arc::new(token);
                self.hold(Some(Arc::clone(&token)));
                Ok(Some(token))
            }
            Err(error) => match self.held().filter(|token| token.is_valid()) {
                // Keystone is away for the moment, and the old token still has some seconds.
                Some(token) if error.is_passing() => Ok(Some(token)),
                _ => Err(error),
            },
        }
    }

    /// Drops a token that a service did not accept, unless another request has already replaced it.
    pub(crate) fn forget(&self, refused: &Arc<Token>) {
        let mut token = self
            .inner
            .token
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        let renewable = keystone::request_body(&self.auth().method).is_some();
        if renewable
            && token
                .as_ref()
                .is_some_and(|held| Arc::ptr_eq(held, refused))
        {
            *token = None;
        }
    }

    fn auth(&self) -> Arc<AuthOptions> {
        self.inner.auth.current()
    }

    /// Tests new credentials by getting a token with them, and uses them and that token from now
    /// on. Changing a password ends all tokens of its user, so there is no use for the old token.
    ///
    /// # Errors
    /// [`OpenStackError::Unauthorized`] and others that do not pass: the old credentials stay.
    pub async fn renew_login(&self, auth: AuthOptions) -> Result<Renewal, OpenStackError> {
        let old = self.auth();
        if *old == auth {
            return Ok(Renewal::Unchanged);
        }
        if old.tls != auth.tls {
            return Ok(Renewal::NextStart("the options of TLS"));
        }
        let mut renewal = Renewal::Accepted;
        let token = match &auth.method {
            AuthMethod::None => None,
            AuthMethod::AdminToken { token } => Some(Token::fixed(token.clone())),
            _ => match self.get_token(&auth).await {
                Ok(token) => Some(token),
                Err(error) if error.is_passing() => {
                    renewal = Renewal::Untested(error.to_string());
                    None
                }
                Err(error) => return Err(error),
            },
        };
        // A request that gets a token meanwhile may have begun with the old credentials.
        let _one_at_a_time = self.inner.renewing.lock().await;
        self.inner.auth.replace(Arc::new(auth));
        if let Some(token) = token {
            self.hold(Some(Arc::new(token)));
        }
        Ok(renewal)
    }

    async fn get_token(&self, auth: &AuthOptions) -> Result<Token, OpenStackError> {
        let auth_url = auth.auth_url.as_deref().unwrap_or_default();
        let url = keystone::tokens_url(auth_url);
        let body = keystone::request_body(&auth.method);
        let mut call = ServiceCall::new("keystone", reqwest::Method::POST, "/v3/auth/tokens");
        call.body = body.as_ref();
        call.timeout = auth.timeout.unwrap_or(KEYSTONE_TIMEOUT);
        let answer = self.exchange(&url, &call, None).await?;
        match answer.status {
            200 | 201 => {
                let bad = |problem| OpenStackError::BadAnswer {
                    service: "keystone".to_owned(),
                    what: call.what(),
                    problem,
                };
                Token::from_answer(
                    answer.subject_token.as_ref().map(crate::Secret::reveal),
                    &answer.body,
                )
                .map_err(bad)
            }
            401 => Err(OpenStackError::Unauthorized {
                service: "keystone".to_owned(),
                problem: format!(
                    "{auth_url} answers 401 to auth_type {}",
                    method_name(&auth.method)
                ),
            }),
            // Asking for a token twice does no harm.
            _ => Err(match answer.into_error(&call) {
                OpenStackError::Unavailable {
                    service,
                    what,
                    problem,
                    ..
                } => OpenStackError::Unavailable {
                    service,
                    what,
                    problem,
                    effect: RequestEffect::None,
                },
                other => other,
            }),
        }
    }

    /// Waits until a request may be sent. Never returns `None`, because the semaphore is never
    /// closed.
    pub(crate) async fn request_permit(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        self.inner.permits.acquire().await.ok()
    }

    pub(crate) fn max_answer_bytes(&self) -> usize {
        self.inner.options.max_answer_bytes
    }
}

fn no_endpoint(wanted: &AdapterOptions) -> OpenStackError {
    OpenStackError::NoEndpoint {
        service: wanted.service_type.clone(),
        interfaces: wanted.valid_interfaces.join(", "),
        region: wanted
            .region_name
            .clone()
            .unwrap_or_else(|| "any".to_owned()),
    }
}

fn method_name(method: &AuthMethod) -> &'static str {
    match method {
        AuthMethod::Password { .. } => "password",
        AuthMethod::ApplicationCredential { .. } => "v3applicationcredential",
        AuthMethod::Token { .. } => "token",
        AuthMethod::AdminToken { .. } => "admin_token",
        AuthMethod::None => "none",
    }
}

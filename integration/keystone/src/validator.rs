//! Tokens of requests, validated at Keystone and remembered.

use crate::admission::{self, ApiRequest, TokenRules};
use crate::cache::AnswerCache;
use crate::error::{KeystoneError, Meaning};
use crate::options::AuthTokenOptions;
use crate::policy::{CachePolicy, Clock, SystemClock};
use crate::token::ValidatedToken;
use ebbtide_openstack::{Identity, OpenStackError, Secret, Session, SessionOptions};
use ebbtide_runtime::ids;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// A request whose caller is known.
#[derive(Debug, Clone)]
pub struct Authentication {
    /// The user's token.
    pub token: Arc<ValidatedToken>,
    /// The token of the service that asks on the user's behalf.
    pub service: Option<Arc<ValidatedToken>>,
}

/// Validates tokens. Cheap to clone; all clones share the cache and the session.
#[derive(Clone)]
pub struct TokenValidator {
    inner: Arc<Inner>,
}

struct Inner {
    identity: Identity,
    rules: TokenRules,
    with_catalog: bool,
    challenge: String,
    cache: AnswerCache<Key, Arc<ValidatedToken>>,
    /// Of this process alone, so that a key says nothing outside of it.
    salt: [u8; 32],
}

/// A salted hash of a token and of how it was asked about.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key([u8; 32]);

impl fmt::Debug for TokenValidator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TokenValidator")
            .field("rules", &self.inner.rules)
            .field("cache", &self.inner.cache)
            .finish_non_exhaustive()
    }
}

impl TokenValidator {
    /// A validator with the clocks of the machine; nothing is sent yet.
    ///
    /// # Errors
    /// [`KeystoneError::Config`] if certificates cannot be read.
    pub fn new(options: AuthTokenOptions) -> Result<Self, KeystoneError> {
        let policy = CachePolicy::new(options.token_cache_time);
        Self::with_policy(options, policy, Arc::new(SystemClock))
    }

    /// With other cache times and another clock.
    ///
    /// # Errors
    /// As [`TokenValidator::new`].
    pub fn with_policy(
        options: AuthTokenOptions,
        policy: CachePolicy,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, KeystoneError> {
        let challenge = options.challenge();
        let session = Session::new(options.auth, SessionOptions::new("ebbtide"))?;
        Ok(Self {
            inner: Arc::new(Inner {
                identity: Identity::new(session, options.identity),
                rules: options.rules,
                with_catalog: options.include_service_catalog,
                challenge,
                cache: AnswerCache::new(policy, clock),
                salt: ids::secret(),
            }),
        })
    }

    /// The session with our own credentials.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.inner.identity.session()
    }

    /// Gets a token of our own now, to find wrong credentials at start.
    ///
    /// # Errors
    /// [`KeystoneError::OwnCredentials`], [`KeystoneError::Unavailable`].
    pub async fn check(&self) -> Result<(), KeystoneError> {
        Ok(self.inner.identity.session().authenticate().await?)
    }

    /// The value of `WWW-Authenticate` for answers with 401.
    #[must_use]
    pub fn challenge(&self) -> &str {
        &self.inner.challenge
    }

    /// Who makes a request.
    ///
    /// # Errors
    /// Why it is not to be served, see [`KeystoneError::meaning`].
    pub async fn authenticate(
        &self,
        request: &ApiRequest<'_>,
    ) -> Result<Authentication, KeystoneError> {
        let rules = &self.inner.rules;
        let service = match request.service_token {
            None => None,
            Some(token) => Some(self.service(token).await?),
        };
        let by_service = service.as_deref().is_some_and(|s| rules.is_service(s));
        let token = admission::readable(request.token)?;
        let token = self.lookup(token, by_service).await?;
        let now = self.inner.cache.now().wall;
        rules.admit(request, &token, service.as_deref(), now)?;
        Ok(Authentication { token, service })
    }

    async fn service(&self, token: &str) -> Result<Arc<ValidatedToken>, KeystoneError> {
        let validated = async {
            let token = self
                .lookup(admission::readable(Some(token))?, false)
                .await?;
            admission::unexpired(&token, self.inner.cache.now().wall)?;
            self.inner.rules.admit_service(&token)?;
            Ok(token)
        };
        validated.await.map_err(|error| match error {
            KeystoneError::ServiceToken(_) => error,
            other if other.meaning() == Meaning::Unavailable => other,
            other => KeystoneError::ServiceToken(other.to_string()),
        })
    }

    /// What Keystone knows of a token, from the cache or anew. An expired token is never cached.
    async fn lookup(
        &self,
        token: &str,
        allow_expired: bool,
    ) -> Result<Arc<ValidatedToken>, KeystoneError> {
        let inner = &self.inner;
        let question = inner.ask(token, allow_expired);
        let end = |token: &Arc<ValidatedToken>| Some(token.expires_at);
        let found = inner
            .cache
            .get(inner.key(token, allow_expired), question, end);
        found.await
    }
}

impl Inner {
    fn key(&self, token: &str, allow_expired: bool) -> Key {
        let mut hash = Sha256::new();
        hash.update(self.salt);
        hash.update([u8::from(allow_expired)]);
        hash.update(token);
        Key(hash.finalize().into())
    }

    async fn ask(
        &self,
        token: &str,
        allow_expired: bool,
    ) -> Result<Arc<ValidatedToken>, KeystoneError> {
        let subject = Secret::new(token);
        let answer = self
            .identity
            .token(&subject, allow_expired, self.with_catalog);
        let answer = answer.await.map_err(|error| match error {
            OpenStackError::NotFound { .. } => KeystoneError::Invalid,
            other => other.into(),
        })?;
        let own = self.rules.service_type.as_deref();
        let kept = [Some(crate::limits::SERVICE_TYPE), own];
        let kept: Vec<&str> = kept.into_iter().flatten().collect();
        ValidatedToken::from_answer(answer, &kept).map(Arc::new)
    }
}

//! Authentication, authorization and rate limits, checked before the body of a request is read.
//!
//! The gate knows the caller and the method. Which objects a request names is in its body;
//! `grpc::guard` checks that.

mod credentials;
mod keystone;
mod layer;
mod watchers;

pub(crate) use credentials::{Credentials, NoBearer};
pub(crate) use keystone::KeystoneGate;
pub(crate) use layer::GateLayer;
pub(crate) use watchers::{WatchSlot, WatcherCounts};

use crate::Tasks;
use crate::config::{Auth, CallerLimits, Config, Quota, Quotas};
use crate::error::ServiceError;
use crate::metrics::Refusals;
use crate::wire::{Peer, Stamp};
use ebbtide_access::{
    AccessError, AccessRequirement, AccessRule, Buckets, Caller, TokenFile, certificate,
};
use ebbtide_keystone::Meaning;
use ebbtide_model::request::MAX_INSTANCES;
use ebbtide_runtime::clock::{self, Stopwatch};
use ebbtide_runtime::task::pause;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

/// The challenge of a region with tokens of its own.
const OWN_CHALLENGE: &str = "Bearer realm=\"ebbtide\"";
/// How often the token file is checked for changes.
const LOOK: Duration = Duration::from_millis(200);

/// The gate of a service. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Gate {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    auth: Auth,
    /// On an OpenStack: tokens are Keystone's, and no other proof counts.
    keystone: Option<KeystoneGate>,
    limits: CallerLimits,
    quotas: Quotas,
    tokens: RwLock<Arc<TokenFile>>,
    /// The token file's state when the service started.
    read_at: Stamp,
    buckets: Mutex<Buckets>,
    watching: WatcherCounts,
    clock: Stopwatch,
    refusals: Refusals,
}

impl Inner {
    fn read_tokens_again(&self, path: &Path) {
        match TokenFile::read(path) {
            Ok(new) => {
                let tokens = new.rows().count();
                tracing::info!(tokens, "the token file was read again");
                *self.tokens.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
            }
            Err(error) => tracing::error!(
                code = error.code(),
                "the token file cannot be used, the tokens read before stay valid: {error}"
            ),
        }
    }
}

impl Gate {
    /// Opens the gate and reads the token file, if there is one.
    ///
    /// # Errors
    /// [`ServiceError::Access`] if it cannot be used.
    pub(crate) fn open(config: &Config, refusals: Refusals) -> Result<Self, ServiceError> {
        // Taken before the file is read: the first check then detects a change in between.
        let read_at = Stamp::of(config.auth.tokens.as_slice());
        let tokens = match &config.auth.tokens {
            Some(path) => TokenFile::read(path)?,
            None => TokenFile::default(),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                auth: config.auth.clone(),
                keystone: None,
                limits: config.limits.clone(),
                quotas: config.quotas.clone(),
                tokens: RwLock::new(Arc::new(tokens)),
                read_at,
                buckets: Mutex::default(),
                watching: WatcherCounts::default(),
                clock: Stopwatch::start(),
                refusals,
            }),
        })
    }

    /// The gate of an OpenStack.
    pub(crate) fn of_keystone(
        keystone: KeystoneGate,
        limits: CallerLimits,
        refusals: Refusals,
    ) -> Self {
        Self {
            inner: Arc::new(Inner {
                auth: Auth::default(),
                keystone: Some(keystone),
                limits,
                quotas: Quotas::default(),
                tokens: RwLock::default(),
                read_at: Stamp::of(&[]),
                buckets: Mutex::default(),
                watching: WatcherCounts::default(),
                clock: Stopwatch::start(),
                refusals,
            }),
        }
    }

    /// The value of `www-authenticate` for callers that are not known.
    pub(crate) fn challenge(&self) -> &str {
        let keystone = self.inner.keystone.as_ref();
        keystone.map_or(OWN_CHALLENGE, KeystoneGate::challenge)
    }

    /// Reads the token file, or the policy file of an OpenStack, again whenever it changes. A file
    /// that cannot be used is logged and changes nothing.
    pub(crate) fn follow(&self, tasks: &Tasks) {
        let own = self.inner.auth.tokens.clone();
        let own = own.map(|path| (path, self.inner.read_at.clone()));
        let policy = self.inner.keystone.as_ref().and_then(KeystoneGate::file);
        let Some((path, mut seen)) = own.or(policy) else {
            return;
        };
        let (inner, stop) = (Arc::clone(&self.inner), tasks.stop().clone());
        tasks.spawn("access-file", async move {
            while pause(&stop, LOOK).await {
                let now = Stamp::of(std::slice::from_ref(&path));
                if now == seen {
                    continue;
                }
                seen = now;
                match &inner.keystone {
                    Some(keystone) => keystone.read_again(),
                    None => inner.read_tokens_again(&path),
                }
            }
        });
    }

    /// The caller, from its token or its certificate, if it may make this call now.
    pub(crate) async fn admit(
        &self,
        rule: &AccessRule,
        credentials: &Credentials,
        peer: Option<&Peer>,
    ) -> Result<Caller, ServiceError> {
        let caller = match &self.inner.keystone {
            Some(keystone) => keystone.admit(rule, credentials).await?,
            None => {
                let caller = self.identify(credentials, peer)?;
                rule.permit(&caller)?;
                caller
            }
        };
        self.count(&caller)?;
        Ok(caller)
    }

    fn identify(
        &self,
        credentials: &Credentials,
        peer: Option<&Peer>,
    ) -> Result<Caller, AccessError> {
        let auth = &self.inner.auth;
        if !auth.is_configured() {
            return Ok(Caller::unauthenticated());
        }
        if let Some(token) = credentials.bearer() {
            let token = token.map_err(|NoBearer| AccessError::BadToken)?;
            let tokens = {
                let tokens = self
                    .inner
                    .tokens
                    .read()
                    .unwrap_or_else(PoisonError::into_inner);
                Arc::clone(&tokens)
            };
            return tokens.caller(token, clock::now());
        }
        match peer.and_then(|peer| peer.names.as_deref()) {
            Some(names) if auth.uses_certificates() => {
                certificate::caller(names, &auth.certificates, auth.roles_in_certificates)
            }
            _ => Err(AccessError::Unauthenticated),
        }
    }

    /// Counts one request against the caller's rate limit.
    fn count(&self, caller: &Caller) -> Result<(), AccessError> {
        if !caller.authenticated {
            // Without authentication the account name is unverified, so no per-account limit
            // applies.
            return Ok(());
        }
        let allowance = self.inner.limits.allowance(caller.is_tenant());
        let mut buckets = self
            .inner
            .buckets
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        buckets
            .take(&caller.account(), allowance, self.inner.clock.elapsed())
            .map_err(|wait| AccessError::TooOften {
                caller: caller.to_string(),
                wait,
            })
    }

    /// Counts the instances of a request against the rate limit, beyond the request itself.
    pub(crate) fn charge(&self, caller: &Caller, instances: usize) -> Result<(), AccessError> {
        // A request with more instances is refused later and must not cost more than the largest
        // allowed one.
        let more = instances.min(MAX_INSTANCES).saturating_sub(1) as u32;
        if !caller.authenticated || more == 0 {
            return Ok(());
        }
        let allowance = self.inner.limits.allowance(caller.is_tenant());
        let now = self.inner.clock.elapsed();
        let mut buckets = self
            .inner
            .buckets
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let taken = buckets.take_more(&caller.account(), allowance, now, more);
        drop(buckets);
        taken.map_err(|wait| {
            self.refused("rate");
            AccessError::TooOften {
                caller: caller.to_string(),
                wait,
            }
        })
    }

    /// The quota of a project for this caller; `None` for no quota.
    pub(crate) fn quota(&self, caller: &Caller, project: &str) -> Option<Quota> {
        (caller.authenticated && caller.is_tenant()).then(|| self.inner.quotas.of(project))
    }

    /// Counts one more event stream of this caller, or refuses it.
    pub(crate) fn watch(&self, caller: &Caller) -> Result<WatchSlot, AccessError> {
        let limits = &self.inner.limits;
        let most = match (caller.authenticated, caller.is_tenant()) {
            (false, _) => u32::MAX,
            (true, true) => limits.tenant_watchers,
            (true, false) => limits.watchers,
        };
        self.inner
            .watching
            .take(caller.account(), most)
            .ok_or_else(|| {
                self.refused("watchers");
                AccessError::TooManyWatchers {
                    caller: caller.to_string(),
                    most,
                }
            })
    }

    /// Checks whether the caller may read the metrics.
    pub(crate) async fn metrics_for(
        &self,
        credentials: &Credentials,
        peer: &Peer,
    ) -> Result<(), ServiceError> {
        const METRICS: AccessRule = AccessRule {
            method: "/metrics",
            need: AccessRequirement::SeeAll,
            waits: false,
        };
        if self.inner.auth.open_metrics {
            return Ok(());
        }
        self.admit(&METRICS, credentials, Some(peer)).await?;
        if let Some(session) = &peer.session {
            session.authenticated();
        }
        Ok(())
    }

    pub(crate) fn limits(&self) -> &CallerLimits {
        &self.inner.limits
    }

    pub(crate) fn refused(&self, why: &'static str) {
        self.inner.refusals.refused(why);
    }
}

/// The name under which the metrics count a refusal.
pub(crate) fn counted_as(error: &ServiceError) -> &'static str {
    let error = match error {
        ServiceError::Access(error) => error,
        ServiceError::Keystone(error) => {
            return match error.meaning() {
                Meaning::Unauthenticated => "unauthenticated",
                Meaning::Forbidden => "permission",
                Meaning::Unavailable => "keystone",
            };
        }
        _ => return "permission",
    };
    match error {
        AccessError::Unauthenticated | AccessError::BadToken | AccessError::NoRole { .. } => {
            "unauthenticated"
        }
        AccessError::TooOften { .. } => "rate",
        AccessError::TooManyWatchers { .. } => "watchers",
        _ => "permission",
    }
}

//! Authentication, authorization and rate limits, checked before the body of a request is read.
//!
//! The gate knows the caller and the method. Which objects a request names is in its body;
//! `grpc::guard` checks that.

mod layer;
mod watchers;

pub(crate) use layer::GateLayer;
pub(crate) use watchers::{WatchSeat, Watching};

use crate::Tasks;
use crate::config::{Auth, CallerLimits, Config, Quota, Quotas};
use crate::error::ServiceError;
use crate::metrics::Metrics;
use crate::wire::{Peer, Stamp};
use ebbtide_access::{
    AccessError, AccessRequirement, AccessRule, Buckets, Caller, TokenFile, certificate,
};
use ebbtide_model::request::MAX_INSTANCES;
use ebbtide_runtime::clock::{self, Stopwatch};
use ebbtide_runtime::task::pause;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

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
    limits: CallerLimits,
    quotas: Quotas,
    tokens: RwLock<Arc<TokenFile>>,
    /// The token file's state when the service started.
    read_at: Stamp,
    buckets: Mutex<Buckets>,
    watching: Watching,
    clock: Stopwatch,
    metrics: Metrics,
}

impl Gate {
    /// Opens the gate and reads the token file, if there is one.
    ///
    /// # Errors
    /// [`ServiceError::Access`] if it cannot be used.
    pub(crate) fn open(config: &Config, metrics: Metrics) -> Result<Self, ServiceError> {
        // Taken before the file is read: the first check then detects a change in between.
        let read_at = Stamp::of(config.auth.tokens.as_slice());
        let tokens = match &config.auth.tokens {
            Some(path) => TokenFile::read(path)?,
            None => TokenFile::default(),
        };
        Ok(Self {
            inner: Arc::new(Inner {
                auth: config.auth.clone(),
                limits: config.limits.clone(),
                quotas: config.quotas.clone(),
                tokens: RwLock::new(Arc::new(tokens)),
                read_at,
                buckets: Mutex::default(),
                watching: Watching::default(),
                clock: Stopwatch::start(),
                metrics,
            }),
        })
    }

    /// Reads the token file again whenever it changes. A file that cannot be used is logged and
    /// changes nothing.
    pub(crate) fn follow(&self, tasks: &Tasks) {
        let Some(path) = self.inner.auth.tokens.clone() else {
            return;
        };
        let (inner, stop) = (Arc::clone(&self.inner), tasks.stop().clone());
        let paths = vec![path.clone()];
        let mut seen = inner.read_at.clone();
        tasks.spawn("token-file", async move {
            while pause(&stop, LOOK).await {
                let now = Stamp::of(&paths);
                if now == seen {
                    continue;
                }
                seen = now;
                match TokenFile::read(&path) {
                    Ok(new) => {
                        tracing::info!(
                            tokens = new.rows().count(),
                            "the token file was read again"
                        );
                        *inner.tokens.write().unwrap_or_else(PoisonError::into_inner) =
                            Arc::new(new);
                    }
                    Err(error) => tracing::error!(
                        code = error.code(),
                        "the token file cannot be used, the tokens read before stay valid: {error}"
                    ),
                }
            }
        });
    }

    /// The caller, from the header `authorization` or the certificate.
    pub(crate) fn identify(
        &self,
        authorization: Option<&[u8]>,
        peer: Option<&Peer>,
    ) -> Result<Caller, AccessError> {
        let auth = &self.inner.auth;
        if !auth.is_configured() {
            return Ok(Caller::anybody());
        }
        if let Some(header) = authorization {
            let text = std::str::from_utf8(header).map_err(|_| AccessError::BadToken)?;
            let token = match text.split_once(' ') {
                Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
                _ => return Err(AccessError::BadToken),
            };
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

    /// Checks whether this caller may make this call now.
    pub(crate) fn permit(&self, rule: &AccessRule, caller: &Caller) -> Result<(), AccessError> {
        rule.permit(caller)?;
        self.count(caller)
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
    pub(crate) fn watch(&self, caller: &Caller) -> Result<WatchSeat, AccessError> {
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
    pub(crate) fn metrics_for(
        &self,
        authorization: Option<&[u8]>,
        peer: &Peer,
    ) -> Result<(), AccessError> {
        const METRICS: AccessRule = AccessRule {
            method: "/metrics",
            need: AccessRequirement::SeeAll,
            waits: false,
        };
        if self.inner.auth.open_metrics {
            return Ok(());
        }
        let caller = self.identify(authorization, Some(peer))?;
        self.permit(&METRICS, &caller)?;
        if let Some(session) = &peer.session {
            session.authenticated();
        }
        Ok(())
    }

    pub(crate) fn limits(&self) -> &CallerLimits {
        &self.inner.limits
    }

    pub(crate) fn refused(&self, why: &str) {
        self.inner.metrics.refused(why);
    }
}

/// The name under which the metrics count a refusal.
pub(crate) fn counted_as(error: &AccessError) -> &'static str {
    match error {
        AccessError::Unauthenticated | AccessError::BadToken | AccessError::NoRole { .. } => {
            "unauthenticated"
        }
        AccessError::TooOften { .. } => "rate",
        AccessError::TooManyWatchers { .. } => "watchers",
        _ => "permission",
    }
}

//! Limits, read from Keystone and remembered.

use super::effective::{EnforcementModel, LimitRow, ProjectLimits, RegisteredLimits};
use super::{RESOURCES, SERVICE_TYPE};
use crate::cache::AnswerCache;
use crate::error::KeystoneError;
use crate::options::{self, AuthTokenOptions};
use crate::policy::{CachePolicy, Clock, SystemClock};
use ebbtide_openstack::{
    AdapterOptions, AuthMethod, AuthOptions, Identity, OpenStackError, Session, SessionOptions,
    TokenScope,
};
use oslo_config::Config;
use std::fmt;
use std::sync::Arc;

/// The section of nova.conf that Nova reads its own limits with.
const SECTION: &str = "oslo_limit";

/// How limits are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitOptions {
    /// Credentials with a role on the whole system: to others, Keystone answers with an empty list
    /// instead of the limits of a project.
    pub auth: AuthOptions,
    /// Where Keystone is in the catalog.
    pub identity: AdapterOptions,
    pub region_name: Option<String>,
    /// Cache times, those of tokens.
    pub policy: CachePolicy,
}

impl LimitOptions {
    /// The credentials of `[oslo_limit]`, as oslo.limit reads them, or else those of
    /// `[keystone_authtoken]` for the whole system. `endpoint_id` is not used, as it is Nova's.
    ///
    /// # Errors
    /// [`KeystoneError::Config`], also if the credentials are not for the whole system.
    pub fn read(config: &Config, tokens: &AuthTokenOptions) -> Result<Self, KeystoneError> {
        let given = options::section(config, SECTION)?;
        let lookup = |name: &str| given.get(name).cloned();
        let region_name = lookup("region_name").or_else(|| tokens.identity.region_name.clone());
        let auth = match lookup("auth_url") {
            None => options::for_the_system(&tokens.auth)?,
            Some(_) => {
                let auth = AuthOptions::from_lookup(&format!("[{SECTION}]"), lookup);
                for_the_system(auth.map_err(options::unbracketed)?)?
            }
        };
        Ok(Self {
            auth,
            identity: tokens.identity.clone(),
            region_name: region_name.filter(|name| !name.trim().is_empty()),
            policy: CachePolicy::new(tokens.token_cache_time),
        })
    }
}

fn for_the_system(auth: AuthOptions) -> Result<AuthOptions, KeystoneError> {
    match &auth.method {
        AuthMethod::Password {
            scope: TokenScope::System,
            ..
        } => Ok(auth),
        _ => Err(KeystoneError::config(
            SECTION,
            "system_scope",
            "it must be all, with auth_type = password: Keystone shows the limits of all projects \
             to tokens for the system only",
        )),
    }
}

/// Reads limits. Cheap to clone; all clones share the cache and the session.
#[derive(Clone)]
pub struct LimitReader {
    inner: Arc<Inner>,
}

struct Inner {
    identity: Identity,
    service: AdapterOptions,
    registered: AnswerCache<(), Arc<RegisteredLimits>>,
    projects: AnswerCache<String, Arc<ProjectLimits>>,
}

impl fmt::Debug for LimitReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitReader").finish_non_exhaustive()
    }
}

impl LimitReader {
    /// A reader with the clocks of the machine; nothing is sent yet.
    ///
    /// # Errors
    /// [`KeystoneError::Config`] if certificates cannot be read.
    pub fn new(options: LimitOptions) -> Result<Self, KeystoneError> {
        Self::with_clock(options, Arc::new(SystemClock))
    }

    /// With another clock.
    ///
    /// # Errors
    /// As [`LimitReader::new`].
    pub fn with_clock(options: LimitOptions, clock: Arc<dyn Clock>) -> Result<Self, KeystoneError> {
        let session = Session::new(options.auth, SessionOptions::new("ebbtide"))?;
        let mut service = AdapterOptions::new(SERVICE_TYPE);
        service.valid_interfaces.push("admin".to_owned());
        service.region_name = options.region_name;
        let policy = options.policy;
        Ok(Self {
            inner: Arc::new(Inner {
                identity: Identity::new(session, options.identity),
                service,
                registered: AnswerCache::new(policy, Arc::clone(&clock)),
                projects: AnswerCache::new(policy, clock),
            }),
        })
    }

    /// The session with our own credentials.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.inner.identity.session()
    }

    /// The limits of a project. Its domain is asked for if it is not given and counts.
    ///
    /// # Errors
    /// [`KeystoneError::ServiceUnknown`] if `preemption` is not in the catalog;
    /// [`KeystoneError::ProjectUnknown`]; [`KeystoneError::Unavailable`] and the like. A single
    /// limit that Keystone does not know is an error of [`ProjectLimits::get`].
    pub async fn project(
        &self,
        project: &str,
        domain: Option<&str>,
    ) -> Result<Arc<ProjectLimits>, KeystoneError> {
        let inner = &self.inner;
        let registered = inner.registered.get((), inner.ask_registered(), |_| None);
        let registered = registered.await?;
        let question = inner.ask_project(&registered, project, domain);
        inner
            .projects
            .get(project.to_owned(), question, |_| None)
            .await
    }
}

impl Inner {
    async fn ask_registered(&self) -> Result<Arc<RegisteredLimits>, KeystoneError> {
        let found = self
            .identity
            .session()
            .catalog_endpoint(&self.service)
            .await;
        let endpoint = found.map_err(|error| match error {
            OpenStackError::NoEndpoint { .. } => KeystoneError::ServiceUnknown(error.to_string()),
            other => other.into(),
        })?;
        let missing = "the catalog has no id of the service";
        let service_id = endpoint
            .service_id
            .ok_or_else(|| KeystoneError::BadAnswer(missing.to_owned()))?;
        let model = self.identity.get("/v3/limits/model", &[]).await?;
        let model = EnforcementModel::from_answer(&model)?;
        let rows = self
            .rows("registered_limits", &[("service_id", &service_id)])
            .await?;
        Ok(Arc::new(RegisteredLimits {
            model,
            service_id,
            region: endpoint.region_id,
            rows,
        }))
    }

    async fn ask_project(
        &self,
        registered: &RegisteredLimits,
        project: &str,
        domain: Option<&str>,
    ) -> Result<Arc<ProjectLimits>, KeystoneError> {
        let of_service = ("service_id", registered.service_id.as_str());
        let own = self
            .rows("limits", &[of_service, ("project_id", project)])
            .await?;
        let domain = match (registered.model, domain) {
            (EnforcementModel::Flat, _) => None,
            (EnforcementModel::StrictTwoLevel, Some(domain)) => Some(domain.to_owned()),
            (EnforcementModel::StrictTwoLevel, None) => Some(self.domain_of(project).await?),
        };
        let of_domain = match &domain {
            None => Vec::new(),
            Some(domain) => {
                self.rows("limits", &[of_service, ("domain_id", domain)])
                    .await?
            }
        };
        let limits = ProjectLimits::new(registered, &own, &of_domain, &RESOURCES);
        Ok(Arc::new(limits))
    }

    async fn rows(
        &self,
        list: &str,
        query: &[(&str, &str)],
    ) -> Result<Vec<LimitRow>, KeystoneError> {
        let answer = self.identity.get(&format!("/v3/{list}"), query).await?;
        LimitRow::list(answer, list)
    }

    async fn domain_of(&self, project: &str) -> Result<String, KeystoneError> {
        let unknown = || KeystoneError::ProjectUnknown(project.to_owned());
        // Ids of Keystone are letters and digits; anything else would be another path.
        if project.is_empty()
            || !project
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b == b'-')
        {
            return Err(unknown());
        }
        let answer = self
            .identity
            .get(&format!("/v3/projects/{project}"), &[])
            .await;
        let answer = answer.map_err(|error| match error {
            OpenStackError::NotFound { .. } => unknown(),
            other => other.into(),
        })?;
        let domain = answer["project"]["domain_id"].as_str().map(str::to_owned);
        let missing = "the project has no domain";
        domain.ok_or_else(|| KeystoneError::BadAnswer(missing.to_owned()))
    }
}

//! Quota of preemptible servers: Keystone's unified limits (`[ebbtide] quota`).
//!
//! A request of a preemptible flavor is held against the limits of its project before it is
//! decided. What it gets counts from then on, until the server is in Nova's databases, so that two
//! requests at the same moment do not share what is left. Two schedulers may: as with Nova's own
//! quota, each counts what it knows.

use crate::facts::Facts;
use async_trait::async_trait;
use ebbtide_keystone::limits::{
    Limit, PREEMPTIBLE_MEMORY_MB, PREEMPTIBLE_SERVERS, PREEMPTIBLE_VCPUS,
};
use ebbtide_keystone::{KeystoneError, LimitReader, Meaning, ProjectLimits};
use ebbtide_model::{Seconds, Timestamp};
use ebbtide_nova_cloud::PreemptibleUsage;
use ebbtide_runtime::clock;
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use uuid::Uuid;

/// How long a server that has its host and does not appear in Nova's databases counts.
const PROMISED_FOR: Seconds = Seconds(600);

/// Where the limits of projects come from.
#[async_trait]
pub trait LimitSource: Send + Sync {
    /// The limits of a project.
    ///
    /// # Errors
    /// Those of [`LimitReader::project`].
    async fn limits(&self, project: &str) -> Result<Arc<ProjectLimits>, KeystoneError>;
}

#[async_trait]
impl LimitSource for LimitReader {
    async fn limits(&self, project: &str) -> Result<Arc<ProjectLimits>, KeystoneError> {
        self.project(project, None).await
    }
}

/// The quota of all projects. Cheap to clone; without a source it allows everything.
#[derive(Clone, Default)]
pub(crate) struct Quota {
    inner: Option<Arc<Inner>>,
}

struct Inner {
    source: Arc<dyn LimitSource>,
    /// The limits that were read last, for the time in which Keystone is away.
    last: Mutex<HashMap<String, Arc<ProjectLimits>>>,
    promised: Mutex<Vec<Promise>>,
}

/// A server that has its host and is not in Nova's databases yet.
struct Promise {
    project: String,
    server: Uuid,
    amounts: PreemptibleUsage,
    until: Timestamp,
}

/// What a request asks for.
#[derive(Debug, Clone)]
pub(crate) struct QuotaRequest {
    pub(crate) project: String,
    /// Its servers: new ones, and those that move.
    pub(crate) servers: BTreeSet<Uuid>,
    /// What each of them takes.
    pub(crate) each: PreemptibleUsage,
}

impl fmt::Debug for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.inner.is_some();
        f.debug_struct("Quota").field("on", &on).finish()
    }
}

impl Quota {
    /// The quota with limits of this source; `None`: no quota.
    pub(crate) fn new(source: Option<Arc<dyn LimitSource>>) -> Self {
        let inner = source.map(|source| {
            Arc::new(Inner {
                source,
                last: Mutex::default(),
                promised: Mutex::default(),
            })
        });
        Self { inner }
    }

    /// The limits of a project; `None` without a quota.
    ///
    /// # Errors
    /// No limits are known, with the reason for the owner of the request.
    pub(crate) async fn limits(&self, project: &str) -> Option<Result<Arc<ProjectLimits>, String>> {
        let inner = self.inner.as_ref()?;
        Some(match inner.source.limits(project).await {
            Ok(limits) => {
                inner.last().insert(project.to_owned(), Arc::clone(&limits));
                Ok(limits)
            }
            Err(error) => {
                let last = match error.meaning() {
                    Meaning::Unavailable => inner.last().get(project).cloned(),
                    Meaning::Unauthenticated | Meaning::Forbidden => None,
                };
                let goes_on = last.is_some();
                tracing::warn!(
                    code = "EB-DOOR-064",
                    cause = error.code(),
                    project,
                    goes_on,
                    "the limits of preemptible servers cannot be read: {error}"
                );
                last.ok_or_else(|| {
                    format!(
                        "EB-DOOR-064: the limits of preemptible servers cannot be read ({})",
                        error.code()
                    )
                })
            }
        })
    }

    /// Reserves what a request asks for within the limits of its project. A trial reserves nothing.
    /// A server that has as much already may move, also in a project that is over its limits.
    ///
    /// # Errors
    /// It would be over the limits of its project; which, in words.
    pub(crate) fn reserve(
        &self,
        facts: &Facts,
        request: &QuotaRequest,
        limits: &ProjectLimits,
        trial: bool,
    ) -> Result<(), String> {
        let Some(inner) = &self.inner else {
            return Ok(());
        };
        let now = clock::now();
        // Held over the decision, so that two requests do not take the same rest.
        let mut promised = inner.promised();
        let (used, moves) = facts.read(|cloud| {
            let of = |server: &Uuid| cloud.preemptible_usage_of(*server);
            promised.retain(|p| p.until > now && of(&p.server).is_none());
            let has = |server| of(server).is_some_and(|has| has.covers(request.each));
            let used = cloud.preemptible_usage(&request.project, &request.servers);
            (used, request.servers.iter().all(has))
        });
        if moves {
            return Ok(());
        }
        let coming = promised.iter().filter(|promise| {
            promise.project == request.project && !request.servers.contains(&promise.server)
        });
        let used = coming.fold(used, |sum, promise| sum + promise.amounts);
        let count = u64::try_from(request.servers.len()).unwrap_or(u64::MAX);
        judge(&request.project, used, request.each.times(count), limits)?;
        if !trial {
            promised.retain(|promise| !request.servers.contains(&promise.server));
            promised.extend(request.servers.iter().map(|server| Promise {
                project: request.project.clone(),
                server: *server,
                amounts: request.each,
                until: now.plus(PROMISED_FOR),
            }));
        }
        Ok(())
    }

    /// A request got nothing: what was counted for it is free again.
    pub(crate) fn forget(&self, servers: &BTreeSet<Uuid>) {
        if let Some(inner) = &self.inner {
            inner.promised().retain(|p| !servers.contains(&p.server));
        }
    }
}

impl Inner {
    fn last(&self) -> MutexGuard<'_, HashMap<String, Arc<ProjectLimits>>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn promised(&self) -> MutexGuard<'_, Vec<Promise>> {
        self.promised.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Holds what a project uses and asks for against its limits.
fn judge(
    project: &str,
    used: PreemptibleUsage,
    more: PreemptibleUsage,
    limits: &ProjectLimits,
) -> Result<(), String> {
    let all = used + more;
    let mut over = Vec::new();
    for (resource, used, more, all) in [
        (PREEMPTIBLE_SERVERS, used.servers, more.servers, all.servers),
        (PREEMPTIBLE_VCPUS, used.vcpus, more.vcpus, all.vcpus),
        (
            PREEMPTIBLE_MEMORY_MB,
            used.memory_mb,
            more.memory_mb,
            all.memory_mb,
        ),
    ] {
        match limits.get(resource).map(|limit| limit.limit) {
            Ok(limit) if limit.allows(all) => {}
            Ok(Limit::AtMost(most)) => {
                over.push(format!(
                    "{resource}: {used} of {most} in use, {more} more asked for"
                ));
            }
            Ok(Limit::Unlimited) => {}
            // As in oslo.limit, what has no limit is not allowed.
            Err(_) => over.push(format!(
                "{resource}: Keystone has no limit, so none are allowed"
            )),
        }
    }
    match over.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "EB-DOOR-063: project {project} is over its quota of preemptible servers: {}",
            over.join("; ")
        )),
    }
}

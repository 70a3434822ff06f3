//! Nova's API, as far as a scheduler acts on servers: it starts those that come back, and warns
//! owners early.

use crate::configure;
use crate::error::NovaServiceError;
use crate::reclaims::ComputeServices;
use async_trait::async_trait;
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_openstack::compute::Compute;
use ebbtide_openstack::{OpenStackError, RequestEffect, Session};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// How Nova's API took a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ActionResult {
    /// It is done when Nova shows it; or the answer was lost, and Nova may have taken it.
    Taken,
    /// Nothing has changed: why.
    Refused(String),
}

/// What a scheduler does with servers.
#[async_trait]
pub(crate) trait ServerActions: Send + Sync {
    /// Starts a server that is stopped on its host.
    async fn start(&self, server: Uuid) -> ActionResult;
    /// Brings back a server that was shelved.
    async fn unshelve(&self, server: Uuid) -> ActionResult;
    /// Sets a key of a server's metadata; `None`: removes it.
    async fn set_metadata(&self, server: Uuid, key: &str, value: Option<&str>) -> ActionResult;
}

/// What acts on servers over this client. `None`, with a log entry: Nova's API cannot be found.
pub(crate) fn actions(
    client: &Result<Compute, NovaServiceError>,
) -> Option<Arc<dyn ServerActions>> {
    match client {
        Ok(compute) => Some(Arc::new(compute.clone())),
        Err(error) => {
            let code = error.code();
            tracing::warn!(
                code,
                "no server comes back, and no owner is warned: {error}"
            );
            None
        }
    }
}

/// Whether anything that the operator has configured acts on servers.
pub(crate) fn is_needed(conf: &NovaConf) -> bool {
    let ours = &conf.ebbtide;
    let preempts = ours.preemption && ours.connection.is_some();
    preempts && (ours.comeback || !ours.headroom.is_empty())
}

/// A client, with the credentials of `[placement]`; nothing is sent yet.
///
/// # Errors
/// [`NovaServiceError::Config`]: nothing says where Nova's API is.
pub(crate) fn client(conf: &NovaConf) -> Result<Compute, NovaServiceError> {
    let (auth, session, adapter) = configure::compute(conf)?;
    Ok(Compute::new(Session::new(auth, session)?, adapter)?)
}

/// The same client for the services of computes; else the reason in words.
pub(crate) fn compute_services(
    client: &Result<Compute, NovaServiceError>,
) -> Result<Arc<dyn ComputeServices>, String> {
    match client {
        Ok(compute) => Ok(Arc::new(compute.clone())),
        Err(error) => Err(error.to_string()),
    }
}

#[async_trait]
impl ServerActions for Compute {
    async fn start(&self, server: Uuid) -> ActionResult {
        result(server, Self::start(self, server).await)
    }

    async fn unshelve(&self, server: Uuid) -> ActionResult {
        result(server, Self::unshelve(self, server).await)
    }

    async fn set_metadata(&self, server: Uuid, key: &str, value: Option<&str>) -> ActionResult {
        let Some(value) = value else {
            return result(server, self.delete_metadata(server, key).await);
        };
        let pairs = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        result(server, Self::set_metadata(self, server, &pairs).await)
    }
}

fn result<T>(server: Uuid, done: Result<T, OpenStackError>) -> ActionResult {
    match done {
        Ok(_) => ActionResult::Taken,
        Err(
            error @ (OpenStackError::BadAnswer { .. }
            | OpenStackError::Unavailable {
                effect: RequestEffect::Unknown,
                ..
            }),
        ) => {
            tracing::warn!(code = error.code(), %server, "{error}");
            ActionResult::Taken
        }
        Err(error) => ActionResult::Refused(error.to_string()),
    }
}

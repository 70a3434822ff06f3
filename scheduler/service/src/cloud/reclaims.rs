//! Hosts that an outside owner takes back, on both clouds.

use super::openstack::unread;
use super::{Answer, OpenStackView, RegionView};
use crate::error::ServiceError;
use crate::region_actor::RegionActor;
use ebbtide_engine::HostReclaim;
use ebbtide_model::{ReclaimTerms, Seconds};
use ebbtide_nova_service::ReclaimError;
use ebbtide_region::{ReclaimHost, Region, RegionError, ReturnHost};
use ebbtide_runtime::clock;

/// Who takes hosts back and returns them.
pub(crate) trait HostReclaims: Send + Sync {
    /// With `dry_run` nothing changes.
    fn reclaim<'a>(
        &'a self,
        host: &'a str,
        terms: ReclaimTerms,
        dry_run: bool,
    ) -> Answer<'a, HostReclaim>;
    fn give_back<'a>(&'a self, host: &'a str, keep_disabled: bool) -> Answer<'a, ()>;
    /// Those that are in force, by host; of one host only with `host`.
    fn reclaims<'a>(&'a self, host: Option<&'a str>) -> Answer<'a, Vec<HostReclaim>>;
    fn cloud_defaults(&self) -> CloudDefaults;
}

/// What a cloud has for all servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloudDefaults {
    /// The unit of costs, in the cost module's words.
    pub(crate) cost_unit: String,
    /// The grace period of flavors without one.
    pub(crate) grace: Seconds,
}

/// Asks the region as it is now.
async fn look<T: Send + 'static>(
    actor: &RegionActor,
    question: impl FnOnce(&Region) -> Result<T, RegionError> + Send + 'static,
) -> Result<T, ServiceError> {
    Ok(actor.read(question).await??)
}

impl HostReclaims for RegionView {
    fn reclaim<'a>(
        &'a self,
        host: &'a str,
        terms: ReclaimTerms,
        dry_run: bool,
    ) -> Answer<'a, HostReclaim> {
        Box::pin(async move {
            let name = host.to_owned();
            if dry_run {
                let now = clock::now();
                let preview = move |region: &Region| region.preview_reclaim(&name, terms, now);
                return look(&self.region_actor, preview).await;
            }
            self.region_actor.handle(ReclaimHost { name, terms }).await
        })
    }

    fn give_back<'a>(&'a self, host: &'a str, keep_disabled: bool) -> Answer<'a, ()> {
        Box::pin(async move {
            let name = host.to_owned();
            let back = ReturnHost {
                name,
                keep_disabled,
            };
            self.region_actor.handle(back).await
        })
    }

    fn reclaims<'a>(&'a self, host: Option<&'a str>) -> Answer<'a, Vec<HostReclaim>> {
        Box::pin(async move {
            let (host, now) = (host.map(str::to_owned), clock::now());
            let question = move |region: &Region| match host {
                Some(host) => Ok(region.reclaim(&host, now)?.into_iter().collect()),
                None => region.reclaims(now),
            };
            look(&self.region_actor, question).await
        })
    }

    fn cloud_defaults(&self) -> CloudDefaults {
        CloudDefaults {
            cost_unit: self.plugins.engine().cost_unit().to_owned(),
            grace: self.config.default_grace_seconds,
        }
    }
}

fn refused(error: ReclaimError) -> ServiceError {
    match error {
        ReclaimError::NoHost(name) => ServiceError::NotFound {
            what: "host",
            name,
            next: "`ebbtide host list` shows those that there are",
        },
        ReclaimError::Reclaimed(by) => RegionError::Reclaimed(by).into(),
        ReclaimError::Invalid(error) => RegionError::Invalid(error).into(),
        ReclaimError::Engine(error) => RegionError::Engine(error).into(),
        ReclaimError::Cloud(error) => unread(&error),
    }
}

impl HostReclaims for OpenStackView {
    fn reclaim<'a>(
        &'a self,
        host: &'a str,
        terms: ReclaimTerms,
        dry_run: bool,
    ) -> Answer<'a, HostReclaim> {
        Box::pin(async move {
            let reclaimed = self.reader().reclaim_host(host, terms, dry_run).await;
            reclaimed.map_err(refused)
        })
    }

    fn give_back<'a>(&'a self, host: &'a str, keep_disabled: bool) -> Answer<'a, ()> {
        Box::pin(async move {
            let returned = self.reader().return_host(host, keep_disabled).await;
            returned.map_err(refused)
        })
    }

    fn reclaims<'a>(&'a self, host: Option<&'a str>) -> Answer<'a, Vec<HostReclaim>> {
        Box::pin(async move { self.reader().host_reclaims(host).await.map_err(refused) })
    }

    fn cloud_defaults(&self) -> CloudDefaults {
        let (cost_unit, grace) = self.reader().cloud_defaults();
        CloudDefaults { cost_unit, grace }
    }
}

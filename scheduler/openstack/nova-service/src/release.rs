//! Which release of Nova the cloud runs: from the operator's configuration, or from the records of
//! Nova's services.
//!
//! A new cloud has no records yet, and an upgraded one shows another release later. So the
//! scheduler checks with each heartbeat, and before each request as long as the release is unknown:
//! a request comes from a conductor, which has a record by then.

use crate::configure;
use crate::error::NovaServiceError;
use crate::facts::Facts;
use ebbtide_nova_db::{NovaDb, NovaRelease, OwnService, ReleaseEvidence};
use ebbtide_nova_objects::nova_conf::NovaConf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Mutex;

/// The release of the cloud. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CloudRelease {
    /// `None`: the release does not change.
    shared: Option<Arc<Shared>>,
}

struct Shared {
    conf: NovaConf,
    facts: Facts,
    record: OwnService,
    known: Mutex<Option<NovaRelease>>,
    /// The release is still unknown. Separate from `known`, whose lock is held while databases
    /// answer: requests do not wait for that.
    unknown: AtomicBool,
}

/// The release for this scheduler's service record: the one found, else the operator's, else the
/// oldest, which lets every nova-scheduler start.
pub(crate) fn recorded(shown: Option<NovaRelease>, conf: &NovaConf) -> NovaRelease {
    let said = conf.ebbtide.nova_release.map(NovaRelease::of_major);
    shown.or(said).unwrap_or_else(|| NovaRelease::of_version(0))
}

/// The major version whose scheduler decides.
pub(crate) fn deciding(shown: Option<NovaRelease>, conf: &NovaConf) -> u32 {
    conf.ebbtide
        .nova_release
        .unwrap_or_else(|| recorded(shown, conf).major())
}

/// The release found at the start, and the major version whose scheduler decides until another one
/// is found.
pub(crate) async fn at_start(
    nova: &NovaDb,
    conf: &NovaConf,
) -> Result<(Option<NovaRelease>, u32), NovaServiceError> {
    let shown = nova.shown_release().await?.after(None);
    say(shown, conf);
    Ok((shown, deciding(shown, conf)))
}

/// Logs what is uncertain and what the operator can do.
fn say(shown: Option<NovaRelease>, conf: &NovaConf) {
    if conf.ebbtide.nova_release.is_some() {
        return;
    }
    match shown {
        None => tracing::warn!(
            code = "EB-DOOR-003",
            "no service of Nova has a record yet, so the release of this cloud is not known; it is looked at again with each heartbeat and before each \
             request until it is. [ebbtide] nova_release says it for good"
        ),
        Some(release) => {
            if let Some(doubt) = release.doubt() {
                tracing::warn!(
                    code = "EB-DOOR-004",
                    "{doubt}; if that is wrong, set [ebbtide] nova_release"
                );
            }
        }
    }
}

impl CloudRelease {
    pub(crate) fn new(
        conf: &NovaConf,
        facts: &Facts,
        record: OwnService,
        shown: Option<NovaRelease>,
    ) -> Self {
        Self {
            shared: Some(Arc::new(Shared {
                conf: conf.clone(),
                facts: facts.clone(),
                record,
                known: Mutex::new(shown),
                unknown: AtomicBool::new(shown.is_none()),
            })),
        }
    }

    /// The release that the cloud in memory was made with, for good.
    pub(crate) fn fixed() -> Self {
        Self { shared: None }
    }

    /// Writes one heartbeat of this scheduler's record, and checks the records of the other
    /// services.
    pub(crate) async fn beat(&self) {
        let Some(shared) = &self.shared else { return };
        if let Err(error) = shared.record.beat().await {
            tracing::warn!(code = error.code(), "{error}");
        }
        shared.look().await;
    }

    /// Checks the records as long as the release is unknown.
    pub(crate) async fn look_if_unknown(&self) {
        let Some(shared) = &self.shared else { return };
        let said = shared.conf.ebbtide.nova_release.is_some();
        if !said && shared.unknown.load(Ordering::Relaxed) {
            shared.look().await;
        }
    }
}

impl Shared {
    /// Checks the records, and changes to the release found.
    async fn look(&self) {
        let mut known = self.known.lock().await;
        let shown = match self.facts.database.nova().shown_release().await {
            Ok(shown) => shown,
            Err(error) => {
                tracing::warn!(code = error.code(), "{error}");
                return;
            }
        };
        if let Some(release) = changed(shown, *known)
            && self.follow(*known, release).await
        {
            *known = Some(release);
            self.unknown.store(false, Ordering::Relaxed);
        }
    }

    /// Changes to a release. False if that failed: the next check tries again.
    async fn follow(&self, before: Option<NovaRelease>, release: NovaRelease) -> bool {
        let Self { conf, facts, .. } = self;
        let (was, is) = (deciding(before, conf), deciding(Some(release), conf));
        tracing::info!(
            version = release.service_version,
            was,
            is,
            "the release of the cloud, as its services show it"
        );
        if was != is {
            match configure::deciding(conf, is) {
                Ok(options) => facts.write(|cloud| cloud.set_options(options)),
                Err(error) => {
                    tracing::error!(code = error.code(), "{error}; deciding as Nova {was}");
                    return false;
                }
            }
        }
        say(Some(release), conf);
        if let Err(error) = self.record.set_release(release).await {
            tracing::warn!(code = error.code(), "{error}");
            return false;
        }
        true
    }
}

/// The release to follow, if it is another one than before.
fn changed(shown: ReleaseEvidence, known: Option<NovaRelease>) -> Option<NovaRelease> {
    shown.after(known).filter(|after| Some(*after) != known)
}

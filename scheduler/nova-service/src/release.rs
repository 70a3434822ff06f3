//! Which release of Nova the cloud runs: the operator's word, or what the records of Nova's
//! services show.
//!
//! A cloud that is being built shows nothing yet, and one that is upgraded shows another one later.
//! So it is looked at with each heartbeat, and, as long as it is not known, before each request: a
//! request comes from a conductor, which has a record by then.

use crate::configure;
use crate::error::NovaServiceError;
use crate::facts::Facts;
use ebbtide_nova_db::{NovaDb, OwnService, Release, Shown};
use ebbtide_nova_objects::nova_conf::NovaConf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Mutex;

/// The release of the cloud. Cheap to clone.
#[derive(Clone)]
pub(crate) struct CloudRelease {
    shared: Arc<Shared>,
}

struct Shared {
    conf: NovaConf,
    facts: Facts,
    record: OwnService,
    known: Mutex<Option<Release>>,
    /// Nothing was seen yet. Apart from `known`, which a look holds while databases answer:
    /// requests do not wait for that.
    unknown: AtomicBool,
}

/// The release that is written into our record: what is shown, else what the operator says, else
/// the oldest, which keeps no nova-scheduler from starting.
pub(crate) fn recorded(shown: Option<Release>, conf: &NovaConf) -> Release {
    let said = conf.ebbtide.nova_release.map(Release::of_major);
    shown.or(said).unwrap_or_else(|| Release::of_version(0))
}

/// The major version whose scheduler decides.
fn deciding(shown: Option<Release>, conf: &NovaConf) -> u32 {
    conf.ebbtide
        .nova_release
        .unwrap_or_else(|| recorded(shown, conf).major())
}

/// What the cloud shows at the start, and the major version whose scheduler decides until it shows
/// another one.
pub(crate) async fn at_start(
    nova: &NovaDb,
    conf: &NovaConf,
) -> Result<(Option<Release>, u32), NovaServiceError> {
    let shown = nova.shown_release().await?.after(None);
    say(shown, conf);
    Ok((shown, deciding(shown, conf)))
}

/// Tells the operator what is not sure and what can be done.
fn say(shown: Option<Release>, conf: &NovaConf) {
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
        shown: Option<Release>,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                conf: conf.clone(),
                facts: facts.clone(),
                record,
                known: Mutex::new(shown),
                unknown: AtomicBool::new(shown.is_none()),
            }),
        }
    }

    /// One heartbeat of our record, and a look at those of others.
    pub(crate) async fn beat(&self) {
        if let Err(error) = self.shared.record.beat().await {
            tracing::warn!(code = error.code(), "{error}");
        }
        self.look().await;
    }

    /// Looks, as long as nothing was seen.
    pub(crate) async fn look_if_unknown(&self) {
        let said = self.shared.conf.ebbtide.nova_release.is_some();
        if !said && self.shared.unknown.load(Ordering::Relaxed) {
            self.look().await;
        }
    }

    /// Looks what the cloud shows, and follows it.
    async fn look(&self) {
        let mut known = self.shared.known.lock().await;
        let shown = match self.shared.facts.database.nova().shown_release().await {
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
            self.shared.unknown.store(false, Ordering::Relaxed);
        }
    }

    /// False if it could not be followed: the next look tries again.
    async fn follow(&self, before: Option<Release>, release: Release) -> bool {
        let Shared { conf, facts, .. } = &*self.shared;
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
        if let Err(error) = self.shared.record.set_release(release).await {
            tracing::warn!(code = error.code(), "{error}");
            return false;
        }
        true
    }
}

/// The release to follow, if it is another one than before.
fn changed(shown: Shown, known: Option<Release>) -> Option<Release> {
    shown.after(known).filter(|after| Some(*after) != known)
}

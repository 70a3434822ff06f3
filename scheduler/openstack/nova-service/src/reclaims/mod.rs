//! Hosts that an outside owner takes back ([ADR 59]).
//!
//! A reclaim is a row of the ledger, for all schedulers. It is written before anything happens, and
//! deleted when Nova knows that the host is returned. Every scheduler looks at the rows: it keeps
//! the nova-compute disabled, begins the evacuation of servers that may leave by now, and finishes
//! returns that another scheduler has begun. Evacuations are records without newcomers, as at the
//! end of a maximum lifetime.
//!
//! [ADR 59]: ../../../../../docs/development/adr/0059-hosts-are-lent-and-taken-back.md

mod error;
mod record;
mod services;

pub use self::error::ReclaimError;
pub(crate) use self::record::ReclaimRecord;
use self::record::ReturnedHost;
#[cfg(test)]
pub(crate) use self::services::ComputeServiceState;
pub(crate) use self::services::ComputeServices;

use crate::Tasks;
use crate::error::NovaServiceError;
use crate::evacuate::{Evacuations, PreemptionDriver};
use crate::facts::Facts;
use ebbtide_engine::{Budgets, HostReclaim};
use ebbtide_model::{Reclaim, ReclaimTerms, names};
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_store::ledger::ReclaimRow;
use std::sync::Arc;
use std::time::Duration;

/// Pause between two looks. Each reads the rows of reclaimed hosts, and nothing else if there are
/// none.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Schedulers that write one row at the same moment take turns.
const TRIES: u32 = 16;
/// With this the reasons begin that a reclaim gives to Nova.
pub(crate) const RECLAIMED_BY: &str = "reclaimed by ";

/// Takes hosts back and returns them. Cheap to clone.
#[derive(Clone)]
pub(crate) struct HostReclaims {
    facts: Facts,
    preempting: PreemptionDriver,
    /// The reason for which Nova's API cannot be used, in words.
    services: Result<Arc<dyn ComputeServices>, String>,
}

/// Looks regularly at the hosts that are reclaimed.
pub(crate) fn start(reclaims: HostReclaims, tasks: &Tasks) {
    let stop = tasks.stop().clone();
    tasks.spawn("reclaimed-hosts", async move {
        while pause(&stop, LOOK_EVERY).await {
            if let Err(error) = reclaims.look().await {
                tracing::warn!(code = error.code(), "reclaimed hosts: {error}");
            }
        }
    });
}

impl HostReclaims {
    pub(crate) fn new(
        facts: &Facts,
        preempting: &PreemptionDriver,
        services: Result<Arc<dyn ComputeServices>, String>,
    ) -> Self {
        Self {
            facts: facts.clone(),
            preempting: preempting.clone(),
            services,
        }
    }

    /// Takes a host back; with `dry_run` it only says what would happen.
    pub(crate) async fn reclaim(
        &self,
        host: &str,
        terms: ReclaimTerms,
        dry_run: bool,
    ) -> Result<HostReclaim, ReclaimError> {
        let now = clock::now();
        terms.check(now)?;
        let evacuations = self.evacuations()?;
        let service = self.service_host(host).await?;
        for _ in 0..TRIES {
            let known = self.row(evacuations, &service).await?;
            if let Some((row, record)) = known.as_ref().filter(|(_, r)| r.is_ending()) {
                self.finish_return(evacuations, row, record).await?;
                continue;
            }
            let wanted = match &known {
                Some((_, record)) => record.reclaim.renewed(host, terms.clone(), now)?,
                None => Reclaim::new(terms.clone(), self.disabled_before(&service).await?, now),
            };
            if dry_run {
                return self.plan(evacuations, host, &service, wanted).await;
            }
            let record = ReclaimRecord::new(wanted);
            let version = known.as_ref().map(|(row, _)| row.version);
            let is_known = known.is_some_and(|(_, known)| known == record);
            let ledger = evacuations.ledger();
            let document = record.document();
            if !is_known && !ledger.put_reclaim(&service, version, &document).await? {
                continue;
            }
            if let Err(error) = self.tell_nova(&service, &record).await {
                if version.is_none() {
                    // Nothing has begun, and the caller does not have the host.
                    ledger.delete_reclaim(&service, 1).await?;
                }
                return Err(error);
            }
            self.evict(evacuations, &service).await?;
            return match self.row(evacuations, &service).await? {
                Some((_, record)) => self.plan(evacuations, host, &service, record.reclaim).await,
                None => Err(Self::moved(&service)),
            };
        }
        Err(Self::moved(&service))
    }

    /// Returns a host. One that is not reclaimed stays as it is.
    pub(crate) async fn give_back(
        &self,
        host: &str,
        keep_disabled: bool,
    ) -> Result<(), ReclaimError> {
        let evacuations = self.evacuations()?;
        let known = self.service_host(host).await;
        // The row of a host whose compute is gone is deleted, too.
        let service = known.as_deref().unwrap_or(host);
        for _ in 0..TRIES {
            let Some((row, mut record)) = self.row(evacuations, service).await? else {
                return known.map(drop);
            };
            if record.is_ending() {
                return self.finish_return(evacuations, &row, &record).await;
            }
            record.returned = Some(ReturnedHost { keep_disabled });
            let (ledger, document) = (evacuations.ledger(), record.document());
            let version = Some(row.version);
            if ledger.put_reclaim(service, version, &document).await? {
                evacuations.look_at_reclaims().await?;
            }
        }
        Err(Self::moved(service))
    }

    /// The reclaims that are in force, by host; of one host only with `host`.
    pub(crate) async fn reclaims(
        &self,
        host: Option<&str>,
    ) -> Result<Vec<HostReclaim>, ReclaimError> {
        let service = match host {
            Some(host) => Some(self.service_host(host).await?),
            None => None,
        };
        // Without a ledger no host is reclaimed.
        if self.preempting.ledger()?.is_none() {
            return Ok(Vec::new());
        }
        let evacuations = self.evacuations()?;
        self.facts.database.freshen().await;
        let mut all = Vec::new();
        for (row, record) in evacuations.reclaim_rows().await? {
            let wanted = service.as_ref().is_none_or(|service| *service == row.host);
            if wanted && !record.is_ending() {
                let name = self.facts.read(|cloud| cloud.name_of_service(&row.host));
                let name = name.unwrap_or_else(|| row.host.clone());
                let plan = self.plan(evacuations, &name, &row.host, record.reclaim);
                all.push(plan.await?);
            }
        }
        Ok(all)
    }

    /// Looks at every reclaimed host once.
    pub(crate) async fn look(&self) -> Result<(), ReclaimError> {
        let Some(evacuations) = self.preempting.get() else {
            return Ok(());
        };
        let rows = evacuations.reclaim_rows().await?;
        if rows.is_empty() {
            return Ok(());
        }
        self.facts.database.freshen().await;
        for (row, record) in rows {
            let done = match record.is_ending() {
                true => self.finish_return(evacuations, &row, &record).await,
                false => self.look_at(evacuations, &row, &record).await,
            };
            if let Err(error) = done {
                let host = row.host;
                tracing::warn!(
                    code = error.code(),
                    host,
                    "a reclaimed host: {error}; it is tried again"
                );
            }
        }
        Ok(())
    }

    async fn look_at(
        &self,
        evacuations: &Evacuations,
        row: &ReclaimRow,
        record: &ReclaimRecord,
    ) -> Result<(), ReclaimError> {
        // The scheduler that wrote the row may have died before it told Nova.
        if !self.facts.read(|cloud| cloud.is_disabled(&row.host)) {
            self.tell_nova(&row.host, record).await?;
        }
        self.evict(evacuations, &row.host).await
    }

    /// Begins the evacuation of the servers that leave a host now. What their loss costs is written
    /// before, so that two schedulers do not spend the maximum cost twice.
    async fn evict(&self, evacuations: &Evacuations, service: &str) -> Result<(), ReclaimError> {
        let Some((row, mut record)) = self.row(evacuations, service).await? else {
            return Ok(());
        };
        if record.is_ending() {
            return Ok(());
        }
        let counted = evacuations.budgets().await?;
        let budgets = counted.left(std::iter::empty());
        let reclaim = record.reclaim.clone();
        let plan = self.plan_within(evacuations, service, service, reclaim, &budgets);
        let leave = plan.await?.eviction.leave;
        for (id, cost) in &leave {
            record.reclaim.charge(*id, *cost);
        }
        let document = record.document();
        if document != row.document {
            let known = Some(row.version);
            let ledger = evacuations.ledger();
            if !ledger.put_reclaim(service, known, &document).await? {
                // Another scheduler looks at the host, or it was returned.
                return Ok(());
            }
        }
        for (id, cost) in leave {
            if evacuations.is_stopping() {
                return Ok(());
            }
            let reclaim = &record.reclaim;
            let begun = evacuations.end_for_owner(id, cost, service, reclaim, &counted);
            if let Err(error) = begun.await {
                tracing::warn!(
                    code = error.code(),
                    server = %id,
                    "its host is reclaimed and its evacuation could not begin: {error}; it is tried again"
                );
            }
        }
        Ok(())
    }

    async fn plan(
        &self,
        evacuations: &Evacuations,
        host: &str,
        service: &str,
        reclaim: Reclaim,
    ) -> Result<HostReclaim, ReclaimError> {
        let budgets = evacuations.budgets().await?.left(std::iter::empty());
        self.plan_within(evacuations, host, service, reclaim, &budgets)
            .await
    }

    async fn plan_within(
        &self,
        evacuations: &Evacuations,
        host: &str,
        service: &str,
        reclaim: Reclaim,
        budgets: &Budgets,
    ) -> Result<HostReclaim, ReclaimError> {
        let silent = !evacuations.is_heard(service).await?;
        let now = clock::now();
        let eviction = self
            .facts
            .read(|cloud| cloud.reclaim_plan(service, &reclaim, budgets, silent, now))?;
        Ok(HostReclaim {
            host: host.to_owned(),
            reclaim,
            eviction,
        })
    }

    /// Enables the host at Nova, or disables it for the reason that holds now, and forgets the
    /// reclaim.
    async fn finish_return(
        &self,
        evacuations: &Evacuations,
        row: &ReclaimRow,
        record: &ReclaimRecord,
    ) -> Result<(), ReclaimError> {
        self.tell_nova(&row.host, record).await?;
        let ledger = evacuations.ledger();
        // Another scheduler may have finished it meanwhile.
        ledger.delete_reclaim(&row.host, row.version).await?;
        Ok(())
    }

    /// Disables or enables the nova-compute of a host, as its reclaim says.
    async fn tell_nova(&self, service: &str, record: &ReclaimRecord) -> Result<(), ReclaimError> {
        let services = self.services()?;
        let state = services.state(service).await;
        let Some(state) = state.map_err(NovaServiceError::from)? else {
            // Its compute was deleted; nothing can come to the host.
            return Ok(());
        };
        let wanted = record.disabled_reason();
        if state.disabled != wanted {
            let set = services.set_disabled(&state.id, wanted.as_deref()).await;
            set.map_err(NovaServiceError::from)?;
        }
        Ok(())
    }

    /// The operator's reason for which a host is disabled already.
    async fn disabled_before(&self, service: &str) -> Result<Option<String>, ReclaimError> {
        let state = self.services()?.state(service).await;
        let state = state.map_err(NovaServiceError::from)?;
        let reason = state.and_then(|state| state.disabled);
        // A scheduler has died after it had told Nova of an earlier reclaim.
        Ok(reason.filter(|reason| !reason.starts_with(RECLAIMED_BY)))
    }

    async fn row(
        &self,
        evacuations: &Evacuations,
        service: &str,
    ) -> Result<Option<(ReclaimRow, ReclaimRecord)>, ReclaimError> {
        let row = evacuations.ledger().reclaim(service).await?;
        let unreadable = || {
            let problem = format!("EB-DOOR-070: the ledger's row of host {service} cannot be read");
            ReclaimError::Cloud(NovaServiceError::Config(problem))
        };
        row.map(|row| match ReclaimRecord::read(&row) {
            Some(record) => Ok((row, record)),
            None => Err(unreadable()),
        })
        .transpose()
    }

    async fn service_host(&self, host: &str) -> Result<String, ReclaimError> {
        self.facts.database.freshen().await;
        let service = self.facts.read(|cloud| cloud.service_host(host));
        service.ok_or_else(|| ReclaimError::NoHost(names::shorten(host)))
    }

    fn services(&self) -> Result<&Arc<dyn ComputeServices>, ReclaimError> {
        let services = self.services.as_ref();
        services.map_err(|why| {
            let problem = format!("a host is reclaimed through Nova's API: {why}");
            ReclaimError::Cloud(NovaServiceError::Config(problem))
        })
    }

    fn evacuations(&self) -> Result<&Evacuations, ReclaimError> {
        self.preempting.ledger()?;
        let missing = "there is no ledger ([ebbtide] connection), so no server is evacuated and no \
                       host can be reclaimed";
        let missing = || NovaServiceError::Config(missing.to_owned());
        self.preempting.get().ok_or_else(|| missing().into())
    }

    /// Another scheduler writes the row again and again.
    fn moved(service: &str) -> ReclaimError {
        let problem = format!("another scheduler changes the reclaim of host {service}");
        ReclaimError::Cloud(NovaServiceError::LedgerAway(problem))
    }
}

//! This scheduler's preemptions, available once the ledger is open. Requests do not wait for the
//! ledger: those that find capacity are answered, the others get Nova's own answer.

use super::Evacuations;
use crate::Tasks;
use crate::configure::{self, LEDGER};
use crate::deferred::{DeferredResource, OpenDelays};
use crate::error::NovaServiceError;
use crate::facts::Facts;
use crate::metrics::Metrics;
use crate::preemption::Preemption;
use crate::settings::SelectSettings;
use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, BusLogins};
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_runtime::clock;
use ebbtide_store::StoreConfig;
use ebbtide_store::ledger::{FinishedMark, Ledger, Owner};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// How long the start waits for the ledger. Preemptions of an earlier process should continue
/// before requests arrive.
const TIMES: OpenDelays = OpenDelays {
    first: Duration::from_secs(5),
    pause: Duration::from_secs(2),
};

/// The driver of preemptions, once there is a ledger. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct PreemptionDriver {
    /// `None`: the operator has disabled preemption.
    opened: Option<DeferredResource<Evacuations>>,
    /// The logins of the bus to the agents.
    logins: Option<BusLogins>,
}

impl PreemptionDriver {
    /// Opens the ledger, the database `store`, now if it answers, else as soon as it does.
    ///
    /// # Errors
    /// Errors that waiting does not resolve, as far as they are known at once.
    pub(crate) async fn start(
        conf: &NovaConf,
        store: Option<StoreConfig>,
        settings: &SelectSettings,
        facts: &Facts,
        tasks: &Tasks,
        metrics: &Metrics,
    ) -> Result<Self, NovaServiceError> {
        if !conf.ebbtide.preemption {
            tracing::info!("preemption is switched off ([ebbtide] preemption)");
            return Ok(Self::default());
        }
        let Some(store) = store else {
            tracing::warn!(
                code = "EB-DOOR-002",
                "{} is not set: there is no ledger, so no server is preempted; everything else works",
                LEDGER
            );
            return Ok(Self::default());
        };
        let (brokers, prefix) = configure::agents_bus(conf)?;
        let bus = AmqpBus::open(AmqpConfig::new(brokers, "ebbtide-scheduler"))?;
        let logins = Some(bus.logins());
        let bus: Arc<dyn Bus> = Arc::new(bus);
        let name = conf.ebbtide.name.as_ref().unwrap_or(&conf.general.host);
        let name = name.clone();
        let policy = settings.evacuation.clone();
        let (facts, own, metrics) = (facts.clone(), tasks.clone(), metrics.clone());
        // Registers once: a second registration under this name would take the rows from the first.
        let registered = Arc::new(OnceCell::<Evacuations>::new());
        let open = move || {
            let registered = Arc::clone(&registered);
            let (store, bus, prefix) = (store.clone(), Arc::clone(&bus), prefix.clone());
            let (name, policy) = (name.clone(), policy.clone());
            let (facts, tasks, metrics) = (facts.clone(), own.clone(), metrics.clone());
            async move {
                let register = || async {
                    let ledger = Ledger::open(&store).await?;
                    let owner = register(&ledger, &name).await?;
                    Ok::<_, NovaServiceError>(Evacuations::new(
                        facts, ledger, owner, bus, prefix, policy, tasks, metrics,
                    ))
                };
                let evacuations = registered.get_or_try_init(register).await?.clone();
                evacuations.start().await?;
                Ok(evacuations)
            }
        };
        let opened =
            DeferredResource::start(tasks, "the ledger of preemptions", TIMES, open).await?;
        if opened.get().is_none() {
            tracing::warn!(
                code = "EB-DOOR-005",
                "the ledger is away: requests are answered, and no server is preempted until it is back"
            );
        }
        Ok(Self {
            opened: Some(opened),
            logins,
        })
    }

    /// With an open ledger.
    pub(crate) fn ready(evacuations: Evacuations) -> Self {
        Self {
            opened: Some(DeferredResource::ready(evacuations)),
            logins: None,
        }
    }

    /// The logins of the bus to the agents, if there is one.
    pub(crate) fn bus_logins(&self) -> Option<&BusLogins> {
        self.logins.as_ref()
    }

    /// The driver of preemptions, if its ledger is open.
    pub(crate) fn get(&self) -> Option<&Evacuations> {
        self.opened.as_ref()?.get()
    }

    /// The same for a request that an earlier process may have begun: waits for the ledger for a
    /// while.
    ///
    /// # Errors
    /// A ledger is configured, and it is unavailable.
    pub(crate) async fn wait(
        &self,
        patience: Duration,
    ) -> Result<Option<&Evacuations>, LedgerUnavailable> {
        match &self.opened {
            None => Ok(None),
            Some(opened) => opened
                .wait(patience)
                .await
                .map(Some)
                .ok_or(LedgerUnavailable),
        }
    }

    /// Preemptions under way of all schedulers, oldest first, and those that ended in the last so
    /// many milliseconds. None without a configured ledger.
    ///
    /// # Errors
    /// The ledger is configured, and it is away or not open yet.
    pub(crate) async fn records(
        &self,
        ended_millis: Option<i64>,
    ) -> Result<Vec<Preemption>, NovaServiceError> {
        match self.ledger()? {
            Some(ledger) => records(ledger, ended_millis).await,
            None => Ok(Vec::new()),
        }
    }

    /// A page of the preemptions that ended in the last so many milliseconds, the last one first:
    /// [`Ledger::finished_rows`]. None without a configured ledger.
    ///
    /// # Errors
    /// As [`Self::records`].
    pub(crate) async fn finished(
        &self,
        millis: i64,
        after: Option<FinishedMark>,
        limit: u32,
    ) -> Result<(Vec<Preemption>, Option<FinishedMark>), NovaServiceError> {
        let Some(ledger) = self.ledger()? else {
            return Ok((Vec::new(), None));
        };
        let (rows, next) = ledger.finished_rows(millis, after, limit).await?;
        Ok((rows.iter().filter_map(super::read).collect(), next))
    }

    /// The ledger; `None`: none is configured, so no server is preempted.
    ///
    /// # Errors
    /// It is configured and not open yet.
    pub(crate) fn ledger(&self) -> Result<Option<&Ledger>, NovaServiceError> {
        let Some(opened) = &self.opened else {
            return Ok(None);
        };
        let evacuations = opened.get().ok_or_else(|| {
            NovaServiceError::LedgerAway(format!("the ledger ({LEDGER}) is not open yet"))
        })?;
        Ok(Some(&evacuations.shared.ledger))
    }

    /// True if the bus to the agents is connected.
    pub(crate) fn bus_is_ready(&self) -> bool {
        let bus = self.get().map(|evacuations| &evacuations.shared.bus);
        bus.is_some_and(|bus| bus.status().borrow().is_ready())
    }

    /// Number of preemptions that this scheduler drives.
    pub(crate) fn under_way(&self) -> usize {
        self.get().map_or(0, Evacuations::under_way)
    }

    /// How long the latest preemption has lasted beyond its victims' grace periods.
    pub(crate) fn overtime_millis(&self) -> i64 {
        let now = clock::now();
        self.get().map_or(0, |all| all.overtime_millis(now))
    }

    /// Closes the bus to the agents.
    pub(crate) async fn close_bus(&self) {
        if let Some(evacuations) = self.get() {
            evacuations.shared.bus.close().await;
        }
    }

    /// Closes the ledger.
    pub(crate) async fn close_ledger(&self) {
        if let Some(evacuations) = self.get() {
            evacuations.shared.ledger.close().await;
        }
    }
}

/// Registers at a ledger that does not wait to be reconciled after a restore. The scheduler of a
/// held ledger is as one whose ledger is away: it answers requests and preempts no server.
pub(crate) async fn register(ledger: &Ledger, name: &str) -> Result<Owner, NovaServiceError> {
    let held = match ledger.restore_mark().await {
        Ok(None) => ledger.register(name).await.map_err(NovaServiceError::from),
        Ok(Some(mark)) => Err(NovaServiceError::LedgerHeld { at: mark.at }),
        Err(error) => Err(error.into()),
    };
    if held.is_err() {
        // The next try opens its own connections.
        ledger.close().await;
    }
    held
}

/// Preemptions of a ledger that are under way, oldest first, and those that ended in the last so
/// many milliseconds.
async fn records(
    ledger: &Ledger,
    ended_millis: Option<i64>,
) -> Result<Vec<Preemption>, NovaServiceError> {
    let rows = match ended_millis {
        Some(millis) => ledger.rows_of_late(millis).await?,
        None => ledger.open_rows().await?,
    };
    Ok(rows.iter().filter_map(super::read).collect())
}

#[derive(Debug)]
pub(crate) struct LedgerUnavailable;

//! The life of a shadow: from nova.conf to its stop.

use super::NAME;
use super::answers::Answers;
use super::{idle, observer::ShadowApi};
use crate::Tasks;
use crate::configure::{self, LEDGER};
use crate::decisions::{DecisionOptions, Decisions};
use crate::error::NovaServiceError;
use crate::evacuate::{Evacuations, PreemptionDriver};
use crate::facts::{Database, Facts};
use crate::logins;
use crate::market::Market;
use crate::metrics::Metrics;
use crate::pages::{self, Pages};
use crate::plugins::NovaServicePlugins;
use crate::quota::{LimitSource, Quota};
use crate::run::{Reloaded, open_facts, patiently};
use crate::select::Selector;
use crate::settings::SelectSettings;
use ebbtide_bus::{InProcessBroker, QueuePrefix};
use ebbtide_nova_cloud::Cloud;
use ebbtide_nova_objects::nova_conf::NovaConf;
use ebbtide_service_manager::reload::Logins;
use ebbtide_store::ledger::Ledger;
use oslo_messaging::{AckMode, RpcServer, ServerOptions, ServerRole, Target, Transport};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Time limit for each part of the stop.
const FINISH: Duration = Duration::from_secs(10);

/// A running shadow.
pub struct ShadowService {
    server: RpcServer,
    transport: Transport,
    facts: Facts,
    preempting: PreemptionDriver,
    decisions: Decisions,
    plugins: NovaServicePlugins,
    /// What waits for nova-scheduler's answers. It ends before what records them.
    answers: Tasks,
    tasks: Tasks,
    /// With which it was started.
    conf: NovaConf,
    /// What SIGHUP renews.
    logins: Logins<NovaConf>,
}

impl ShadowService {
    /// Reads the cloud and begins to read copies of the requests. Waits for services that are
    /// unavailable until `stop`.
    ///
    /// # Errors
    /// Errors that waiting does not resolve: the configuration, refused credentials, a broker that
    /// does not let the user bind a queue.
    pub async fn open(
        conf: &NovaConf,
        limits: Option<Arc<dyn LimitSource>>,
        stop: CancellationToken,
    ) -> Result<Self, NovaServiceError> {
        let needs = |what: &str| {
            let text = format!("--shadow records what it would have decided, and needs {what}");
            NovaServiceError::Config(text)
        };
        let url = conf.ebbtide.connection.as_ref();
        let url = url.ok_or_else(|| needs(&format!("{LEDGER}: a database of its own")))?;
        let options = DecisionOptions::read(conf)?;
        let mut options = options.ok_or_else(|| needs("[ebbtide] decisions = true"))?;
        NAME.clone_into(&mut options.scheduler);
        let settings = Arc::new(configure::settings(conf));
        let tasks = Tasks::new(stop);
        let (broker, messaging) = configure::messaging(conf)?;
        let transport = Transport::start(&broker, messaging, &conf.general.control_exchange)?;
        let store = configure::ledger(url)?;
        // One login for all that is in this database.
        options.store.url = store.url.clone();
        let (facts, plugins, _) = open_facts(conf, Some(store.clone()), &tasks).await?;
        let metrics = Metrics::default();
        let ledger = patiently(&tasks, "the ledger", || async {
            Ok(Ledger::open(&store).await?)
        })
        .await?;
        let preempting = match conf.ebbtide.preemption {
            true => victims_of(&facts, ledger, &settings, &tasks, &metrics).await?,
            false => PreemptionDriver::default(),
        };
        let decisions = Decisions::start(Some(options), &facts, &tasks, &metrics);
        if let Some(address) = &conf.ebbtide.metrics_listen {
            let pages = Pages {
                facts: facts.clone(),
                metrics: metrics.clone(),
                preempting: preempting.clone(),
                market: Market::new(None),
                transport: transport.clone(),
            };
            pages::start(address, pages, &tasks).await?;
        }
        let selector = Selector {
            settings: Arc::clone(&settings),
            metrics,
            quota: Quota::new(limits),
            ..Selector::observer(facts.clone(), preempting.clone())
        };
        let answers = Tasks::default();
        let api = ShadowApi {
            answers: Answers::new(&facts, &decisions, &answers),
            selector,
        };
        let options = ServerOptions {
            role: ServerRole::Observer,
            // What a shadow has begun and not finished is not worth a second look.
            ack: AckMode::Early,
            prefetch: u16::try_from(conf.ebbtide.max_in_flight).unwrap_or(u16::MAX),
            ..ServerOptions::default()
        };
        let target = Target::topic(crate::run::TOPIC).server(NAME);
        let server = RpcServer::start(&transport, &target, options, vec![Arc::new(api)]).await?;
        facts.follow_placement(settings.placement_list_every, &tasks);
        Database::follow(&facts.database, &tasks);
        idle::start(&facts, &decisions, &tasks);
        let mut logins = Logins::default();
        logins::of_transports(&mut logins, std::slice::from_ref(&transport));
        logins::of_facts(&mut logins, &facts, None);
        logins::of_ledger(&mut logins, &store);
        let counts = facts.read(Cloud::counts);
        tracing::info!(
            hosts = counts.hosts,
            instances = counts.instances,
            preemptible = counts.preemptible,
            "a shadow beside nova-scheduler: it decides nothing"
        );
        Ok(Self {
            server,
            transport,
            facts,
            preempting,
            decisions,
            plugins,
            answers,
            tasks,
            conf: conf.clone(),
            logins,
        })
    }

    /// The logins that a reload renews, for those that are not this service's.
    pub fn logins_mut(&mut self) -> &mut Logins<NovaConf> {
        &mut self.logins
    }

    /// SIGHUP: as [`NovaService::reload`](crate::NovaService::reload).
    pub async fn reload(&self, conf: Result<NovaConf, NovaServiceError>) {
        let parts = Reloaded {
            running: &self.conf,
            logins: &self.logins,
            facts: &self.facts,
            plugins: &self.plugins,
        };
        parts.reload(conf).await;
    }

    /// Stops: reads no more copies, and records what is known.
    ///
    /// # Errors
    /// The reason for which the shadow had to stop by itself.
    pub async fn close(self) -> Result<(), NovaServiceError> {
        self.server.stop(FINISH).await;
        self.answers.stop().cancel();
        if !self.answers.finish(FINISH).await {
            tracing::warn!("some answers of nova-scheduler could not be read any more");
        }
        self.tasks.stop().cancel();
        self.decisions.finish();
        if !self.tasks.finish(FINISH).await {
            tracing::warn!("some work did not end within {FINISH:?}");
        }
        self.transport.close().await;
        self.preempting.close_ledger().await;
        self.decisions.close().await;
        self.plugins.close().await;
        self.facts.database.nova().close().await;
        tracing::info!("ended");
        self.tasks
            .failure()
            .map_or(Ok(()), |error| Err(error.into()))
    }
}

/// What plans preemptions and carries none out: it has no agents, and the driver is not started.
async fn victims_of(
    facts: &Facts,
    ledger: Ledger,
    settings: &SelectSettings,
    tasks: &Tasks,
    metrics: &Metrics,
) -> Result<PreemptionDriver, NovaServiceError> {
    let owner = ledger.register(NAME).await?;
    Ok(PreemptionDriver::ready(Evacuations::new(
        facts.clone(),
        ledger,
        owner,
        Arc::new(InProcessBroker::new().connect()),
        QueuePrefix::new(NAME)?,
        settings.evacuation.clone(),
        tasks.clone(),
        metrics.clone(),
    )))
}

//! The life of a scheduler: from nova.conf to its stop.

use crate::Tasks;
use crate::comebacks::{self, ResumeController};
use crate::configure;
use crate::decisions::{DecisionOptions, Decisions};
use crate::endpoint::{BaseApi, SchedulerApi};
use crate::error::NovaServiceError;
use crate::evacuate::PreemptionDriver;
use crate::facts::{Database, Facts, late_claims, other_schedulers};
use crate::headroom;
use crate::logins;
use crate::market::{self, Market};
use crate::metrics::Metrics;
use crate::notices::Notices;
use crate::nova_api;
use crate::pages::{self, Pages};
use crate::plugins::{self, NovaServicePlugins};
use crate::quota::{LimitSource, Quota};
use crate::reader::CloudReader;
use crate::reclaims::{self, HostReclaims};
use crate::release::{self, CloudRelease};
use crate::removals::{self, HostRemovals};
use crate::select::Selector;
use ebbtide_nova_cloud::Cloud;
use ebbtide_nova_db::{NovaDb, NovaRelease, OldComputePolicy, OwnService};
use ebbtide_nova_objects::nova_conf::{NotificationFormat, NovaConf};
use ebbtide_openstack::{Placement, Session};
use ebbtide_runtime::clock;
use ebbtide_runtime::task::pause;
use ebbtide_service_manager::reload::{Logins, Refusal};
use ebbtide_store::StoreConfig;
use oslo_messaging::{
    Notifier, NotifierFormat, NotifierOptions, RpcServer, ServerOptions, Target, Transport,
};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The topic of schedulers.
pub(crate) const TOPIC: &str = "scheduler";
/// Time limit for background work at the stop. It is durable and goes on at the next start.
const FINISH: Duration = Duration::from_secs(10);
/// The part of `graceful_shutdown_timeout` that is kept for what follows the last request:
/// background work, and closing connections.
const AFTER_REQUESTS: Duration = Duration::from_secs(20);
/// Pause before an unavailable service is tried again at the start.
const START_PAUSE: Duration = Duration::from_secs(2);

/// A running scheduler.
pub struct NovaService {
    server: RpcServer,
    transports: Vec<Transport>,
    facts: Facts,
    plugins: NovaServicePlugins,
    preempting: PreemptionDriver,
    decisions: Decisions,
    reader: CloudReader,
    metrics: Metrics,
    tasks: Tasks,
    /// nova.conf as it was at the start.
    conf: NovaConf,
    logins: Logins<NovaConf>,
    ledger: Option<StoreConfig>,
    /// Time limit for running requests at the stop; the rest returns to the broker, for another
    /// scheduler.
    request_limit: Duration,
}

/// The time limit for running requests at the stop, from `graceful_shutdown_timeout` in seconds.
/// As in oslo.service, 0 is no limit.
fn request_limit(graceful_shutdown_timeout: i64) -> Duration {
    match u64::try_from(graceful_shutdown_timeout) {
        Ok(0) => Duration::MAX,
        Ok(seconds) => Duration::from_secs(seconds)
            .saturating_sub(AFTER_REQUESTS)
            .max(FINISH),
        Err(_) => FINISH,
    }
}

impl NovaService {
    /// Reads the cloud and starts to answer requests. Waits for required services that are
    /// unavailable (a database, Placement, Keystone, the broker) until `stop`, as Nova does. With
    /// `limits`, preemptible servers have a quota.
    ///
    /// # Errors
    /// Errors that waiting does not resolve: the configuration, refused credentials, computes that
    /// are too old.
    pub async fn open(
        conf: &NovaConf,
        limits: Option<Arc<dyn LimitSource>>,
        stop: CancellationToken,
    ) -> Result<Self, NovaServiceError> {
        let watch = clock::Stopwatch::start();
        let settings = Arc::new(configure::settings(conf));
        let kept_free = configure::headroom(conf)?;
        configure::comeback_times(conf)?;
        let rule = configure::market(conf)?;
        let tasks = Tasks::new(stop);
        let (url, options) = configure::messaging(conf)?;
        let transport = Transport::start(&url, options, &conf.general.control_exchange)?;
        let ledger = configure::ledger_database(conf)?;
        let (facts, plugins, shown) = open_facts(conf, ledger.clone(), &tasks).await?;
        let record = own_record(conf, &facts, shown, &tasks).await?;
        let release = CloudRelease::new(conf, &facts, record, shown);
        beat(&release, conf, &tasks);
        other_schedulers::follow(&facts, conf.general.host.clone(), &tasks);
        late_claims::follow(&facts, &tasks);
        let mut transports = vec![transport.clone()];
        let notices = notices(conf, &mut transports, &tasks)?;
        let metrics = Metrics::default();
        let preempting =
            PreemptionDriver::start(conf, ledger.clone(), &settings, &facts, &tasks, &metrics)
                .await?;
        let mut recording = DecisionOptions::read(conf)?;
        if let (Some(options), Some(ledger)) = (&mut recording, &ledger) {
            options.store.url = ledger.url.clone();
        }
        let decisions = Decisions::start(recording, &facts, &tasks, &metrics);
        let market = Market::new(rule);
        market::start(&market, &facts, &decisions, &preempting, &tasks);
        if let Some(address) = &conf.ebbtide.metrics_listen {
            let pages = Pages {
                facts: facts.clone(),
                metrics: metrics.clone(),
                preempting: preempting.clone(),
                market: market.clone(),
                transport: transport.clone(),
            };
            pages::start(address, pages, &tasks).await?;
        }
        let selector = Selector {
            reservations: crate::select::VictimReservations::default(),
            read_ahead: crate::select::ReadAhead::default(),
            members: crate::select::Members::default(),
            facts: facts.clone(),
            release,
            settings: Arc::clone(&settings),
            notices,
            metrics: metrics.clone(),
            preempting: preempting.clone(),
            quota: Quota::new(limits),
            market: market.clone(),
            decisions: decisions.clone(),
        };
        let compute = nova_api::client(conf);
        let services = nova_api::compute_services(&compute);
        let reclaims = HostReclaims::new(&facts, &preempting, services.clone());
        reclaims::start(reclaims.clone(), &tasks);
        let removals = HostRemovals::new(&facts, &preempting, services);
        removals::start(removals.clone(), &tasks);
        let reader = CloudReader::new(&selector, plugins.clone())
            .with_reclaims(reclaims)
            .with_removals(removals);
        let back = settings.evacuation.comeback.clone();
        let acts = nova_api::is_needed(conf);
        let actions = acts.then(|| nova_api::actions(&compute)).flatten();
        let kept = headroom::start(&selector, kept_free, actions.clone(), &metrics, &tasks);
        if let Some(actions) = actions.filter(|_| back.enabled) {
            let comebacks = ResumeController::new(&selector, actions, back, kept, &metrics);
            comebacks::start(comebacks, &tasks);
        }
        let target = Target::topic(TOPIC).server(conf.general.host.clone());
        let server = RpcServer::start(
            &transport,
            &target,
            ServerOptions {
                prefetch: u16::try_from(conf.ebbtide.max_in_flight).unwrap_or(u16::MAX),
                ping: conf.general.rpc_ping_enabled,
                ..ServerOptions::default()
            },
            vec![Arc::new(SchedulerApi { selector }), Arc::new(BaseApi)],
        )
        .await?;
        facts.follow_placement(settings.placement_list_every, &tasks);
        Database::follow(&facts.database, &tasks);
        discover_hosts(conf, &facts, &tasks);
        let mut logins = Logins::default();
        logins::of_transports(&mut logins, &transports);
        logins::of_facts(&mut logins, &facts, compute.ok().as_ref());
        if let Some(bus) = preempting.bus_logins() {
            logins::of_agents_bus(&mut logins, bus);
        }
        if let Some(ledger) = &ledger {
            logins::of_ledger(&mut logins, ledger);
        }
        let counts = facts.read(Cloud::counts);
        tracing::info!(
            hosts = counts.hosts,
            instances = counts.instances,
            preemptible = counts.preemptible,
            seconds = watch.elapsed().as_secs_f64(),
            "answering as scheduler.{}",
            conf.general.host
        );
        Ok(Self {
            server,
            transports,
            facts,
            plugins,
            preempting,
            decisions,
            reader,
            metrics,
            tasks,
            conf: conf.clone(),
            logins,
            ledger,
            request_limit: request_limit(conf.general.graceful_shutdown_timeout),
        })
    }

    /// What the API reads.
    #[must_use]
    pub fn reader(&self) -> CloudReader {
        self.reader.clone()
    }

    /// Counts a refusal of the API among the metrics.
    pub fn refusal_counter(&self) -> impl Fn(&'static str) + Send + Sync + 'static {
        let metrics = self.metrics.clone();
        move |why| metrics.refused(why)
    }

    /// The database of the ledger, with the login that a reload renews.
    #[must_use]
    pub fn ledger(&self) -> Option<&StoreConfig> {
        self.ledger.as_ref()
    }

    /// The logins that a reload renews, for those that are not this service's.
    pub fn logins_mut(&mut self) -> &mut Logins<NovaConf> {
        &mut self.logins
    }

    /// SIGHUP: see [`Reloaded`].
    pub async fn reload(&self, conf: Result<NovaConf, NovaServiceError>) {
        let parts = Reloaded {
            running: &self.conf,
            logins: &self.logins,
            facts: &self.facts,
            plugins: &self.plugins,
        };
        parts.reload(conf).await;
    }

    /// Stops the scheduler: it takes no new requests, running ones may end, and the rest goes to
    /// another scheduler.
    ///
    /// # Errors
    /// The reason for which the scheduler had to stop by itself (it cancels `stop` then): another
    /// scheduler has taken its name.
    pub async fn close(self) -> Result<(), NovaServiceError> {
        let report = self.server.stop(self.request_limit).await;
        if report.unfinished > 0 {
            tracing::warn!(
                unfinished = report.unfinished,
                "requests go back to the broker for another scheduler"
            );
        }
        self.tasks.stop().cancel();
        self.decisions.finish();
        if !self.tasks.finish(FINISH).await {
            tracing::warn!(
                "some work did not end within {FINISH:?}; it is durable and goes on at the next start"
            );
        }
        self.preempting.close_bus().await;
        for transport in &self.transports {
            transport.close().await;
        }
        self.preempting.close_ledger().await;
        self.decisions.close().await;
        self.plugins.close().await;
        self.facts.database.nova().close().await;
        tracing::info!("ended");
        match self.tasks.failure() {
            Some(error) => Err(error.into()),
            None => Ok(()),
        }
    }
}

/// What SIGHUP renews, of a scheduler and of a shadow: the logins, the cells, the operator's
/// plugins and the choice of the cost module. Other changes of nova.conf apply at the next start.
pub(crate) struct Reloaded<'a> {
    /// With which it was started.
    pub(crate) running: &'a NovaConf,
    pub(crate) logins: &'a Logins<NovaConf>,
    pub(crate) facts: &'a Facts,
    pub(crate) plugins: &'a NovaServicePlugins,
}

impl Reloaded<'_> {
    pub(crate) async fn reload(&self, conf: Result<NovaConf, NovaServiceError>) {
        match &conf {
            Ok(read) => {
                let later = read.changes_for_next_start(self.running);
                self.logins.renew(Ok((read, &later))).await;
            }
            Err(error) => {
                let refusal = Refusal::new(error.code(), error);
                self.logins.renew(Err(refusal)).await;
            }
        }
        match self.facts.database.load().await {
            Ok(()) => tracing::info!("SIGHUP: the cells are read anew"),
            Err(error) => tracing::error!(code = error.code(), "SIGHUP: {error}"),
        }
        let done = match conf {
            Ok(conf) => plugins::read_again(self.plugins, &conf).await,
            Err(error) => Err(error),
        };
        match done {
            Ok(plugins) => tracing::info!(plugins, "SIGHUP: the plugins were read again"),
            Err(error) => tracing::error!(
                code = error.code(),
                "SIGHUP: the plugins stay as they are: {error}"
            ),
        }
    }
}

/// Repeats an operation that fails because a service is unavailable.
pub(crate) async fn patiently<T, F>(
    tasks: &Tasks,
    what: &str,
    mut work: impl FnMut() -> F,
) -> Result<T, NovaServiceError>
where
    F: Future<Output = Result<T, NovaServiceError>>,
{
    loop {
        match work().await {
            Ok(done) => return Ok(done),
            Err(error) if error.is_passing() => {
                tracing::warn!(code = error.code(), "{what}: {error}; trying again");
                if !pause(tasks.stop(), START_PAUSE).await {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

pub(crate) async fn open_facts(
    conf: &NovaConf,
    ledger: Option<StoreConfig>,
    tasks: &Tasks,
) -> Result<(Facts, NovaServicePlugins, Option<NovaRelease>), NovaServiceError> {
    let (auth, session, adapter) = configure::placement(conf)?;
    let placement = Placement::new(Session::new(auth, session)?, adapter)?;
    let databases = configure::databases(conf)?;
    let nova = patiently(tasks, "Nova's databases", || async {
        Ok(NovaDb::connect(&databases).await?)
    })
    .await?;
    let (shown, release) = patiently(tasks, "the cloud's services", || {
        release::at_start(&nova, conf)
    })
    .await?;
    let options = configure::deciding(conf, release)?;
    let facts = |cloud| Facts::of_sources(cloud, nova, placement);
    let (plugins, facts) = plugins::load(conf, options, configure::cloud(conf), facts)?;
    plugins::follow(&plugins, ledger, tasks).await?;
    patiently(tasks, "Nova's databases", || facts.database.load()).await?;
    patiently(tasks, "Placement", || facts.providers.load()).await?;
    Ok((facts, plugins, shown))
}

async fn own_record(
    conf: &NovaConf,
    facts: &Facts,
    shown: Option<NovaRelease>,
    tasks: &Tasks,
) -> Result<OwnService, NovaServiceError> {
    let nova = facts.database.nova();
    let too_old = if configure::tolerates_old_computes(conf) {
        OldComputePolicy::Warn
    } else {
        OldComputePolicy::Refuse
    };
    patiently(tasks, "the service record", || async {
        let release = release::recorded(shown, conf);
        Ok(OwnService::start(nova, &conf.general.host, release, too_old).await?)
    })
    .await
}

/// Updates the service record regularly, so that `openstack compute service list` shows this
/// scheduler as up.
fn beat(release: &CloudRelease, conf: &NovaConf, tasks: &Tasks) {
    let every = Duration::from_secs(
        u64::try_from(conf.general.report_interval)
            .unwrap_or(10)
            .max(1),
    );
    let release = release.clone();
    tasks.repeat("service-record", every, move || {
        let release = release.clone();
        async move { release.beat().await }
    });
}

/// Maps new hosts to their cells, at once and then regularly, if the operator enabled it.
fn discover_hosts(conf: &NovaConf, facts: &Facts, tasks: &Tasks) {
    let wish = conf.scheduler.discover_hosts_in_cells_interval;
    let Some(seconds) = wish.and_then(|seconds| u64::try_from(seconds).ok()) else {
        return;
    };
    let (nova, stop) = (facts.database.nova().clone(), tasks.stop().clone());
    tasks.spawn("discover-hosts", async move {
        loop {
            match nova.discover_hosts().await {
                Ok(found) if found.is_empty() => {}
                Ok(found) => {
                    let hosts: Vec<String> = found.into_iter().map(|host| host.host).collect();
                    tracing::info!(?hosts, "new hosts are mapped to their cells");
                }
                Err(error) => tracing::warn!(code = error.code(), "{error}"),
            }
            if !pause(&stop, Duration::from_secs(seconds.max(1))).await {
                return;
            }
        }
    });
}

/// Notifications go to Nova's bus, or to a bus of their own, which is then added to the open ones.
fn notices(
    conf: &NovaConf,
    transports: &mut Vec<Transport>,
    tasks: &Tasks,
) -> Result<Notices, NovaServiceError> {
    let wishes = &conf.notifications;
    if !wishes.enabled() {
        return Ok(Notices::default());
    }
    if let Some(url) = &wishes.transport_url {
        let (url, options) = configure::transport(conf, url)?;
        transports.push(Transport::start(
            &url,
            options,
            &conf.general.control_exchange,
        )?);
    }
    let Some(transport) = transports.last() else {
        return Ok(Notices::default());
    };
    let format = if wishes.drivers.iter().any(|driver| driver == "messagingv2") {
        NotifierFormat::V2
    } else {
        NotifierFormat::V1
    };
    let notifier = |publisher: String, topics: &[String]| {
        Notifier::new(
            transport,
            NotifierOptions {
                publisher_id: publisher,
                topics: topics.to_vec(),
                format,
            },
        )
    };
    let host = &conf.general.host;
    let old = wishes.format != NotificationFormat::Versioned;
    let new = wishes.format != NotificationFormat::Unversioned;
    let legacy = old.then(|| notifier(format!("scheduler.{host}"), &wishes.topics));
    let versioned =
        new.then(|| notifier(format!("nova-scheduler:{host}"), &wishes.versioned_topics));
    Ok(Notices::new(
        legacy.transpose()?,
        versioned.transpose()?,
        tasks,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_get_the_time_that_the_rest_of_the_stop_does_not_need() {
        let seconds = |timeout| request_limit(timeout).as_secs();
        assert_eq!(seconds(180), 160);
        assert_eq!(seconds(60), 40);
        assert_eq!(seconds(15), 10, "background work gets as much in any case");
        assert_eq!(request_limit(0), Duration::MAX);
    }
}

//! Start and shutdown of the service.

use crate::Tasks;
use crate::access_warnings::{self, ListenAddresses};
use crate::advice::LifeTimes;
use crate::agent_logins::AgentLogins;
use crate::agent_queues::AgentQueues;
use crate::archive;
use crate::cloud::{Api, RegionView, Standalone};
use crate::config::{AgentIdentity, Config, LogFormat, Tls};
use crate::error::ServiceError;
use crate::gate::Gate;
use crate::grpc;
use crate::http::{self, Pages};
use crate::lease::{self, HeldLease, LeaseApplicant, OtherHolder};
use crate::metrics::Metrics;
use crate::outbox::{self, Outbox, Sender};
use crate::plugins::Plugins;
use crate::region_actor::{self, ActorDependencies, RegionActor};
use crate::wire::{Port, TlsServer};
use crate::{inbox, logins, ticker};
use ebbtide_bus::{
    AmqpBus, AmqpConfig, BrokerUrl, Bus, BusIdentity, BusLogins, QueueKind, QueuePrefix,
};
use ebbtide_listen::Protocol;
use ebbtide_model::Seconds;
use ebbtide_runtime::clock::{self, Stopwatch};
use ebbtide_runtime::ids;
use ebbtide_service_manager::reload::Logins;
use ebbtide_store::{Lease, Store, StoreConfig, StoreError};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How long tasks may take to finish their work at shutdown.
const FINISH: Duration = Duration::from_secs(10);

/// A bus and the name of its kind.
pub struct NamedBus {
    /// `amqp` or `in-process`.
    pub name: &'static str,
    pub bus: Arc<dyn Bus>,
    /// Its logins at the broker, if it has one.
    pub logins: Option<BusLogins>,
}

/// A running service.
pub struct RunningScheduler {
    /// Address of the API: gRPC and REST.
    pub grpc: SocketAddr,
    /// Address of metrics and health.
    pub http: SocketAddr,
    region_actor: RegionActor,
    plugins: Plugins,
    logins: Arc<Logins<Config>>,
    bus: Arc<dyn Bus>,
    tasks: Tasks,
}

impl RunningScheduler {
    /// The logins that a reload renews.
    #[must_use]
    pub fn logins(&self) -> &Arc<Logins<Config>> {
        &self.logins
    }

    /// The plugins in use.
    #[must_use]
    pub fn plugins(&self) -> &Plugins {
        &self.plugins
    }

    /// The region actor, for code in the same process.
    #[must_use]
    pub fn region_actor(&self) -> &RegionActor {
        &self.region_actor
    }

    /// Writes the ready file with the addresses atomically.
    ///
    /// # Errors
    /// [`ServiceError::Config`] with the file.
    pub fn write_ready_file(&self, path: &Path) -> Result<(), ServiceError> {
        let text = serde_json::json!({
            "grpc": self.grpc.to_string(),
            "http": self.http.to_string(),
            "pid": std::process::id(),
        });
        let draft = path.with_extension("draft");
        std::fs::write(&draft, format!("{text}\n"))
            .and_then(|()| std::fs::rename(&draft, path))
            .map_err(|e| ServiceError::Config(format!("--ready-file {}: {e}", path.display())))
    }

    /// Waits until the service has to end, and shuts it down: it accepts nothing new and finishes
    /// what it has accepted.
    ///
    /// # Errors
    /// The reason, if the service ended because of an error.
    pub async fn finish(self) -> Result<(), ServiceError> {
        self.tasks.stop().cancelled().await;
        let Self {
            region_actor,
            bus,
            tasks,
            ..
        } = self;
        // The region actor ends when all its handles are dropped.
        drop(region_actor);
        bus.close().await;
        if !tasks.finish(FINISH).await {
            tracing::warn!(
                "some work did not end within {FINISH:?}; it is durable and goes on at the next start"
            );
        }
        tracing::info!("ended");
        tasks.failure().map_or(Ok(()), Err)
    }
}

/// Opens the bus to the configured broker, which need not be available yet.
///
/// # Errors
/// An invalid URL.
pub fn open_bus(config: &Config) -> Result<NamedBus, ServiceError> {
    let brokers = config
        .bus
        .urls
        .iter()
        .map(|url| url.parse::<BrokerUrl>())
        .collect::<Result<Vec<_>, _>>()?;
    let mut amqp = AmqpConfig::new(brokers, "ebbtide-scheduler");
    if config.bus.queue_type == "quorum" {
        amqp.queue_kind = QueueKind::Quorum;
    }
    if config.bus.agent_identity == AgentIdentity::UserId {
        amqp.identity = BusIdentity::Scheduler;
    }
    amqp.tls_files = config.bus.tls_files();
    let bus = AmqpBus::open(amqp)?;
    Ok(NamedBus {
        name: "amqp",
        logins: Some(bus.logins()),
        bus: Arc::new(bus),
    })
}

fn store_config(config: &Config) -> Result<StoreConfig, ServiceError> {
    let mut store_config = StoreConfig::new(&config.database.url)?;
    store_config.max_connections = config.database.max_connections;
    store_config.sqlite_max_pages = config.database.sqlite_max_pages;
    store_config.operation_timeout = Duration::from_secs(config.database.timeout_seconds.into());
    Ok(store_config)
}

/// Marks the region's database as restored from a backup, and returns what to say about it.
///
/// # Errors
/// The configuration; the database.
pub async fn mark_restored(config: &Config) -> Result<String, ServiceError> {
    config.check()?;
    let store = Store::open(&store_config(config)?).await?;
    let marked = store.mark_restored(clock::now()).await;
    store.close().await;
    let backup_at = marked?.backup_at;
    let of = backup_at.map_or_else(
        || "in which no agent was heard".to_owned(),
        |at| format!("in which an agent was last heard at {at}"),
    );
    Ok(format!(
        "The database is marked as restored from a backup {of}.\n\
         Start the scheduler; then `ebbtide-manage reconcile` shows what has to be done.\n"
    ))
}

/// Starts the service: database, region, bus, API. Returns when it answers requests.
///
/// # Errors
/// Anything that prevents the start: the configuration, a port, the database, another scheduler on
/// it.
pub async fn start(
    config: Config,
    bus: NamedBus,
    stop: CancellationToken,
) -> Result<RunningScheduler, ServiceError> {
    let NamedBus {
        name: bus_kind,
        bus,
        logins: bus_logins,
    } = bus;
    config.check()?;
    let prefix = QueuePrefix::new(&config.bus.prefix)?;
    let plugins = Plugins::load(&config)?;
    // The ports come first, so that a second copy started by mistake fails before it touches the
    // database.
    let grpc_port = Port::take("gRPC", config.grpc.listen, "--listen").await?;
    let http_port = Port::take("HTTP (metrics)", config.http.listen, "--http-listen").await?;
    let tls = |section, tls: Option<&Tls>, protocols| match tls {
        Some(files) => TlsServer::load(files, section, protocols).map(Some),
        None => Ok(None),
    };
    let grpc_tls = tls("grpc", config.grpc.tls.as_ref(), &[b"h2", b"http/1.1"])?;
    let http_tls = tls("http", config.http.tls.as_ref(), &[b"http/1.1"])?;
    let metrics = Metrics::new();
    let gate = Gate::open(&config, metrics.refusals())?;
    let rest = grpc::rest_layer(&gate, config.grpc.tls.is_some())?;
    let at = ListenAddresses {
        grpc: grpc_port.address,
        http: http_port.address,
        broker: bus_kind == "amqp",
    };
    for line in access_warnings::warnings(&config, &at) {
        tracing::warn!("{line}");
    }
    let store_config = store_config(&config)?;
    let store = Store::open(&store_config).await?;
    let logins = Arc::new(logins::logins(bus_logins, &store_config));
    let holder = format!(
        "ebbtide-scheduler {} on {}",
        std::process::id(),
        grpc_port.address
    );
    let applicant = LeaseApplicant {
        store: store.clone(),
        holder,
        ttl: Seconds(config.database.lease_seconds),
    };
    let duty = HeldLease::new(first_lease(&applicant, &stop).await?);
    let tasks = Tasks::new(stop);
    plugins.live().begin(store.plugins()).await?;
    plugins.live().follow(&tasks);
    gate.follow(&tasks);
    for tls in [&grpc_tls, &http_tls].into_iter().flatten() {
        tls.follow(&tasks);
    }
    let outbox = Outbox::default();
    let written = CancellationToken::new();
    let region_actor = region_actor::start(
        ActorDependencies {
            store: store.clone(),
            duty: duty.clone(),
            engines: plugins.engines(),
            shadow: plugins.shadow().clone(),
            region_config: config.region.clone(),
            outbox: outbox.clone(),
            metrics: metrics.clone(),
        },
        written.clone(),
        &tasks,
    )
    .await?;
    lease::start(applicant, duty.clone(), bus.status(), written, &tasks);
    inbox::start(
        inbox::Reader {
            bus: Arc::clone(&bus),
            prefix: prefix.clone(),
            region_actor: region_actor.clone(),
            metrics: metrics.clone(),
            duty: duty.clone(),
            speakers: AgentLogins::of(&config.bus),
            most_bytes: config.limits.bus_message_bytes,
            rejects: Arc::default(),
        },
        &tasks,
    );
    outbox::start(
        Sender {
            outbox: outbox.clone(),
            bus: Arc::clone(&bus),
            prefix: prefix.clone(),
            region_actor: region_actor.clone(),
            metrics: metrics.clone(),
        },
        &tasks,
    );
    ticker::start_ticks(region_actor.clone(), &tasks);
    ticker::start_trim(store.clone(), &tasks);
    let policy = archive::ArchivePolicy {
        keep: config.database.retention(),
        directory: config.database.archive.clone(),
    };
    archive::start(store.clone(), duty.clone(), policy, &tasks);
    let pages = Pages {
        region_actor: region_actor.clone(),
        outbox,
        duty: duty.clone(),
        metrics: metrics.clone(),
        bus: bus.status(),
        gate: gate.clone(),
        plugins: plugins.clone(),
    };
    let (http, grpc) = (http_port.address, grpc_port.address);
    let limits = &config.limits;
    http::serve(
        http_port.open(
            Protocol::Http1,
            http_tls,
            limits,
            metrics.refusals(),
            &tasks,
        ),
        pages,
        &tasks,
    );
    let store_name = store.backend().as_str();
    let view = RegionView {
        region_actor: region_actor.clone(),
        store: store.clone(),
        bus: bus.status(),
        bus_kind,
        plugins: plugins.clone(),
        policy: config.engine.policy.as_str().to_owned(),
        database: store_name.to_owned(),
        config: config.region.clone(),
        queues: AgentQueues {
            bus: Arc::clone(&bus),
            prefix,
            logins: AgentLogins::of(&config.bus),
        },
    };
    let standalone = Standalone {
        duty: duty.clone(),
        region_actor: region_actor.clone(),
        store,
        plugins: plugins.clone(),
    };
    let lives = LifeTimes {
        retention: config.database.retention(),
        // A life is recorded in the transaction that ends it.
        late: Seconds(0),
    };
    let api = Api::of_region(view, standalone, lives);
    let connections = grpc_port.open(
        Protocol::Http2,
        grpc_tls,
        limits,
        metrics.refusals(),
        &tasks,
    );
    grpc::serve(connections, api, gate, rest, &tasks);
    tracing::info!(%grpc, %http, session = %ids::new(), "ebbtide-scheduler is ready");
    Ok(RunningScheduler {
        grpc,
        http,
        region_actor,
        plugins,
        logins,
        bus,
        tasks,
    })
}

/// The lease at the start. On a shared database none is needed: its holder is on duty, and this
/// scheduler decides without it. SQLite allows only one scheduler, so this function waits for the
/// lease, in case its holder was killed.
async fn first_lease(
    applicant: &LeaseApplicant,
    stop: &CancellationToken,
) -> Result<Option<Lease>, ServiceError> {
    let since = Stopwatch::start();
    let give_up = applicant.lasts() + Duration::from_secs(2);
    let mut others = OtherHolder::default();
    let mut told = false;
    loop {
        match applicant.apply(&mut others).await {
            Ok(lease) => return Ok(Some(lease)),
            Err(StoreError::LeaseHeld { .. }) if applicant.store.is_shared() => return Ok(None),
            // A live holder renews its lease before it ends, so after this time another scheduler
            // does run.
            Err(error @ StoreError::LeaseHeld { .. }) if since.elapsed() < give_up => {
                if !told {
                    tracing::info!(
                        "{error}; waiting in case that scheduler is gone (SQLite takes one scheduler, MariaDB and PostgreSQL several)"
                    );
                    told = true;
                }
                if !ebbtide_runtime::task::pause(stop, Duration::from_millis(500)).await {
                    return Err(ServiceError::Stopping);
                }
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// Initializes logging to standard error, as configured. For binaries; call it once in a process.
///
/// # Errors
/// [`ServiceError::Config`] if the filter is invalid.
pub fn init_log(config: &Config) -> Result<(), ServiceError> {
    let filter = config
        .log
        .filter
        .parse::<tracing_subscriber::EnvFilter>()
        .map_err(|e| ServiceError::Config(format!("log.filter: {e}")))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr);
    let done = match config.log.format {
        LogFormat::Text => log
            .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
            .try_init(),
        LogFormat::Json => log.json().try_init(),
    };
    done.map_err(|e| ServiceError::Config(format!("log: {e}")))
}

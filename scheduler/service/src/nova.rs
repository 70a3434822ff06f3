//! The mode that replaces nova-scheduler: `--config-file /etc/nova/nova.conf`.

use crate::args::Args;
use crate::openstack_api::{self, OpenStackApi, OpenStackApiConfig};
use crate::oslo_log::{OsloFormat, RequestFields};
use ebbtide_nova_service::nova_conf::{LogFormat, NovaConf};
use ebbtide_nova_service::{
    CloudReader, LimitSource, NovaService, NovaServiceError, PROGRAM, ShadowService,
};
use ebbtide_runtime::task::{self, Task};
use ebbtide_service_manager as service_manager;
use ebbtide_service_manager::health::HealthError;
use ebbtide_telemetry::TelemetrySettings;
use std::fs::OpenOptions;
use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Reads nova.conf as nova-scheduler does.
///
/// # Errors
/// [`NovaServiceError::Config`] with file, line, option and the allowed values.
pub fn read(args: &Args) -> Result<NovaConf, NovaServiceError> {
    ebbtide_nova_service::read_conf(&args.config_file, &args.config_dir)
}

/// The page that a health check asks: `[ebbtide] metrics_listen`.
///
/// # Errors
/// [`NovaServiceError::Config`] if the option is no address; [`HealthError`] if it is not set.
pub fn health_page(conf: &NovaConf) -> Result<Result<SocketAddr, HealthError>, NovaServiceError> {
    match &conf.ebbtide.metrics_listen {
        Some(listen) => ebbtide_nova_service::listen_address(listen).map(Ok),
        None => Ok(Err(HealthError::NoPage {
            problem: "nova.conf does not set [ebbtide] metrics_listen",
            next: "set it to 127.0.0.1:7471, for example",
        })),
    }
}

/// The log file: the flags, `[DEFAULT] log_file` within `log_dir`, or `None` for standard error.
#[must_use]
pub fn log_file(args: &Args, conf: &NovaConf) -> Option<PathBuf> {
    let file = args
        .log_file
        .clone()
        .or_else(|| conf.general.log_file.clone().map(PathBuf::from));
    let set = conf.general.log_dir.as_deref().map(Path::new);
    let dir = args.log_dir.as_deref().or(set);
    match (file, dir) {
        (Some(file), Some(dir)) if file.is_relative() => Some(dir.join(file)),
        (Some(file), _) => Some(file),
        (None, Some(dir)) => Some(dir.join(format!("{PROGRAM}.log"))),
        (None, None) => None,
    }
}

/// Initializes logging. Call it once in a process.
///
/// # Errors
/// [`NovaServiceError::Config`] if the filter cannot be read or the file cannot be written.
pub fn init_log(args: &Args, conf: &NovaConf) -> Result<(), NovaServiceError> {
    let default = if args.debug || conf.general.debug {
        "debug,sqlx=info,hyper=info,reqwest=info"
    } else {
        "info"
    };
    let filter = args.log.as_deref().unwrap_or(default);
    let wrong = |error: String| NovaServiceError::Config(error);
    let filter: tracing_subscriber::EnvFilter =
        filter.parse().map_err(|e| wrong(format!("--log: {e}")))?;
    let format = match conf.ebbtide.log_format {
        _ if args.log_json => LogFormat::Json,
        format => format,
    };
    // Before any other thread is there: only then is the time zone known.
    let oslo = OsloFormat::new();
    let (writer, ansi) = match log_file(args, conf) {
        Some(path) => {
            let file = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .map_err(|e| wrong(format!("log file {}: {e}", path.display())))?;
            (BoxMakeWriter::new(std::sync::Mutex::new(file)), false)
        }
        None => {
            let terminal = std::io::stderr().is_terminal();
            (BoxMakeWriter::new(std::io::stderr), terminal)
        }
    };
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let log = tracing_subscriber::registry()
        .with(filter)
        .with(RequestFields);
    let done = match format {
        LogFormat::Text => log.with(lines.with_ansi(ansi)).try_init(),
        LogFormat::Json => log.with(lines.with_ansi(ansi).json()).try_init(),
        LogFormat::Oslo => log
            .with(lines.with_ansi(false).event_format(oslo))
            .try_init(),
    };
    done.map_err(|e| wrong(format!("log: {e}")))
}

/// Marks the ledger as restored from a backup; what to do next.
///
/// # Errors
/// No ledger is configured; its database.
pub async fn mark_restored(conf: &NovaConf) -> Result<String, NovaServiceError> {
    let mark = ebbtide_nova_service::reconcile::mark_restored(conf).await?;
    let of = mark.backup_at.map_or_else(
        || "in which no scheduler has registered".to_owned(),
        |at| format!("in which a scheduler gave its last sign of life at {at}"),
    );
    Ok(format!(
        "The ledger is marked as restored from a backup {of}.\n\
         Start the schedulers; then `ebbtide-manage reconcile --config-file NOVA_CONF` shows what has to be done.\n"
    ))
}

/// Runs the service until SIGTERM or SIGINT. SIGHUP makes it read the logins and the plugins of
/// nova.conf, and the cells, again.
///
/// # Errors
/// The service cannot start, or cannot continue.
pub async fn run(args: &Args, conf: &NovaConf) -> Result<(), NovaServiceError> {
    let watched =
        |kind| signal(kind).map_err(|e| NovaServiceError::Config(format!("signals: {e}")));
    let (mut terminate, mut interrupt, mut hangup) = (
        watched(SignalKind::terminate())?,
        watched(SignalKind::interrupt())?,
        watched(SignalKind::hangup())?,
    );
    if args.shadow {
        let stop = CancellationToken::new();
        let signals = (&mut terminate, &mut interrupt, &mut hangup);
        return Box::pin(shadow(args, conf, stop, signals)).await;
    }
    let traces = TelemetrySettings {
        otlp_endpoint: conf.ebbtide.otlp_endpoint.clone(),
        sample: conf.ebbtide.trace_sample,
    };
    let wrong = |problem: String| NovaServiceError::Config(format!("nova.conf: {problem}"));
    let traces = ebbtide_telemetry::start(&traces, PROGRAM, &conf.general.host)
        .map_err(|error| wrong(format!("[ebbtide] otlp_endpoint {}", error.problem)))?;
    let signals = (&mut terminate, &mut interrupt, &mut hangup);
    let ended = Box::pin(serve(args, conf, signals)).await;
    traces.finish().await;
    ended
}

async fn serve(
    args: &Args,
    conf: &NovaConf,
    (terminate, interrupt, hangup): (&mut Signal, &mut Signal, &mut Signal),
) -> Result<(), NovaServiceError> {
    let api = OpenStackApiConfig::read(args, conf)?;
    let limits = openstack_api::limits(args, conf)?;
    let limits_session = limits.as_ref().map(|reader| reader.session().clone());
    let limits = limits.map(|reader| Arc::new(reader) as Arc<dyn LimitSource>);
    let stop = CancellationToken::new();
    let opening = NovaService::open(conf, limits, stop.clone());
    tokio::pin!(opening);
    let mut service = tokio::select! {
        service = &mut opening => service?,
        () = wait_for_end_signal(terminate, interrupt) => {
            stop.cancel();
            return Ok(());
        }
    };
    let api = match api {
        Some(config) => match OpenStackApi::start(config, &service, stop.clone()).await {
            Ok(api) => Some(api),
            Err(error) => {
                let _ = service.close().await;
                return Err(NovaServiceError::Config(format!(
                    "nova.conf: [ebbtide] api_listen: {}: {error}",
                    error.code()
                )));
            }
        },
        None => None,
    };
    let of_api = api
        .as_ref()
        .map(|api| (openstack_api::SOURCE, api.session()));
    let of_limits = limits_session
        .as_ref()
        .map(|session| (openstack_api::LIMITS_SOURCE, session));
    for (source, session) in of_api.into_iter().chain(of_limits) {
        openstack_api::add_login(service.logins_mut(), args, source, session);
    }
    if let Some(path) = args.ready_file.as_deref() {
        let address = api.as_ref().map(|api| api.address);
        write_ready_file(path, &conf.general.host, address)?;
    }
    let _watchdog = watch(service.reader());
    service_manager::ready(&format!("scheduler.{}", conf.general.host));
    loop {
        tokio::select! {
            () = wait_for_end_signal(terminate, interrupt) => break,
            () = stop.cancelled() => break,
            _ = hangup.recv() => service.reload(read(args)).await,
        }
    }
    service_manager::stopping();
    let closed = service.close().await;
    if let Some(api) = api {
        api.finish().await;
    }
    closed
}

/// Runs a shadow beside nova-scheduler until SIGTERM or SIGINT. SIGHUP does what it does to
/// [`serve`].
async fn shadow(
    args: &Args,
    conf: &NovaConf,
    stop: CancellationToken,
    (terminate, interrupt, hangup): (&mut Signal, &mut Signal, &mut Signal),
) -> Result<(), NovaServiceError> {
    let limits = openstack_api::limits(args, conf)?;
    let limits_session = limits.as_ref().map(|reader| reader.session().clone());
    let limits = limits.map(|reader| Arc::new(reader) as Arc<dyn LimitSource>);
    let opening = ShadowService::open(conf, limits, stop.clone());
    tokio::pin!(opening);
    let mut service = tokio::select! {
        service = &mut opening => service?,
        () = wait_for_end_signal(terminate, interrupt) => {
            stop.cancel();
            return Ok(());
        }
    };
    if let Some(session) = &limits_session {
        let source = openstack_api::LIMITS_SOURCE;
        openstack_api::add_login(service.logins_mut(), args, source, session);
    }
    if let Some(path) = args.ready_file.as_deref() {
        write_ready_file(path, &conf.general.host, None)?;
    }
    service_manager::ready(&format!("shadow of scheduler.{}", conf.general.host));
    loop {
        tokio::select! {
            () = wait_for_end_signal(terminate, interrupt) => break,
            () = stop.cancelled() => break,
            _ = hangup.recv() => service.reload(read(args)).await,
        }
    }
    service_manager::stopping();
    service.close().await
}

/// The watchdog of systemd, if there is one.
fn watch(reader: CloudReader) -> Option<Task> {
    service_manager::watch(move || {
        let reader = reader.clone();
        async move {
            task::blocking(move || reader.wait_until_readable())
                .await
                .is_ok()
        }
    })
}

async fn wait_for_end_signal(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => tracing::info!("SIGTERM: ending"),
        _ = interrupt.recv() => tracing::info!("SIGINT: ending"),
    }
}

/// Writes the ready file atomically when the service answers requests.
fn write_ready_file(
    path: &Path,
    host: &str,
    api: Option<SocketAddr>,
) -> Result<(), NovaServiceError> {
    let mut text =
        serde_json::json!({"server": format!("scheduler.{host}"), "pid": std::process::id()});
    if let Some(address) = api {
        text["api"] = serde_json::json!(address.to_string());
    }
    let draft = path.with_extension("draft");
    std::fs::write(&draft, format!("{text}\n"))
        .and_then(|()| std::fs::rename(&draft, path))
        .map_err(|e| NovaServiceError::Config(format!("--ready-file {}: {e}", path.display())))
}

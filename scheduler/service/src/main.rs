//! `ebbtide-scheduler`: reads its configuration, starts, and ends on SIGTERM or SIGINT.

use clap::Parser;
use ebbtide_nova_service::{NovaServiceError, PROGRAM};
use ebbtide_runtime::ids;
use ebbtide_scheduler::args::Args;
use ebbtide_scheduler::openstack_api::OpenStackApiConfig;
use ebbtide_scheduler::{Config, ServiceError};
use ebbtide_scheduler::{logins, nova};
use ebbtide_service_manager as service_manager;
use ebbtide_service_manager::health::{self, HealthError};
use std::fmt::Display;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let args = Args::parse();
    if args.is_for_nova(std::env::args_os().next().as_deref()) {
        return for_nova(&args);
    }
    let config = match args.config(std::env::vars()) {
        Ok(config) => config,
        Err(error) => return complain(&error, 2),
    };
    if args.check_config {
        return match toml::to_string_pretty(&config.without_passwords()) {
            Ok(text) => {
                print_text(&text);
                ExitCode::SUCCESS
            }
            Err(error) => complain(&ServiceError::Config(error.to_string()), 2),
        };
    }
    if args.health {
        return healthy(health_page(&config));
    }
    if let Err(error) = ebbtide_scheduler::init_log(&config) {
        return complain(&error, 2);
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return complain(&ServiceError::Config(format!("no runtime: {error}")), 1),
    };
    if args.restored {
        return match runtime.block_on(ebbtide_scheduler::mark_restored(&config)) {
            Ok(text) => {
                print_text(&text);
                ExitCode::SUCCESS
            }
            Err(error) => complain(&error, 1),
        };
    }
    match runtime.block_on(run(config, &args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error, 1),
    }
}

/// In place of nova-scheduler.
fn for_nova(args: &Args) -> ExitCode {
    let refuse = |error: &NovaServiceError, code: u8| refused(error.code(), error, code);
    if args.config.is_some() {
        let what = format!(
            "{PROGRAM} reads nova.conf (--config-file), and --config or EBBTIDE_CONFIG_FILE names a file of a region of its own; \
             for such a region call the program ebbtide-scheduler"
        );
        return refuse(&NovaServiceError::Config(what), 2);
    }
    let conf = match nova::read(args) {
        Ok(conf) => conf,
        Err(error) => return refuse(&error, 2),
    };
    if args.check_config {
        if let Err(error) = OpenStackApiConfig::read(args, &conf) {
            return refuse(&error, 2);
        }
        print_text(&ebbtide_nova_service::describe(&conf));
        return ExitCode::SUCCESS;
    }
    if args.health {
        return healthy(match nova::health_page(&conf) {
            Ok(page) => page,
            Err(error) => return refuse(&error, 2),
        });
    }
    if let Err(error) = nova::init_log(args, &conf) {
        return refuse(&error, 2);
    }
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return refuse(&NovaServiceError::Config(format!("no runtime: {error}")), 1),
    };
    if args.restored {
        return match runtime.block_on(nova::mark_restored(&conf)) {
            Ok(text) => {
                print_text(&text);
                ExitCode::SUCCESS
            }
            Err(error) => refuse(&error, 1),
        };
    }
    match runtime.block_on(nova::run(args, &conf)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(code = error.code(), "{error}");
            refuse(&error, 1)
        }
    }
}

/// The page of a region that a health check asks.
fn health_page(config: &Config) -> Result<SocketAddr, HealthError> {
    match &config.http.tls {
        None => Ok(config.http.listen),
        Some(_) => Err(HealthError::NoPage {
            problem: "http.tls is set, and a health check speaks no TLS",
            next: "let the orchestrator ask https://ADDRESS:PORT/readyz instead",
        }),
    }
}

fn healthy(page: Result<SocketAddr, HealthError>) -> ExitCode {
    match page.and_then(health::ask) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => refused(error.code(), &error, 1),
    }
}

fn complain(error: &ServiceError, code: u8) -> ExitCode {
    refused(error.code(), error, code)
}

fn refused(code: &str, error: &dyn Display, exit: u8) -> ExitCode {
    let _ = writeln!(io::stderr(), "ebbtide-scheduler: {code}: {error}");
    ExitCode::from(exit)
}

/// A closed pipe (`| head`) is not an error.
fn print_text(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

async fn run(config: Config, args: &Args) -> Result<(), ServiceError> {
    let watched = |kind| signal(kind).map_err(|e| ServiceError::Config(format!("signals: {e}")));
    let (mut terminate, mut interrupt, mut hangup) = (
        watched(SignalKind::terminate())?,
        watched(SignalKind::interrupt())?,
        watched(SignalKind::hangup())?,
    );
    let traces = ebbtide_telemetry::start(&config.telemetry, "ebbtide-scheduler", &ids::short())
        .map_err(|error| ServiceError::Config(error.to_string()))?;
    let ended = serve(config, args, (&mut terminate, &mut interrupt, &mut hangup)).await;
    traces.finish().await;
    ended
}

async fn serve(
    config: Config,
    args: &Args,
    (terminate, interrupt, hangup): (&mut Signal, &mut Signal, &mut Signal),
) -> Result<(), ServiceError> {
    let stop = CancellationToken::new();
    let bus = ebbtide_scheduler::open_bus(&config)?;
    let running = ebbtide_scheduler::start(config.clone(), bus, stop.clone()).await?;
    if let Some(path) = &args.ready_file {
        running.write_ready_file(path)?;
    }
    let asked = stop.clone();
    let plugins = running.plugins().clone();
    let logins = Arc::clone(running.logins());
    let region_actor = running.region_actor().clone();
    // A region actor that waits for a database that is away is alive: it answers with the error.
    let mut watchdog = service_manager::watch(move || {
        let region_actor = region_actor.clone();
        async move {
            let _ = region_actor.read(|_| ()).await;
            true
        }
    });
    service_manager::ready(&format!(
        "gRPC at {}, HTTP at {}",
        running.grpc, running.http
    ));
    let finished = running.finish();
    tokio::pin!(finished);
    loop {
        tokio::select! {
            _ = terminate.recv() => {
                tracing::info!("SIGTERM: ending");
                break;
            }
            _ = interrupt.recv() => {
                tracing::info!("SIGINT: ending");
                break;
            }
            _ = hangup.recv() => {
                logins::reload(args, &config, &logins).await;
                plugins.read_again(args).await;
            }
            // The region actor ends when all its handles are dropped, also after an error.
            () = stop.cancelled(), if watchdog.is_some() => watchdog = None,
            ended = &mut finished => return ended,
        }
    }
    service_manager::stopping();
    drop(watchdog);
    asked.cancel();
    finished.await
}

//! `ebbtide-agent`: reads its configuration, starts, and ends on SIGTERM or SIGINT.

use clap::Parser;
use ebbtide_agent::cli::{self, Cli, Command, ConfigArgs, ConfigCommand};
use ebbtide_agent::clock::{Clock, SystemClock};
use ebbtide_agent::driver::registry::{self, DriverContext};
use ebbtide_agent::health::pages;
use ebbtide_agent::logins::{self, BusConnector, DriverHandle};
use ebbtide_agent::{Agent, AgentError, Config, Health, fleet, logging};
use ebbtide_service_manager as service_manager;
use ebbtide_service_manager::health::{self, HealthError};
use ebbtide_service_manager::reload::{Logins, Refusal};
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let done = match cli.command {
        None => run(&cli.run),
        Some(Command::Run(args)) => run(&args),
        Some(Command::Health(args)) => ask_health(&args),
        Some(Command::Config(ConfigCommand::Check(args))) => check(&args),
        Some(Command::Simulate(args)) => args.run().map(|said| print_text(&said)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "ebbtide-agent: {}: {error}", error.code());
            ExitCode::from(error.exit_code())
        }
    }
}

fn check(args: &ConfigArgs) -> Result<(), AgentError> {
    let config = args.read(std::env::vars())?;
    print_text(&cli::describe(&config)?);
    Ok(())
}

fn ask_health(args: &ConfigArgs) -> Result<(), AgentError> {
    let config = args.read(std::env::vars())?;
    let listen = config.http.listen.ok_or(HealthError::NoPage {
        problem: "http.listen is not set",
        next: "set it to 127.0.0.1:7472, for example",
    })?;
    Ok(health::ask(listen)?)
}

/// A reader that has gone away (`| head`) is no error.
fn print_text(text: &str) {
    let _ = io::stdout().write_all(text.as_bytes());
}

fn run(args: &ConfigArgs) -> Result<(), AgentError> {
    let config = args.read(std::env::vars())?;
    logging::init(&config.log)?;
    // One host's agent waits nearly all of its time, and what blocks has threads of its own. With
    // more than one worker it would mostly hand its work from one to the other, on a host whose
    // processors belong to the guests.
    let mut runtime = match registry::may_be_fleet(&config.driver.kind) {
        true => tokio::runtime::Builder::new_multi_thread(),
        false => tokio::runtime::Builder::new_current_thread(),
    };
    let started = runtime
        .enable_all()
        .build()
        .map_err(failed("start the runtime for"));
    started?.block_on(async {
        let shutdown = CancellationToken::new();
        let on = |kind| signal(kind).map_err(failed("listen for the signals of"));
        let (mut terminate, mut interrupt, mut hangup) = (
            on(SignalKind::terminate())?,
            on(SignalKind::interrupt())?,
            on(SignalKind::hangup())?,
        );
        std::fs::create_dir_all(&config.state_dir).map_err(|source| AgentError::Io {
            what: "make the state directory",
            path: config.state_dir.clone(),
            source,
        })?;
        let traces = config.telemetry.settings();
        let traces =
            ebbtide_telemetry::start(&traces, "ebbtide-agent", &config.host).map_err(|error| {
                AgentError::Config {
                    key: "telemetry.otlp_endpoint".to_owned(),
                    problem: error.problem,
                }
            })?;
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let context = DriverContext {
            host: config.host.clone(),
            state_dir: config.state_dir.clone(),
            settings: config.driver.settings.clone(),
            clock: Arc::clone(&clock),
        };
        let bus = BusConnector::new(config.amqp()?);
        let driver = match registry::fleet(&config.driver.kind, &context)? {
            Some(fleet) => DriverHandle::Fleet(fleet),
            None => DriverHandle::One(registry::build(&config.driver.kind, &context)?),
        };
        let logins = logins::logins(&bus, &config.driver.kind, &driver);
        let health = Health::default();
        let _pages = match config.http.listen {
            Some(listen) => Some(pages::serve(health.clone(), listen).await?),
            None => None,
        };
        let seen = health.clone();
        let _watchdog = service_manager::watch(move || {
            let alive = seen.stuck().is_empty();
            async move { alive }
        });
        let serving = async {
            let driver = match driver {
                DriverHandle::One(driver) => driver,
                DriverHandle::Fleet(fleet) => {
                    let (stop, connect) = (shutdown.clone(), || bus.open());
                    return fleet::serve(&config, fleet, clock, &health, connect, stop).await;
                }
            };
            let agent = Agent::new(config.agent_config()?, bus.open()?, driver).with_clock(clock);
            let agent = agent.with_health(health.clone());
            agent.serve(shutdown.clone()).await
        };
        tokio::pin!(serving);
        // Beside the agent's work: a broker may take its time to answer the test of a login.
        let reloading = async {
            while hangup.recv().await.is_some() {
                reload(args, &config, &logins).await;
            }
            std::future::pending::<()>().await;
        };
        tokio::pin!(reloading);
        let mut is_ready = false;
        loop {
            tokio::select! {
                served = &mut serving => {
                    traces.finish().await;
                    return served;
                }
                () = health.opened(), if !is_ready => {
                    is_ready = true;
                    service_manager::ready(&format!("agent of {}", config.host));
                    continue;
                }
                () = &mut reloading => {}
                _ = terminate.recv() => tracing::info!("SIGTERM"),
                _ = interrupt.recv() => tracing::info!("SIGINT"),
            }
            service_manager::stopping();
            shutdown.cancel();
        }
    })
}

/// SIGHUP: reads the configuration again and renews the logins in it. `used` is what the agent was
/// started with.
async fn reload(args: &ConfigArgs, used: &Config, logins: &Logins<Config>) {
    match args.read(std::env::vars()) {
        Ok(read) => {
            let later = read.changes_for_next_start(used);
            logins.renew(Ok((&read, &later))).await;
        }
        Err(error) => {
            let refusal = Refusal::new(error.code(), &error);
            logins.renew(Err(refusal)).await;
        }
    }
}

fn failed(what: &'static str) -> impl Fn(std::io::Error) -> AgentError {
    move |source| AgentError::Io {
        what,
        path: "this process".into(),
        source,
    }
}

//! One process that is the agent of many hosts. Each host has its own queue, journal and lock, as
//! if it had its own process.

use crate::agent::Agent;
use crate::clock::Clock;
use crate::config::Config;
use crate::driver::DriverError;
use crate::driver::registry::Fleet;
use crate::error::AgentError;
use crate::health::Health;
use async_trait::async_trait;
use ebbtide_bus::{Bus, BusError, BusStatus, OutgoingMessage, QueueName, Subscription};
use ebbtide_runtime::task::TaskSet;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

/// Number of hosts that share a connection to the broker. Each uses its own channel, and RabbitMQ
/// allows 2047 of them.
const HOSTS_A_CONNECTION: usize = 256;
/// Time between the starts of two agents, so that a thousand hosts do not send heartbeats at the
/// same moment.
const STAGGER: Duration = Duration::from_millis(5);
/// Pause before a failed list of hosts is retried.
const RETRY: Duration = Duration::from_secs(5);

/// Number of failed lists of hosts that are not an error yet: for two minutes the cloud itself may
/// be starting.
const START_ATTEMPTS: u32 = 24;

/// Runs an agent for each host until `shutdown`. A new host gets its agent within the fleet's
/// interval, and an agent that ended is started again then. The agent of a host that is gone keeps
/// running, because it may have unfinished work.
///
/// # Errors
/// Only if no connection to a broker is possible at all. Errors of single agents are logged, and
/// the other hosts continue.
pub async fn serve(
    config: &Config,
    fleet: Arc<dyn Fleet>,
    clock: Arc<dyn Clock>,
    health: &Health,
    connect: impl Fn() -> Result<Arc<dyn Bus>, AgentError>,
    shutdown: CancellationToken,
) -> Result<(), AgentError> {
    let mut agents: TaskSet<(String, Result<(), AgentError>)> = TaskSet::new("agent");
    let mut running: BTreeSet<String> = BTreeSet::new();
    let mut started = 0;
    let mut buses: Vec<Arc<dyn Bus>> = Vec::new();
    let mut starting = StartPhase::default();
    while !shutdown.is_cancelled() {
        let pause = match fleet.hosts().await {
            Ok(hosts) => {
                starting = StartPhase::Over;
                for host in hosts
                    .into_iter()
                    .filter(|host| !running.contains(host))
                    .collect::<Vec<_>>()
                {
                    if started % HOSTS_A_CONNECTION == 0 {
                        buses.push(connect()?);
                    }
                    started += 1;
                    let Some(bus) = buses.last().map(Arc::clone) else {
                        continue;
                    };
                    match open(config, &*fleet, &host, bus, &clock) {
                        Ok(agent) => {
                            let (name, shutdown) = (host.clone(), shutdown.clone());
                            let agent = agent.with_health(health.clone());
                            let span = tracing::info_span!("host", name);
                            let serving = async move { (name, agent.serve(shutdown).await) };
                            agents.spawn(serving.instrument(span));
                            running.insert(host);
                        }
                        Err(error) => tracing::error!(
                            code = error.code(),
                            host,
                            "no agent for this host: {error}"
                        ),
                    }
                    tokio::time::sleep(STAGGER).await;
                }
                fleet.interval()
            }
            Err(error) => {
                starting.log_error(&error);
                RETRY
            }
        };
        let pause = tokio::time::sleep(pause);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = shutdown.cancelled() => break,
                () = &mut pause => break,
                // The restart waits for the pause: the cause may still exist.
                ended = agents.next() => forget(&mut running, ended),
            }
        }
    }
    while !agents.is_empty() && !running.is_empty() {
        let ended = agents.next().await;
        forget(&mut running, ended);
    }
    for bus in buses {
        bus.close().await;
    }
    Ok(())
}

/// Whether the cloud may still be starting.
#[derive(Debug)]
enum StartPhase {
    /// No list of hosts has succeeded yet; the number of failed ones.
    Since(u32),
    Over,
}

impl Default for StartPhase {
    fn default() -> Self {
        Self::Since(0)
    }
}

impl StartPhase {
    /// Logs a failed list of hosts: as an error only once the cloud should be available.
    fn log_error(&mut self, error: &DriverError) {
        let code = error.code();
        match self {
            Self::Since(attempts) if *attempts < START_ATTEMPTS => {
                *attempts += 1;
                let seconds = RETRY.as_secs();
                tracing::warn!(
                    code,
                    "waiting for the cloud to name its hosts; asking again in {seconds} s: {error}"
                );
            }
            Self::Since(_) | Self::Over => {
                tracing::error!(code, "the hosts cannot be looked up: {error}");
            }
        }
    }
}

fn forget(running: &mut BTreeSet<String>, (host, ended): (String, Result<(), AgentError>)) {
    running.remove(&host);
    if let Err(error) = ended {
        tracing::error!(
            code = error.code(),
            host,
            "the agent of this host had to end: {error}"
        );
    }
}

fn open(
    config: &Config,
    fleet: &dyn Fleet,
    host: &str,
    bus: Arc<dyn Bus>,
    clock: &Arc<dyn Clock>,
) -> Result<Agent, AgentError> {
    let state_dir = config.state_dir.join("hosts").join(host);
    make(&state_dir)?;
    let driver = fleet.driver(host, &state_dir)?;
    let mut agent_config = config.agent_config()?;
    agent_config.host = host.to_owned();
    agent_config.state_dir = state_dir;
    let bus: Arc<dyn Bus> = Arc::new(Shared(bus));
    Ok(Agent::new(agent_config, bus, driver).with_clock(Arc::clone(clock)))
}

fn make(state_dir: &Path) -> Result<(), AgentError> {
    std::fs::create_dir_all(state_dir).map_err(|source| AgentError::Io {
        what: "make the state directory",
        path: state_dir.to_owned(),
        source,
    })
}

/// A bus with several users: an agent that ends leaves it open for the others.
#[derive(Debug)]
struct Shared(Arc<dyn Bus>);

#[async_trait]
impl Bus for Shared {
    async fn declare(&self, queue: &QueueName) -> Result<(), BusError> {
        self.0.declare(queue).await
    }

    async fn publish(&self, queue: &QueueName, message: &OutgoingMessage) -> Result<(), BusError> {
        self.0.publish(queue, message).await
    }

    async fn consume(&self, queue: &QueueName, prefetch: u16) -> Result<Subscription, BusError> {
        self.0.consume(queue, prefetch).await
    }

    async fn consume_alone(
        &self,
        queue: &QueueName,
        prefetch: u16,
    ) -> Result<Subscription, BusError> {
        self.0.consume_alone(queue, prefetch).await
    }

    fn status(&self) -> watch::Receiver<BusStatus> {
        self.0.status()
    }

    async fn close(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SystemClock;
    use crate::driver::Driver;
    use crate::driver::registry::{self, DriverContext};
    use ebbtide_bus::{InProcessBroker, QueuePrefix};
    use ebbtide_model::message::{Body, Message};
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// One host more at each look, up to three.
    #[derive(Debug, Default)]
    struct Growing(AtomicUsize);

    #[async_trait]
    impl Fleet for Growing {
        async fn hosts(&self) -> Result<BTreeSet<String>, DriverError> {
            let count = (self.0.fetch_add(1, Ordering::SeqCst) + 1).min(3);
            Ok((1..=count).map(|n| format!("host-{n}")).collect())
        }

        fn driver(&self, host: &str, state_dir: &Path) -> Result<Arc<dyn Driver>, AgentError> {
            let context = DriverContext {
                host: host.to_owned(),
                state_dir: state_dir.to_owned(),
                settings: "inventory = { VCPU = 4 }".parse().unwrap(),
                clock: Arc::new(SystemClock),
            };
            registry::build("simulated", &context)
        }

        fn interval(&self) -> Duration {
            Duration::from_millis(10)
        }
    }

    /// A cloud that cannot name its hosts.
    #[derive(Debug)]
    struct Away(AtomicUsize);

    #[async_trait]
    impl Fleet for Away {
        async fn hosts(&self) -> Result<BTreeSet<String>, DriverError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Err(DriverError::Failed {
                what: "tell what it has",
                detail: "the connection was refused".to_owned(),
            })
        }

        fn driver(&self, _host: &str, _dir: &Path) -> Result<Arc<dyn Driver>, AgentError> {
            unreachable!("there is no host")
        }

        fn interval(&self) -> Duration {
            RETRY
        }
    }

    #[derive(Clone, Default)]
    struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_cloud_that_is_still_starting_is_waited_for_and_one_that_stays_away_is_an_error() {
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        let _quiet = tracing::subscriber::set_default(subscriber);
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "host = \"all\"\nstate_dir = {:?}\n[driver.simulated]\ninventory = {{ VCPU = 4 }}",
            dir.path().display().to_string()
        );
        let config = Config::from_table(text.parse().unwrap()).unwrap();
        let shutdown = CancellationToken::new();
        let away = Arc::new(Away(AtomicUsize::new(0)));
        let fleet: Arc<dyn Fleet> = Arc::clone(&away) as Arc<dyn Fleet>;
        let connect = || -> Result<Arc<dyn Bus>, AgentError> { unreachable!("no host to connect") };
        let clock = Arc::new(SystemClock);
        let health = Health::default();
        let serving = serve(&config, fleet, clock, &health, connect, shutdown.clone());
        let watching = async {
            let attempts = usize::try_from(START_ATTEMPTS).unwrap() + 2;
            while away.0.load(Ordering::SeqCst) < attempts {
                tokio::time::sleep(RETRY).await;
            }
            shutdown.cancel();
        };
        let (served, ()) = tokio::join!(serving, watching);
        served.unwrap();
        let log = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        let levels: Vec<&str> = log
            .lines()
            .filter_map(|l| l.split_whitespace().nth(1))
            .collect();
        let (first, rest) = levels.split_at(usize::try_from(START_ATTEMPTS).unwrap());
        assert!(first.iter().all(|level| *level == "WARN"), "{log}");
        assert!(
            rest.len() >= 2 && rest.iter().all(|level| *level == "ERROR"),
            "{log}"
        );
        assert!(
            log.contains("waiting for the cloud to name its hosts; asking again in 5 s"),
            "{log}"
        );
    }

    #[tokio::test]
    async fn each_host_has_its_agent_and_new_ones_get_theirs() {
        let dir = tempfile::tempdir().unwrap();
        let text = format!(
            "host = \"all\"\nstate_dir = {:?}\n[driver.simulated]\ninventory = {{ VCPU = 4 }}",
            dir.path().display().to_string()
        );
        let config = Config::from_table(text.parse().unwrap()).unwrap();
        let broker = InProcessBroker::new();
        let queue = QueuePrefix::default().scheduler();
        let scheduler = broker.connect();
        let mut reports = scheduler.consume(&queue, 100).await.unwrap();
        let connections = AtomicUsize::new(0);
        let connect = || -> Result<Arc<dyn Bus>, AgentError> {
            connections.fetch_add(1, Ordering::SeqCst);
            Ok(Arc::new(broker.connect()))
        };
        let shutdown = CancellationToken::new();
        let health = Health::default();
        let serving = serve(
            &config,
            Arc::new(Growing::default()),
            Arc::new(SystemClock),
            &health,
            connect,
            shutdown.clone(),
        );
        let watching = async {
            let mut heard = BTreeSet::new();
            while heard.len() < 3 {
                let delivery = reports.next().await.unwrap();
                if let Body::Heartbeat(heartbeat) =
                    Message::from_bytes(&delivery.body).unwrap().body
                {
                    heard.insert(heartbeat.host);
                }
                delivery.ack().await;
            }
            shutdown.cancel();
            heard
        };
        let (served, heard) = tokio::join!(serving, watching);
        served.unwrap();
        assert_eq!(Vec::from_iter(heard), ["host-1", "host-2", "host-3"]);
        assert_eq!(connections.load(Ordering::SeqCst), 1, "they share one");
        for host in ["host-1", "host-2", "host-3"] {
            assert!(dir.path().join("hosts").join(host).is_dir());
        }
    }
}

//! The transports under test, dressed alike for the suite.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ebbtide_bus::{
    AmqpBus, AmqpConfig, BackoffPolicy, Bus, BusStatus, InProcessBroker, InProcessBus, QueuePrefix,
};

use ebbtide_harness::SharedBroker;

use crate::proxy::{Mode, Proxy};
use crate::support::{PATIENCE, shared_broker, status, unique_prefix};

/// One broker of whatever kind, with a prefix that only this test uses.
#[async_trait]
pub trait BusTransport: Sync {
    /// Opens another bus on the same broker.
    async fn connect(&self) -> Arc<dyn Bus>;
    /// Breaks the connections of all buses that were opened so far. They heal by themselves.
    async fn sever(&self);
    fn prefix(&self) -> QueuePrefix;
}

pub struct InProcess {
    broker: InProcessBroker,
    buses: Mutex<Vec<Arc<InProcessBus>>>,
    prefix: QueuePrefix,
}

impl InProcess {
    pub async fn start() -> Self {
        Self {
            broker: InProcessBroker::new(),
            buses: Mutex::default(),
            prefix: unique_prefix(),
        }
    }
}

#[async_trait]
impl BusTransport for InProcess {
    async fn connect(&self) -> Arc<dyn Bus> {
        let bus = Arc::new(self.broker.connect());
        self.buses.lock().unwrap().push(Arc::clone(&bus));
        bus
    }

    async fn sever(&self) {
        for bus in self.buses.lock().unwrap().iter() {
            bus.sever();
        }
    }

    fn prefix(&self) -> QueuePrefix {
        self.prefix.clone()
    }
}

/// RabbitMQ behind a proxy.
pub struct Amqp {
    proxy: Proxy,
    url: String,
    buses: Mutex<Vec<Arc<dyn Bus>>>,
    prefix: QueuePrefix,
    _broker: SharedBroker,
}

impl Amqp {
    pub async fn start() -> Self {
        let broker = shared_broker().await;
        let direct = broker.url();
        let proxy = Proxy::start(&host_and_port(direct), Mode::Forward).await;
        let url = with_host_and_port(direct, &proxy.address().to_string());
        Self {
            proxy,
            url,
            buses: Mutex::default(),
            prefix: unique_prefix(),
            _broker: broker,
        }
    }
}

#[async_trait]
impl BusTransport for Amqp {
    async fn connect(&self) -> Arc<dyn Bus> {
        let bus = AmqpBus::connect(config(&[&self.url]), PATIENCE)
            .await
            .unwrap();
        let bus: Arc<dyn Bus> = Arc::new(bus);
        self.buses.lock().unwrap().push(Arc::clone(&bus));
        bus
    }

    async fn sever(&self) {
        self.proxy.set(Mode::Refuse);
        self.proxy.sever();
        let buses: Vec<_> = self.buses.lock().unwrap().clone();
        for bus in buses {
            status(
                bus.as_ref(),
                "the bus notices that it is cut off",
                |status| matches!(status, BusStatus::Reconnecting { .. } | BusStatus::Closed),
            )
            .await;
        }
        self.proxy.set(Mode::Forward);
    }

    fn prefix(&self) -> QueuePrefix {
        self.prefix.clone()
    }
}

/// Settings with short delays, so that the tests do not wait for the machine's patience.
pub fn config(urls: &[&str]) -> AmqpConfig {
    // Shown only if the test fails, or with RUST_LOG and --no-capture.
    let _ = tracing_subscriber::fmt()
        .with_env_filter(tracing_subscriber::EnvFilter::from_default_env())
        .with_test_writer()
        .try_init();
    let brokers = urls.iter().map(|url| url.parse().unwrap()).collect();
    let mut config = AmqpConfig::new(brokers, "ebbtide-bus test");
    config.reconnect = BackoffPolicy {
        first: Duration::from_millis(50),
        cap: Duration::from_secs(1),
    };
    config.operation_timeout = PATIENCE;
    config
}

/// `HOST:PORT` of `amqp://USER:PASSWORD@HOST:PORT/VHOST`.
pub fn host_and_port(url: &str) -> String {
    let (_, host) = authority(url).rsplit_once('@').expect("a URL with a user");
    host.to_owned()
}

pub fn with_host_and_port(url: &str, host: &str) -> String {
    url.replacen(&host_and_port(url), host, 1)
}

fn authority(url: &str) -> &str {
    let (_, rest) = url.split_once("://").expect("a URL");
    rest.split('/').next().unwrap()
}

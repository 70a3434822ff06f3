//! What SIGHUP renews: the login at the broker, and the driver's.

use crate::config::Config;
use crate::driver::Driver;
use crate::driver::registry::Fleet;
use crate::error::AgentError;
use ebbtide_bus::{AmqpBus, AmqpConfig, Bus, BusError, BusLogins};
use ebbtide_runtime::login::{Login, Renewal};
use ebbtide_service_manager::reload::{Logins, Refusal};
use std::sync::{Arc, Mutex, PoisonError};

/// Opens connections to the broker, which all have one login. Clones share it.
#[derive(Debug, Clone)]
pub struct BusConnector {
    config: Login<AmqpConfig>,
    opened: Arc<Mutex<Vec<BusLogins>>>,
}

impl BusConnector {
    /// Nothing is opened yet.
    #[must_use]
    pub fn new(config: AmqpConfig) -> Self {
        Self {
            config: Login::new(config),
            opened: Arc::default(),
        }
    }

    /// Opens a bus, with the login of now.
    ///
    /// # Errors
    /// [`AgentError::Bus`] if the settings cannot be used.
    pub fn open(&self) -> Result<Arc<dyn Bus>, AgentError> {
        let bus = AmqpBus::open(self.config.current())?;
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.push(bus.logins());
        Ok(Arc::new(bus))
    }

    /// Renews the logins of every bus that was opened or will be.
    async fn renew(&self, new: &AmqpConfig) -> Result<Renewal, BusError> {
        let opened = self
            .opened
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let mut renewal = Renewal::Unchanged;
        for bus in opened {
            renewal = bus.renew(&new.brokers).await?;
        }
        if matches!(renewal, Renewal::Accepted | Renewal::Untested(_)) {
            let mut config = self.config.current();
            config.brokers.clone_from(&new.brokers);
            self.config.replace(config);
        }
        Ok(renewal)
    }
}

/// What holds the driver of this process.
#[derive(Clone)]
pub enum DriverHandle {
    /// The driver of one host.
    One(Arc<dyn Driver>),
    /// One process for many hosts.
    Fleet(Arc<dyn Fleet>),
}

/// The logins of an agent with a driver of this kind.
#[must_use]
pub fn logins(bus: &BusConnector, kind: &str, driver: &DriverHandle) -> Logins<Config> {
    let mut logins = Logins::default();
    let bus = bus.clone();
    logins.add("bus.urls", move |config: &Config| {
        let (bus, amqp) = (bus.clone(), config.amqp());
        async move {
            let amqp = amqp.map_err(|error| Refusal::new(error.code(), &error))?;
            let renewed = bus.renew(&amqp).await;
            renewed.map_err(|error| Refusal::new(error.code(), &error))
        }
    });
    let (driver, kind) = (driver.clone(), kind.to_owned());
    logins.add("driver.nova.auth", move |config: &Config| {
        let is_same_kind = config.driver.kind == kind;
        let (driver, settings) = (driver.clone(), config.driver.settings.clone());
        async move {
            match driver {
                _ if !is_same_kind => Ok(Renewal::NextStart("driver.kind")),
                DriverHandle::One(driver) => driver.renew_login(&settings).await,
                DriverHandle::Fleet(fleet) => fleet.renew_login(&settings).await,
            }
        }
    });
    logins
}

//! The bus's dialer, and what its failures mean for the bus.

use ebbtide_amqp::{Broker, DialFailure, DialProblem, Dialer};
use ebbtide_runtime::login::Login;

use super::config::AmqpConfig;
use crate::{BrokerUrl, BusError};

/// The dialer for the brokers of a configuration.
pub(crate) fn dialer(config: &AmqpConfig) -> Dialer {
    Dialer {
        brokers: Login::new(brokers(config, &config.brokers).into()),
        tls: config.tls_files.clone(),
        connection_name: config.connection_name.clone(),
        connect_timeout: config.connect_timeout,
        goodbye: "ebbtide is shutting down",
    }
}

/// Brokers with the heartbeat of a configuration.
pub(crate) fn brokers(config: &AmqpConfig, urls: &[BrokerUrl]) -> Vec<Broker> {
    let broker =
        |url: &BrokerUrl| Broker::new(url.to_lapin(config.heartbeat_seconds()), url.to_string());
    urls.iter().map(broker).collect()
}

impl From<DialFailure> for BusError {
    /// [`BusError::LoginRefused`] or [`BusError::Refused`] when waiting will not help, and
    /// [`BusError::Unavailable`] otherwise.
    fn from(failure: DialFailure) -> Self {
        let broker = failure.broker;
        let last_problem = match failure.problem {
            DialProblem::LoginRefused(detail) => {
                return Self::LoginRefused {
                    broker,
                    user: failure.user,
                    detail,
                };
            }
            DialProblem::Refused(detail) => {
                return Self::Refused {
                    operation: format!("open a connection to {broker}"),
                    detail,
                };
            }
            DialProblem::Unavailable(problem) => problem,
            // The operator may put a readable file there at any time.
            DialProblem::Tls(error) => Self::from(error).to_string(),
        };
        Self::Unavailable {
            operation: "connect".to_owned(),
            waited_seconds: failure.limit.as_secs_f64().ceil() as u64,
            brokers: broker,
            last_problem,
        }
    }
}

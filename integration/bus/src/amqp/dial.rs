//! The bus's dialer, and what its failures mean for the bus.

use ebbtide_amqp::{Broker, DialFailure, DialProblem, Dialer};

use super::config::AmqpConfig;
use crate::BusError;

/// The dialer for the brokers of a configuration.
pub(crate) fn dialer(config: &AmqpConfig) -> Dialer {
    let broker = |url: &crate::BrokerUrl| {
        Broker::new(url.to_lapin(config.heartbeat_seconds()), url.to_string())
    };
    Dialer {
        brokers: config.brokers.iter().map(broker).collect(),
        tls: config.tls_files.clone(),
        connection_name: config.connection_name.clone(),
        connect_timeout: config.connect_timeout,
        goodbye: "ebbtide is shutting down",
    }
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

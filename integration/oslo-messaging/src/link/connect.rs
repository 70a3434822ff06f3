//! The transport's links: where they connect to, and what their failures are called.

use std::sync::Arc;
use std::time::Duration;

use ebbtide_amqp::{
    Broker, ClientError, ConnectionPurpose, DialFailure, DialProblem, Dialer, LinkPolicy,
};
use ebbtide_runtime::login::Login;
use lapin::uri::{
    AMQPAuthority, AMQPQueryString, AMQPScheme, AMQPUri, AMQPUserInfo, SASLMechanism,
};
use tokio_util::sync::CancellationToken;

use super::kombu::{KombuBackoff, RotatingHosts};
use crate::{LoginMethod, MessagingError, RabbitOptions, TransportHost, TransportUrl};

/// Limit for one attempt to connect: TCP, TLS and login together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Interval of probes of a port that refused the last connection. A refused connection costs
/// microseconds. After a restart of the broker the queues of a server exist only when the server
/// has declared them again; a request that is published before that is lost. The back-off stays for
/// what it is good for: brokers that accept a connection and then refuse the login.
const PORT_PROBE: Duration = Duration::from_millis(100);

/// A supervised connection of the transport.
pub(crate) type Link = ebbtide_amqp::Link<MessagingError>;
/// Its state.
pub(crate) type LinkState = ebbtide_amqp::LinkState<MessagingError>;

/// The dialer for the hosts of a transport URL.
pub(crate) fn dialer(url: &TransportUrl, options: &RabbitOptions, name: String) -> Dialer {
    Dialer {
        brokers: Login::new(brokers(url, options).into()),
        tls: options.tls_files(),
        connection_name: name,
        connect_timeout: CONNECT_TIMEOUT,
        goodbye: "the service is stopping",
    }
}

/// The hosts of a transport URL, with their logins.
pub(crate) fn brokers(url: &TransportUrl, options: &RabbitOptions) -> Vec<Broker> {
    let broker =
        |host: &TransportHost| Broker::new(uri(url.vhost(), host, options), host.to_string());
    url.hosts().iter().map(broker).collect()
}

/// Starts a link. It ends when `stop` is cancelled.
pub(crate) fn start(
    dialer: Arc<Dialer>,
    options: &RabbitOptions,
    purpose: ConnectionPurpose,
    stop: CancellationToken,
) -> Link {
    let policy = LinkPolicy {
        task: "messaging-link",
        purpose,
        backoff: Box::new(KombuBackoff::new(options)),
        hosts: Box::new(RotatingHosts::new(
            dialer.brokers.current().len(),
            options.failover,
        )),
        port_probe: Some(PORT_PROBE),
    };
    Link::start(dialer, policy, |_| {}, stop)
}

fn uri(vhost: &str, host: &TransportHost, options: &RabbitOptions) -> AMQPUri {
    AMQPUri {
        scheme: if options.ssl {
            AMQPScheme::AMQPS
        } else {
            AMQPScheme::AMQP
        },
        authority: AMQPAuthority {
            userinfo: AMQPUserInfo {
                username: host.user().to_owned(),
                password: host.password().to_owned(),
            },
            host: host.host().to_owned(),
            port: host.port(),
        },
        vhost: vhost.to_owned(),
        query: AMQPQueryString {
            heartbeat: Some(u16::try_from(options.heartbeat.as_secs()).unwrap_or(u16::MAX)),
            auth_mechanism: Some(match options.login_method {
                LoginMethod::AmqPlain => SASLMechanism::AMQPlain,
                LoginMethod::Plain => SASLMechanism::Plain,
                LoginMethod::External => SASLMechanism::External,
            }),
            ..AMQPQueryString::default()
        },
    }
}

impl From<DialFailure> for MessagingError {
    fn from(failure: DialFailure) -> Self {
        let broker = failure.broker;
        match failure.problem {
            DialProblem::LoginRefused(detail) => Self::LoginRefused {
                broker,
                user: failure.user,
                detail,
            },
            DialProblem::Refused(detail) => Self::Refused {
                operation: format!("open a connection to {broker}"),
                detail,
            },
            DialProblem::Tls(error) => error.into(),
            DialProblem::Unavailable(last_problem) => Self::Unavailable {
                operation: "connect".to_owned(),
                brokers: broker,
                last_problem,
            },
        }
    }
}

impl ClientError for MessagingError {
    fn code(&self) -> &'static str {
        self.code()
    }

    fn refused(operation: String, detail: String) -> Self {
        Self::Refused { operation, detail }
    }

    fn closed() -> Self {
        Self::Closed
    }

    fn lost(broker: &str, problem: String) -> Self {
        Self::Unavailable {
            operation: "keep the connection".to_owned(),
            brokers: broker.to_owned(),
            last_problem: problem,
        }
    }
}

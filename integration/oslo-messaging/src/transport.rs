//! The connection to the brokers, on which servers, clients and notifiers live.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ebbtide_amqp::{ConnectionPurpose, Dialer};
use ebbtide_runtime::ids;
use ebbtide_runtime::login::Renewal;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::link::{self, Link, LinkState, Publisher};
use crate::target::check_name;
use crate::{MessagingError, RabbitOptions, TransportUrl};

/// How long closing waits for the connections' goodbyes.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// How the connection for publishing is.
#[derive(Debug, Clone, PartialEq)]
pub enum TransportStatus {
    /// Not connected (yet, or any more); it is tried again for ever. The last problem, if there was
    /// one.
    Down(Option<MessagingError>),
    /// Connected.
    Up,
    /// Connected, but the broker is short of memory or disk and takes no messages.
    Blocked(String),
    /// Closed by [`Transport::close`].
    Closed,
}

/// Connections to one RabbitMQ cluster: one for publishing, and one for reading as soon as a
/// consumer needs it. They are opened in the background, and again whenever they are lost. Cheap to
/// clone; all clones share the connections.
#[derive(Clone)]
pub struct Transport {
    shared: Arc<TransportState>,
}

pub(crate) struct TransportState {
    url: TransportUrl,
    options: RabbitOptions,
    dialer: Arc<Dialer>,
    pub(crate) exchange: String,
    pub(crate) publisher: Arc<Publisher>,
    publish_link: Arc<Link>,
    consume_link: OnceLock<Arc<Link>>,
    stop: CancellationToken,
}

impl Transport {
    /// Starts to connect, in the background. `control_exchange` is `[DEFAULT] control_exchange`,
    /// for example `nova`.
    ///
    /// Must be called inside a tokio runtime.
    ///
    /// # Errors
    ///
    /// If options do not fit together, or the exchange's name is none.
    pub fn start(
        url: &TransportUrl,
        options: RabbitOptions,
        control_exchange: &str,
    ) -> Result<Self, MessagingError> {
        options.validate()?;
        check_name("control_exchange", control_exchange)?;
        let connection_name = format!(
            "{}:{}:{}",
            options.processname,
            std::process::id(),
            ids::random()
        );
        let dialer = Arc::new(link::dialer(url, &options, connection_name));
        let stop = CancellationToken::new();
        let publish_link = Arc::new(link::start(
            Arc::clone(&dialer),
            &options,
            ConnectionPurpose::Publish,
            stop.clone(),
        ));
        Ok(Self {
            shared: Arc::new(TransportState {
                url: url.clone(),
                options,
                dialer,
                exchange: control_exchange.to_owned(),
                publisher: Arc::new(Publisher::new(Arc::clone(&publish_link))),
                publish_link,
                consume_link: OnceLock::new(),
                stop,
            }),
        })
    }

    /// Waits until the broker lets us in.
    ///
    /// # Errors
    ///
    /// After `limit`, or at once if the broker refuses us (wrong password, no such vhost): the last
    /// problem. The transport goes on trying all the same.
    pub async fn wait_connected(&self, limit: Duration) -> Result<(), MessagingError> {
        let mut state = self.shared.publish_link.watch();
        let shown: Vec<String> = self
            .shared
            .url
            .hosts()
            .iter()
            .map(ToString::to_string)
            .collect();
        let brokers = shown.join(", ");
        let settled = state.wait_for(|state| match state {
            LinkState::Up(_) | LinkState::Blocked(..) | LinkState::Closed => true,
            LinkState::Down { problem, .. } => problem.as_ref().is_some_and(|p| !p.is_transient()),
        });
        let outcome = match tokio::time::timeout(limit, settled).await {
            Ok(Ok(state)) => status(&state),
            Ok(Err(_)) => TransportStatus::Closed,
            Err(_) => self.status(),
        };
        match outcome {
            TransportStatus::Up | TransportStatus::Blocked(_) => Ok(()),
            TransportStatus::Closed => Err(MessagingError::Closed),
            TransportStatus::Down(Some(problem)) => Err(problem),
            TransportStatus::Down(None) => Err(MessagingError::Unavailable {
                operation: "connect".to_owned(),
                brokers,
                last_problem: format!("no answer within {limit:?}"),
            }),
        }
    }

    /// Tests the logins of a URL for the same hosts, and uses them for all connections that are
    /// opened from now on. Those that are open go on.
    ///
    /// # Errors
    ///
    /// [`MessagingError::LoginRefused`], [`MessagingError::Refused`], or files of TLS that cannot
    /// be used: the old logins stay.
    pub async fn renew_logins(&self, url: &TransportUrl) -> Result<Renewal, MessagingError> {
        let brokers = link::brokers(url, &self.shared.options);
        Ok(self.shared.dialer.renew_logins(brokers).await?)
    }

    /// How the connection for publishing is now.
    #[must_use]
    pub fn status(&self) -> TransportStatus {
        status(&self.shared.publish_link.watch().borrow())
    }

    /// Waits until the status is another than `known`, and returns it.
    pub async fn status_change(&self, known: &TransportStatus) -> TransportStatus {
        let mut state: watch::Receiver<LinkState> = self.shared.publish_link.watch();
        match state.wait_for(|state| status(state) != *known).await {
            Ok(state) => status(&state),
            Err(_) => TransportStatus::Closed,
        }
    }

    /// Closes the connections. Servers on this transport should be stopped before: whatever they
    /// have not acknowledged is redelivered.
    pub async fn close(&self) {
        self.shared.stop.cancel();
        self.shared.publish_link.finish(CLOSE_LIMIT).await;
        if let Some(link) = self.shared.consume_link.get() {
            link.finish(CLOSE_LIMIT).await;
        }
    }

    pub(crate) fn shared(&self) -> &Arc<TransportState> {
        &self.shared
    }
}

impl TransportState {
    /// The connection for reading, which is opened when the first one asks for it.
    pub(crate) fn consume_link(&self) -> &Arc<Link> {
        self.consume_link.get_or_init(|| {
            Arc::new(link::start(
                Arc::clone(&self.dialer),
                &self.options,
                ConnectionPurpose::Consume,
                self.stop.clone(),
            ))
        })
    }

    pub(crate) fn options(&self) -> &RabbitOptions {
        &self.options
    }
}

fn status(state: &LinkState) -> TransportStatus {
    match state {
        LinkState::Down { problem, .. } => TransportStatus::Down(problem.clone()),
        LinkState::Up(_) => TransportStatus::Up,
        LinkState::Blocked(_, reason) => TransportStatus::Blocked(reason.clone()),
        LinkState::Closed => TransportStatus::Closed,
    }
}

impl Drop for TransportState {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Transport")
            .field("url", &self.shared.url)
            .field("status", &self.status())
            .finish_non_exhaustive()
    }
}

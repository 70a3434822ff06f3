//! The task behind a link.
//!
//! The supervisor tries the hosts one after the other, waits after each full round, shows the
//! session that comes out of it, and begins again when the session is lost.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::session::SessionEvent;
use crate::{BrokerSession, ClientError, Dialer, LinkEvent, LinkPolicy, LinkState};

/// A connection that lived this long was a good one: the next failure starts with short pauses
/// again.
const PROVEN: Duration = Duration::from_secs(5);

pub(crate) struct Supervisor<E, O> {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) policy: LinkPolicy,
    pub(crate) observer: O,
    pub(crate) stop: CancellationToken,
    pub(crate) state: watch::Sender<LinkState<E>>,
    pub(crate) next_id: u64,
}

impl<E, O> Supervisor<E, O>
where
    E: ClientError,
    O: Fn(LinkEvent<'_, E>) + Send + Sync,
{
    pub(crate) async fn run(mut self) {
        let stop = self.stop.clone();
        // Dropping the loop at any await is sound: sessions cut their socket when they are dropped.
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.keep_connected() => {}
        }
        (self.observer)(LinkEvent::Closed);
        let last = self.state.send_replace(LinkState::Closed);
        if let Some(session) = last.session() {
            session.close().await;
        }
    }

    async fn keep_connected(&mut self) {
        loop {
            let (host, session) = self.connect().await;
            self.policy.hosts.connected(host);
            let why = self.watch_over(&session).await;
            tracing::warn!(
                broker = %session.broker, purpose = self.policy.purpose.as_str(), error = %why,
                "lost the connection to the broker; reconnecting"
            );
            session.discard();
            self.policy.hosts.lost(host);
            (self.observer)(LinkEvent::Lost(&why));
            self.down(E::lost(&session.broker, why), false);
            tokio::time::sleep(self.policy.backoff.after_loss()).await;
        }
    }

    /// Tries all hosts, round after round, until one accepts the client.
    async fn connect(&mut self) -> (usize, Arc<BrokerSession>) {
        loop {
            let order = self.policy.hosts.round();
            let mut unreached = Vec::new();
            let mut refusals = 0;
            let mut logins = self.dialer.brokers.replacements();
            for &host in &order {
                let purpose = self.policy.purpose;
                let failure = match self.dialer.dial(host, purpose, self.next_id).await {
                    Ok(session) => {
                        self.next_id += 1;
                        tracing::info!(
                            broker = %session.broker, purpose = purpose.as_str(),
                            "connected to the broker"
                        );
                        return (host, Arc::new(session));
                    }
                    Err(failure) => failure,
                };
                if !failure.reached {
                    unreached.push(host);
                }
                refusals += usize::from(failure.problem.is_refusal());
                let broker = failure.broker.clone();
                let error = E::from(failure);
                tracing::warn!(
                    %broker, purpose = purpose.as_str(), code = error.code(), %error,
                    "cannot connect to the broker"
                );
                (self.observer)(LinkEvent::Failed(&broker, &error));
                self.down(error, refusals == order.len());
            }
            tokio::select! {
                () = self.pause(&unreached) => {}
                // The next round may be let in.
                Ok(()) = logins.changed() => {}
            }
        }
    }

    /// Waits for the next round.
    async fn pause(&mut self, unreached: &[usize]) {
        let pause = self.policy.backoff.after_round();
        let returned = tokio::select! {
            () = tokio::time::sleep(pause) => return,
            host = first_to_accept(&self.dialer, unreached, self.policy.port_probe) => host,
        };
        self.policy.hosts.returned(returned);
        tokio::time::sleep(self.policy.backoff.after_return()).await;
    }

    /// Shows the session to its users until it is lost, and says why it was.
    async fn watch_over(&mut self, session: &Arc<BrokerSession>) -> String {
        let mut events = session.events();
        self.ready(session);
        let mut proven = std::pin::pin!(tokio::time::sleep(PROVEN));
        let mut is_proven = false;
        loop {
            tokio::select! {
                () = &mut proven, if !is_proven => {
                    is_proven = true;
                    self.policy.backoff.reset();
                }
                event = session.wait(&mut events) => match event {
                    SessionEvent::Lost(why) => return why,
                    SessionEvent::Blocked(reason) => {
                        tracing::warn!(
                            broker = %session.broker, %reason,
                            "the broker takes no messages for now"
                        );
                        (self.observer)(LinkEvent::Blocked(&reason));
                        let blocked = LinkState::Blocked(Arc::clone(session), reason);
                        self.state.send_replace(blocked);
                    }
                    SessionEvent::Unblocked => {
                        tracing::info!(broker = %session.broker, "the broker takes messages again");
                        self.ready(session);
                    }
                }
            }
        }
    }

    fn ready(&self, session: &Arc<BrokerSession>) {
        (self.observer)(LinkEvent::Ready);
        self.state.send_replace(LinkState::Up(Arc::clone(session)));
    }

    fn down(&self, problem: E, refused_by_all: bool) {
        self.state.send_replace(LinkState::Down {
            problem: Some(problem),
            refused_by_all,
        });
    }
}

/// Waits until one of these hosts, whose ports refused the last connection, accepts connections.
async fn first_to_accept(dialer: &Dialer, unreached: &[usize], probe: Option<Duration>) -> usize {
    let Some(interval) = probe else {
        return std::future::pending().await;
    };
    loop {
        tokio::time::sleep(interval).await;
        for &host in unreached {
            if dialer.brokers.current()[host].accepts_connections().await {
                return host;
            }
        }
    }
}

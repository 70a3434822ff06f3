//! What a client decides about reconnecting. A strategy decides; it does not wait, read a clock or
//! know lapin.

use std::time::Duration;

/// The pauses between attempts. There is no last attempt.
pub trait Backoff: Send + Sync {
    /// The pause after a connection was lost.
    fn after_loss(&mut self) -> Duration;

    /// The pause after a round in which no host accepted the client.
    fn after_round(&mut self) -> Duration;

    /// The pause before the round for a host whose port accepts connections again. The failures
    /// before it do not count any more.
    fn after_return(&mut self) -> Duration;

    /// A connection has lasted: the next failure starts with short pauses.
    fn reset(&mut self);
}

/// The order of hosts. A host is an index into [`Dialer::brokers`](crate::Dialer::brokers).
pub trait HostChoice: Send + Sync {
    /// The order of the next round.
    fn round(&mut self) -> Vec<usize>;

    /// The host accepted the client.
    fn connected(&mut self, host: usize);

    /// The connection to the host was lost.
    fn lost(&mut self, host: usize);

    /// The port of the host refused connections and accepts them again.
    fn returned(&mut self, host: usize);
}

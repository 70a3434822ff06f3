//! The limits, and their defaults.

use std::time::Duration;

/// Numbers of connections at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionLimits {
    pub all: usize,
    /// Of those, from one address.
    pub of_one_address: usize,
    /// Of those from one address, without an authenticated call so far. Above it the oldest is
    /// closed, unless all are younger than [`ConnectionLimits::GRACE`].
    pub unauthenticated: usize,
}

impl ConnectionLimits {
    /// A client that has just connected has this time to show who it is before another may take its
    /// place.
    pub const GRACE: Duration = Duration::from_secs(1);
}

impl Default for ConnectionLimits {
    fn default() -> Self {
        Self {
            all: 2_048,
            // A proxy in front has one address.
            of_one_address: 512,
            unauthenticated: 64,
        }
    }
}

/// What is spoken on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// The client's first bytes are its first request.
    Http1,
    /// The client opens with a preface, and may then wait with its first request (gRPC).
    Http2,
}

impl Protocol {
    /// Bytes of the opening that are due within [`Deadlines::opening`] (RFC 9113, section 3.4).
    pub(crate) const fn preface(self) -> u64 {
        match self {
            Self::Http1 => 0,
            Self::Http2 => 24,
        }
    }
}

/// How long a connection may wait without a call in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From the start to the first byte.
    pub first_bytes: Duration,
    /// From the start to the end of HTTP/2's preface, or of the first request's headers.
    pub opening: Duration,
    /// Without a call, before any authenticated one.
    pub unauthenticated_idle: Duration,
    /// Without a call, after an authenticated one.
    pub idle: Duration,
    /// Whatever happens on it, if set.
    pub longest: Option<Duration>,
}

impl Deadlines {
    /// The time in which a client has to take some of what it is sent.
    pub const STALL: Duration = Duration::from_secs(30);
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            first_bytes: Duration::from_secs(5),
            opening: Duration::from_secs(10),
            unauthenticated_idle: Duration::from_secs(30),
            // Longer than what proxies keep upstream connections for.
            idle: Duration::from_secs(900),
            longest: None,
        }
    }
}

//! Why a service cannot be used as a plugin.

use thiserror::Error;

/// Why a service cannot be used as a plugin. What goes wrong in a call is the error of the weigher
/// or the cost module.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// The address is none.
    #[error("{0:?} is no address: use http://HOST:PORT, https://HOST:PORT or unix:/PATH")]
    Address(String),
    /// The certificates cannot be used.
    #[error("its certificates: {0}")]
    Tls(String),
    /// It does not answer. It may later.
    #[error("it does not answer: {0}")]
    Away(String),
    /// It answered that it cannot, in its words.
    #[error("it refuses: {0}")]
    Refuses(String),
    /// It was made for another contract.
    #[error("it was made for version {0:?} of the contract; this Ebbtide knows 1.x")]
    Version(String),
    /// What it says of itself cannot be right.
    #[error("what it says of itself cannot be right: {0}")]
    Description(#[from] ebbtide_plugin_contract::DescriptionError),
    /// A limit is out of range.
    #[error("{key}: {problem}")]
    Limit {
        key: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The thread that speaks with services cannot be started.
    #[error("the thread that asks plugins cannot be started: {0}")]
    Thread(String),
}

impl RemoteError {
    /// True if a retry may succeed without any change by the operator.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Away(_))
    }
}

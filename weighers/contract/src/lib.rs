//! The shared code of all carriers of plugins. A plugin names what it reads and gets it as flat
//! columns, whether it is a WebAssembly component or a service behind gRPC. The carriers differ
//! only in the transport.
//!
//! `docs/plugins/plugins.md` describes the contract.

#![warn(missing_docs)]

mod candidates;
mod cost;
mod description;
mod filter;
mod hosts;
mod request;
mod weigher;

pub use candidates::{CandidateColumns, CandidateNeed};
pub use cost::{CostModuleTransport, PluginCostModule};
pub use description::{CostDescription, FilterDescription, WeigherDescription};
pub use filter::{FilterTransport, PluginFilter};
pub use hosts::{BorrowedTexts, HostNeed, PluginColumn, plugin_columns, texts};
pub use request::properties;
pub use weigher::{PluginWeigher, WeigherTransport};

use thiserror::Error;

/// A plugin's description of itself is invalid; the reason in words.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct DescriptionError(pub String);

/// The version of the contract that this Ebbtide speaks. A plugin of an earlier minor version runs;
/// see the promise in `docs/plugins/plugins.md`.
pub const CONTRACT: &str = "1.0";

/// The largest component, in bytes. A Python interpreter with its library has about 40 MB.
pub const LARGEST_COMPONENT: u64 = 64 * 1024 * 1024;

/// Whether a plugin of this version of the contract runs here: `1` and `1.x`.
#[must_use]
pub fn speaks(version: &str) -> bool {
    let mut parts = version.split('.');
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    parts.next() == Some("1") && parts.all(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_1_x_is_spoken_and_nothing_else() {
        for version in ["1", "1.0", "1.7", "1.0.3", CONTRACT] {
            assert!(speaks(version), "{version}");
        }
        for version in ["", "2.0", "0.9", "1.", "1.x", "10.0", " 1.0"] {
            assert!(!speaks(version), "{version}");
        }
    }
}

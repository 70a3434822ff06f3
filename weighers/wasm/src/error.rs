//! Why a plugin cannot be used.

use thiserror::Error;

/// Why a plugin cannot be used at all. What goes wrong in a call is the error of the weigher or the
/// cost module.
#[derive(Debug, Error)]
pub enum WasmError {
    /// The file is not a component.
    #[error("it is not a WebAssembly component: {0}")]
    NotAComponent(String),
    /// It is a component of something else.
    #[error("it exports none of ebbtide:plugin/weigher, /cost-module and /filter{0}")]
    NotAPlugin(String),
    /// It is a plugin of another kind.
    #[error("it is a {0}, and a {1} is wanted")]
    WrongKind(crate::Kind, crate::Kind),
    /// It was made for another contract.
    #[error("it was made for ebbtide:plugin {0}; this Ebbtide knows 1.x")]
    Version(String),
    /// It wants something that no plugin has.
    #[error("it imports {0}, which plugins do not have")]
    Import(String),
    /// Its interface has the right name and other types.
    #[error("its interface is not that of the contract: {0}")]
    Interface(String),
    /// It did not describe itself.
    #[error("it does not describe itself: {0}")]
    Describe(String),
    /// It described itself wrongly.
    #[error("what it says of itself cannot be right: {0}")]
    Description(#[from] ebbtide_plugin_contract::DescriptionError),
    /// A limit is out of range.
    #[error("{key}: {problem}")]
    Limit {
        key: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The sandbox itself cannot be set up.
    #[error("the sandbox cannot be set up: {0}")]
    Sandbox(String),
}

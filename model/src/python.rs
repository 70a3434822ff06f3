//! How Python reads numbers and words from text.
//!
//! Nova reads aggregate metadata, extra specs and options through these rules. The engine and the
//! exact copy of Nova's decisions (`integration/nova`) both use them.

pub mod number;
pub mod text;

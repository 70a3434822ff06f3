//! What a client of this crate brings along: its error type.

use crate::DialFailure;

/// The error type of a client, which gives each failure the client's words and stable code.
///
/// No text may contain a password.
pub trait ClientError:
    std::error::Error + From<DialFailure> + Clone + Send + Sync + 'static
{
    /// The stable code, for the log.
    fn code(&self) -> &'static str;

    /// The broker refused to do `operation`, for good, with these words.
    fn refused(operation: String, detail: String) -> Self;

    /// The client has closed its connections.
    fn closed() -> Self;

    /// An established connection to `broker` was lost.
    fn lost(broker: &str, problem: String) -> Self;
}

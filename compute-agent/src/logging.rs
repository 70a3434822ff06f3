//! The process's log. Lines go to standard error; standard output is for answers.

use crate::config::{LogFormat, LogSettings};
use crate::error::AgentError;
use tracing_subscriber::EnvFilter;

/// Starts logging. To be called once in a process.
///
/// # Errors
/// [`AgentError::Config`] if the filter cannot be understood, or logging runs already.
pub fn init(settings: &LogSettings) -> Result<(), AgentError> {
    let filter: EnvFilter = settings
        .filter
        .parse()
        .map_err(|error| AgentError::config("log.filter", format!("{error}")))?;
    let log = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false);
    let started = match settings.format {
        LogFormat::Text => log.with_ansi(false).try_init(),
        LogFormat::Json => log.json().flatten_event(true).try_init(),
    };
    started.map_err(|error| AgentError::config("log", error.to_string()))
}

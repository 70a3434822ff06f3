//! Errors of the service.

use ebbtide_access::AccessError;
use ebbtide_advice::AdviceError;
use ebbtide_bus::BusError;
use ebbtide_config::ConfigError;
use ebbtide_engine::EngineError;
use ebbtide_keystone::{KeystoneError, Meaning};
use ebbtide_live_plugins::LivePluginError;
use ebbtide_plugins::PluginError;
use ebbtide_region::RegionError;
use ebbtide_rest::RestError;
use ebbtide_runtime::task;
use ebbtide_store::StoreError;
use thiserror::Error;

#[derive(Debug, Clone, Error)]
pub enum ServiceError {
    /// The region refused the input.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The database could not be written: nothing has happened. If the connection broke during the
    /// commit, repeating the request with the same ids shows whether it has.
    #[error("the state could not be written: {message}")]
    NotWritten {
        /// The store's code.
        code: &'static str,
        /// The store's message.
        message: String,
        /// True if a repetition may succeed.
        passing: bool,
    },
    /// The database cannot be read.
    #[error("the state could not be read: {message}")]
    NotRead {
        /// The store's code.
        code: &'static str,
        /// The store's message.
        message: String,
        /// True if a repetition may succeed.
        passing: bool,
    },
    /// A named object does not exist, or not any more.
    #[error("there is no {what} {name:?}; {next}")]
    NotFound {
        /// The kind of object.
        what: &'static str,
        /// The name that was given.
        name: String,
        /// What to do.
        next: &'static str,
    },
    /// A field of a request is invalid.
    #[error("field {field}: {problem}")]
    Field {
        field: &'static str,
        /// What is wrong, and what is accepted.
        problem: String,
    },
    /// Another scheduler is on duty: it reads agent reports and sends messages to agents.
    #[error("another scheduler of this database is on duty; it will deal with this")]
    NotOnDuty,
    /// The service is ending.
    #[error("the scheduler is shutting down; ask again in a moment")]
    Stopping,
    /// The configuration cannot be used.
    #[error("{0}")]
    Config(String),
    /// A port cannot be used.
    #[error("{what} cannot listen on {address}: {problem}; choose another with {option}")]
    Listen {
        /// The service that wanted to listen.
        what: &'static str,
        address: String,
        /// The error of the operating system.
        problem: String,
        /// The option that changes the address.
        option: &'static str,
    },
    /// An error of the bus.
    #[error("{message}")]
    Bus {
        /// The bus's code.
        code: &'static str,
        /// The bus's message.
        message: String,
    },
    /// An error of the database.
    #[error("{message}")]
    Store {
        /// The store's code.
        code: &'static str,
        /// The store's message.
        message: String,
    },
    /// The caller is unknown, or may not do this.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Keystone does not accept the caller's token, or cannot be asked.
    #[error("{}", keystone_text(.0))]
    Keystone(#[from] KeystoneError),
    /// A question for advice that is invalid.
    #[error(transparent)]
    Advice(#[from] AdviceError),
    /// A request took longer than `limits.request_seconds`.
    #[error(
        "no answer within {seconds} s, so waiting has ended; what was asked for may have happened, and asking again with the same ids \
         shows it"
    )]
    TooSlow {
        /// The time limit.
        seconds: f64,
    },
    /// The marker from which a list was to continue does not exist (any more); with the store's
    /// message.
    #[error("{0}")]
    NoSuchMarker(String),
    /// A set of plugins cannot be used; with the message of the invalid one.
    #[error("{message}")]
    Plugin {
        /// The plugin error's code.
        code: &'static str,
        /// The plugin error's message.
        message: String,
    },
    /// REST cannot be served.
    #[error(transparent)]
    Rest(RestError),
    /// A call that OpenStack has a command for.
    #[error("this cloud is an OpenStack, which does this itself: use `{command}`")]
    OpenStackCommand { command: &'static str },
    /// A what-if whose request would carry what another service makes.
    #[error("{0}")]
    NotAnswerable(String),
    /// Another scheduler has taken over the database.
    #[error(
        "another scheduler has taken over this database, so this one ends; run one scheduler for a database"
    )]
    Fenced,
}

/// What a caller is told. What is wrong between this service and Keystone is for the log.
fn keystone_text(error: &KeystoneError) -> String {
    if error.meaning() == Meaning::Unavailable {
        return "Keystone cannot be asked about the token now; ask again in a moment".to_owned();
    }
    let text = error.to_string();
    let text = text.split_once(": ").map(|(_, text)| text.to_owned());
    text.unwrap_or_default()
}

/// All tasks of the service.
pub(crate) type Tasks = task::Tasks<ServiceError>;

/// Ends the service because of an error. The first error is the one that is reported.
pub(crate) fn fail(tasks: &Tasks, error: ServiceError) {
    tracing::error!(code = error.code(), "{error}");
    tasks.stop_with(error);
}

impl ServiceError {
    /// The stable code of this error; `docs/reference/errors.md` has a paragraph for each.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Region(e) => e.code(),
            Self::NotWritten { code, .. }
            | Self::NotRead { code, .. }
            | Self::Bus { code, .. }
            | Self::Plugin { code, .. }
            | Self::Store { code, .. } => code,
            Self::NoSuchMarker(_) => "EB-STORE-011",
            Self::NotFound { .. } => "EB-SERVICE-001",
            Self::Field { .. } => "EB-SERVICE-002",
            Self::Stopping => "EB-SERVICE-003",
            Self::NotOnDuty => "EB-SERVICE-010",
            Self::Config(_) => "EB-SERVICE-004",
            Self::Listen { .. } => "EB-SERVICE-005",
            Self::Fenced => "EB-SERVICE-006",
            Self::TooSlow { .. } => "EB-SERVICE-007",
            Self::OpenStackCommand { .. } => "EB-SERVICE-012",
            Self::NotAnswerable(_) => "EB-SERVICE-014",
            Self::Access(error) => error.code(),
            Self::Keystone(error) => error.code(),
            Self::Rest(error) => error.code(),
            Self::Advice(error) => error.code(),
        }
    }
}

impl From<ConfigError> for ServiceError {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Wrong(problem) => Self::Config(problem),
            error @ ConfigError::Model { .. } => Self::Config(error.to_string()),
            ConfigError::Region(error) => error.into(),
            ConfigError::Engine(error) => error.into(),
            ConfigError::Bus(error) => error.into(),
            ConfigError::Store(error) => error.into(),
            ConfigError::Plugin(error) => error.into(),
        }
    }
}

impl From<EngineError> for ServiceError {
    fn from(error: EngineError) -> Self {
        Self::Region(error.into())
    }
}

impl From<PluginError> for ServiceError {
    fn from(error: PluginError) -> Self {
        Self::Plugin {
            code: error.code(),
            message: error.to_string(),
        }
    }
}

impl From<LivePluginError> for ServiceError {
    fn from(error: LivePluginError) -> Self {
        let (code, message) = (error.code(), error.to_string());
        match error {
            LivePluginError::Store(_) | LivePluginError::DatabaseAway => {
                Self::Store { code, message }
            }
            LivePluginError::Plugin(_)
            | LivePluginError::User { .. }
            | LivePluginError::NoDatabase => Self::Plugin { code, message },
        }
    }
}

impl From<BusError> for ServiceError {
    fn from(error: BusError) -> Self {
        Self::Bus {
            code: error.code(),
            message: error.to_string(),
        }
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        Self::Store {
            code: error.code(),
            message: error.to_string(),
        }
    }
}

//! What the service answers when it cannot do what was asked.

use ebbtide_access::AccessError;
use ebbtide_advice::AdviceError;
use ebbtide_bus::BusError;
use ebbtide_config::ConfigError;
use ebbtide_engine::EngineError;
use ebbtide_plugins::PluginError;
use ebbtide_region::RegionError;
use ebbtide_store::StoreError;
use thiserror::Error;

/// An answer that is not what was hoped for.
#[derive(Debug, Clone, Error)]
pub enum ServiceError {
    /// The region refused the input.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The database could not be written: nothing has happened (or, if the connection broke during the commit, asking again with
    /// the same ids shows what has).
    #[error("the state could not be written: {message}")]
    NotWritten {
        /// The store's code.
        code: &'static str,
        /// The store's words.
        message: String,
        /// True if asking again may help.
        passing: bool,
    },
    /// The database cannot be read.
    #[error("the state could not be read: {message}")]
    NotRead {
        /// The store's code.
        code: &'static str,
        /// The store's words.
        message: String,
        /// True if asking again may help.
        passing: bool,
    },
    /// Something that is named does not exist, or not any more.
    #[error("there is no {what} {name:?}; {next}")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// How it was named.
        name: String,
        /// What to do.
        next: &'static str,
    },
    /// A field of a request cannot be understood.
    #[error("field {field}: {problem}")]
    Field {
        /// Which.
        field: &'static str,
        /// What is wrong and what is accepted.
        problem: String,
    },
    /// Another scheduler reads what agents say, and sends what they are told.
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
        /// What wanted to listen.
        what: &'static str,
        /// Where.
        address: String,
        /// What the system said.
        problem: String,
        /// The option that changes it.
        option: &'static str,
    },
    /// The broker refuses us.
    #[error("{message}")]
    Bus {
        /// The bus's code.
        code: &'static str,
        /// The bus's words.
        message: String,
    },
    /// The database refuses us.
    #[error("{message}")]
    Store {
        /// The store's code.
        code: &'static str,
        /// The store's words.
        message: String,
    },
    /// Who asks is not known, or may not do this.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A question for advice that cannot be asked.
    #[error(transparent)]
    Advice(#[from] AdviceError),
    /// A request took longer than `limits.request_seconds`.
    #[error(
        "no answer within {seconds} s, so waiting has ended; what was asked for may have happened, and asking again with the same ids \
         shows it"
    )]
    TooSlow {
        /// How long was waited.
        seconds: f64,
    },
    /// A list was to be continued after a record that is not there (any more); in the store's words.
    #[error("{0}")]
    NoSuchMarker(String),
    /// A set of plugins cannot be used; in the words of the one that is wrong.
    #[error("{message}")]
    Plugin {
        /// Its code.
        code: &'static str,
        /// Its words.
        message: String,
    },
    /// Another scheduler has taken over the database.
    #[error(
        "another scheduler has taken over this database, so this one ends; run one scheduler for a database"
    )]
    Fenced,
}

impl ServiceError {
    /// The stable code of this error; `docs/errors.md` has a paragraph for each.
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
            Self::Access(error) => error.code(),
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

//! The Nova service: answers RPC requests as nova-scheduler does, and frees capacity by preemption.

pub mod audit;
mod brokers;
mod configure;
mod deferred;
mod describe;
mod endpoint;
mod error;
mod evacuate;
mod facts;
mod metrics;
mod notices;
#[cfg(test)]
mod over_model;
mod pages;
mod plugins;
mod release;
mod run;
mod select;
mod settings;
pub mod upgrade_check;

pub use configure::{PROGRAM, check as check_conf, read_conf};
pub use describe::describe;
pub use ebbtide_nova_objects::nova_conf;
pub use ebbtide_preemption as preemption;
pub use error::NovaServiceError;
use error::{Tasks, fail};
pub use run::NovaService;
pub use settings::SelectSettings;

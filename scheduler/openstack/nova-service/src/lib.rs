//! The Nova service: answers RPC requests as nova-scheduler does, and frees capacity by preemption.

pub mod audit;
mod brokers;
mod comebacks;
mod configure;
mod decisions;
mod deferred;
mod describe;
mod endpoint;
mod error;
mod evacuate;
mod facts;
mod headroom;
mod lives;
mod logins;
mod market;
mod metrics;
mod notices;
mod nova_api;
#[cfg(test)]
mod over_model;
mod pages;
mod plugins;
mod quota;
mod reader;
mod reclaims;
pub mod reconcile;
mod record;
mod release;
mod removals;
mod run;
mod select;
mod settings;
mod shadow;
mod traces;
pub mod upgrade_check;
mod what_if;

pub use configure::{
    PROGRAM, api_address, check as check_conf, ledger_database, metrics_address as listen_address,
    read_conf,
};
pub use describe::describe;
pub use ebbtide_nova_objects::nova_conf;
pub use ebbtide_preemption as preemption;
pub use error::NovaServiceError;
use error::{Tasks, fail};
pub use lives::LIVES_LATE;
pub use quota::LimitSource;
pub use reader::CloudReader;
pub use reclaims::ReclaimError;
pub use record::CloudRecord;
pub use removals::{RemovalError, RemovedAgent};
pub use run::NovaService;
pub use settings::{LIVES_KEPT, SelectSettings};
pub use shadow::{IdleFlavor, ReasonCount, ShadowReport, ShadowService};
pub use what_if::{WhatIf, WhatIfError, WhatIfImage};

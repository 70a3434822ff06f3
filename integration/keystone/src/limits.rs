//! Unified limits of Keystone for preemptible servers, as oslo.limit reads them.
//!
//! The operator registers a default for each resource of the service `preemption`
//! (`openstack registered limit create`), and gives a project or a domain a limit of its own
//! (`openstack limit create`).

pub mod effective;
mod reader;

pub use effective::{
    DomainLimits, EffectiveLimit, EnforcementModel, Limit, LimitRow, LimitSource, ProjectLimits,
    RegisteredLimits,
};
pub use reader::{LimitOptions, LimitReader};

/// The type under which the scheduler is in the catalog.
pub const SERVICE_TYPE: &str = "preemption";

/// Preemptible servers that a project may have at a time.
pub const PREEMPTIBLE_SERVERS: &str = "preemptible_servers";
/// Their vCPUs.
pub const PREEMPTIBLE_VCPUS: &str = "preemptible_vcpus";
/// Their memory in MiB.
pub const PREEMPTIBLE_MEMORY_MB: &str = "preemptible_memory_mb";

/// The resources that the scheduler limits.
pub const RESOURCES: [&str; 3] = [
    PREEMPTIBLE_SERVERS,
    PREEMPTIBLE_VCPUS,
    PREEMPTIBLE_MEMORY_MB,
];

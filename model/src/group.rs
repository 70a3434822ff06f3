//! Server groups: servers that want to be together, or apart.

use crate::{GroupId, ModelError, names};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a group asks of the hosts of its members (Nova's policies).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GroupPolicy {
    /// All on one host.
    Affinity,
    /// At most `max_server_per_host` on a host.
    AntiAffinity,
    /// Together where possible (a weigher).
    SoftAffinity,
    /// Apart where possible (a weigher).
    SoftAntiAffinity,
}

impl GroupPolicy {
    /// Nova's word for it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Affinity => "affinity",
            Self::AntiAffinity => "anti-affinity",
            Self::SoftAffinity => "soft-affinity",
            Self::SoftAntiAffinity => "soft-anti-affinity",
        }
    }
}

impl fmt::Display for GroupPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for GroupPolicy {
    type Err = ModelError;

    fn from_str(word: &str) -> Result<Self, ModelError> {
        match word {
            "affinity" => Ok(Self::Affinity),
            "anti-affinity" => Ok(Self::AntiAffinity),
            "soft-affinity" => Ok(Self::SoftAffinity),
            "soft-anti-affinity" => Ok(Self::SoftAntiAffinity),
            _ => Err(ModelError::Unknown {
                what: "server group policy",
                value: names::shorten(word),
                allowed: "affinity, anti-affinity, soft-affinity, soft-anti-affinity",
            }),
        }
    }
}

/// A server group. Members are the servers that were created with it and are not gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerGroup {
    pub id: GroupId,
    pub name: String,
    /// The project that owns it.
    pub project_id: String,
    /// What it asks for.
    pub policy: GroupPolicy,
    /// With anti-affinity: how many members one host may have (Nova's rule `max_server_per_host`),
    /// at least 1.
    #[serde(default = "one")]
    pub max_server_per_host: u32,
}

fn one() -> u32 {
    1
}

impl ServerGroup {
    /// Checks names and ranges.
    ///
    /// # Errors
    /// What is wrong, named.
    pub fn check(&self) -> Result<(), ModelError> {
        names::check_name("server group", &self.name)?;
        names::check_name("project", &self.project_id)?;
        if self.max_server_per_host == 0 {
            return Err(ModelError::Range {
                what: "max_server_per_host".to_owned(),
                value: "0".to_owned(),
                allowed: "1 or more".to_owned(),
            });
        }
        Ok(())
    }
}

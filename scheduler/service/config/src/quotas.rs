//! `[quotas]`: how much each project may have. They hold for requests of tenants; operators may
//! exceed them for a project.

use serde::{Deserialize, Serialize};

/// The limits of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Servers, those in error included.
    pub servers: u32,
    /// Server groups.
    pub groups: u32,
}

/// `[quotas]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Quotas {
    /// Servers of a project at the same time, those in error included.
    pub servers: u32,
    /// Server groups of a project.
    pub groups: u32,
    /// Projects with quotas of their own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub projects: Vec<ProjectQuota>,
}

/// One of [`Quotas::projects`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProjectQuota {
    /// The project.
    pub name: String,
    /// Instead of [`Quotas::servers`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<u32>,
    /// Instead of [`Quotas::groups`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<u32>,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            // Two of the largest requests.
            servers: 2_000,
            groups: 200,
            projects: Vec::new(),
        }
    }
}

impl Quotas {
    /// The highest quota: a region of this size has not been tried.
    const MOST: u32 = 1_000_000;

    /// What a project may have.
    #[must_use]
    pub fn of(&self, project: &str) -> Quota {
        let own = self.projects.iter().find(|row| row.name == project);
        Quota {
            servers: own.and_then(|row| row.servers).unwrap_or(self.servers),
            groups: own.and_then(|row| row.groups).unwrap_or(self.groups),
        }
    }

    /// Checks the ranges and that no project is there twice.
    ///
    /// # Errors
    /// The key, what it is, and what it may be.
    pub fn check(&self) -> Result<(), String> {
        let within = |key: &str, value: Option<u32>| match value {
            Some(value) if value > Self::MOST => {
                Err(format!("quotas.{key} = {value}: use 0 to {}", Self::MOST))
            }
            _ => Ok(()),
        };
        within("servers", Some(self.servers))?;
        within("groups", Some(self.groups))?;
        for (position, row) in self.projects.iter().enumerate() {
            if self.projects[..position].iter().any(|r| r.name == row.name) {
                return Err(format!("quotas.projects: {:?} is there twice", row.name));
            }
            within("projects[].servers", row.servers)?;
            within("projects[].groups", row.groups)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_has_its_own_quota_or_that_of_all() {
        let text = "servers = 10\n[[projects]]\nname = \"science\"\nservers = 50\n";
        let quotas: Quotas = toml::from_str(text).unwrap();
        assert_eq!(quotas.check(), Ok(()));
        let all = Quotas::default().groups;
        let quota = |servers| Quota {
            servers,
            groups: all,
        };
        assert_eq!(quotas.of("science"), quota(50));
        assert_eq!(quotas.of("art"), quota(10));
        let twice = format!("{text}[[projects]]\nname = \"science\"\n");
        let quotas: Quotas = toml::from_str(&twice).unwrap();
        assert!(quotas.check().unwrap_err().contains("twice"));
        let quotas: Quotas = toml::from_str("servers = 1000001").unwrap();
        assert!(quotas.check().unwrap_err().contains("quotas.servers"));
    }
}

//! `[quotas]`: how much each project may have. They hold for requests of tenants; operators may
//! exceed them for a project.

use serde::{Deserialize, Serialize};

/// The highest quota: a region of this size has not been tried.
const MOST: u32 = 1_000_000;

/// The limits of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quota {
    /// Servers, those in error included.
    pub servers: u32,
    /// Server groups.
    pub groups: u32,
}

ebbtide_model::settings! {
    /// `[quotas]`.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct Quotas: Default {
        /// Servers of a project at the same time, those in error included. Quotas hold for requests
        /// of tenants.
        // Two of the largest requests.
        pub servers: u32 = 2_000 => key("500").range(0..=MOST);
        /// Server groups of a project.
        pub groups: u32 = 200 => key("50").range(0..=MOST);
        /// Projects with quotas of their own.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pub projects: Vec<ProjectQuota> = Vec::new();
    }
}

ebbtide_model::settings! {
    /// One of [`Quotas::projects`].
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    pub struct ProjectQuota {
        /// A project with quotas of its own.
        pub name: String => key("science");
        /// Instead of `quotas.servers`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub servers: Option<u32> = None => key("10000").range(0..=MOST);
        /// Instead of `quotas.groups`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        pub groups: Option<u32> = None => key("500").range(0..=MOST);
    }
}

impl Quotas {
    /// What a project may have.
    #[must_use]
    pub fn of(&self, project: &str) -> Quota {
        let own = self.projects.iter().find(|row| row.name == project);
        Quota {
            servers: own.and_then(|row| row.servers).unwrap_or(self.servers),
            groups: own.and_then(|row| row.groups).unwrap_or(self.groups),
        }
    }

    /// Checks that no project is there twice.
    ///
    /// # Errors
    /// The key, and what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        for (position, row) in self.projects.iter().enumerate() {
            if self.projects[..position].iter().any(|r| r.name == row.name) {
                return Err(format!("quotas.projects: {:?} is there twice", row.name));
            }
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
        let range = ebbtide_model::settings::check_ranges(&quotas);
        assert_eq!(range.unwrap_err().key, "servers");
    }
}

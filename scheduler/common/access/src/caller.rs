//! A caller whose identity is proven.

use crate::AccessError;
use ebbtide_model::names::shorten;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The role of a caller in a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// May do everything.
    Operator,
    /// Sees everything, changes nothing.
    Reader,
    /// Sees and changes what belongs to its own projects.
    Tenant,
    /// Sees what belongs to its own projects, changes nothing.
    TenantReader,
}

impl Role {
    /// True if its holder sees its own projects only.
    #[must_use]
    pub fn is_tenant(self) -> bool {
        matches!(self, Self::Tenant | Self::TenantReader)
    }
}

ebbtide_model::words!(Role);

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Operator => "operator",
            Self::Reader => "reader",
            Self::Tenant => "tenant",
            Self::TenantReader => "tenant-reader",
        })
    }
}

/// Who calls the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// Display name: `token ci`, `certificate uri:ebbtide:role/reader`, `anybody`. Never secret.
    pub name: String,
    /// What it is.
    pub role: Role,
    /// A tenant's projects; empty for the others.
    pub projects: Vec<String>,
    /// False if the region does not authenticate callers.
    pub authenticated: bool,
}

impl Caller {
    /// The caller of a region without authentication: an operator.
    #[must_use]
    pub fn unauthenticated() -> Self {
        Self {
            name: "anybody".to_owned(),
            role: Role::Operator,
            projects: Vec::new(),
            authenticated: false,
        }
    }

    /// True if it sees its own projects only.
    #[must_use]
    pub fn is_tenant(&self) -> bool {
        self.role.is_tenant()
    }

    /// True if what belongs to this project may be seen.
    #[must_use]
    pub fn sees(&self, project: &str) -> bool {
        !self.is_tenant() || self.projects.iter().any(|own| own == project)
    }

    /// The project to work on when `asked` was named (may be empty): what operators and readers
    /// name is taken as it is; a tenant that names none means its only one.
    ///
    /// # Errors
    /// [`AccessError::OtherProject`] for a tenant that names another project, or none while it has
    /// several.
    pub fn project(&self, asked: &str, what: &'static str) -> Result<String, AccessError> {
        match self.projects.as_slice() {
            _ if !self.is_tenant() => Ok(asked.to_owned()),
            [only] if asked.is_empty() => Ok(only.clone()),
            own if own.iter().any(|own| own == asked) => Ok(asked.to_owned()),
            own => Err(AccessError::OtherProject {
                caller: self.to_string(),
                what,
                project: shorten(asked),
                own: own.join(", "),
            }),
        }
    }

    /// The name under which requests are counted. All tokens of a tenant count together; every
    /// other caller counts alone.
    #[must_use]
    pub fn account(&self) -> String {
        if self.is_tenant() {
            format!("tenant {}", self.projects.join(","))
        } else {
            self.name.clone()
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.name, self.role)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tenant(projects: &[&str]) -> Caller {
        Caller {
            name: "token t".to_owned(),
            role: Role::Tenant,
            projects: projects.iter().map(|p| (*p).to_owned()).collect(),
            authenticated: true,
        }
    }

    #[test]
    fn a_tenant_means_its_only_project_and_no_other() {
        let one = tenant(&["science"]);
        assert_eq!(one.project("", "list servers").unwrap(), "science");
        assert_eq!(one.project("science", "list servers").unwrap(), "science");
        let error = one.project("art", "list servers").unwrap_err();
        assert_eq!(error.code(), "EB-ACCESS-005");
        assert!(error.to_string().contains("science"), "{error}");
        assert!(one.sees("science") && !one.sees("art") && !one.sees(""));
    }

    #[test]
    fn a_tenant_of_several_projects_has_to_say_which() {
        let two = tenant(&["science", "art"]);
        assert!(two.project("", "list servers").is_err());
        assert_eq!(two.project("art", "list servers").unwrap(), "art");
    }

    #[test]
    fn a_tenant_without_projects_sees_nothing() {
        let none = tenant(&[]);
        assert!(none.project("", "x").is_err() && none.project("a", "x").is_err());
        assert!(!none.sees("") && !none.sees("a"));
    }

    #[test]
    fn others_name_what_they_like() {
        let operator = Caller::unauthenticated();
        assert_eq!(operator.project("", "x").unwrap(), "");
        assert_eq!(operator.project("art", "x").unwrap(), "art");
        assert!(operator.sees("art"));
    }
}

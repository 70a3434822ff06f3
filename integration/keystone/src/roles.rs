//! Roles of secure RBAC.
//!
//! Keystone resolves implied roles (admin has member, member has reader) before it answers, so a
//! token is taken at its word.

use crate::error::KeystoneError;
use crate::token::{Scope, ValidatedToken};

/// What a caller is for the API, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiRole {
    /// `admin`, on the system or on a project: all projects, all calls. As in Nova, the project
    /// does not matter, unless Keystone has an admin project and this is not it.
    Admin,
    /// `member` on a project: sees and changes what belongs to it.
    ProjectMember,
    /// `reader` on a project: sees what belongs to it.
    ProjectReader,
    /// `service` alone: another service of the cloud on its own behalf.
    Service,
}

impl ValidatedToken {
    /// Whether the token has a role. Names compare without case, as oslo.policy does.
    #[must_use]
    pub fn has_role(&self, name: &str) -> bool {
        let same = |role: &crate::token::Named| role.name.eq_ignore_ascii_case(name);
        self.roles.iter().any(same)
    }

    /// The strongest role that the token gives its bearer.
    ///
    /// # Errors
    /// [`KeystoneError::WrongScope`] for a domain, or the system without `admin`;
    /// [`KeystoneError::NoRole`]; [`KeystoneError::Unscoped`].
    pub fn api_role(&self) -> Result<ApiRole, KeystoneError> {
        let wrong = |scope: String| Err(KeystoneError::WrongScope { scope });
        match &self.scope {
            Scope::System if self.has_role("admin") => Ok(ApiRole::Admin),
            Scope::System => wrong("the system without role admin".to_owned()),
            Scope::Domain(domain) => wrong(format!("domain {}", domain.id)),
            Scope::Unscoped => Err(KeystoneError::Unscoped {
                user: self.user.id.clone(),
            }),
            Scope::Project(_) => {
                let found = [
                    (
                        self.has_role("admin") && self.is_admin_project,
                        ApiRole::Admin,
                    ),
                    (self.has_role("member"), ApiRole::ProjectMember),
                    (self.has_role("reader"), ApiRole::ProjectReader),
                    (self.has_role("service"), ApiRole::Service),
                ];
                let strongest = found.into_iter().find(|(has, _)| *has);
                strongest
                    .map(|(_, role)| role)
                    .ok_or_else(|| KeystoneError::NoRole {
                        user: self.user.id.clone(),
                    })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tests::{token, with};
    use serde_json::json;

    fn role_of(names: &[&str]) -> Result<ApiRole, KeystoneError> {
        let roles: Vec<_> = names.iter().map(|n| json!({"id": n, "name": n})).collect();
        token(&with("roles", json!(roles))).api_role()
    }

    #[test]
    fn the_strongest_role_counts() {
        assert_eq!(role_of(&["reader", "member", "admin"]), Ok(ApiRole::Admin));
        assert_eq!(role_of(&["reader", "member"]), Ok(ApiRole::ProjectMember));
        assert_eq!(role_of(&["service", "Reader"]), Ok(ApiRole::ProjectReader));
        assert_eq!(role_of(&["service"]), Ok(ApiRole::Service));
    }

    #[test]
    fn a_token_without_a_known_role_is_forbidden() {
        let error = role_of(&["swiftoperator"]).unwrap_err();
        assert_eq!(
            (error.code(), error.meaning().status()),
            ("EB-KEYSTONE-013", 403)
        );
        assert!(role_of(&[]).is_err());
    }

    #[test]
    fn an_admin_of_another_project_than_the_admin_project_is_no_admin() {
        let mut token = token(&with("roles", json!([{"id": "a", "name": "admin"}])));
        token.is_admin_project = false;
        assert_eq!(token.api_role().unwrap_err().code(), "EB-KEYSTONE-013");
    }

    #[test]
    fn the_system_is_for_admins_and_domains_are_for_none() {
        let mut admin = token(&with("roles", json!([{"id": "a", "name": "admin"}])));
        admin.scope = Scope::System;
        assert_eq!(admin.api_role(), Ok(ApiRole::Admin));
        admin.roles.clear();
        assert_eq!(admin.api_role().unwrap_err().code(), "EB-KEYSTONE-014");
        admin.scope = Scope::Domain(crate::token::Named {
            id: "default".to_owned(),
            name: "Default".to_owned(),
        });
        assert_eq!(admin.api_role().unwrap_err().code(), "EB-KEYSTONE-014");
    }
}

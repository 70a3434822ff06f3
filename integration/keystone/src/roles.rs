//! Roles of secure RBAC.
//!
//! Keystone resolves implied roles (admin has member, member has reader) before it answers, so a
//! token is taken at its word.

use crate::token::ValidatedToken;

/// What a caller is for the API, the strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ApiRole {
    /// All projects, all calls.
    Admin,
    /// Sees all projects. No token has it without a policy file: secure RBAC dropped the reader of
    /// the system for services such as Nova.
    GlobalReader,
    /// Sees and changes what belongs to its project.
    ProjectMember,
    /// Sees what belongs to its project.
    ProjectReader,
    /// `service` alone: another service of the cloud on its own behalf.
    Service,
}

impl ValidatedToken {
    /// Whether the token has a role. Names compare without case, as oslo.policy does.
    #[must_use]
    pub fn has_role(&self, name: &str) -> bool {
        let same = |role: &crate::token::NamedIdentity| role.name.eq_ignore_ascii_case(name);
        self.roles.iter().any(same)
    }
}

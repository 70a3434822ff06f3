//! Which roles of Keystone may do what: one table with defaults, which a policy file overrides as
//! `policy.yaml` does for the services of OpenStack (oslo.policy).

mod check;

use crate::error::KeystoneError;
use crate::roles::ApiRole;
use crate::token::{Scope, ValidatedToken};
use check::Check;
use std::collections::BTreeMap;

/// The rule of admins.
pub const ADMIN: &str = "preemption:admin";

/// Prefix of the names that the API gives to rules. Others are the operator's own.
pub const PREFIX: &str = "preemption:";

/// The rule of each role, the strongest first, with its default and what it means.
pub const ROLE_RULES: [RoleRule; 4] = [
    RoleRule {
        role: ApiRole::Admin,
        name: ADMIN,
        check: "role:admin",
        meaning: "All projects and all calls, on a project or on the system.",
    },
    RoleRule {
        role: ApiRole::GlobalReader,
        name: "preemption:global_reader",
        check: "!",
        meaning: "Sees all projects and changes nothing.",
    },
    RoleRule {
        role: ApiRole::ProjectMember,
        name: "preemption:project_member",
        check: "role:member",
        meaning: "Sees and changes what belongs to the project of its token.",
    },
    RoleRule {
        role: ApiRole::ProjectReader,
        name: "preemption:project_reader",
        check: "role:reader",
        meaning: "Sees what belongs to the project of its token.",
    },
];

/// The rule by which a token has a role of the API.
#[derive(Debug, Clone, Copy)]
pub struct RoleRule {
    pub role: ApiRole,
    /// Its name in a policy file.
    pub name: &'static str,
    /// Its default.
    pub check: &'static str,
    /// What its holders may do.
    pub meaning: &'static str,
}

/// The rules in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessPolicy {
    rules: BTreeMap<String, Check>,
    /// What a file says, by name.
    written: BTreeMap<String, String>,
}

impl AccessPolicy {
    /// The defaults of the roles, those of the calls, and what a policy file says instead: YAML
    /// with a check for each name. `None`: no file.
    ///
    /// # Errors
    /// [`KeystoneError::Policy`]: YAML that is none, a check that cannot be read, a name with
    /// [`PREFIX`] that no call has, a rule that names one that does not exist or itself.
    pub fn new(
        calls: impl IntoIterator<Item = (String, &'static str)>,
        file: Option<&str>,
    ) -> Result<Self, KeystoneError> {
        let roles = ROLE_RULES.map(|rule| (rule.name.to_owned(), rule.check));
        let mut rules = BTreeMap::new();
        for (name, text) in roles.into_iter().chain(calls) {
            rules.insert(name.clone(), read(&name, text)?);
        }
        let written = match file {
            Some(text) => serde_saphyr::from_str::<Option<BTreeMap<String, String>>>(text)
                .map_err(|error| KeystoneError::Policy(error.to_string()))?
                .unwrap_or_default(),
            None => BTreeMap::new(),
        };
        for (name, text) in &written {
            if name.starts_with(PREFIX) && !rules.contains_key(name) {
                let problem = format!("there is no rule {name:?}");
                return Err(KeystoneError::Policy(problem));
            }
            rules.insert(name.clone(), read(name, text)?);
        }
        for name in rules.keys() {
            follow(name, &rules, &mut Vec::new()).map_err(KeystoneError::Policy)?;
        }
        Ok(Self { rules, written })
    }

    /// Whether a token passes a rule. A rule that does not exist lets nothing through.
    #[must_use]
    pub fn allows(&self, rule: &str, token: &ValidatedToken) -> bool {
        Check::Rule(rule.to_owned()).passes(token, &self.rules)
    }

    /// What the policy file says, by the name of the rule.
    #[must_use]
    pub fn written(&self) -> &BTreeMap<String, String> {
        &self.written
    }

    /// The strongest role that the token gives its bearer.
    ///
    /// # Errors
    /// As [`Self::api_roles`].
    pub fn api_role(&self, token: &ValidatedToken) -> Result<ApiRole, KeystoneError> {
        let roles = self.api_roles(token)?;
        roles.first().copied().ok_or_else(|| no_role(token))
    }

    /// The roles that the token gives its bearer, the strongest first; at least one.
    ///
    /// # Errors
    /// [`KeystoneError::WrongScope`] for a domain, or the system without a role that sees all
    /// projects; [`KeystoneError::NoRole`]; [`KeystoneError::Unscoped`].
    pub fn api_roles(&self, token: &ValidatedToken) -> Result<Vec<ApiRole>, KeystoneError> {
        let wrong = |scope: String| Err(KeystoneError::WrongScope { scope });
        let of_projects = |role| matches!(role, ApiRole::ProjectMember | ApiRole::ProjectReader);
        let held = ROLE_RULES.iter().filter(|rule| {
            let fits = matches!(token.scope, Scope::Project(_)) || !of_projects(rule.role);
            fits && self.allows(rule.name, token)
        });
        let mut held: Vec<_> = held.map(|rule| rule.role).collect();
        match &token.scope {
            Scope::Domain(domain) => return wrong(format!("domain {}", domain.id)),
            Scope::Unscoped => {
                return Err(KeystoneError::Unscoped {
                    user: token.user.id.clone(),
                });
            }
            Scope::System if held.is_empty() => {
                return wrong("the system without role admin".to_owned());
            }
            Scope::Project(_) if held.is_empty() && token.has_role("service") => {
                held.push(ApiRole::Service);
            }
            Scope::System | Scope::Project(_) => {}
        }
        if held.is_empty() {
            return Err(no_role(token));
        }
        Ok(held)
    }
}

fn no_role(token: &ValidatedToken) -> KeystoneError {
    KeystoneError::NoRole {
        user: token.user.id.clone(),
    }
}

impl Default for AccessPolicy {
    /// The roles alone, as they are without a policy file.
    fn default() -> Self {
        let read = |rule: RoleRule| Some((rule.name.to_owned(), Check::parse(rule.check).ok()?));
        Self {
            rules: ROLE_RULES.into_iter().filter_map(read).collect(),
            written: BTreeMap::new(),
        }
    }
}

fn read(name: &str, text: &str) -> Result<Check, KeystoneError> {
    Check::parse(text).map_err(|problem| KeystoneError::Policy(format!("{name}: {problem}")))
}

/// Follows the rules that a rule names.
fn follow<'a>(
    name: &'a str,
    rules: &'a BTreeMap<String, Check>,
    path: &mut Vec<&'a str>,
) -> Result<(), String> {
    if path.contains(&name) {
        return Err(format!("rule {name:?} needs itself: {}", path.join(" -> ")));
    }
    let Some(check) = rules.get(name) else {
        let by = path.last().copied().unwrap_or_default();
        return Err(format!("{by}: there is no rule {name:?}"));
    };
    path.push(name);
    for next in check.rules() {
        follow(next, rules, path)?;
    }
    path.pop();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::NamedIdentity;
    use crate::token::tests::{token, with};
    use serde_json::json;

    const CALLS: [(&str, &str); 2] = [
        ("preemption:ListServers", "rule:preemption:project_reader"),
        ("preemption:Audit", "rule:preemption:admin"),
    ];

    fn policy(file: &str) -> Result<AccessPolicy, KeystoneError> {
        let calls = CALLS.map(|(name, check)| (name.to_owned(), check));
        AccessPolicy::new(calls, Some(file))
    }

    fn of_roles(names: &[&str]) -> ValidatedToken {
        let roles: Vec<_> = names.iter().map(|n| json!({"id": n, "name": n})).collect();
        token(&with("roles", json!(roles)))
    }

    fn role_of(names: &[&str]) -> Result<ApiRole, KeystoneError> {
        AccessPolicy::default().api_role(&of_roles(names))
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
        let mut token = of_roles(&["admin"]);
        token.is_admin_project = false;
        let role = AccessPolicy::default().api_role(&token);
        assert_eq!(role.unwrap_err().code(), "EB-KEYSTONE-013");
    }

    #[test]
    fn the_system_is_for_admins_and_domains_are_for_none() {
        let policy = AccessPolicy::default();
        let mut admin = of_roles(&["admin"]);
        admin.scope = Scope::System;
        assert_eq!(policy.api_role(&admin), Ok(ApiRole::Admin));
        admin.roles.clear();
        let code = |token: &ValidatedToken| policy.api_role(token).unwrap_err().code();
        assert_eq!(code(&admin), "EB-KEYSTONE-014");
        admin = of_roles(&["admin"]);
        admin.scope = Scope::Domain(NamedIdentity {
            id: "default".to_owned(),
            name: "Default".to_owned(),
        });
        assert_eq!(code(&admin), "EB-KEYSTONE-014");
    }

    #[test]
    fn a_file_gives_roles_to_other_roles_of_keystone() {
        let policy = policy(
            "\"preemption:admin\": \"role:admin or rule:night_shift\"\n\
             \"preemption:global_reader\": \"role:auditor\"\n\
             \"preemption:project_member\": \"role:member and not role:trainee\"\n\
             night_shift: \"role:operator and project_id:0b1c\"\n",
        )
        .unwrap();
        let role = |names: &[&str]| policy.api_role(&of_roles(names));
        assert_eq!(role(&["admin"]), Ok(ApiRole::Admin));
        assert_eq!(role(&["auditor"]), Ok(ApiRole::GlobalReader));
        assert_eq!(
            role(&["member", "reader", "trainee"]),
            Ok(ApiRole::ProjectReader)
        );
        assert!(role(&["operator"]).is_err(), "of another project");
        assert_eq!(policy.written().len(), 4);
        assert!(!policy.written().contains_key("preemption:Audit"));
    }

    #[test]
    fn a_file_opens_and_closes_a_call() {
        let policy =
            policy("\"preemption:ListServers\": \"!\"\n\"preemption:Audit\": \"role:auditor\"\n")
                .unwrap();
        let admin = of_roles(&["admin", "member", "reader"]);
        assert!(!policy.allows("preemption:ListServers", &admin));
        assert!(!policy.allows("preemption:Audit", &admin));
        assert!(policy.allows("preemption:Audit", &of_roles(&["auditor"])));
        assert!(!policy.allows("preemption:Missing", &admin));
    }

    #[test]
    fn a_file_that_cannot_be_used_says_why() {
        for (file, part) in [
            ("preemption:Lists: \"@\"", "no rule \"preemption:Lists\""),
            ("preemption:Audit: \"rule:nights\"", "no rule \"nights\""),
            ("a: \"rule:b\"\nb: \"not rule:a\"", "needs itself: a -> b"),
            (
                "preemption:Audit: \"role:admin or\"",
                "preemption:Audit: a check is missing",
            ),
            ("preemption:Audit: [\"role:admin\"]", ""),
            ("preemption:Audit: \"!\"\npreemption:Audit: \"@\"", ""),
            ("- a", ""),
            ("a: \"@", ""),
        ] {
            let error = policy(file).unwrap_err();
            assert_eq!(error.code(), "EB-KEYSTONE-019", "{file}");
            assert!(error.to_string().contains(part), "{file}: {error}");
        }
        assert_eq!(policy("# nothing\n").unwrap(), policy("").unwrap());
    }
}

//! What Keystone says of a token, read and checked. Pure.

use crate::access_rules::AccessRule;
use crate::error::KeystoneError;
use ebbtide_openstack::{AdapterOptions, Catalog, CatalogEndpoint};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A domain or a role: an id and a name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NamedIdentity {
    /// Keystone's id.
    pub id: String,
    pub name: String,
}

/// A user or a project.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DomainIdentity {
    /// Keystone's id.
    pub id: String,
    /// Its name, unique within its domain.
    pub name: String,
    pub domain: NamedIdentity,
}

/// What a token is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    Project(DomainIdentity),
    Domain(NamedIdentity),
    /// The whole system.
    System,
    /// Nothing but getting another token.
    Unscoped,
}

/// The application credential that a token was got with.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct UsedCredential {
    /// Keystone's id.
    pub id: String,
    #[serde(default)]
    pub name: String,
    /// Whether it may not create or delete other credentials and trusts. Only Keystone acts on it.
    #[serde(default = "yes")]
    pub restricted: bool,
    /// The only requests that it may make; `None`: all.
    #[serde(default)]
    pub access_rules: Option<Vec<AccessRule>>,
}

/// A token that Keystone has answered for. It does not contain the token itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ValidatedToken {
    /// Who it was given to.
    pub user: DomainIdentity,
    /// What it is good for.
    pub scope: Scope,
    /// Its roles, implied ones included.
    pub roles: Vec<NamedIdentity>,
    /// False only if Keystone has an admin project and this token is for another one.
    pub is_admin_project: bool,
    /// Its end.
    pub expires_at: OffsetDateTime,
    /// Ids for the audit: its own, and that of the first token of its chain.
    pub audit_ids: Vec<String>,
    /// The application credential that it was got with.
    pub application_credential: Option<UsedCredential>,
    /// The trust that it was got with.
    pub trust_id: Option<String>,
    /// The kinds of things that it is bound to, for example `kerberos`.
    pub bound_to: Vec<String>,
    /// Those services of its catalog that were asked for; `None` without a catalog.
    pub catalog: Option<Catalog>,
}

impl ValidatedToken {
    /// Reads the answer to `GET /v3/auth/tokens`. Of its catalog, the services of these types are
    /// kept.
    ///
    /// # Errors
    /// [`KeystoneError::BadAnswer`]; it does not repeat the answer.
    pub fn from_answer(answer: Value, service_types: &[&str]) -> Result<Self, KeystoneError> {
        let bad = |problem: &str| KeystoneError::BadAnswer(problem.to_owned());
        // The reason would quote the answer.
        let answer: Answer = serde_json::from_value(answer).map_err(|_| bad("it is no token"))?;
        let token = answer.token;
        let expires_at = OffsetDateTime::parse(&token.expires_at, &Rfc3339)
            .map_err(|_| bad("expires_at is no time"))?;
        let system = token.system.is_some_and(|system| system.all);
        let scope = match (token.project, token.domain) {
            (Some(_), _) | (_, Some(_)) if system => return Err(bad("it has two scopes")),
            (Some(_), Some(_)) => return Err(bad("it has two scopes")),
            (Some(project), None) => Scope::Project(project),
            (None, Some(domain)) => Scope::Domain(domain),
            (None, None) if system => Scope::System,
            (None, None) => Scope::Unscoped,
        };
        let catalog = token.catalog.map(|mut catalog| {
            catalog.retain(service_types);
            catalog
        });
        Ok(Self {
            user: token.user,
            scope,
            roles: token.roles,
            is_admin_project: token.is_admin_project,
            expires_at,
            audit_ids: token.audit_ids,
            application_credential: token.application_credential,
            trust_id: token.trust.map(|trust| trust.id),
            bound_to: token.bind.into_keys().collect(),
            catalog,
        })
    }

    /// The project, unless the token is for something else.
    #[must_use]
    pub fn project(&self) -> Option<&DomainIdentity> {
        match &self.scope {
            Scope::Project(project) => Some(project),
            _ => None,
        }
    }

    /// The endpoint of a service in the token's catalog, by type, interface and region.
    #[must_use]
    pub fn endpoint(&self, wanted: &AdapterOptions) -> Option<CatalogEndpoint> {
        self.catalog.as_ref()?.endpoint(wanted)
    }
}

#[derive(Deserialize)]
struct Answer {
    token: TokenAnswer,
}

#[derive(Deserialize)]
struct TokenAnswer {
    user: DomainIdentity,
    project: Option<DomainIdentity>,
    domain: Option<NamedIdentity>,
    system: Option<System>,
    #[serde(default)]
    roles: Vec<NamedIdentity>,
    // keystoneauth takes the absence for true: most clouds have no admin project.
    #[serde(default = "yes")]
    is_admin_project: bool,
    expires_at: String,
    #[serde(default)]
    audit_ids: Vec<String>,
    application_credential: Option<UsedCredential>,
    #[serde(rename = "OS-TRUST:trust")]
    trust: Option<Trust>,
    #[serde(default)]
    bind: BTreeMap<String, Value>,
    catalog: Option<Catalog>,
}

#[derive(Deserialize)]
struct System {
    #[serde(default)]
    all: bool,
}

#[derive(Deserialize)]
struct Trust {
    id: String,
}

const fn yes() -> bool {
    true
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use serde_json::json;

    /// An answer for a member of project `p` whose token ends on 26 November 2026 at 20:00.
    pub(crate) fn answer() -> Value {
        let domain = json!({"id": "default", "name": "Default"});
        json!({"token": {
            "methods": ["password"],
            "user": {"id": "u", "name": "ada", "domain": domain, "password_expires_at": null},
            "project": {"id": "p", "name": "research", "domain": domain},
            "is_domain": false,
            "roles": [{"id": "m", "name": "member"}, {"id": "r", "name": "reader"}],
            "issued_at": "2026-11-26T19:00:00.000000Z",
            "expires_at": "2026-11-26T20:00:00.000000Z",
            "audit_ids": ["a1"],
            "catalog": [
                {"id": "s1", "type": "preemption", "name": "ebbtide", "endpoints": [
                    {"id": "e1", "interface": "public", "region": "R1", "region_id": "R1",
                     "url": "http://public/"},
                    {"id": "e2", "interface": "internal", "region": "R2", "region_id": "R2",
                     "url": "http://internal"}]},
                {"id": "s2", "type": "compute", "name": "nova", "endpoints": []}],
        }})
    }

    /// The same with another value of one key; null removes it.
    pub(crate) fn with(key: &str, value: Value) -> Value {
        let mut answer = answer();
        if value.is_null() {
            answer["token"].as_object_mut().unwrap().remove(key);
        } else {
            answer["token"][key] = value;
        }
        answer
    }

    pub(crate) fn token(answer: &Value) -> ValidatedToken {
        ValidatedToken::from_answer(answer.clone(), &["preemption"]).unwrap()
    }

    #[test]
    fn a_project_token_is_read_with_its_user_roles_and_end() {
        let token = token(&answer());
        assert_eq!(token.user.name, "ada");
        assert_eq!(token.project().unwrap().domain.id, "default");
        assert!(token.has_role("MEMBER") && !token.has_role("admin"));
        assert_eq!(token.expires_at.hour(), 20);
        assert!(token.is_admin_project);
        assert_eq!(token.audit_ids, ["a1"]);
    }

    #[test]
    fn each_scope_is_told_from_the_others() {
        let scope = |answer: Value| token(&answer).scope;
        assert_eq!(scope(with("project", Value::Null)), Scope::Unscoped);
        let mut system = with("project", Value::Null);
        system["token"]["system"] = json!({"all": true});
        assert_eq!(scope(system.clone()), Scope::System);
        system["token"]["system"] = json!({"all": false});
        assert_eq!(scope(system), Scope::Unscoped);
        let mut domain = with("project", Value::Null);
        domain["token"]["domain"] = json!({"id": "d", "name": "D"});
        assert!(matches!(scope(domain), Scope::Domain(domain) if domain.id == "d"));
    }

    #[test]
    fn a_token_with_two_scopes_is_refused() {
        let both = [
            with("domain", json!({"id": "d", "name": "D"})),
            with("system", json!({"all": true})),
        ];
        for answer in both {
            let error = ValidatedToken::from_answer(answer, &[]).unwrap_err();
            assert_eq!(error.code(), "EB-KEYSTONE-012");
        }
    }

    #[test]
    fn an_answer_that_is_no_token_is_not_repeated() {
        for answer in [
            json!({"token": "gAAAAAsecret"}),
            json!({"gAAAAAsecret": 1}),
            with("expires_at", json!("gAAAAAsecret")),
            with("expires_at", Value::Null),
            with("user", Value::Null),
            Value::Null,
        ] {
            let error = ValidatedToken::from_answer(answer, &[]).unwrap_err();
            assert_eq!(error.code(), "EB-KEYSTONE-012");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    #[test]
    fn the_endpoint_is_found_by_interface_and_region() {
        let token = token(&answer());
        let mut wanted = AdapterOptions::new("preemption");
        assert_eq!(token.endpoint(&wanted).unwrap().url, "http://internal");
        wanted.region_name = Some("R1".to_owned());
        let found = token.endpoint(&wanted).unwrap();
        assert_eq!(found.url, "http://public");
        assert_eq!(found.service_id.as_deref(), Some("s1"));
        wanted.region_name = Some("R3".to_owned());
        assert_eq!(token.endpoint(&wanted), None);
    }

    #[test]
    fn only_the_services_that_were_asked_for_are_kept() {
        let catalog = token(&answer()).catalog.unwrap();
        assert!(catalog.has("preemption") && !catalog.has("compute"));
    }

    #[test]
    fn an_empty_list_of_access_rules_is_not_the_same_as_none() {
        let credential = |rules: Value| {
            let mut given = json!({"id": "c", "name": "ci", "restricted": true});
            given["access_rules"] = rules;
            token(&with("application_credential", given))
                .application_credential
                .unwrap()
        };
        assert_eq!(credential(Value::Null).access_rules, None);
        assert_eq!(credential(json!([])).access_rules, Some(Vec::new()));
    }
}

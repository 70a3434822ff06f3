//! Callers with tokens of Keystone, and the policy that says what they may do.

use super::Credentials;
use crate::error::ServiceError;
use crate::wire::Stamp;
use ebbtide_access::{AccessError, AccessRule, Caller, Role, policy_checks};
use ebbtide_keystone::{
    AccessPolicy, ApiRequest, ApiRole, KeystoneError, Meaning, Scope, TokenValidator,
    ValidatedToken,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

/// Validates tokens, and knows the rules of the calls.
#[derive(Debug)]
pub(crate) struct KeystoneGate {
    validator: TokenValidator,
    policy: RwLock<Arc<AccessPolicy>>,
    /// The operator's policy file.
    file: Option<PathBuf>,
    /// Its state before it was read for the first time.
    read_at: Stamp,
}

impl KeystoneGate {
    /// Reads the policy file, if there is one.
    ///
    /// # Errors
    /// [`ServiceError::Config`] if it cannot be used.
    pub(crate) fn new(
        validator: TokenValidator,
        file: Option<PathBuf>,
    ) -> Result<Self, ServiceError> {
        let read_at = Stamp::of(file.as_slice());
        let policy = read(file.as_deref()).map_err(ServiceError::Config)?;
        Ok(Self {
            validator,
            policy: RwLock::new(Arc::new(policy)),
            file,
            read_at,
        })
    }

    /// The policy file with the state in which it was read first.
    pub(super) fn file(&self) -> Option<(PathBuf, Stamp)> {
        Some((self.file.clone()?, self.read_at.clone()))
    }

    /// Reads the policy file again. A file that cannot be used changes nothing.
    pub(super) fn read_again(&self) {
        match read(self.file.as_deref()) {
            Ok(new) => {
                let rules = new.written().len();
                tracing::info!(rules, "the policy file was read again");
                *self.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
            }
            Err(problem) => tracing::error!("{problem}; the rules read before stay in force"),
        }
    }

    /// The value of `www-authenticate` for callers that are not known.
    pub(super) fn challenge(&self) -> &str {
        self.validator.challenge()
    }

    /// The caller behind the token of a request, if it may make this call.
    ///
    /// # Errors
    /// [`ServiceError::Keystone`]; [`AccessError::Forbidden`].
    pub(super) async fn admit(
        &self,
        rule: &AccessRule,
        credentials: &Credentials,
    ) -> Result<Caller, ServiceError> {
        let request = ApiRequest::new(&credentials.method, &credentials.path)
            .with_token(credentials.user_token())
            .with_service_token(credentials.service_token());
        let known = self
            .validator
            .authenticate(&request)
            .await
            .inspect_err(|error| {
                if error.meaning() == Meaning::Unavailable {
                    tracing::warn!(code = error.code(), "{error}");
                }
            })?;
        let policy = Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner));
        admit(&policy, rule, &known.token)
    }
}

/// The rules in force with this file.
fn read(file: Option<&Path>) -> Result<AccessPolicy, String> {
    let wrong = |path: &Path, problem: String| {
        format!("[ebbtide] api_policy_file = {}: {problem}", path.display())
    };
    let text = file
        .map(|path| std::fs::read_to_string(path).map_err(|error| wrong(path, error.to_string())));
    let text = text.transpose()?;
    AccessPolicy::new(policy_checks(), text.as_deref())
        .map_err(|error| wrong(file.unwrap_or_else(|| Path::new("-")), error.to_string()))
}

/// The caller that a token stands for, if the policy lets it make this call. What a project's token
/// sees stays its project's with any policy.
fn admit(
    policy: &AccessPolicy,
    rule: &AccessRule,
    token: &ValidatedToken,
) -> Result<Caller, ServiceError> {
    let allowed = policy.allows(&rule.policy_name(), token);
    // What a call is allowed to that has no role of the API: its own project.
    let own = allowed && matches!(token.scope, Scope::Project(_));
    let roles = match policy.api_roles(token) {
        Err(KeystoneError::NoRole { .. }) if own => vec![ApiRole::ProjectReader],
        Ok(roles) if own && roles == [ApiRole::Service] => vec![ApiRole::ProjectReader],
        roles => roles?,
    };
    let callers = roles.iter().map(|role| caller(token, *role));
    let callers = callers.collect::<Result<Vec<_>, _>>()?;
    // The strongest role that the table lets make this call: who sees all projects and is a member
    // of one changes things in that one only. A call that only a policy file allows is made in the
    // weakest role.
    let of_table = callers.iter().find(|caller| rule.permit(caller).is_ok());
    if let (true, Some(caller)) = (allowed, of_table.or_else(|| callers.last())) {
        return Ok(caller.clone());
    }
    let caller = callers
        .into_iter()
        .next()
        .ok_or_else(|| KeystoneError::NoRole {
            user: token.user.id.clone(),
        })?;
    // In the words of the table, unless only a policy file forbids it.
    rule.permit(&caller)?;
    Err(AccessError::Forbidden {
        caller: caller.to_string(),
        method: rule.method.trim_start_matches('/').to_owned(),
        why: "the policy file of this cloud does not allow it",
    }
    .into())
}

/// Roles of secure RBAC as roles of the API. The role `service` alone opens no call.
fn caller(token: &ValidatedToken, role: ApiRole) -> Result<Caller, KeystoneError> {
    let no_role = || KeystoneError::NoRole {
        user: token.user.id.clone(),
    };
    let role = match role {
        ApiRole::Admin => Role::Operator,
        ApiRole::GlobalReader => Role::Reader,
        ApiRole::ProjectMember => Role::Tenant,
        ApiRole::ProjectReader => Role::TenantReader,
        ApiRole::Service => return Err(no_role()),
    };
    let projects = match role.is_tenant() {
        true => vec![token.project().ok_or_else(no_role)?.id.clone()],
        false => Vec::new(),
    };
    Ok(Caller {
        name: format!("user {} {}", token.user.name, token.user.id),
        role,
        projects,
        authenticated: true,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ebbtide_access::rule_of;
    use proptest::prelude::*;
    use serde_json::json;

    const ROLES: [&str; 5] = ["admin", "member", "reader", "service", "auditor"];
    const CALLS: [&str; 6] = [
        "/ebbtide.v1.Servers/ListServers",
        "/ebbtide.v1.Servers/ReleaseServer",
        "/ebbtide.v1.Admin/ListHosts",
        "/ebbtide.v1.Admin/DisableHost",
        "/ebbtide.v1.Scheduler/Explain",
        "/ebbtide.v1.Plugins/ShadowReport",
    ];

    fn token(roles: &[&str], scope: &str) -> ValidatedToken {
        let named =
            |name: &str| json!({"id": name, "name": name, "domain": {"id": "d", "name": "D"}});
        let mut token = json!({
            "user": named("ada"), "expires_at": "2036-01-01T00:00:00.000000Z",
            "roles": roles.iter().map(|role| named(role)).collect::<Vec<_>>(),
        });
        match scope {
            "system" => token["system"] = json!({"all": true}),
            scope => token[scope] = named("science"),
        }
        ValidatedToken::from_answer(json!({"token": token}), &[]).unwrap()
    }

    fn policy(file: Option<&str>) -> AccessPolicy {
        AccessPolicy::new(policy_checks(), file).unwrap()
    }

    proptest! {
        /// The table of the API and the defaults of its policy say the same.
        #[test]
        fn without_a_file_the_table_decides(
            roles in prop::sample::subsequence(ROLES.to_vec(), 0..=5),
            scope in prop::sample::select(vec!["project", "system", "domain"]),
            call in prop::sample::select(CALLS.to_vec()),
        ) {
            let (policy, token) = (policy(None), token(&roles, scope));
            let rule = rule_of(call).unwrap();
            let code = |error: ServiceError| error.code().to_owned();
            let by_table = match policy.api_role(&token) {
                Ok(role) => caller(&token, role).map_err(ServiceError::from),
                Err(error) => Err(error.into()),
            };
            let by_table = by_table.and_then(|caller| {
                rule.permit(&caller)?;
                Ok(caller)
            });
            prop_assert_eq!(admit(&policy, rule, &token).map_err(code), by_table.map_err(code));
        }
    }

    #[test]
    fn a_file_that_breaks_leaves_the_rules_in_force_and_a_broken_one_opens_no_gate() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("policy.yaml");
        let conf = "[keystone_authtoken]\nauth_type = password\nusername = nova\n\
                    auth_url = http://127.0.0.1:1/v3\nuser_domain_name = Default\n\
                    password = nova\nproject_name = service\nproject_domain_name = Default\n";
        let conf = oslo_config::Config::of_text(Path::new("nova.conf"), conf).unwrap();
        let options = ebbtide_keystone::AuthTokenOptions::read(&conf).unwrap();
        let validator = TokenValidator::new(options).unwrap();
        let gate = || KeystoneGate::new(validator.clone(), Some(file.clone()));

        std::fs::write(&file, "preemption:ListServers: role:member\n").unwrap();
        let open = gate().unwrap();
        let written = || open.policy.read().unwrap().written().clone();
        let before = written();
        assert_eq!(before.len(), 1);
        std::fs::write(&file, "preemption:ListServers: role\n").unwrap();
        open.read_again();
        assert_eq!(written(), before);
        let error = gate().unwrap_err().to_string();
        let named = error.contains("api_policy_file") && error.contains("policy.yaml");
        assert!(named && error.contains("EB-KEYSTONE-019"), "{error}");
        std::fs::write(&file, "# none\n").unwrap();
        open.read_again();
        assert!(written().is_empty());
    }

    #[test]
    fn who_sees_all_projects_changes_its_own_only() {
        let policy = policy(Some("preemption:global_reader: role:auditor"));
        let token = token(&["auditor", "member", "reader"], "project");
        let role = |call: &str| admit(&policy, rule_of(call).unwrap(), &token).map(|c| c.role);
        assert_eq!(
            role("/ebbtide.v1.Servers/ListServers").unwrap(),
            Role::Reader
        );
        assert_eq!(role("/ebbtide.v1.Admin/ListHosts").unwrap(), Role::Reader);
        assert_eq!(
            role("/ebbtide.v1.Servers/ReleaseServer").unwrap(),
            Role::Tenant
        );
        assert!(role("/ebbtide.v1.Admin/DisableHost").is_err());
        let file = "preemption:global_reader: role:auditor\n\
                    preemption:ReleaseServer: role:reader\n";
        let policy = AccessPolicy::new(policy_checks(), Some(file)).unwrap();
        let reader = self::token(&["auditor", "reader"], "project");
        let release = rule_of("/ebbtide.v1.Servers/ReleaseServer").unwrap();
        assert_eq!(
            admit(&policy, release, &reader).unwrap().role,
            Role::TenantReader
        );
    }

    #[test]
    fn a_role_that_only_a_call_names_sees_its_own_project() {
        let policy = policy(Some("preemption:Explain: role:auditor or role:service"));
        let explain = rule_of("/ebbtide.v1.Scheduler/Explain").unwrap();
        let caller = admit(&policy, explain, &token(&["auditor"], "project")).unwrap();
        assert_eq!(
            (caller.role, caller.projects),
            (Role::TenantReader, vec!["science".to_owned()])
        );
        let service = admit(&policy, explain, &token(&["service"], "project")).unwrap();
        assert_eq!(service.role, Role::TenantReader);
        assert!(admit(&policy, explain, &token(&["auditor"], "system")).is_err());
        let error = admit(&policy, explain, &token(&["member"], "project")).unwrap_err();
        assert!(error.to_string().contains("policy file"), "{error}");
        let list = rule_of("/ebbtide.v1.Servers/ListServers").unwrap();
        assert!(admit(&policy, list, &token(&["auditor"], "project")).is_err());
    }
}

//! Whether a validated token admits a request. Pure.

use crate::error::KeystoneError;
use crate::token::{Scope, ValidatedToken};
use std::fmt;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// The longest token that is sent to Keystone, in bytes. Fernet tokens have about 250, signed ones
/// (JWS) about 1,000.
const LONGEST_TOKEN: usize = 4_096;

/// A request, as far as authentication is concerned.
#[derive(Clone, Copy)]
pub struct ApiRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The path without its query, exactly as it is routed: access rules are applied to it.
    pub path: &'a str,
    /// Header `X-Auth-Token`.
    pub token: Option<&'a str>,
    /// Header `X-Service-Token`: of the service that asks on behalf of the user.
    pub service_token: Option<&'a str>,
}

impl<'a> ApiRequest<'a> {
    /// A request without tokens.
    #[must_use]
    pub const fn new(method: &'a str, path: &'a str) -> Self {
        Self {
            method,
            path,
            token: None,
            service_token: None,
        }
    }

    /// With the user's token.
    #[must_use]
    pub const fn with_token(mut self, token: Option<&'a str>) -> Self {
        self.token = token;
        self
    }

    /// With the token of a service.
    #[must_use]
    pub const fn with_service_token(mut self, token: Option<&'a str>) -> Self {
        self.service_token = token;
        self
    }
}

impl fmt::Debug for ApiRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiRequest")
            .field("method", &self.method)
            .field("path", &self.path)
            .field("token", &self.token.map(|_| "…"))
            .field("service_token", &self.service_token.map(|_| "…"))
            .finish()
    }
}

/// What `enforce_token_bind` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BindMode {
    /// Bindings are not looked at.
    Disabled,
    /// A token bound by a known method (`kerberos`) is refused, as the proof is not available
    /// here; unknown methods are not looked at.
    #[default]
    Permissive,
    /// Every bound token is refused.
    Strict,
}

/// The rules for tokens, from `[keystone_authtoken]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRules {
    /// `service_token_roles`: one of them makes a token that of a service.
    pub service_token_roles: Vec<String>,
    /// `service_token_roles_required`: a service token without such a role is refused.
    pub service_token_roles_required: bool,
    /// `service_type`: what access rules call this service.
    pub service_type: Option<String>,
    /// `enforce_token_bind`.
    pub bind: BindMode,
}

impl TokenRules {
    /// Whether a token is that of a service by its roles: it may use a user's expired token.
    #[must_use]
    pub fn is_service(&self, token: &ValidatedToken) -> bool {
        self.service_token_roles
            .iter()
            .any(|wanted| token.roles.iter().any(|role| role.name == *wanted))
    }

    /// Admits a service's token.
    ///
    /// # Errors
    /// [`KeystoneError::ServiceToken`], [`KeystoneError::Bound`].
    pub fn admit_service(&self, token: &ValidatedToken) -> Result<(), KeystoneError> {
        self.unbound(token)?;
        if self.service_token_roles_required && !self.is_service(token) {
            let roles = self.service_token_roles.join(", ");
            let problem = format!("user {} has none of the roles {roles}", token.user.id);
            return Err(KeystoneError::ServiceToken(problem));
        }
        Ok(())
    }

    /// Admits a request by its user's token, and the token of a service if it has one.
    ///
    /// # Errors
    /// [`KeystoneError::Expired`], [`KeystoneError::Unscoped`], [`KeystoneError::Bound`],
    /// [`KeystoneError::AccessRule`].
    pub fn admit(
        &self,
        request: &ApiRequest<'_>,
        token: &ValidatedToken,
        service: Option<&ValidatedToken>,
        now: OffsetDateTime,
    ) -> Result<(), KeystoneError> {
        let by_service = service.is_some_and(|service| self.is_service(service));
        if !by_service {
            unexpired(token, now)?;
        }
        if service.is_none() {
            self.unbound(token)?;
        }
        if token.scope == Scope::Unscoped {
            let user = token.user.id.clone();
            return Err(KeystoneError::Unscoped { user });
        }
        self.follows_access_rules(request, token, by_service)
    }

    fn follows_access_rules(
        &self,
        request: &ApiRequest<'_>,
        token: &ValidatedToken,
        by_service: bool,
    ) -> Result<(), KeystoneError> {
        let Some(credential) = &token.application_credential else {
            return Ok(());
        };
        let Some(rules) = &credential.access_rules else {
            return Ok(());
        };
        let refuse = |problem| {
            Err(KeystoneError::AccessRule {
                credential: credential.id.clone(),
                request: format!("{} {}", request.method, request.path),
                problem,
            })
        };
        let Some(service_type) = &self.service_type else {
            return refuse(
                "[keystone_authtoken] service_type is not set, so rules cannot be applied",
            );
        };
        let catalog = token.catalog.as_ref();
        if !catalog.is_some_and(|catalog| catalog.has(service_type)) {
            return refuse("the service type is not in the catalog of the token");
        }
        // A request of a service is a part of one that the user was allowed to make there.
        if by_service
            || rules
                .iter()
                .any(|rule| rule.allows(service_type, request.method, request.path))
        {
            return Ok(());
        }
        refuse("no access rule of it has method, path and service")
    }

    fn unbound(&self, token: &ValidatedToken) -> Result<(), KeystoneError> {
        let unverifiable = |kind: &&String| match self.bind {
            BindMode::Disabled => false,
            BindMode::Permissive => kind.as_str() == "kerberos",
            BindMode::Strict => true,
        };
        match token.bound_to.iter().find(unverifiable) {
            Some(kind) => Err(KeystoneError::Bound(kind.clone())),
            None => Ok(()),
        }
    }
}

/// A token that has not ended. At the very second of its end it has.
pub(crate) fn unexpired(token: &ValidatedToken, now: OffsetDateTime) -> Result<(), KeystoneError> {
    if now < token.expires_at {
        return Ok(());
    }
    let end = token.expires_at.format(&Rfc3339);
    Err(KeystoneError::Expired(end.unwrap_or_default()))
}

/// The token without blanks around it, if it can be one: visible ASCII, not too long.
///
/// # Errors
/// [`KeystoneError::NoToken`], [`KeystoneError::Malformed`].
pub(crate) fn readable(token: Option<&str>) -> Result<&str, KeystoneError> {
    let token = token.map(str::trim).unwrap_or_default();
    if token.is_empty() {
        return Err(KeystoneError::NoToken);
    }
    if token.len() > LONGEST_TOKEN {
        return Err(KeystoneError::Malformed("it is longer than 4096 bytes"));
    }
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(KeystoneError::Malformed(
            "it has blanks or other bytes that no token has",
        ));
    }
    Ok(token)
}

#[cfg(test)]
mod tests;

//! Keystone v3: what is sent for a token, and what a token's answer holds.

mod catalog;

pub use catalog::{Catalog, CatalogEndpoint};

use crate::options::{ApplicationCredential, AuthMethod, IdOrName, TokenScope};
use crate::secret::Secret;
use ebbtide_runtime::clock;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use tokio::time::Instant;

/// How long before its end a token is renewed; keystoneauth's 30 s. A request that is under way
/// must not lose it.
const RENEWAL: Duration = Duration::from_secs(30);

/// A token with what came along.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) id: Secret,
    pub(crate) catalog: Catalog,
    pub(crate) project_id: Option<String>,
    pub(crate) user_id: Option<String>,
    renew_at: Option<Instant>,
    ends_at: Option<Instant>,
}

impl Token {
    /// A token that never ends, without a catalog.
    pub(crate) fn fixed(id: Secret) -> Self {
        let catalog = Catalog::default();
        Self {
            id,
            catalog,
            project_id: None,
            user_id: None,
            renew_at: None,
            ends_at: None,
        }
    }

    pub(crate) fn is_fresh(&self) -> bool {
        self.renew_at.is_none_or(|at| clock::timer() < at)
    }

    pub(crate) fn is_valid(&self) -> bool {
        self.ends_at.is_none_or(|at| clock::timer() < at)
    }

    /// Reads Keystone's answer. The problem never repeats it.
    pub(crate) fn from_answer(id: Option<&str>, body: &[u8]) -> Result<Self, String> {
        let id = id
            .filter(|id| !id.is_empty())
            .ok_or("it has no header X-Subject-Token")?;
        let answer: Answer = serde_json::from_slice(body)
            .map_err(|error| format!("line {}: no token", error.line()))?;
        let token = answer.token;
        let (renew_at, ends_at) = match token.expires_at.as_deref() {
            None => (None, None),
            Some(until) => {
                let from = token.issued_at.as_deref().unwrap_or_default();
                let lifetime = between(from, until).ok_or("its times cannot be understood")?;
                // Very short tokens (of tests) are used for at least half of their life. A century
                // is for ever.
                let lifetime = lifetime.min(Duration::from_secs(100 * 365 * 86_400));
                let margin = RENEWAL.min(lifetime / 2);
                let now = clock::timer();
                (
                    now.checked_add(lifetime - margin),
                    now.checked_add(lifetime),
                )
            }
        };
        let id_of = |owner: Option<Owner>| owner.map(|owner| owner.id);
        let (project_id, user_id) = (id_of(token.project), id_of(token.user));
        Ok(Self {
            id: Secret::new(id),
            catalog: token.catalog,
            project_id,
            user_id,
            renew_at,
            ends_at,
        })
    }
}

/// The time between two points of time as Keystone writes them. `None` if they are no points of
/// time or in the wrong order. Our own clock is not involved, as it may differ from Keystone's.
fn between(from: &str, until: &str) -> Option<Duration> {
    let from = OffsetDateTime::parse(from, &Rfc3339).ok()?;
    let until = OffsetDateTime::parse(until, &Rfc3339).ok()?;
    (until - from).try_into().ok()
}

#[derive(Deserialize)]
struct Answer {
    token: TokenAnswer,
}

#[derive(Deserialize)]
struct TokenAnswer {
    expires_at: Option<String>,
    issued_at: Option<String>,
    project: Option<Owner>,
    user: Option<Owner>,
    #[serde(default)]
    catalog: Catalog,
}

#[derive(Deserialize)]
struct Owner {
    id: String,
}

/// Where tokens are given out: `auth_url` with or without `/v3`.
pub(crate) fn tokens_url(auth_url: &str) -> String {
    let base = auth_url.trim().trim_end_matches('/');
    let base = base.strip_suffix("/auth/tokens").unwrap_or(base);
    format!("{}/v3/auth/tokens", root(base))
}

/// Keystone's URL without the version that an endpoint may end with. Old catalogs still name
/// version 2.0, which no Keystone serves any more.
pub(crate) fn root(endpoint: &str) -> &str {
    let base = endpoint.trim_end_matches('/');
    let unversioned = ["/v3", "/v2.0"]
        .iter()
        .find_map(|version| base.strip_suffix(version));
    unversioned.unwrap_or(base)
}

/// The body of `POST /v3/auth/tokens`, the same as keystoneauth's. `None` if the method needs no
/// Keystone.
pub(crate) fn request_body(method: &AuthMethod) -> Option<Value> {
    match method {
        AuthMethod::AdminToken { .. } | AuthMethod::None => None,
        AuthMethod::Password {
            user,
            password,
            scope,
        } => {
            let mut user = named(user);
            user["password"] = Value::from(password.reveal());
            let mut auth =
                json!({"identity": {"methods": ["password"], "password": {"user": user}}});
            put_scope(&mut auth, scope);
            Some(json!({"auth": auth}))
        }
        AuthMethod::Token { token, scope } => {
            let token = json!({"id": token.reveal()});
            let mut auth = json!({"identity": {"methods": ["token"], "token": token}});
            put_scope(&mut auth, scope);
            Some(json!({"auth": auth}))
        }
        AuthMethod::ApplicationCredential { credential, secret } => {
            let mut given = match credential {
                ApplicationCredential::Id(id) => json!({"id": id}),
                ApplicationCredential::Name { name, user } => {
                    json!({"name": name, "user": named(user)})
                }
            };
            given["secret"] = Value::from(secret.reveal());
            let identity =
                json!({"methods": ["application_credential"], "application_credential": given});
            Some(json!({"auth": {"identity": identity}}))
        }
    }
}

fn put_scope(auth: &mut Value, scope: &TokenScope) {
    let scope = match scope {
        TokenScope::Unscoped => return,
        TokenScope::Project(project) => json!({"project": named(project)}),
        TokenScope::Domain(of) => json!({"domain": domain(of)}),
        TokenScope::System => json!({"system": {"all": true}}),
    };
    auth["scope"] = scope;
}

fn named(named: &IdOrName) -> Value {
    match named {
        IdOrName::Id(id) => json!({"id": id}),
        IdOrName::Name { name, domain: of } => json!({"name": name, "domain": domain(of)}),
    }
}

fn domain(domain: &Result<String, String>) -> Value {
    match domain {
        Ok(id) => json!({"id": id}),
        Err(name) => json!({"name": name}),
    }
}

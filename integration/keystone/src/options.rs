//! Section `[keystone_authtoken]`, as keystonemiddleware reads it.

use crate::admission::{BindMode, TokenRules};
use crate::error::KeystoneError;
use ebbtide_openstack::{AdapterOptions, AuthMethod, AuthOptions};
use oslo_config::{Config, Effect, Opt};
use std::collections::BTreeMap;
use std::time::Duration;

/// The section of nova.conf.
pub const SECTION: &str = "keystone_authtoken";

const WWW_AUTHENTICATE_URI: Opt = Opt::text(SECTION, "www_authenticate_uri")
    .deprecated(&[(SECTION, "auth_uri")])
    .help(
        "https://keystone.example.org/v3",
        "Where callers without a good token are sent. Not set: auth_url.",
    );
const TOKEN_CACHE_TIME: Opt = Opt::int(SECTION, "token_cache_time")
    .default("300")
    .unit("seconds")
    .help(
        "60",
        "How long a token is used without asking Keystone again; a revoked one is refused after \
         that.",
    );
const SERVICE_TOKEN_ROLES: Opt = Opt::list(SECTION, "service_token_roles")
    .default("service")
    .help(
        "service",
        "One of these roles makes a token that of a service.",
    );
const SERVICE_TOKEN_ROLES_REQUIRED: Opt = Opt::bool(SECTION, "service_token_roles_required")
    .default("false")
    .help(
        "true",
        "Whether a service's token without such a role is refused.",
    );
const SERVICE_TYPE: Opt = Opt::text(SECTION, "service_type").help(
    "preemption",
    "What access rules of application credentials call this service. Not set: credentials with \
     access rules are refused.",
);
const INCLUDE_SERVICE_CATALOG: Opt = Opt::bool(SECTION, "include_service_catalog")
    .default("true")
    .help(
        "false",
        "Whether the catalog of a token is asked for. Credentials with access rules need it.",
    );
const DELAY_AUTH_DECISION: Opt = Opt::bool(SECTION, "delay_auth_decision")
    .default("false")
    .help(
        "false",
        "true is refused: requests without a valid token are never served.",
    );
const ENFORCE_TOKEN_BIND: Opt = Opt::text(SECTION, "enforce_token_bind")
    .default("permissive")
    .help(
        "strict",
        "disabled, permissive or strict: which tokens that are bound to something else are \
         refused.",
    );
const AUTH_VERSION: Opt =
    Opt::text(SECTION, "auth_version").help("v3", "Version of Keystone's API; only v3 is taken.");
const AUTH_SECTION: Opt = Opt::text(SECTION, "auth_section")
    .effect(Effect::Reload)
    .help(
        "placement",
        "The section with the credentials: auth_type, auth_url, username and keystoneauth's others. \
         Not set: this one.",
    );
const INTERFACE: Opt = Opt::text(SECTION, "interface").default("internal").help(
    "admin",
    "Which of Keystone's endpoints in the catalog is asked.",
);
const HTTP_CONNECT_TIMEOUT: Opt = Opt::int(SECTION, "http_connect_timeout")
    .at_least(0)
    .unit("seconds")
    .help("5", "How long an answer of Keystone may take. Not set: 60.");
const HTTP_REQUEST_MAX_RETRIES: Opt = Opt::int(SECTION, "http_request_max_retries")
    .default("3")
    .between(0, 1_000)
    .help("1", "How often a connection to Keystone is tried again.");

/// Every option of the section that is read here, with its type and default. keystoneauth's own
/// options are read by name.
pub const OPTIONS: [Opt; 13] = [
    WWW_AUTHENTICATE_URI,
    TOKEN_CACHE_TIME,
    SERVICE_TOKEN_ROLES,
    SERVICE_TOKEN_ROLES_REQUIRED,
    SERVICE_TYPE,
    INCLUDE_SERVICE_CATALOG,
    DELAY_AUTH_DECISION,
    ENFORCE_TOKEN_BIND,
    AUTH_VERSION,
    AUTH_SECTION,
    INTERFACE,
    HTTP_CONNECT_TIMEOUT,
    HTTP_REQUEST_MAX_RETRIES,
];

/// Options of the plugin that keystonemiddleware uses without `auth_type`, and of keystoneauth's
/// plugins that are not supported.
const UNSUPPORTED: [(&str, &str); 10] = [
    ("admin_token", LEGACY),
    ("admin_user", LEGACY),
    ("admin_password", LEGACY),
    ("admin_tenant_name", LEGACY),
    ("auth_admin_prefix", LEGACY),
    ("auth_host", LEGACY),
    ("auth_port", LEGACY),
    ("auth_protocol", LEGACY),
    ("identity_uri", LEGACY),
    (
        "trust_id",
        "a trust is not supported; give the user the role itself",
    ),
];
const LEGACY: &str = "it belongs to the plugin without auth_type, which is not supported; \
    set auth_type = password, auth_url, username and so on";

/// Options that choose where tokens are cached. Ours are in the memory of the process.
const CACHE_ONLY: [&str; 2] = ["cache", "memcache"];

/// `[keystone_authtoken]`, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthTokenOptions {
    /// Our own credentials; the user needs the role `service` or `admin`.
    pub auth: AuthOptions,
    /// Where Keystone is in the catalog (`interface`, `region_name`), how long an answer may take
    /// (`http_connect_timeout`) and how often a connection is tried again
    /// (`http_request_max_retries`).
    pub identity: AdapterOptions,
    /// Where callers without a good token are sent.
    pub www_authenticate_uri: Option<String>,
    /// How long a token is used without asking again. Zero: not at all.
    pub token_cache_time: Duration,
    /// Whether the catalog of a token is asked for. Without it, tokens with access rules are
    /// refused.
    pub include_service_catalog: bool,
    /// What a token must be like.
    pub rules: TokenRules,
    /// Options that have no effect here, one sentence each, for the log.
    pub notes: Vec<String>,
}

impl AuthTokenOptions {
    /// Reads the section.
    ///
    /// # Errors
    /// [`KeystoneError::Config`] for an option that is missing, wrong, or not supported and would
    /// change what is allowed. Secrets are not repeated.
    pub fn read(config: &Config) -> Result<Self, KeystoneError> {
        let given = section(config, SECTION)?;
        for (option, why) in UNSUPPORTED {
            if given
                .get(option)
                .is_some_and(|text| !text.trim().is_empty())
            {
                return Err(bad(option, why));
            }
        }
        if flag(config, &DELAY_AUTH_DECISION)? {
            let why = "true is not supported: requests without a valid token are always refused; \
                remove it";
            return Err(bad(DELAY_AUTH_DECISION.name, why));
        }
        if let Some(version) = text(config, &AUTH_VERSION)?
            && !["3", "v3", "3.0", "v3.0"].contains(&version.trim())
        {
            return Err(bad(AUTH_VERSION.name, "only v3 is supported; remove it"));
        }
        let (place, auth) = credentials(config, given.clone())?;
        let cache_time = int(config, &TOKEN_CACHE_TIME)?.unwrap_or(300);
        Ok(Self {
            auth: read_auth(&place, &auth, &given)?,
            identity: read_identity(config, &given)?,
            www_authenticate_uri: text(config, &WWW_AUTHENTICATE_URI)?,
            token_cache_time: Duration::from_secs(u64::try_from(cache_time).unwrap_or(0)),
            include_service_catalog: flag(config, &INCLUDE_SERVICE_CATALOG)?,
            rules: TokenRules {
                service_token_roles: config.list(&SERVICE_TOKEN_ROLES).map_err(wrong)?,
                service_token_roles_required: flag(config, &SERVICE_TOKEN_ROLES_REQUIRED)?,
                service_type: text(config, &SERVICE_TYPE)?,
                bind: bind_mode(config)?,
            },
            notes: notes(&given),
        })
    }

    /// The value of `WWW-Authenticate`. Without `www_authenticate_uri` it names `auth_url`, which
    /// callers may be unable to reach.
    #[must_use]
    pub fn challenge(&self) -> String {
        let uri = self
            .www_authenticate_uri
            .as_ref()
            .or(self.auth.auth_url.as_ref());
        let uri: String = uri
            .into_iter()
            .flat_map(|uri| uri.chars())
            .filter(|c| c.is_ascii_graphic() && *c != '"')
            .collect();
        format!("Keystone uri=\"{uri}\"")
    }
}

type Given = BTreeMap<String, String>;

pub(crate) fn section(config: &Config, name: &str) -> Result<Given, KeystoneError> {
    config.section(name).map_err(wrong)
}

/// The section that the credentials are in, and its values.
fn credentials(config: &Config, given: Given) -> Result<(String, Given), KeystoneError> {
    match text(config, &AUTH_SECTION)? {
        None => Ok((SECTION.to_owned(), given)),
        Some(name) => {
            let values = section(config, &name)?;
            if values.is_empty() {
                let problem = format!("there is no section [{name}]");
                return Err(bad(AUTH_SECTION.name, problem));
            }
            Ok((name, values))
        }
    }
}

/// The credentials of a section; TLS and time limit are those of `[keystone_authtoken]`.
fn read_auth(place: &str, auth: &Given, given: &Given) -> Result<AuthOptions, KeystoneError> {
    let kind = auth.get("auth_type").or_else(|| auth.get("auth_plugin"));
    match kind.map(|kind| kind.trim()) {
        Some("password" | "v3password" | "v3applicationcredential") => {}
        kind => {
            let problem = match kind {
                None | Some("") => "it is missing".to_owned(),
                Some(other) => format!("{other:?} is not supported"),
            };
            let problem = format!("{problem}; use password or v3applicationcredential");
            return Err(KeystoneError::config(place, "auth_type", problem));
        }
    }
    let options = AuthOptions::from_lookup(&format!("[{place}]"), |name| match name {
        "timeout" => given.get(HTTP_CONNECT_TIMEOUT.name).cloned(),
        "cafile" | "certfile" | "keyfile" | "insecure" => given.get(name).cloned(),
        other => auth.get(other).cloned(),
    });
    options.map_err(unbracketed)
}

fn read_identity(config: &Config, given: &Given) -> Result<AdapterOptions, KeystoneError> {
    // What other options are called in an adapter's section; `service_type` is our own here.
    let retries = int(config, &HTTP_REQUEST_MAX_RETRIES)?.map(|n| n.to_string());
    let timeout = int(config, &HTTP_CONNECT_TIMEOUT)?.map(|n| n.to_string());
    let interface = text(config, &INTERFACE)?;
    let place = format!("[{SECTION}]");
    let read = AdapterOptions::identity().read(&place, |name| match name {
        "interface" => interface.clone(),
        "region_name" => given.get(name).cloned(),
        "timeout" => timeout.clone(),
        "connect_retries" => retries.clone(),
        _ => None,
    });
    read.map_err(unbracketed)
}

fn bind_mode(config: &Config) -> Result<BindMode, KeystoneError> {
    let mode = text(config, &ENFORCE_TOKEN_BIND)?;
    match mode.as_deref().map(str::trim) {
        Some("disabled") => Ok(BindMode::Disabled),
        None | Some("permissive") => Ok(BindMode::Permissive),
        Some("strict") => Ok(BindMode::Strict),
        Some(other) => {
            let problem = format!(
                "{other:?} is not supported: no token could fulfil it; \
                 use disabled, permissive or strict"
            );
            Err(bad(ENFORCE_TOKEN_BIND.name, problem))
        }
    }
}

fn notes(given: &Given) -> Vec<String> {
    let cache_only =
        |name: &&String| CACHE_ONLY[0] == name.as_str() || name.starts_with(CACHE_ONLY[1]);
    let mut notes: Vec<String> = given
        .keys()
        .filter(cache_only)
        .map(|name| {
            format!(
                "[{SECTION}] {name} has no effect: tokens are cached in the memory of the process"
            )
        })
        .collect();
    if !given.contains_key(SERVICE_TYPE.name) {
        notes.push(format!(
            "[{SECTION}] service_type is not set: application credentials with access rules are \
             refused; set it to preemption"
        ));
    }
    notes
}

/// Credentials for reading limits: those of the section for the whole system.
pub(crate) fn for_the_system(auth: &AuthOptions) -> Result<AuthOptions, KeystoneError> {
    let mut auth = auth.clone();
    match &mut auth.method {
        AuthMethod::Password { scope, .. } => *scope = ebbtide_openstack::TokenScope::System,
        _ => {
            return Err(bad(
                "auth_type",
                "an application credential is for one project, and Keystone shows the limits of \
                 all projects to tokens for the system only; set credentials with \
                 system_scope = all in [oslo_limit]",
            ));
        }
    }
    Ok(auth)
}

fn bad(option: &str, problem: impl Into<String>) -> KeystoneError {
    KeystoneError::config(SECTION, option, problem)
}

/// The other crate names a place in brackets.
pub(crate) fn unbracketed(error: ebbtide_openstack::OpenStackError) -> KeystoneError {
    match KeystoneError::from(error) {
        KeystoneError::Config {
            section,
            option,
            problem,
        } => KeystoneError::config(section.trim_matches(['[', ']']), &option, problem),
        other => other,
    }
}

pub(crate) fn wrong(error: oslo_config::ConfigError) -> KeystoneError {
    match error {
        oslo_config::ConfigError::Value {
            group,
            name,
            shown,
            allowed,
            place,
        } => KeystoneError::config(&group, &name, format!("{shown}: {allowed} ({place})")),
        other => KeystoneError::config(SECTION, "the file", other.to_string()),
    }
}

/// Text that is not empty.
fn text(config: &Config, option: &Opt) -> Result<Option<String>, KeystoneError> {
    let text = config.text(option).map_err(wrong)?;
    Ok(text.filter(|text| !text.trim().is_empty()))
}

fn flag(config: &Config, option: &Opt) -> Result<bool, KeystoneError> {
    Ok(config.bool(option).map_err(wrong)?.unwrap_or_default())
}

fn int(config: &Config, option: &Opt) -> Result<Option<i64>, KeystoneError> {
    config.int(option).map_err(wrong)
}

#[cfg(test)]
mod tests;

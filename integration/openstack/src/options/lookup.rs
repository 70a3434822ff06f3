//! The options by the names that keystoneauth gives them, from nova.conf, a TOML table or the
//! environment.

use super::{
    AdapterOptions, ApplicationCredential, AuthMethod, AuthOptions, IdOrName, TlsOptions,
    TokenScope,
};
use crate::error::OpenStackError;
use crate::secret::Secret;
use std::time::Duration;

/// Reads options of one place; an empty value is as none.
struct Reader<'a, F> {
    place: &'a str,
    lookup: F,
}

impl<F: Fn(&str) -> Option<String>> Reader<'_, F> {
    /// The first of several names of one option that has a value.
    fn get(&self, names: &[&str]) -> Option<String> {
        let mut values = names.iter().filter_map(|name| {
            let dashed = || (self.lookup)(&name.replace('_', "-"));
            (self.lookup)(name).or_else(dashed)
        });
        values.find(|value| !value.trim().is_empty())
    }

    fn need(&self, names: &[&str], for_what: &str) -> Result<String, OpenStackError> {
        self.get(names)
            .ok_or_else(|| self.bad(names[0], format!("it is missing, but {for_what} needs it")))
    }

    fn bad(&self, option: &str, problem: impl Into<String>) -> OpenStackError {
        OpenStackError::config(self.place, option, problem)
    }

    fn seconds(&self, name: &str) -> Result<Option<Duration>, OpenStackError> {
        let Some(text) = self.get(&[name]) else {
            return Ok(None);
        };
        let duration = text
            .trim()
            .parse::<f64>()
            .ok()
            .and_then(|s| Duration::try_from_secs_f64(s).ok());
        match duration {
            // keystoneauth reads a timeout of 0 as "at once". No operator means that, so 0 counts
            // as not set.
            Some(duration) if duration.is_zero() => Ok(None),
            Some(duration) => Ok(Some(duration)),
            None => Err(self.bad(name, format!("{text:?} is no number of seconds"))),
        }
    }

    fn flag(&self, name: &str) -> Result<bool, OpenStackError> {
        let Some(text) = self.get(&[name]) else {
            return Ok(false);
        };
        match text.trim().to_lowercase().as_str() {
            "1" | "true" | "yes" | "on" | "t" | "y" => Ok(true),
            "0" | "false" | "no" | "off" | "f" | "n" => Ok(false),
            _ => Err(self.bad(name, format!("{text:?} is neither true nor false"))),
        }
    }

    fn domain(&self, prefix: &str) -> Option<Result<String, String>> {
        let id = self.get(&[&format!("{prefix}_domain_id")]).map(Ok);
        let name = || self.get(&[&format!("{prefix}_domain_name")]).map(Err);
        let default_id = || self.get(&["default_domain_id"]).map(Ok);
        let default_name = || self.get(&["default_domain_name"]).map(Err);
        id.or_else(name).or_else(default_id).or_else(default_name)
    }

    fn user(&self) -> Result<IdOrName, OpenStackError> {
        if let Some(id) = self.get(&["user_id"]) {
            return Ok(IdOrName::Id(id));
        }
        let name = self.need(&["username", "user_name"], "this auth_type")?;
        let missing = || {
            self.bad(
                "user_domain_name",
                "it is missing: the user is given by name, and names are unique within a domain",
            )
        };
        let domain = self.domain("user").ok_or_else(missing)?;
        Ok(IdOrName::Name { name, domain })
    }

    fn scope(&self) -> Result<TokenScope, OpenStackError> {
        if let Some(system) = self.get(&["system_scope"]) {
            let all = system.trim().eq_ignore_ascii_case("all");
            return all
                .then_some(TokenScope::System)
                .ok_or_else(|| self.bad("system_scope", "the only possible value is all"));
        }
        if let Some(id) = self.get(&["project_id", "tenant_id"]) {
            return Ok(TokenScope::Project(IdOrName::Id(id)));
        }
        if let Some(name) = self.get(&["project_name", "tenant_name"]) {
            let missing = || {
                self.bad("project_domain_name", "it is missing: the project is given by name, and names are unique within a domain")
            };
            let domain = self.domain("project").ok_or_else(missing)?;
            return Ok(TokenScope::Project(IdOrName::Name { name, domain }));
        }
        let id = self.get(&["domain_id"]).map(Ok);
        let domain = id.or_else(|| self.get(&["domain_name"]).map(Err));
        Ok(domain.map_or(TokenScope::Unscoped, TokenScope::Domain))
    }

    fn credential(&self) -> Result<ApplicationCredential, OpenStackError> {
        if let Some(id) = self.get(&["application_credential_id"]) {
            return Ok(ApplicationCredential::Id(id));
        }
        let name = self.need(
            &["application_credential_name"],
            "v3applicationcredential without application_credential_id",
        )?;
        let user = self.user()?;
        Ok(ApplicationCredential::Name { name, user })
    }
}

impl AuthOptions {
    /// Reads the options of keystoneauth's plugins by their names (`auth_type`, `auth_url`,
    /// `username`, `user_domain_name`, `project_name`, `cafile`, …), with dashes or underscores.
    /// `place` is for messages, for example `[placement]`.
    ///
    /// # Errors
    /// [`OpenStackError::Config`] that names what is missing; a value that may be secret is not
    /// repeated.
    pub fn from_lookup(
        place: &str,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, OpenStackError> {
        let reader = Reader { place, lookup };
        let kind = reader
            .get(&["auth_type", "auth_plugin"])
            .unwrap_or_else(|| "password".to_owned());
        let (method, keystone) = match kind.trim() {
            "password" | "v3password" => {
                let (user, scope) = (reader.user()?, reader.scope()?);
                let password = Secret::new(reader.need(&["password"], "auth_type password")?);
                (
                    AuthMethod::Password {
                        user,
                        password,
                        scope,
                    },
                    true,
                )
            }
            "v3applicationcredential" => {
                let credential = reader.credential()?;
                let secret = Secret::new(reader.need(
                    &["application_credential_secret"],
                    "v3applicationcredential",
                )?);
                (
                    AuthMethod::ApplicationCredential { credential, secret },
                    true,
                )
            }
            "token" | "v3token" => {
                let scope = reader.scope()?;
                let token = Secret::new(reader.need(&["token"], "auth_type token")?);
                (AuthMethod::Token { token, scope }, true)
            }
            "admin_token" => {
                let token = Secret::new(reader.need(&["token"], "auth_type admin_token")?);
                (AuthMethod::AdminToken { token }, false)
            }
            "none" | "noauth" => (AuthMethod::None, false),
            other => {
                let problem = format!(
                    "{other:?} is not supported, use one of password, v3applicationcredential, token, admin_token, none"
                );
                return Err(reader.bad("auth_type", problem));
            }
        };
        let auth_url = reader.get(&["auth_url"]);
        if keystone && auth_url.is_none() {
            return Err(reader.bad("auth_url", "it is missing; give Keystone's URL"));
        }
        let path = |name: &str| reader.get(&[name]).map(Into::into);
        let tls = TlsOptions {
            cafile: path("cafile").or_else(|| path("cacert")),
            insecure: reader.flag("insecure")?,
            certfile: path("certfile").or_else(|| path("cert")),
            keyfile: path("keyfile").or_else(|| path("key")),
        };
        let endpoint = reader.get(&["endpoint"]);
        let timeout = reader.seconds("timeout")?;
        Ok(Self {
            auth_url,
            method,
            endpoint,
            tls,
            timeout,
        })
    }
}

impl AdapterOptions {
    /// Reads keystoneauth's adapter options by their names over these defaults (`service_type`,
    /// `service_name`, `valid_interfaces` or the old `interface` and `os_interface`, `region_name`,
    /// `endpoint_override`, `timeout`, `connect_retries`, `connect_retry_delay`).
    ///
    /// # Errors
    /// [`OpenStackError::Config`] that names the option.
    pub fn read(
        self,
        place: &str,
        lookup: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, OpenStackError> {
        let reader = Reader { place, lookup };
        let mut interfaces = Vec::new();
        if let Some(list) = reader.get(&[
            "valid_interfaces",
            "interface",
            "os_interface",
            "endpoint_type",
        ]) {
            for name in list
                .split(',')
                .map(|i| i.trim().trim_end_matches("URL"))
                .filter(|i| !i.is_empty())
            {
                if !["internal", "public", "admin"].contains(&name) {
                    let problem =
                        format!("{name:?} is no interface, use a list of internal, public, admin");
                    return Err(reader.bad("valid_interfaces", problem));
                }
                interfaces.push(name.to_owned());
            }
        }
        let connect_retries = match reader.get(&["connect_retries"]) {
            None => self.connect_retries,
            Some(text) => {
                let number = text.trim().parse::<u32>().ok().filter(|n| *n <= 1_000);
                number.ok_or_else(|| {
                    reader.bad(
                        "connect_retries",
                        format!("{text:?} is no number of 0 to 1000"),
                    )
                })?
            }
        };
        Ok(Self {
            service_type: reader.get(&["service_type"]).unwrap_or(self.service_type),
            service_name: reader.get(&["service_name"]).or(self.service_name),
            valid_interfaces: if interfaces.is_empty() {
                self.valid_interfaces
            } else {
                interfaces
            },
            region_name: reader.get(&["region_name"]).or(self.region_name),
            endpoint_override: reader
                .get(&["endpoint_override"])
                .or(self.endpoint_override),
            timeout: reader.seconds("timeout")?.or(self.timeout),
            connect_retries,
            connect_retry_delay: reader
                .seconds("connect_retry_delay")?
                .or(self.connect_retry_delay),
        })
    }
}

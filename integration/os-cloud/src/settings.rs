//! The settings of one cloud by the names that keystoneauth gives them.

use crate::document::{AUTH_KEYS, CloudEntry, Texts};
use std::path::Path;

/// Keys that count more beside `auth` than in it. For all others it is the other way round.
const TOP_FIRST: &[&str] = &[
    "domain_id",
    "domain_name",
    "user_domain_id",
    "user_domain_name",
    "project_domain_id",
    "project_domain_name",
    "project_id",
    "project_name",
    "tenant_id",
    "tenant_name",
    "token",
    "auth_token",
];

/// Secrets that a variable may add to a cloud whose files leave them out.
const SECRETS: &[&str] = &["password", "application_credential_secret", "token"];

/// The settings of one cloud, one value for each key.
#[derive(Debug, Clone, Default)]
pub(crate) struct Settings(Texts);

impl Settings {
    /// Of a merged entry, a file's or the variables'.
    pub(crate) fn of(entry: CloudEntry) -> Self {
        let CloudEntry { top, auth, .. } = entry;
        let mut all = top.clone();
        for key in AUTH_KEYS {
            let value = if TOP_FIRST.contains(key) {
                top.get(*key).or_else(|| auth.get(*key))
            } else {
                auth.get(*key).or_else(|| top.get(*key))
            };
            if let Some(value) = value {
                all.insert((*key).to_owned(), value.clone());
            }
        }
        all.retain(|_, value| !value.trim().is_empty());
        Self(all)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str)
    }

    pub(crate) fn put(&mut self, key: &str, value: impl Into<String>) {
        self.0.insert(key.to_owned(), value.into());
    }

    fn has(&self, keys: &[&str]) -> bool {
        keys.iter().any(|key| self.0.contains_key(*key))
    }

    /// Adds the secrets that the files leave out.
    pub(crate) fn add_secrets(&mut self, variable: impl Fn(&str) -> Option<String>) {
        // `complete` renames auth_token later.
        if self.has(SECRETS) || self.has(&["auth_token"]) {
            return;
        }
        for key in SECRETS {
            if let Some(value) = variable(key) {
                self.put(key, value);
            }
        }
    }

    /// What openstacksdk and the openstack client do before a method of authentication sees the
    /// settings.
    pub(crate) fn complete(&mut self, home: Option<&Path>) {
        let renamed = [
            ("auth_token", "token"),
            ("tenant_id", "project_id"),
            ("tenant_name", "project_name"),
            ("endpoint_type", "interface"),
            ("preemption_endpoint_type", "preemption_interface"),
            ("compute_endpoint_type", "compute_interface"),
            ("image_endpoint_type", "image_interface"),
            ("network_endpoint_type", "network_interface"),
        ];
        for (old, new) in renamed {
            if let Some(value) = self.0.remove(old) {
                self.0.entry(new.to_owned()).or_insert(value);
            }
        }
        self.domains();
        let kind = self.auth_type();
        self.0.remove("auth_plugin");
        self.put("auth_type", kind);
        self.default_domains();
        self.tls(home);
        self.fill_in();
    }

    /// One domain for user and project may be given once.
    fn domains(&mut self) {
        if !self.has(&["project_id", "project_name"]) {
            return;
        }
        for part in ["id", "name"] {
            let Some(value) = self.0.remove(&format!("domain_{part}")) else {
                continue;
            };
            for of in ["user", "project"] {
                let key = format!("{of}_domain_{part}");
                self.0.entry(key).or_insert_with(|| value.clone());
            }
        }
    }

    fn auth_type(&self) -> String {
        let given = self.get("auth_type").or_else(|| self.get("auth_plugin"));
        let kind = match given {
            Some("None") => "none",
            Some("token_endpoint") => "admin_token",
            Some(given) => given,
            None if self.has(&["password", "username", "user_name", "user_id"]) => "password",
            None if self.has(&["token"]) && !self.has(&["auth_url"]) => "admin_token",
            None if self.has(&["token"]) => "token",
            None if self.has(&["application_credential_secret"]) => "v3applicationcredential",
            None => "password",
        };
        kind.to_owned()
    }

    /// A user or project by name without a domain is in the one with the id `default`.
    fn default_domains(&mut self) {
        let default = self.0.remove("default_domain");
        let default = default.unwrap_or_else(|| "default".to_owned());
        let general = ["default_domain_id", "default_domain_name"];
        for (of, by_name) in [
            ("user", self.has(&["username", "user_name"])),
            ("project", self.has(&["project_name"])),
        ] {
            let own = [format!("{of}_domain_id"), format!("{of}_domain_name")];
            if by_name && !self.has(&[&own[0], &own[1]]) && !self.has(&general) {
                self.put(&own[0], default.clone());
            }
        }
    }

    fn tls(&mut self, home: Option<&Path>) {
        let verify = self.0.remove("verify");
        let refused = ["0", "false", "no", "off", "f", "n"];
        if verify.is_some_and(|text| refused.contains(&text.trim().to_lowercase().as_str())) {
            self.put("insecure", "true");
        }
        for key in ["cacert", "cert", "key"] {
            let (Some(path), Some(home)) = (self.get(key), home) else {
                continue;
            };
            if let Some(rest) = path.strip_prefix("~/") {
                let path = home.join(rest).to_string_lossy().into_owned();
                self.put(key, path);
            }
        }
    }

    /// `{region_name}` and the like in URLs.
    fn fill_in(&mut self) {
        for key in [
            "auth_url",
            "preemption_endpoint_override",
            "compute_endpoint_override",
            "image_endpoint_override",
            "network_endpoint_override",
        ] {
            let Some(url) = self.get(key).filter(|url| url.contains('{')) else {
                continue;
            };
            let mut url = url.to_owned();
            for (name, value) in &self.0 {
                if !SECRETS.contains(&name.as_str()) {
                    url = url.replace(&format!("{{{name}}}"), value);
                }
            }
            self.put(key, url);
        }
    }
}

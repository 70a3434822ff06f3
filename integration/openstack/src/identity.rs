//! Keystone's API beyond getting a token of our own: tokens of others, and lists such as limits.

use crate::adapter::{Adapter, AdapterRequest};
use crate::error::OpenStackError;
use crate::options::AdapterOptions;
use crate::secret::Secret;
use crate::session::Session;
use reqwest::Url;
use serde_json::Value;

/// Keystone. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Identity {
    adapter: Adapter,
}

impl Identity {
    /// Keystone as the catalog of this session names it; options as of
    /// [`AdapterOptions::identity`].
    #[must_use]
    pub fn new(session: Session, options: AdapterOptions) -> Self {
        let adapter = Adapter::new(session, options);
        Self { adapter }
    }

    /// The same Keystone; requests carry this id, so that its log can be searched.
    #[must_use]
    pub fn for_request(&self, request_id: &str) -> Self {
        let adapter = self.adapter.for_request(request_id);
        Self { adapter }
    }

    /// The session below.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.adapter.session()
    }

    /// What Keystone knows of a token: the answer to `GET /v3/auth/tokens`, object `token` inside.
    /// Tokens with access rules are answered, too: the caller has to apply the rules.
    ///
    /// `allow_expired`: also if it has expired within Keystone's `allow_expired_window`.
    /// `with_catalog`: with the catalog of the token.
    ///
    /// # Errors
    /// [`OpenStackError::NotFound`] if the token is unknown, expired or revoked;
    /// [`OpenStackError::Unauthorized`] if Keystone accepts no token of our own, a renewed one
    /// included; [`OpenStackError::Forbidden`] if it does not let us ask. None of them repeats what
    /// Keystone says, as it quotes tokens.
    pub async fn token(
        &self,
        subject: &Secret,
        allow_expired: bool,
        with_catalog: bool,
    ) -> Result<Value, OpenStackError> {
        let mut options = Vec::new();
        if allow_expired {
            options.push("allow_expired=1");
        }
        if !with_catalog {
            options.push("nocatalog");
        }
        let path = match options.as_slice() {
            [] => "/v3/auth/tokens".to_owned(),
            options => format!("/v3/auth/tokens?{}", options.join("&")),
        };
        let ask = AdapterRequest::get(path)
            .about(subject)
            // Without it Keystone does not know a token whose credential has access rules.
            .header("openstack-identity-access-rules", "1");
        let (answer, call) = self.adapter.call(&ask).await?;
        answer.json(&call)
    }

    /// A resource by its path below Keystone's root, for example `/v3/limits`.
    ///
    /// # Errors
    /// Every status but 200 to 299, as [`OpenStackError`].
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, OpenStackError> {
        let path = with_query(path, query);
        let ask = AdapterRequest::get(path);
        let (answer, call) = self.adapter.call(&ask).await?;
        answer.json(&call)
    }
}

fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    // Only the encoding is of interest, not the host.
    let encoded = Url::parse_with_params("http://keystone", query);
    match encoded.as_ref().ok().and_then(Url::query) {
        Some(query) if !query.is_empty() => format!("{path}?{query}"),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_encoded() {
        let query = with_query("/v3/limits", &[("project_id", "a&b=c"), ("region_id", "é")]);
        assert_eq!(query, "/v3/limits?project_id=a%26b%3Dc&region_id=%C3%A9");
        assert_eq!(with_query("/v3/limits/model", &[]), "/v3/limits/model");
    }
}

//! What a request brings to prove who makes it.

use ebbtide_rest::RestRequest;
use tonic::codegen::http::header::AUTHORIZATION;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue, Request};

/// The header of OpenStack's clients with their token.
const AUTH_TOKEN: HeaderName = HeaderName::from_static("x-auth-token");
/// The header of a service that asks on behalf of a user.
const SERVICE_TOKEN: HeaderName = HeaderName::from_static("x-service-token");

/// Tokens, and the request that they are for.
pub(crate) struct Credentials {
    authorization: Option<HeaderValue>,
    auth_token: Option<HeaderValue>,
    service_token: Option<HeaderValue>,
    /// As the caller made it: access rules of application credentials are about it.
    pub(crate) method: String,
    pub(crate) path: String,
}

impl Credentials {
    /// Takes the tokens out of a request. Handlers must not see them.
    pub(crate) fn take<B>(request: &mut Request<B>) -> Self {
        let (method, path) = match request.extensions().get::<RestRequest>() {
            Some(rest) => (rest.method.to_string(), rest.path.clone()),
            None => (
                request.method().to_string(),
                request.uri().path().to_owned(),
            ),
        };
        let headers = request.headers_mut();
        Self {
            authorization: headers.remove(AUTHORIZATION),
            auth_token: headers.remove(AUTH_TOKEN),
            service_token: headers.remove(SERVICE_TOKEN),
            method,
            path,
        }
    }

    /// Those of a request for a page.
    pub(crate) fn of_page(headers: &HeaderMap, path: &str) -> Self {
        Self {
            authorization: headers.get(AUTHORIZATION).cloned(),
            auth_token: None,
            service_token: None,
            method: "GET".to_owned(),
            path: path.to_owned(),
        }
    }

    /// The header `authorization`, if there is one: a bearer token, or `Err` for anything else.
    pub(crate) fn bearer(&self) -> Option<Result<&str, NoBearer>> {
        let header = self.authorization.as_ref()?;
        Some(bearer(header).ok_or(NoBearer))
    }

    /// The token for Keystone: `x-auth-token`, or else a bearer token.
    pub(crate) fn user_token(&self) -> Option<&str> {
        match &self.auth_token {
            Some(token) => token.to_str().ok(),
            None => bearer(self.authorization.as_ref()?),
        }
    }

    /// The token of the service that asks on behalf of the user.
    pub(crate) fn service_token(&self) -> Option<&str> {
        // A token that cannot be read must not count as none.
        let token = self.service_token.as_ref()?;
        Some(token.to_str().unwrap_or("\u{fffd}"))
    }
}

/// A header `authorization` that is no bearer token.
#[derive(Debug)]
pub(crate) struct NoBearer;

fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    scheme
        .eq_ignore_ascii_case("bearer")
        .then_some(token.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tokens_leave_the_request_with_the_path_of_the_caller() {
        let mut request = Request::builder()
            .method("POST")
            .uri("/ebbtide.v1.Servers/ListServers")
            .header("authorization", "Bearer one")
            .header("x-auth-token", "two")
            .header("x-service-token", "three")
            .extension(RestRequest {
                method: "GET".parse().unwrap(),
                path: "/v1/servers".to_owned(),
            })
            .body(())
            .unwrap();
        let taken = Credentials::take(&mut request);
        assert!(request.headers().is_empty());
        assert_eq!(
            (taken.method.as_str(), taken.path.as_str()),
            ("GET", "/v1/servers")
        );
        assert_eq!(taken.user_token(), Some("two"));
        assert_eq!(taken.service_token(), Some("three"));
        assert!(matches!(taken.bearer(), Some(Ok("one"))));
    }

    #[test]
    fn another_scheme_is_no_token() {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, HeaderValue::from_static("Basic one"));
        let asked = Credentials::of_page(&headers, "/metrics");
        assert!(matches!(asked.bearer(), Some(Err(NoBearer))));
        assert_eq!(asked.user_token(), None);
    }
}

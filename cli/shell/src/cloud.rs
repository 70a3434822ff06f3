//! The OpenStack that a command talks to: found, logged in to, said.

use crate::Context;
use crate::errors::CliError;
use ebbtide_client::{Bearer, Credentials, IssuedToken, TokenIssuer, endpoint};
use ebbtide_openstack::{OpenStackError, Secret, Session, SessionOptions};
use ebbtide_os_cloud::{CloudConfig, CloudSelector, Environment, OsCloudError};
use std::collections::HashMap;
use std::sync::Arc;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

/// What a command line says about an OpenStack.
#[derive(Debug, Clone, Default)]
pub struct CloudRequest {
    /// The cloud; `None` for the one that variables name or describe.
    pub name: Option<String>,
    pub region: Option<String>,
    /// Go there, and not where the catalog says.
    pub endpoint: Option<String>,
    /// Variables, and where files are.
    pub environment: Environment,
}

/// Whether variables say that an OpenStack is meant.
pub(crate) fn is_named(environment: &Environment) -> bool {
    ["OS_CLOUD", "OS_AUTH_URL", "OS_AUTH_TYPE"]
        .iter()
        .any(|name| environment.get(name).is_some())
}

/// Finds the cloud, gets a token and the endpoint, and makes the context one of this cloud. Without
/// a cloud only says where the region is.
///
/// # Errors
/// [`CliError::OsCloud`].
pub(crate) async fn enter(context: &mut Context) -> Result<(), CliError> {
    let Some(request) = context.cloud_request.take() else {
        let talk = format!("region {}", context.endpoint);
        context.output.say_at_terminal(&talk);
        return Ok(());
    };
    let wanted = CloudSelector {
        name: request.name.as_deref(),
        region: request.region.as_deref(),
    };
    let Some(cloud) = CloudConfig::find(&request.environment, wanted)? else {
        return Ok(());
    };
    let failed = |error| OsCloudError::of_cloud(&cloud.name, error);
    let session =
        Session::new(cloud.auth.clone(), SessionOptions::new("ebbtide")).map_err(failed)?;
    let url = match &request.endpoint {
        Some(given) => given.clone(),
        None => session.endpoint(&cloud.adapter).await.map_err(failed)?,
    };
    context.endpoint = rooted(&cloud.name, &url)?;
    if !context.has_own_project
        && let Some(project) = session.project_id().await.map_err(failed)?
    {
        context.project = project;
    }
    let credentials = std::mem::take(&mut context.credentials);
    context.credentials = credentials_for(&cloud, session, &context.endpoint, credentials).await?;
    let region = cloud.adapter.region_name.as_ref();
    let region = region.map_or_else(String::new, |name| format!(" ({name})"));
    context.cloud = format!("OpenStack {}{region}", cloud.name);
    let talk = format!("{}, {}", context.cloud, context.endpoint);
    context.output.say(&talk);
    Ok(())
}

/// Where the service `preemption` of a cloud is, as gRPC takes it; `None` if the catalog has none.
///
/// # Errors
/// [`OsCloudError`].
pub async fn preemption_endpoint(
    cloud: &CloudConfig,
    session: &Session,
) -> Result<Option<String>, OsCloudError> {
    match session.endpoint(&cloud.adapter).await {
        Ok(url) => rooted(&cloud.name, &url).map(Some),
        Err(OpenStackError::NoEndpoint { .. }) => Ok(None),
        Err(error) => Err(OsCloudError::of_cloud(&cloud.name, error)),
    }
}

/// The credentials with which the service `preemption` of a cloud is called: tokens of the session,
/// and the cloud's certificates where `credentials` have none.
///
/// # Errors
/// [`OsCloudError`].
pub async fn credentials_for(
    cloud: &CloudConfig,
    session: Session,
    endpoint: &str,
    mut credentials: Credentials,
) -> Result<Credentials, OsCloudError> {
    // Whatever the cloud's method gives: a token of a standalone region is not for it.
    credentials.token = Bearer::default();
    let pinned = credentials.ca.is_some();
    let tls = &cloud.auth.tls;
    if credentials.ca.is_none() {
        credentials.ca.clone_from(&tls.cafile);
    }
    if credentials.certificate.is_none() && credentials.key.is_none() {
        credentials.certificate.clone_from(&tls.certfile);
        // The key may be in the certificate's file.
        credentials.key = tls.keyfile.clone().or_else(|| tls.certfile.clone());
    }
    if endpoint.starts_with("http://") {
        // They are for Keystone alone then.
        (credentials.ca, credentials.certificate, credentials.key) = (None, None, None);
    }
    credentials.unverified = tls.insecure && !pinned;
    // The password has gone to Keystone in plain text already.
    let auth_url = cloud.auth.auth_url.as_deref();
    credentials.insecure |= auth_url.is_some_and(|url| url.starts_with("http://"));
    let token = session.auth_token().await;
    let token = token.map_err(|error| OsCloudError::of_cloud(&cloud.name, error))?;
    if token.is_some() {
        let name = cloud.name.clone();
        credentials.token = Bearer::issued(Arc::new(SessionTokens { session, name }));
    }
    Ok(credentials)
}

/// The endpoint as gRPC takes it: a service's path cannot stand before the calls'.
fn rooted(cloud: &str, url: &str) -> Result<String, OsCloudError> {
    let wrong = |problem: &str| OsCloudError::Endpoint {
        cloud: cloud.to_owned(),
        url: url.to_owned(),
        problem: problem.to_owned(),
    };
    let url = endpoint::parse(url).map_err(|_| wrong("is no HTTP address"))?;
    let Some((scheme, rest)) = url.split_once("://") else {
        return Err(wrong("is no HTTP address"));
    };
    match rest.split_once('/') {
        None => Ok(url),
        Some((authority, "" | "v1" | "v1/")) => Ok(format!("{scheme}://{authority}")),
        Some(_) => Err(wrong("has a path, under which gRPC cannot be served")),
    }
}

/// The tokens of a session, which renews them before their end.
#[derive(Debug)]
struct SessionTokens {
    session: Session,
    name: String,
}

impl TokenIssuer for SessionTokens {
    fn token<'a>(&'a self, refused: Option<&'a str>) -> IssuedToken<'a> {
        Box::pin(async move {
            if let Some(refused) = refused {
                self.session.drop_token(&Secret::new(refused));
            }
            let token = self.session.auth_token().await;
            let token = token.map_err(|error| self.status(error))?;
            Ok(token.map_or_else(String::new, |token| token.reveal().to_owned()))
        })
    }
}

impl SessionTokens {
    /// The error as a call returns it: with its code and next step.
    fn status(&self, error: OpenStackError) -> Status {
        let error = OsCloudError::of_cloud(&self.name, error);
        let next = error.next_step().map(|next| ("next".to_owned(), next));
        let next: HashMap<String, String> = next.into_iter().collect();
        let details = ErrorDetails::with_error_info(error.code(), "ebbtide", next);
        let code = if error.is_unreachable() {
            Code::Unavailable
        } else {
            Code::Unauthenticated
        };
        Status::with_error_details(code, error.to_string(), details)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_the_root_of_an_address() {
        let taken = |url: &str| rooted("c", url).ok();
        for url in ["https://a:7472", "https://a:7472/", "https://a:7472/v1"] {
            assert_eq!(taken(url).as_deref(), Some("https://a:7472"), "{url}");
        }
        assert_eq!(taken("http://[::1]:1").as_deref(), Some("http://[::1]:1"));
        for url in ["https://a/preemption", "ftp://a", "https:///v1"] {
            let error = rooted("c", url).unwrap_err();
            assert_eq!(error.code(), "EB-OSCLOUD-005", "{url}");
        }
    }
}

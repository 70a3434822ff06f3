//! Images and networks by their names: what a server is created from.

use crate::adapter::{Adapter, AdapterRequest};
use crate::compute::encoded;
use crate::error::OpenStackError;
use crate::options::AdapterOptions;
use crate::session::Session;
use serde::Deserialize;
use uuid::Uuid;

/// A thing of a service that has an id and a name.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NamedResource {
    pub id: Uuid,
    /// Name; not unique.
    #[serde(default)]
    pub name: Option<String>,
}

#[derive(Deserialize)]
struct ImageList {
    images: Vec<NamedResource>,
}

#[derive(Deserialize)]
struct NetworkList {
    networks: Vec<NamedResource>,
}

/// The images that a project can use, by name: Glance, API 2.
///
/// # Errors
/// [`OpenStackError::NoEndpoint`], [`OpenStackError::Unavailable`] and the like.
pub async fn images_named(
    session: &Session,
    image: AdapterOptions,
    name: &str,
) -> Result<Vec<NamedResource>, OpenStackError> {
    let glance = Adapter::new(session.clone(), image);
    let ask = AdapterRequest::get(format!("/v2/images?name={}", encoded(name)));
    let (answer, call) = glance.call(&ask).await?;
    let found: ImageList = answer.json(&call)?;
    Ok(found.images)
}

/// The networks that a project can use, by name: Neutron, API 2.0.
///
/// # Errors
/// [`OpenStackError::NoEndpoint`], [`OpenStackError::Unavailable`] and the like.
pub async fn networks_named(
    session: &Session,
    network: AdapterOptions,
    name: &str,
) -> Result<Vec<NamedResource>, OpenStackError> {
    let neutron = Adapter::new(session.clone(), network);
    let ask = AdapterRequest::get(format!("/v2.0/networks?name={}", encoded(name)));
    let (answer, call) = neutron.call(&ask).await?;
    let found: NetworkList = answer.json(&call)?;
    Ok(found.networks)
}

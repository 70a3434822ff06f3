//! The service catalog.

use crate::options::AdapterOptions;
use serde::Deserialize;

/// Which services there are and where: what a token brings along.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Catalog(Vec<Service>);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CatalogEndpoint {
    /// Keystone's id of the service; unified limits are registered under it.
    pub service_id: Option<String>,
    /// Keystone's id of the endpoint.
    pub id: Option<String>,
    /// The region of the endpoint.
    pub region_id: Option<String>,
    /// Where it is, without a slash at the end.
    pub url: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Service {
    id: Option<String>,
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
struct Endpoint {
    id: Option<String>,
    interface: String,
    region: Option<String>,
    region_id: Option<String>,
    url: Option<String>,
}

impl Catalog {
    /// The endpoint of a service: the first preferred interface that the region has.
    #[must_use]
    pub fn endpoint(&self, wanted: &AdapterOptions) -> Option<CatalogEndpoint> {
        let of_type = |service: &&Service| {
            let name_fits = wanted
                .service_name
                .as_ref()
                .is_none_or(|name| service.name.as_ref() == Some(name));
            service.kind == wanted.service_type && name_fits
        };
        let region_of = |endpoint: &Endpoint| {
            let region = endpoint.region_id.as_ref().or(endpoint.region.as_ref());
            region.cloned()
        };
        let in_region = |endpoint: &Endpoint| {
            let wanted = wanted.region_name.as_ref();
            wanted.is_none_or(|region| region_of(endpoint).as_ref() == Some(region))
        };
        wanted.valid_interfaces.iter().find_map(|interface| {
            let services = self.0.iter().filter(of_type);
            let pairs = services.flat_map(|s| s.endpoints.iter().map(move |e| (s, e)));
            let mut fitting = pairs
                .filter(|(_, e)| e.interface.trim_end_matches("URL") == interface)
                .filter(|(_, e)| in_region(e));
            fitting.find_map(|(service, endpoint)| {
                Some(CatalogEndpoint {
                    service_id: service.id.clone(),
                    id: endpoint.id.clone(),
                    region_id: region_of(endpoint),
                    url: endpoint.url.as_deref()?.trim_end_matches('/').to_owned(),
                })
            })
        })
    }

    /// Whether there is a service of this type, with or without endpoints.
    #[must_use]
    pub fn has(&self, service_type: &str) -> bool {
        self.0.iter().any(|service| service.kind == service_type)
    }

    /// Keeps only the services of these types: a catalog of a large cloud is tens of kilobytes.
    pub fn retain(&mut self, service_types: &[&str]) {
        let wanted = |service: &Service| service_types.contains(&service.kind.as_str());
        self.0.retain(wanted);
        self.0.shrink_to_fit();
    }
}

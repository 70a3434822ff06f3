//! The service catalog.

use crate::options::AdapterOptions;
use serde::Deserialize;

/// Which services there are and where.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub(crate) struct Catalog(Vec<Service>);

#[derive(Debug, Deserialize)]
struct Service {
    #[serde(rename = "type")]
    kind: String,
    name: Option<String>,
    #[serde(default)]
    endpoints: Vec<Endpoint>,
}

#[derive(Debug, Deserialize)]
struct Endpoint {
    interface: String,
    region: Option<String>,
    region_id: Option<String>,
    url: Option<String>,
}

impl Catalog {
    /// The URL of a service: the first preferred interface that the region has, without a slash at
    /// its end.
    pub(crate) fn find(&self, wanted: &AdapterOptions) -> Option<String> {
        let of_type = |service: &&Service| {
            let name_fits = wanted
                .service_name
                .as_ref()
                .is_none_or(|name| service.name.as_ref() == Some(name));
            service.kind == wanted.service_type && name_fits
        };
        let in_region = |endpoint: &&Endpoint| {
            let Some(region) = wanted.region_name.as_deref() else {
                return true;
            };
            endpoint.region_id.as_deref().or(endpoint.region.as_deref()) == Some(region)
        };
        wanted.valid_interfaces.iter().find_map(|interface| {
            let endpoints = self
                .0
                .iter()
                .filter(of_type)
                .flat_map(|service| &service.endpoints);
            let mut fitting = endpoints
                .filter(|e| e.interface.trim_end_matches("URL") == interface)
                .filter(in_region);
            let url = fitting.find_map(|endpoint| endpoint.url.as_deref())?;
            Some(url.trim_end_matches('/').to_owned())
        })
    }
}

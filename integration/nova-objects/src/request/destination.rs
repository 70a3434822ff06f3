//! Where a request wants to go, and what it asks Placement for besides its flavor.

use crate::error::Result;
use crate::object::{self, Object};
use crate::read;
use ebbtide_nova::model::{Destination, RequestGroup, RequestLevelParams};
use ebbtide_nova::python::Value;
use std::fmt;

/// The cell of a destination (`CellMapping`). Its URLs hold the cell's passwords and never show in
/// debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct CellMapping {
    pub uuid: String,
    pub name: Option<String>,
    /// Disabled for new servers by an operator; requests that are bound to it go there all the
    /// same.
    pub disabled: bool,
    /// URL of the cell's database, a template perhaps.
    pub database_connection: Option<String>,
    /// URL of the cell's broker, a template perhaps.
    pub transport_url: Option<String>,
}

impl fmt::Debug for CellMapping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CellMapping")
            .field("uuid", &self.uuid)
            .field("name", &self.name)
            .field("disabled", &self.disabled)
            .finish_non_exhaustive()
    }
}

/// A network that the server will have (`NetworkRequest`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NetworkRequest {
    /// UUID of the network; also the words `auto` and `none`.
    pub network_id: Option<String>,
    /// UUID of the port.
    pub port_id: Option<String>,
    pub address: Option<String>,
    /// PCI request of the port.
    pub pci_request_id: Option<String>,
    pub tag: Option<String>,
    /// Device profile of the port.
    pub device_profile: Option<String>,
}

/// A Destination object, with the mapping of its cell.
pub(crate) fn destination(value: &Value) -> Result<(Destination, Option<CellMapping>)> {
    let destination = Object::open(value, "Destination", 1)?;
    let cell = destination.optional("cell", cell_mapping)?;
    let read = Destination {
        host: destination.nullable_or_unset("host", read::text)?,
        node: destination.nullable_or_unset("node", read::text)?,
        cell: cell.as_ref().map(|cell| cell.uuid.clone()),
        allow_cross_cell_move: destination.set("allow_cross_cell_move", read::boolean)?,
        aggregates: destination.nullable_or_unset("aggregates", read::texts)?,
        forbidden_aggregates: destination.optional("forbidden_aggregates", read::text_set)?,
    };
    Ok((read, cell))
}

fn cell_mapping(value: &Value) -> Result<CellMapping> {
    let cell = Object::open(value, "CellMapping", 1)?;
    Ok(CellMapping {
        uuid: cell.required("uuid", read::text)?,
        name: cell.optional("name", read::text)?,
        disabled: cell.optional("disabled", read::boolean)?.unwrap_or(false),
        database_connection: cell.optional("database_connection", read::text)?,
        transport_url: cell.optional("transport_url", read::text)?,
    })
}

/// A RequestGroup object.
pub(crate) fn request_group(value: &Value) -> Result<RequestGroup> {
    let group = Object::open(value, "RequestGroup", 1)?;
    Ok(RequestGroup {
        use_same_provider: group
            .optional("use_same_provider", read::boolean)?
            .unwrap_or(true),
        requester_id: group.optional("requester_id", read::text)?,
        resources: group.or_default("resources", |amounts| read::map(amounts, read::quantity))?,
        required_traits: group.or_default("required_traits", read::text_set)?,
        forbidden_traits: group.or_default("forbidden_traits", read::text_set)?,
        provider_uuids: group.or_default("provider_uuids", read::texts)?,
        aggregates: group.or_default("aggregates", read::text_lists)?,
        forbidden_aggregates: group.or_default("forbidden_aggregates", read::text_set)?,
        in_tree: group.optional("in_tree", read::text)?,
    })
}

/// A RequestLevelParams object.
pub(crate) fn level(value: &Value) -> Result<RequestLevelParams> {
    let level = Object::open(value, "RequestLevelParams", 1)?;
    let traits = |name: &str| level.or_default(name, read::text_set);
    Ok(RequestLevelParams {
        root_required: traits("root_required")?,
        root_forbidden: traits("root_forbidden")?,
        same_subtree: level.or_default("same_subtree", read::text_lists)?,
    })
}

/// A NetworkRequestList object.
pub(crate) fn networks(value: &Value) -> Result<Vec<NetworkRequest>> {
    object::items(value, "NetworkRequestList", 1, |value| {
        let network = Object::open(value, "NetworkRequest", 1)?;
        Ok(NetworkRequest {
            network_id: network.optional("network_id", read::text)?,
            port_id: network.optional("port_id", read::text)?,
            address: network.optional("address", read::text)?,
            pci_request_id: network.optional("pci_request_id", read::text)?,
            tag: network.optional("tag", read::text)?,
            device_profile: network.optional("device_profile", read::text)?,
        })
    })
}

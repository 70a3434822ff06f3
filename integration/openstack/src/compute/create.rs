//! Creating servers, and flavors by their names.

use super::Compute;
use crate::adapter::AdapterRequest;
use crate::error::OpenStackError;
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use uuid::Uuid;

/// A server to be created.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NewServer {
    /// Name; with cloud-init also the host name of the guest.
    pub name: String,
    /// Id of the flavor.
    pub flavor: String,
    /// Image of the root disk.
    pub image: Uuid,
    pub networks: ServerNetworks,
    /// Key-value pairs.
    pub metadata: BTreeMap<String, String>,
    /// User data for cloud-init, Base64, at most 65,535 characters.
    pub user_data: Option<String>,
    /// Availability zone; `None` for any.
    pub availability_zone: Option<String>,
    /// Key pair.
    pub key_name: Option<String>,
    /// Names of security groups; empty for the project's default one.
    pub security_groups: Vec<String>,
    /// Hints for the scheduler.
    pub hints: BTreeMap<String, String>,
}

/// The networks of a new server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ServerNetworks {
    /// The one that the project has, or one that Neutron makes.
    #[default]
    Auto,
    None,
    /// A port on each of these.
    Ids(Vec<Uuid>),
}

impl NewServer {
    fn body(&self) -> Value {
        let networks = match &self.networks {
            ServerNetworks::Auto => json!("auto"),
            ServerNetworks::None => json!("none"),
            ServerNetworks::Ids(ids) => ids.iter().map(|id| json!({"uuid": id})).collect(),
        };
        let mut server = json!({
            "name": self.name,
            "flavorRef": self.flavor,
            "imageRef": self.image,
            "networks": networks,
            "metadata": self.metadata,
        });
        let optional = [
            ("user_data", &self.user_data),
            ("availability_zone", &self.availability_zone),
            ("key_name", &self.key_name),
        ];
        for (key, value) in optional {
            if let Some(value) = value {
                server[key] = json!(value);
            }
        }
        if !self.security_groups.is_empty() {
            let groups = self.security_groups.iter();
            server["security_groups"] = groups.map(|name| json!({"name": name})).collect();
        }
        let mut body = Map::from_iter([("server".to_owned(), server)]);
        if !self.hints.is_empty() {
            body.insert("os:scheduler_hints".to_owned(), json!(self.hints));
        }
        Value::Object(body)
    }
}

/// A flavor that the project may use.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct NamedFlavor {
    /// Id, as a new server names it.
    pub id: String,
    pub name: String,
}

#[derive(Deserialize)]
struct CreateAnswer {
    server: CreatedServer,
}

#[derive(Deserialize)]
struct CreatedServer {
    id: Uuid,
}

#[derive(Deserialize)]
struct Flavors {
    flavors: Vec<NamedFlavor>,
}

impl Compute {
    /// Creates a server and returns its id. Nova decides on a host afterwards: a server that gets
    /// none is in status `ERROR` with the reason in [`fault`](super::Server::fault).
    ///
    /// # Errors
    /// [`OpenStackError::Forbidden`] for an exhausted quota or a missing right,
    /// [`OpenStackError::Refused`] for what Nova does not accept, [`OpenStackError::Unavailable`]
    /// and the like.
    pub async fn create(&self, new: &NewServer) -> Result<Uuid, OpenStackError> {
        let version = self.negotiated().await?;
        let body = new.body();
        let ask = AdapterRequest::new(Method::POST, "/servers").at(version);
        let (answer, call) = self.adapter.call(&ask.with(&body)).await?;
        let created: CreateAnswer = answer.json(&call)?;
        Ok(created.server.id)
    }

    /// The flavors that the project may use; of more than Nova's `max_limit` only so many.
    ///
    /// # Errors
    /// [`OpenStackError::Unavailable`] and the like.
    pub async fn flavors(&self) -> Result<Vec<NamedFlavor>, OpenStackError> {
        let version = self.negotiated().await?;
        let ask = AdapterRequest::get("/flavors").at(version);
        let (answer, call) = self.adapter.call(&ask).await?;
        let found: Flavors = answer.json(&call)?;
        Ok(found.flavors)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_server_says_only_what_is_wanted() {
        let mut new = NewServer {
            name: "c1".to_owned(),
            flavor: "7".to_owned(),
            image: Uuid::from_u128(1),
            ..NewServer::default()
        };
        assert_eq!(
            new.body(),
            json!({"server": {
                "name": "c1", "flavorRef": "7", "networks": "auto", "metadata": {},
                "imageRef": "00000000-0000-0000-0000-000000000001",
            }})
        );
        new.networks = ServerNetworks::Ids(vec![Uuid::from_u128(2)]);
        new.security_groups = vec!["slurm".to_owned()];
        new.hints = BTreeMap::from([("ebbtide:max_price".to_owned(), "0.4".to_owned())]);
        new.user_data = Some("I2Nsb3Vk".to_owned());
        let body = new.body();
        assert_eq!(
            body["os:scheduler_hints"],
            json!({"ebbtide:max_price": "0.4"})
        );
        assert_eq!(
            body["server"]["networks"],
            json!([{"uuid": "00000000-0000-0000-0000-000000000002"}])
        );
        assert_eq!(
            body["server"]["security_groups"],
            json!([{"name": "slurm"}])
        );
        assert_eq!(body["server"]["user_data"], "I2Nsb3Vk");
    }
}

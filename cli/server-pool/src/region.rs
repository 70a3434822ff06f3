//! Servers of a standalone region. Each server has the name of its node, so that every program
//! finds it again.

use crate::notices::millis;
use crate::order::{FoundServer, OrderError, OrderedServer, ServerOrder};
use crate::{group_of, names, prices};
use ebbtide_burst::{BurstError, NodeGroup, PoolServer, RegionSettings, Status};
use ebbtide_client::Region;
use ebbtide_client::endpoint;
use ebbtide_client::{Bearer, Credentials};
use ebbtide_proto::v1;
use ebbtide_runtime::ids;
use ebbtide_shell::errors::CliError;
use std::collections::BTreeMap;

/// The most that the region lists in one answer.
const PAGE: u32 = 1_000;

/// The servers of a region.
#[derive(Debug)]
pub struct RegionPool {
    region: Region,
    project: String,
    zone: Option<String>,
    groups: Vec<NodeGroup>,
    nodes: Vec<String>,
}

impl RegionPool {
    /// Servers of a project, whatever runs there.
    pub(crate) fn of_project(region: Region, project: String, zone: Option<String>) -> Self {
        Self {
            region,
            project,
            zone,
            groups: Vec::new(),
            nodes: Vec::new(),
        }
    }

    /// Connects.
    ///
    /// # Errors
    /// The region does not answer, or the credentials cannot be used.
    pub(crate) async fn connect(
        own: &RegionSettings,
        groups: Vec<NodeGroup>,
    ) -> Result<Self, CliError> {
        let from_env = std::env::var("EBBTIDE_TOKEN").ok();
        let token = match (from_env.filter(|token| !token.is_empty()), &own.token_file) {
            (Some(token), _) => Bearer::new(&token)?,
            (None, Some(path)) => Bearer::from_file(path)?,
            (None, None) => Bearer::default(),
        };
        let credentials = Credentials {
            ca: own.ca.clone(),
            certificate: own.certificate.clone(),
            key: own.key.clone(),
            token,
            insecure: false,
            unverified: false,
        };
        let endpoint = endpoint::parse(&own.endpoint)?;
        Ok(Self {
            region: Region::connect(&endpoint, &credentials).await?,
            project: own.project.clone(),
            zone: own.zone.clone(),
            nodes: names(&groups),
            groups,
        })
    }

    /// The instances of the cluster's nodes that are not gone.
    ///
    /// # Errors
    /// The region's.
    pub(crate) async fn servers(&self) -> Result<Vec<PoolServer>, CliError> {
        let all = self.listed("").await?.into_iter();
        let ours = all.filter(|server| self.nodes.contains(&server.name));
        Ok(ours.map(instance).collect())
    }

    /// The servers with a name that are not gone.
    ///
    /// # Errors
    /// The region's.
    pub(crate) async fn named(&self, name: &str) -> Result<Vec<FoundServer>, CliError> {
        Ok(self.listed(name).await?.into_iter().map(found).collect())
    }

    /// The project's servers that are not gone; with a name only those that have it.
    async fn listed(&self, name: &str) -> Result<Vec<v1::Server>, CliError> {
        let mut all = Vec::new();
        let mut marker = String::new();
        loop {
            let request = v1::ListServersRequest {
                project_id: self.project.clone(),
                name: name.to_owned(),
                limit: PAGE,
                marker: marker.clone(),
                ..Default::default()
            };
            let answer = self.region.servers.clone().list_servers(request).await?;
            let servers = answer.into_inner().servers;
            let full = servers.len() >= PAGE as usize;
            marker = servers.last().map(|one| one.id.clone()).unwrap_or_default();
            all.extend(servers);
            if !full {
                return Ok(all);
            }
        }
    }

    /// What became of an instance that is not listed any more; none if the region does not know it.
    ///
    /// # Errors
    /// The region's.
    pub(crate) async fn server(&self, id: &str) -> Result<Option<PoolServer>, CliError> {
        Ok(self.found(id).await?.map(|found| found.server))
    }

    /// A server of any name, also one that is gone; none if the region does not know it.
    ///
    /// # Errors
    /// The region's.
    pub(crate) async fn found(&self, id: &str) -> Result<Option<FoundServer>, CliError> {
        let request = v1::GetServerRequest { id: id.to_owned() };
        match self.region.servers.clone().get_server(request).await {
            Ok(answer) => Ok(answer.into_inner().server.map(found)),
            Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
            Err(status) => Err(status.into()),
        }
    }

    /// Creates the instance of a node.
    ///
    /// # Errors
    /// [`BurstError::NoInstance`] if there is no place; the region's.
    pub(crate) async fn create(&self, node: &str) -> Result<String, CliError> {
        let group = group_of(&self.groups, node)?;
        let order = ServerOrder {
            id: ids::new().to_string(),
            name: node.to_owned(),
            flavor: group.flavor.clone(),
            max_price: group.max_price,
        };
        match self.order(&order).await {
            Ok(made) => Ok(made.id),
            Err(OrderError::NoRoom(reason)) => Err(BurstError::NoInstance {
                node: node.to_owned(),
                problem: format!("no valid host: {reason}"),
            }
            .into()),
            Err(OrderError::Refused(error) | OrderError::Unknown(error)) => Err(error),
        }
    }

    /// Creates a server under the id of the order.
    ///
    /// # Errors
    /// As [`OrderError`] says.
    pub(crate) async fn order(&self, order: &ServerOrder) -> Result<OrderedServer, OrderError> {
        let request = v1::PlacementRequest {
            count: 1,
            project_id: self.project.clone(),
            flavor: order.flavor.clone(),
            availability_zone: self.zone.clone().unwrap_or_default(),
            server_ids: vec![order.id.clone()],
            ..Default::default()
        };
        let create = v1::CreateServersRequest {
            name: order.name.clone(),
            request: Some(request),
            max_price: order
                .max_price
                .map(|price| price.to_string())
                .unwrap_or_default(),
        };
        let answer = self.region.servers.clone().create_servers(create).await;
        let answer = answer.map_err(refused)?.into_inner();
        if let Some(refused) = answer.decision.and_then(|made| made.no_valid_host) {
            // It stands in the list of servers, in error, until it is deleted.
            self.delete(&order.id).await.map_err(OrderError::Unknown)?;
            return Err(OrderError::NoRoom(refused.reason));
        }
        Ok(OrderedServer {
            id: order.id.clone(),
            warning: answer.warnings.into_iter().next(),
        })
    }

    /// Says that a server which has notice does not need the rest of its time.
    ///
    /// # Errors
    /// The region's, also if it has no notice.
    pub(crate) async fn release(&self, id: &str) -> Result<(), CliError> {
        let request = v1::ReleaseServerRequest { id: id.to_owned() };
        self.region.servers.clone().release_server(request).await?;
        Ok(())
    }

    /// Gives an instance back: one that has notice needs the rest of its time no longer, any other
    /// is deleted.
    ///
    /// # Errors
    /// The region's.
    pub(crate) async fn give_back(&self, one: &PoolServer) -> Result<(), CliError> {
        // The evacuation may have ended, or been called off, a moment before.
        if one.status == Status::Leaving && self.release(&one.id).await.is_ok() {
            return Ok(());
        }
        self.delete(&one.id).await
    }

    /// Deletes an instance. One that is not there any more is no error.
    ///
    /// # Errors
    /// The region's.
    pub(crate) async fn delete(&self, id: &str) -> Result<(), CliError> {
        let request = v1::DeleteServerRequest { id: id.to_owned() };
        match self.region.servers.clone().delete_server(request).await {
            Ok(_) => Ok(()),
            Err(status) if status.code() == tonic::Code::NotFound => Ok(()),
            Err(status) => Err(status.into()),
        }
    }

    /// What an hour of each flavor costs now, millionths; none if the region does not say.
    pub(crate) async fn prices(&self) -> Result<BTreeMap<String, u64>, CliError> {
        prices::hourly(&self.region).await
    }

    /// What an hour of a flavor cost at a time; none if the region does not know.
    pub(crate) async fn price_at(&self, flavor: &str, at: i64) -> Result<Option<u64>, CliError> {
        prices::hourly_at(&self.region, flavor, at).await
    }
}

/// Whether a refusal is final: no such flavor, or no right to it. A price above the maximum is not.
fn refused(status: tonic::Status) -> OrderError {
    use tonic::Code::{InvalidArgument, NotFound, PermissionDenied};
    if matches!(status.code(), InvalidArgument | NotFound | PermissionDenied) {
        OrderError::Refused(status.into())
    } else {
        OrderError::Unknown(status.into())
    }
}

fn found(server: v1::Server) -> FoundServer {
    FoundServer {
        state: server.status.clone(),
        host: server.host.clone(),
        address: String::new(),
        server: instance(server),
    }
}

fn instance(server: v1::Server) -> PoolServer {
    let launched_ms = millis(&server.launched_at);
    let status = match server.status.as_str() {
        "active" => Status::Active,
        "evacuating" => Status::Leaving,
        "waiting" | "building" | "reserved" => Status::Coming,
        "stopped" | "hibernated" => Status::Kept,
        "deleting" => Status::Going,
        "error" => Status::Failed,
        _ => Status::Gone,
    };
    let words = [server.fault_message, server.state_reason];
    PoolServer {
        created_ms: millis(&server.created_at).unwrap_or(0),
        taken: server.status == "preempted" || (status == Status::Failed && launched_ms.is_some()),
        status,
        launched_ms,
        deadline_ms: millis(&server.deadline_at),
        ended_ms: millis(&server.ended_at),
        reason: words
            .into_iter()
            .find(|one| !one.is_empty())
            .unwrap_or_default(),
        id: server.id,
        node: server.name,
    }
}

//! Servers of a standalone region. Each server has the name of its node, so that every program
//! finds it again.

use crate::notices::millis;
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
    settings: RegionSettings,
    groups: Vec<NodeGroup>,
    nodes: Vec<String>,
}

impl RegionPool {
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
            settings: own.clone(),
            nodes: names(&groups),
            groups,
        })
    }

    /// The instances of the cluster's nodes that are not gone.
    ///
    /// # Errors
    /// The region's.
    pub(crate) async fn servers(&self) -> Result<Vec<PoolServer>, CliError> {
        let mut all = Vec::new();
        let mut marker = String::new();
        loop {
            let request = v1::ListServersRequest {
                project_id: self.settings.project.clone(),
                limit: PAGE,
                marker: marker.clone(),
                ..Default::default()
            };
            let answer = self.region.servers.clone().list_servers(request).await?;
            let servers = answer.into_inner().servers;
            let full = servers.len() >= PAGE as usize;
            marker = servers.last().map(|one| one.id.clone()).unwrap_or_default();
            let ours = |server: &v1::Server| self.nodes.contains(&server.name);
            all.extend(servers.into_iter().filter(ours).map(instance));
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
        let request = v1::GetServerRequest { id: id.to_owned() };
        match self.region.servers.clone().get_server(request).await {
            Ok(answer) => Ok(answer.into_inner().server.map(instance)),
            Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
            Err(status) => Err(status.into()),
        }
    }

    /// Creates the instance of a node.
    ///
    /// # Errors
    /// [`BurstError::NoInstance`] if there is no place; the region's.
    pub(crate) async fn create(&self, node: &str) -> Result<String, CliError> {
        let (own, group) = (&self.settings, group_of(&self.groups, node)?);
        let id = ids::new().to_string();
        let request = v1::PlacementRequest {
            count: 1,
            project_id: own.project.clone(),
            flavor: group.flavor.clone(),
            availability_zone: own.zone.clone().unwrap_or_default(),
            server_ids: vec![id.clone()],
            ..Default::default()
        };
        let create = v1::CreateServersRequest {
            name: node.to_owned(),
            request: Some(request),
            max_price: group
                .max_price
                .map(|price| price.to_string())
                .unwrap_or_default(),
        };
        let answer = self.region.servers.clone().create_servers(create).await?;
        let answer = answer.into_inner();
        let refused = answer.decision.and_then(|decision| decision.no_valid_host);
        if let Some(refused) = refused {
            // It stands in the list of servers, in error, until it is deleted.
            self.delete(&id).await?;
            return Err(BurstError::NoInstance {
                node: node.to_owned(),
                problem: format!("no valid host: {}", refused.reason),
            }
            .into());
        }
        Ok(id)
    }

    /// Gives an instance back: one that has notice needs the rest of its time no longer, any other
    /// is deleted.
    ///
    /// # Errors
    /// The region's.
    pub(crate) async fn give_back(&self, one: &PoolServer) -> Result<(), CliError> {
        if one.status == Status::Leaving {
            let request = v1::ReleaseServerRequest { id: one.id.clone() };
            // The evacuation may have ended, or been called off, a moment before.
            if self
                .region
                .servers
                .clone()
                .release_server(request)
                .await
                .is_ok()
            {
                return Ok(());
            }
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
    pub(crate) async fn prices(&self) -> BTreeMap<String, u64> {
        prices::hourly(&self.region).await
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

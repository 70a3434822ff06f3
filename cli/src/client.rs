//! The connection to the region.

use crate::errors::CliError;
use ebbtide_proto::MAX_MESSAGE_BYTES;
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::scheduler_client::SchedulerClient;
use ebbtide_proto::v1::servers_client::ServersClient;
use std::time::Duration;
use tonic::transport::{Channel, Endpoint};

/// How long a connection may take: long enough for a slow network, short enough for a person.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one answer may take. A decision over thousands of hosts with claims is far below.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// A connected region. Cheap to clone: all clones share one connection.
#[derive(Debug, Clone)]
pub struct Region {
    /// What operators do.
    pub admin: AdminClient<Channel>,
    /// What tenants do.
    pub servers: ServersClient<Channel>,
    /// Deciding and watching.
    pub scheduler: SchedulerClient<Channel>,
}

impl Region {
    /// Connects.
    ///
    /// # Errors
    /// [`CliError::Usage`] if the endpoint is not an address, [`CliError::Unreachable`] if nobody answers.
    pub async fn connect(endpoint: &str) -> Result<Self, CliError> {
        let channel = Endpoint::from_shared(endpoint.to_owned())
            .map_err(|error| CliError::Usage(format!("{endpoint:?} is not an endpoint: {error}")))?
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(CALL_TIMEOUT)
            .tcp_nodelay(true)
            .connect()
            .await?;
        Ok(Self {
            admin: AdminClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES),
            servers: ServersClient::new(channel.clone())
                .max_decoding_message_size(MAX_MESSAGE_BYTES),
            scheduler: SchedulerClient::new(channel).max_decoding_message_size(MAX_MESSAGE_BYTES),
        })
    }
}

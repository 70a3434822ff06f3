//! The connection to the region.

use crate::ClientError;
use crate::channel::RegionChannel;
use crate::credentials::Credentials;
use crate::unverified;
use ebbtide_proto::MAX_MESSAGE_BYTES;
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::market_client::MarketClient;
use ebbtide_proto::v1::plugins_client::PluginsClient;
use ebbtide_proto::v1::scheduler_client::SchedulerClient;
use ebbtide_proto::v1::servers_client::ServersClient;
use std::time::Duration;
use tonic::transport::Endpoint;

/// How long a connection may take: long enough for a slow network, short enough for a person.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long one answer may take. A decision over thousands of hosts with claims is far below.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// A connected region. Cheap to clone: all clones share one connection.
#[derive(Debug, Clone)]
pub struct Region {
    /// What operators do.
    pub admin: AdminClient<RegionChannel>,
    /// What tenants do.
    pub servers: ServersClient<RegionChannel>,
    /// Deciding and watching.
    pub scheduler: SchedulerClient<RegionChannel>,
    /// How long instances lived.
    pub market: MarketClient<RegionChannel>,
    /// Plugins, shadow reports, records.
    pub plugins: PluginsClient<RegionChannel>,
}

impl Region {
    /// Connects.
    ///
    /// # Errors
    /// [`ClientError::Usage`] if the endpoint is not an address or the credentials cannot be used,
    /// [`ClientError::Unreachable`] if the region does not answer.
    pub async fn connect(endpoint: &str, credentials: &Credentials) -> Result<Self, ClientError> {
        let settings = |way: Endpoint| {
            way.connect_timeout(CONNECT_TIMEOUT)
                .timeout(CALL_TIMEOUT)
                .tcp_nodelay(true)
        };
        let way = Endpoint::from_shared(endpoint.to_owned()).map_err(|error| {
            ClientError::Usage(format!("{endpoint:?} is not an endpoint: {error}"))
        })?;
        credentials.check(way.uri())?;
        let channel = match way.uri().scheme_str() {
            Some("https") if credentials.unverified => {
                let uri = way.uri().clone();
                unverified::connect(&uri, credentials, settings).await?
            }
            Some("https") => {
                let way = settings(way).tls_config(credentials.tls()?);
                let way =
                    way.map_err(|error| ClientError::Usage(format!("certificates: {error}")))?;
                way.connect().await?
            }
            _ => settings(way).connect().await?,
        };
        let channel = RegionChannel::new(channel, credentials.token.clone());
        Ok(Self {
            admin: AdminClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES),
            servers: ServersClient::new(channel.clone())
                .max_decoding_message_size(MAX_MESSAGE_BYTES),
            scheduler: SchedulerClient::new(channel.clone())
                .max_decoding_message_size(MAX_MESSAGE_BYTES),
            market: MarketClient::new(channel.clone()).max_decoding_message_size(MAX_MESSAGE_BYTES),
            plugins: PluginsClient::new(channel)
                .max_decoding_message_size(MAX_MESSAGE_BYTES)
                .max_encoding_message_size(MAX_MESSAGE_BYTES),
        })
    }
}

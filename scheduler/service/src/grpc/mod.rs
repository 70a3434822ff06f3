//! The gRPC API, and REST and the console in front of it.

mod admin;
mod advice;
mod audit;
mod backup;
mod convert;
mod guard;
mod market;
mod plugins;
mod reclaims;
mod request;
mod scheduler;
mod servers;
mod status;

use crate::Tasks;
use crate::cloud::Api;
use crate::console::ConsoleLayer;
use crate::error::ServiceError;
use crate::gate::{Gate, GateLayer};
use crate::wire::Connections;
use ebbtide_proto::MAX_MESSAGE_BYTES;
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_server::AdminServer;
use ebbtide_proto::v1::market_server::MarketServer;
use ebbtide_proto::v1::plugins_server::PluginsServer;
use ebbtide_proto::v1::scheduler_server::SchedulerServer;
use ebbtide_proto::v1::servers_server::ServersServer;
use ebbtide_rest::{RestConfig, RestLayer};
use guard::Guard;
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;

/// The handlers of all calls. Calls, including streams, end with the service.
#[derive(Clone)]
pub(crate) struct ApiHandlers {
    pub(crate) api: Api,
    pub(crate) stop: CancellationToken,
    pub(crate) gate: Gate,
}

/// HTTP/2 keepalive interval for idle connections.
const KEEPALIVE: Duration = Duration::from_secs(60);
/// Time that a client has to answer a keepalive ping before the connection is closed.
const KEEPALIVE_ANSWER: Duration = Duration::from_secs(20);

/// The layer that answers REST by calls of the services behind it.
///
/// # Errors
/// [`ServiceError::Rest`] if its table of routes does not fit the contracts.
pub(crate) fn rest_layer(gate: &Gate, https: bool) -> Result<RestLayer, ServiceError> {
    let rest = RestConfig {
        https,
        challenge: gate.challenge().to_owned(),
        body_bytes: gate.limits().request_bytes,
        // A plugin component is larger than any other message, and base64 adds a third.
        large_body_bytes: MAX_MESSAGE_BYTES / 3 * 4,
    };
    RestLayer::new(rest).map_err(ServiceError::Rest)
}

/// Starts serving. gRPC and REST share the port: HTTP/1.1 is for REST, HTTP/2 for both.
pub(crate) fn serve(
    connections: Connections,
    api: Api,
    gate: Gate,
    rest: RestLayer,
    tasks: &Tasks,
) {
    let stop = tasks.stop().clone();
    let handlers = ApiHandlers {
        api,
        stop: stop.clone(),
        gate: gate.clone(),
    };
    let guard = Guard {
        handlers: handlers.clone(),
    };
    tasks.spawn("grpc", async move {
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<SchedulerServer<Guard>>().await;
        health.set_serving::<ServersServer<Guard>>().await;
        health.set_serving::<MarketServer<Guard>>().await;
        health.set_serving::<AdminServer<ApiHandlers>>().await;
        health.set_serving::<PluginsServer<ApiHandlers>>().await;
        let reflection = tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(v1::DESCRIPTORS)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET)
            .build_v1();
        let reflection = match reflection {
            Ok(service) => Some(service),
            Err(error) => {
                tracing::error!("no gRPC reflection: {error}");
                None
            }
        };
        let most = gate.limits().request_bytes;
        let served = Server::builder()
            .max_concurrent_streams(gate.limits().streams_per_connection)
            .http2_keepalive_interval(Some(KEEPALIVE))
            .http2_keepalive_timeout(Some(KEEPALIVE_ANSWER))
            .accept_http1(true)
            .layer(ConsoleLayer)
            .layer(rest)
            .layer(GateLayer(gate))
            .add_service(health_service)
            .add_optional_service(reflection)
            .add_service(
                SchedulerServer::new(guard.clone())
                    .max_decoding_message_size(most)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .add_service(
                MarketServer::new(guard.clone())
                    .max_decoding_message_size(most)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .add_service(
                ServersServer::new(guard)
                    .max_decoding_message_size(most)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .add_service(
                PluginsServer::new(handlers.clone())
                    // A plugin component is larger than any other message.
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .add_service(
                AdminServer::new(handlers)
                    .max_decoding_message_size(most)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .serve_with_incoming_shutdown(connections.into_stream(), stop.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!("gRPC ended: {error}");
        }
    });
}

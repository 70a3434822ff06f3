//! The gRPC front door.

mod admin;
mod convert;
mod request;
mod scheduler;
mod servers;
mod status;

use crate::error::ServiceError;
use crate::keeper::Keeper;
use crate::task::Tasks;
use ebbtide_bus::BusStatus;
use ebbtide_proto::MAX_MESSAGE_BYTES;
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_server::AdminServer;
use ebbtide_proto::v1::scheduler_server::SchedulerServer;
use ebbtide_proto::v1::servers_server::ServersServer;
use ebbtide_store::Store;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;

/// What the calls need. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) keeper: Keeper,
    pub(crate) store: Store,
    pub(crate) bus: watch::Receiver<BusStatus>,
    /// `amqp` or `in-process`.
    pub(crate) carrier: &'static str,
    pub(crate) policy: String,
    pub(crate) cost_module: String,
    pub(crate) database: String,
}

/// Calls end with the service, streams too.
#[derive(Clone)]
pub(crate) struct Door {
    pub(crate) api: Api,
    pub(crate) stop: CancellationToken,
}

/// A port that is taken and not served yet.
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    socket: TcpListener,
}

/// Takes the port.
pub(crate) async fn listen(address: SocketAddr) -> Result<Listener, ServiceError> {
    let refused = |e: std::io::Error| ServiceError::Listen {
        what: "gRPC",
        address: address.to_string(),
        problem: e.to_string(),
        option: "--listen",
    };
    let socket = TcpListener::bind(address).await.map_err(refused)?;
    let address = socket.local_addr().map_err(refused)?;
    Ok(Listener { address, socket })
}

/// Starts serving; returns the address.
pub(crate) fn serve(listener: Listener, api: Api, tasks: &Tasks) -> SocketAddr {
    let Listener { address, socket } = listener;
    let stop = tasks.stop().clone();
    let door = Door {
        api,
        stop: stop.clone(),
    };
    tasks.spawn("grpc", async move {
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<SchedulerServer<Door>>().await;
        health.set_serving::<ServersServer<Door>>().await;
        health.set_serving::<AdminServer<Door>>().await;
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
        // Answers are small: waiting for more to send with them (Nagle) would cost 40 ms each.
        let incoming = TcpIncoming::from(socket).with_nodelay(Some(true));
        let served = Server::builder()
            .add_service(health_service)
            .add_optional_service(reflection)
            .add_service(
                SchedulerServer::new(door.clone())
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .add_service(
                ServersServer::new(door.clone())
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .add_service(
                AdminServer::new(door)
                    .max_decoding_message_size(MAX_MESSAGE_BYTES)
                    .max_encoding_message_size(MAX_MESSAGE_BYTES),
            )
            .serve_with_incoming_shutdown(incoming, stop.cancelled_owned())
            .await;
        if let Err(error) = served {
            tracing::error!("gRPC ended: {error}");
        }
    });
    address
}

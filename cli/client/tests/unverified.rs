//! A self-signed certificate is accepted only if the caller says so.

#![allow(clippy::unwrap_used)] // All of this is tests.
#![allow(clippy::disallowed_methods)] // The server of the test starts as it likes.

use ebbtide_client::{ClientError, Credentials, Region};
use ebbtide_proto::v1::RegionSummaryRequest;
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, Server, ServerTlsConfig};

/// A gRPC server with a certificate of its own for another name; it has none of our services.
async fn server() -> String {
    let made = rcgen::generate_simple_self_signed(["elsewhere.example".to_owned()]).unwrap();
    let identity = Identity::from_pem(made.cert.pem(), made.signing_key.serialize_pem());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder()
        .tls_config(ServerTlsConfig::new().identity(identity))
        .unwrap()
        .add_service(health)
        .serve_with_incoming(TcpIncoming::from(listener));
    tokio::spawn(async move { server.await.unwrap() });
    format!("https://{address}")
}

#[tokio::test]
async fn an_unsigned_certificate_is_taken_only_on_request() {
    let endpoint = server().await;
    let careful = Region::connect(&endpoint, &Credentials::default()).await;
    assert!(matches!(careful, Err(ClientError::Unreachable { .. })));
    let credentials = Credentials {
        unverified: true,
        ..Credentials::default()
    };
    let mut region = Region::connect(&endpoint, &credentials).await.unwrap();
    let answer = region.scheduler.region_summary(RegionSummaryRequest {});
    // The server was reached, and has no such service.
    assert_eq!(
        ClientError::from(answer.await.unwrap_err()).code(),
        "EB-GRPC-12"
    );
}

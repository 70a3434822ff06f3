//! TLS and mutual TLS of both listeners.

use super::certificates::Authority;
use super::kit::{refusal, scheduler, soon, with_certificate};
use ebbtide_client::Credentials;
use ebbtide_integration_tests::Region;
use ebbtide_proto::v1;
use std::path::Path;
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};
use tonic::Code;

/// What one of the pages answers over TLS, headers included.
async fn page(region: &Region, root: &Authority, path: &str) -> String {
    let mut roots = RootCertStore::empty();
    let root = CertificateDer::from_pem_slice(root.pem().as_bytes()).unwrap();
    roots.add(root).unwrap();
    let provider = Arc::new(crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = region.address("http").unwrap().replace("https://", "");
    let socket = tokio::net::TcpStream::connect(&address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connector = TlsConnector::from(Arc::new(config));
    let mut stream = connector.connect(name, socket).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    // A server that ends without TLS's goodbye is not what is tested here.
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

fn section(name: &str, dir: &Path, more: &str) -> String {
    format!(
        "[{name}.tls]\ncertificate = \"{dir}/server.crt\"\nkey = \"{dir}/server.key\"\n{more}\n",
        dir = dir.display()
    )
}

#[tokio::test]
async fn only_certificates_of_the_authority_are_heard_and_their_names_give_the_role() {
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (Authority::new("ours"), Authority::new("theirs"));
    let ca = ours.write(dir.path(), "ca");
    ours.server(dir.path(), "server");
    let operator = ours.client(dir.path(), "ops", &["uri:ebbtide:role/operator"]);
    let tenant = ours.client(dir.path(), "science", &["dns:ci.science.example"]);
    let unlisted = ours.client(dir.path(), "unlisted", &["dns:printer.example"]);
    let stranger = theirs.client(dir.path(), "stranger", &["uri:ebbtide:role/operator"]);
    let tls = section(
        "grpc",
        dir.path(),
        &format!("client_ca = \"{}\"", ca.display()),
    );
    let auth = "[auth]\nroles_in_certificates = true\n[[auth.certificates]]\nname = \"dns:ci.science.example\"\nrole = \"tenant\"\n\
                projects = [\"science\"]\n";
    let region = scheduler(
        format!("{tls}{auth}"),
        with_certificate(&ca, Some(&operator)),
    )
    .await;

    let mut admin = region.admin().await.unwrap();
    admin.list_hosts(v1::ListHostsRequest {}).await.unwrap();

    let mut as_tenant = region
        .clients(&with_certificate(&ca, Some(&tenant)))
        .await
        .unwrap();
    let hosts = as_tenant.admin.list_hosts(v1::ListHostsRequest {}).await;
    assert_eq!(
        refusal(hosts),
        (Code::PermissionDenied, "EB-ACCESS-004".to_owned())
    );
    let servers = as_tenant
        .servers
        .list_servers(v1::ListServersRequest::default())
        .await;
    assert!(servers.unwrap().into_inner().servers.is_empty());

    let mut as_unlisted = region
        .clients(&with_certificate(&ca, Some(&unlisted)))
        .await
        .unwrap();
    let flavors = as_unlisted
        .admin
        .list_flavors(v1::ListFlavorsRequest {})
        .await;
    assert_eq!(
        refusal(flavors),
        (Code::Unauthenticated, "EB-ACCESS-003".to_owned())
    );

    // No certificate, one of another authority, and no TLS: none of them gets so far as to be
    // answered.
    let plain = region.endpoint().unwrap().replace("https://", "http://");
    for (credentials, endpoint) in [
        (with_certificate(&ca, None), region.endpoint().unwrap()),
        (
            with_certificate(&ca, Some(&stranger)),
            region.endpoint().unwrap(),
        ),
        (Credentials::default(), plain),
    ] {
        let answer = match ebbtide_client::Region::connect(&endpoint, &credentials).await {
            // TLS 1.3 tells a client that its certificate is not wanted with the first answer.
            Ok(mut clients) => clients
                .admin
                .list_flavors(v1::ListFlavorsRequest {})
                .await
                .map(drop),
            Err(_) => continue,
        };
        let status = answer.unwrap_err();
        assert_eq!(super::super::kit::code(&status), "", "{status:?}");
    }
    // And we do not talk to a region that another authority vouches for.
    let other = theirs.write(dir.path(), "other");
    assert!(
        region
            .clients(&with_certificate(&other, Some(&operator)))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn a_renewed_certificate_is_used_without_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new("old"), Authority::new("new"));
    let (old_ca, new_ca) = (old.write(dir.path(), "old"), new.write(dir.path(), "new"));
    old.server(dir.path(), "server");
    let region = scheduler(
        section("grpc", dir.path(), ""),
        with_certificate(&old_ca, None),
    )
    .await;
    assert!(
        region
            .clients(&with_certificate(&new_ca, None))
            .await
            .is_err()
    );
    new.server(dir.path(), "server");
    soon(async || {
        let connected = region.clients(&with_certificate(&new_ca, None)).await;
        connected.map(drop).map_err(|e| e.to_string())
    })
    .await;
    // Half a renewal leaves the last good pair in place.
    std::fs::write(dir.path().join("server.key"), "not a key").unwrap();
    soon(
        async || match region.scheduler_log().contains("cannot be used yet") {
            true => Ok(()),
            false => Err("not told yet".to_owned()),
        },
    )
    .await;
    region
        .clients(&with_certificate(&new_ca, None))
        .await
        .unwrap();
}

#[tokio::test]
async fn the_pages_speak_tls_and_metrics_are_for_readers() {
    let dir = tempfile::tempdir().unwrap();
    let authority = Authority::new("ours");
    authority.server(dir.path(), "server");
    let mut tokens = super::kit::Tokens::new();
    let reader = tokens.make(ebbtide_access::Role::Reader, &[]);
    let sections = format!("{}{}", section("http", dir.path(), ""), tokens.auth());
    let region = scheduler(sections, super::kit::with_token(&reader)).await;
    let health = page(&region, &authority, "/healthz").await;
    assert!(health.starts_with("HTTP/1.1 200"), "{health}");
    let metrics = page(&region, &authority, "/metrics").await;
    assert!(
        metrics.starts_with("HTTP/1.1 401") && metrics.contains("EB-ACCESS-001"),
        "{metrics}"
    );
    let with = format!("/metrics HTTP/1.1\r\nAuthorization: Bearer {reader}\r\nX-Rest:");
    let metrics = page(&region, &authority, &with).await;
    assert!(metrics.starts_with("HTTP/1.1 200"), "{metrics}");
    assert!(
        metrics.contains("ebbtide_refusals_total{kind=\"unauthenticated\"} 1"),
        "{metrics}"
    );
}

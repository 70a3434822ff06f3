//! TLS to a server whose certificate is not looked at: `verify: false` in clouds.yaml. tonic's own
//! TLS has no such choice.

use crate::ClientError;
use crate::credentials::Credentials;
use hyper_util::rt::TokioIo;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};

/// Connects to an `https://` endpoint.
pub(crate) async fn connect(
    https: &Uri,
    credentials: &Credentials,
    settings: impl Fn(Endpoint) -> Endpoint,
) -> Result<Channel, ClientError> {
    let authority = https.authority().map_or("", |authority| authority.as_str());
    let host = https.host().unwrap_or_default();
    let host = host
        .trim_start_matches('[')
        .trim_end_matches(']')
        .to_owned();
    let port = https.port_u16().unwrap_or(443);
    let name = ServerName::try_from(host.clone())
        .map_err(|_| ClientError::Usage(format!("{https} has no host name")))?;
    let tls = TlsConnector::from(Arc::new(config(credentials)?));
    let connector = tower::service_fn(move |_: Uri| {
        let (tls, host, name) = (tls.clone(), host.clone(), name.clone());
        async move {
            let stream = TcpStream::connect((host.as_str(), port)).await?;
            stream.set_nodelay(true)?;
            let stream = tls.connect(name, stream).await?;
            Ok::<_, std::io::Error>(TokioIo::new(stream))
        }
    });
    // To tonic it is a plain connection; the connector is what encrypts it.
    let way = Endpoint::from_shared(format!("http://{authority}"))?.origin(https.clone());
    Ok(settings(way).connect_with_connector(connector).await?)
}

fn config(credentials: &Credentials) -> Result<ClientConfig, ClientError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let unusable = |error: Error| ClientError::Usage(format!("certificates: {error}"));
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)));
    let mut config = match credentials.identity()? {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let pem = |error: rustls_pki_types::pem::Error| {
                ClientError::Usage(format!("certificates: {error}"))
            };
            let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
            let key = PrivateKeyDer::from_pem_slice(&key).map_err(pem)?;
            let chain = chain.map_err(pem)?;
            builder
                .with_client_auth_cert(chain, key)
                .map_err(unusable)?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    Ok(config)
}

/// Takes every certificate. The signature of the handshake is still verified: it costs nothing.
#[derive(Debug)]
struct AnyCertificate(Arc<CryptoProvider>);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

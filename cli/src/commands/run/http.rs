//! One request to a metadata server. No proxies, no redirects, no TLS: these servers are on the
//! same machine or link.

use ebbtide_run::metadata::{MetadataQuery, MetadataResponse};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// Timeout of an answer. Metadata servers answer from memory.
const LIMIT: Duration = Duration::from_secs(3);

/// Maximum size of an answer. Real answers have some kilobytes.
const LARGEST: usize = 256 * 1024;

/// Address of a metadata server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Address {
    /// A host, with a port if it is not 80.
    Tcp(String),
    /// A socket in the file system.
    Socket(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Socket(path.into()));
        }
        match text
            .strip_prefix("http://")
            .map(|host| host.trim_end_matches('/'))
        {
            Some(host) if !host.is_empty() && !host.contains(['/', '?', '#', '@', ' ']) => {
                Ok(Self::Tcp(host.to_owned()))
            }
            _ => Err(format!(
                "{text:?} is no metadata server: http://169.254.169.254, http://HOST:PORT, unix:PATH, or none"
            )),
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Tcp(host) => write!(f, "http://{host}"),
            Self::Socket(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Sends a request, and waits for the answer.
///
/// # Errors
/// A text for people: the network error.
pub(super) async fn ask(
    address: &Address,
    ask: &MetadataQuery,
) -> Result<MetadataResponse, String> {
    let asked = async {
        match address {
            Address::Tcp(host) => {
                let with_port = match host.rsplit_once(':') {
                    Some((_, port)) if port.parse::<u16>().is_ok() => host.clone(),
                    _ => format!("{host}:80"),
                };
                let stream = TcpStream::connect(with_port).await;
                over(stream.map_err(|e| e.to_string())?, host, ask).await
            }
            Address::Socket(path) => {
                let stream = UnixStream::connect(path).await;
                over(stream.map_err(|e| e.to_string())?, "localhost", ask).await
            }
        }
    };
    tokio::time::timeout(LIMIT, asked)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {} s", LIMIT.as_secs())))
}

async fn over<S>(stream: S, host: &str, ask: &MetadataQuery) -> Result<MetadataResponse, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let failed = |error: hyper::Error| error.to_string();
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(failed)?;
    let _connection = ebbtide_runtime::task::spawn("connection", async move {
        // The caller sees an error through its pending answer.
        let _ = connection.await;
    });
    let mut request = hyper::Request::builder()
        .method(ask.method)
        .uri(ask.path)
        .header("host", host);
    for (name, value) in &ask.headers {
        request = request.header(*name, value);
    }
    let body = Full::new(Bytes::from(ask.body.clone()));
    let request = request.body(body).map_err(|error| error.to_string())?;
    let answer = sender.send_request(request).await.map_err(failed)?;
    let flavor = answer.headers().get("metadata-flavor");
    let flavor = flavor
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), LARGEST).collect().await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    Ok(MetadataResponse {
        status,
        flavor,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

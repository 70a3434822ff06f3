//! One request to a server on the same machine or link: a metadata server, the batch service. No
//! proxies, no redirects, no TLS.

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};

/// A request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct HttpCall<'a> {
    pub(crate) method: &'a str,
    /// Path and query.
    pub(crate) path: &'a str,
    /// Headers, beside `host`.
    pub(crate) headers: &'a [(&'static str, String)],
    pub(crate) body: &'a str,
    /// Timeout of the answer.
    pub(crate) limit: Duration,
    /// Maximum size of the answer's body.
    pub(crate) largest: usize,
}

#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    /// The header `metadata-flavor`.
    pub(crate) flavor: Option<String>,
    /// The body; what is no UTF-8 is replaced.
    pub(crate) body: String,
}

/// Address of such a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
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
                "{text:?} is no address: write http://HOST, http://HOST:PORT or unix:PATH"
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
pub(crate) async fn ask(address: &Address, ask: &HttpCall<'_>) -> Result<HttpAnswer, String> {
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
    tokio::time::timeout(ask.limit, asked)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {} s", ask.limit.as_secs())))
}

async fn over<S>(stream: S, host: &str, ask: &HttpCall<'_>) -> Result<HttpAnswer, String>
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
    for (name, value) in ask.headers {
        request = request.header(*name, value);
    }
    let body = Full::new(Bytes::from(ask.body.to_owned()));
    let request = request.body(body).map_err(|error| error.to_string())?;
    let answer = sender.send_request(request).await.map_err(failed)?;
    let flavor = answer.headers().get("metadata-flavor");
    let flavor = flavor
        .and_then(|value| value.to_str().ok())
        .map(str::to_owned);
    let status = answer.status().as_u16();
    let body = Limited::new(answer.into_body(), ask.largest)
        .collect()
        .await;
    let body = body.map_err(|error| error.to_string())?.to_bytes();
    Ok(HttpAnswer {
        status,
        flavor,
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

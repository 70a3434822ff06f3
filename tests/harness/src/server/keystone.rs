//! A private Keystone: the real one, on SQLite, with Fernet keys of its own, in one Python process.
//!
//! Apache and uWSGI, which serve Keystone in production, would each want configuration and a second
//! of start; Keystone's own WSGI application runs in Python's simple server here. Its data are made
//! without migrations, as Keystone's own tests do it.

use super::{PrivateServer, ServerKind, ServerPlace};
use crate::error::{Error, Result};
use crate::process::{Process, Signal};
use crate::programs;
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Keystone; see [`Keystone`].
#[derive(Debug)]
pub enum KeystoneServer {}

/// A private Keystone. Its URL is `http://127.0.0.1:PORT`. User, password and project of its
/// administrator are `admin`, in the domain `default`; the administrator also has the role `admin`
/// on the system. The catalog has Keystone in the region `RegionOne`.
///
/// A file `extra.conf` (see [`crate::ServerSettings::file`]) is read as a second configuration
/// file, for example with `[token]` and `expiration = 2`.
pub type Keystone = PrivateServer<KeystoneServer>;

/// The program, run with the system's Python: Debian's packages are not in others.
const SERVER: &str = include_str!("../../keystone/server.py");

impl ServerKind for KeystoneServer {
    const NAME: &'static str = "Keystone";
    const SLUG: &'static str = "keystone";
    const PORTS: usize = 1;
    const READY: &'static str = "Keystone is ready";
    const STOP: Signal = Signal::Int;
    /// What it can read is in its directory.
    const ROOT_WILL_DO: bool = true;

    fn url(port: u16) -> String {
        format!("http://127.0.0.1:{port}")
    }

    async fn prepare(place: &ServerPlace) -> Result<()> {
        place.home.write("server.py", SERVER).map(drop)
    }

    async fn launch(place: &ServerPlace, log: &Path) -> Result<Vec<Process>> {
        // Named by the package: without it Python would only say that a module is missing.
        programs::find("keystone-manage", "openstack")?;
        let server = place
            .command(Self::NAME, programs::find("python3", "openstack")?)
            .arg(place.join("server.py"))
            .arg(place.path())
            .arg(place.port().to_string());
        Ok(vec![server.spawn(log)?])
    }

    async fn answers(place: &ServerPlace) -> Result<()> {
        let answer = log_in(place.port())
            .await
            .map_err(|error| error.to_string());
        match answer {
            Ok(status) if status.contains(" 201 ") => Ok(()),
            Ok(other) | Err(other) => Err(Error::BadAnswer {
                name: Self::NAME.to_owned(),
                reason: other,
            }),
        }
    }
}

/// The status line of a login as administrator.
async fn log_in(port: u16) -> std::io::Result<String> {
    let body = serde_json::json!({"auth": {"identity": {
        "methods": ["password"],
        "password": {"user": {
            "name": "admin", "domain": {"id": "default"}, "password": "admin",
        }},
    }}})
    .to_string();
    let request = format!(
        "POST /v3/auth/tokens HTTP/1.0\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer).into_owned();
    Ok(answer.lines().next().unwrap_or_default().to_owned())
}

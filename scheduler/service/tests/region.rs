//! A scheduler in this process, on a database of its own, with an operator and two tenants.

use ebbtide_access::{Role, TokenFile};
use ebbtide_bus::InProcessBroker;
use ebbtide_proto::v1;
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::servers_client::ServersClient;
use ebbtide_scheduler::{Config, NamedBus, RunningScheduler};
use std::net::SocketAddr;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tonic::transport::Channel;
use tonic::{Request, Status};

pub(crate) struct Region {
    running: Option<RunningScheduler>,
    stop: CancellationToken,
    pub(crate) grpc: SocketAddr,
    pub(crate) http: SocketAddr,
    pub(crate) operator: String,
    pub(crate) greedy: String,
    pub(crate) modest: String,
    /// The configuration, for another start on the same database.
    config: String,
    dir: TempDir,
}

/// A scheduler with this configuration.
async fn run(config: &str) -> (RunningScheduler, CancellationToken) {
    let config: Config = toml::from_str(config).unwrap();
    let stop = CancellationToken::new();
    let bus = NamedBus {
        name: "in-process",
        logins: None,
        bus: Arc::new(InProcessBroker::new().connect()),
    };
    let running = ebbtide_scheduler::start(config, bus, stop.clone()).await;
    (running.unwrap(), stop)
}

impl Region {
    /// Starts a scheduler with these further sections of the configuration.
    pub(crate) async fn start(sections: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}", dir.path().join("region.db").display());
        let mut tokens = TokenFile::default();
        let mut make = |role, projects: &[&str]| {
            let projects = projects.iter().map(|p| (*p).to_owned()).collect();
            let now = "2026-01-01T00:00:00Z".parse().unwrap();
            tokens.create("test", role, projects, now, None).unwrap()
        };
        let operator = make(Role::Operator, &[]).reveal();
        let greedy = make(Role::Tenant, &["greedy"]).reveal();
        let modest = make(Role::Tenant, &["modest"]).reveal();
        let file = dir.path().join("tokens.toml");
        tokens.write(&file).unwrap();
        let text = format!(
            "[grpc]\nlisten = \"127.0.0.1:0\"\n[http]\nlisten = \"127.0.0.1:0\"\n\
             [database]\nurl = {url:?}\n[auth]\ntokens = {:?}\n{sections}",
            file.display().to_string()
        );
        let (running, stop) = run(&text).await;
        let region = Self {
            grpc: running.grpc,
            http: running.http,
            running: Some(running),
            stop,
            operator,
            greedy,
            modest,
            config: text,
            dir,
        };
        let mut admin = AdminClient::new(region.channel().await.unwrap());
        let flavor = v1::CreateFlavorRequest {
            flavor: Some(v1::Flavor {
                name: "small".to_owned(),
                vcpus: 1,
                ram_mb: 1024,
                disk_gb: 1,
                ..Default::default()
            }),
        };
        admin
            .create_flavor(with(flavor, &region.operator))
            .await
            .unwrap();
        region
    }

    pub(crate) async fn channel(&self) -> Result<Channel, tonic::transport::Error> {
        let address = format!("http://{}", self.grpc);
        Channel::from_shared(address).unwrap().connect().await
    }

    /// Lists servers over a connection of its own.
    pub(crate) async fn list(&self, token: &str) -> Result<Vec<v1::Server>, String> {
        let channel = self.channel().await.map_err(|e| e.to_string())?;
        let mut servers = ServersClient::new(channel);
        let listed = servers
            .list_servers(with(v1::ListServersRequest::default(), token))
            .await;
        Ok(listed.map_err(|e| e.to_string())?.into_inner().servers)
    }

    /// The metric of refusals of this kind.
    pub(crate) async fn refusals(&self, kind: &str) -> u64 {
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\nConnection: close\r\n\r\n",
            self.operator
        );
        let mut stream = TcpStream::connect(self.http).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).await.unwrap();
        let line = format!("ebbtide_refusals_total{{kind=\"{kind}\"}} ");
        let count = text.lines().find_map(|text| text.strip_prefix(&line));
        count.map_or(0, |count| count.parse().unwrap())
    }

    /// The database's size on disk, including its log.
    pub(crate) fn database_bytes(&self) -> u64 {
        let files = ["region.db", "region.db-wal"];
        let size =
            |name| std::fs::metadata(self.dir.path().join(name)).map_or(0, |file| file.len());
        files.into_iter().map(size).sum()
    }

    /// Ends the scheduler and starts another one on the same database.
    pub(crate) async fn restart(&mut self) {
        self.stop.cancel();
        self.running.take().unwrap().finish().await.unwrap();
        let (running, stop) = run(&self.config).await;
        (self.grpc, self.http) = (running.grpc, running.http);
        (self.running, self.stop) = (Some(running), stop);
    }

    pub(crate) async fn end(mut self) {
        self.stop.cancel();
        self.running.take().unwrap().finish().await.unwrap();
    }
}

/// Creates servers of a project. They are in error, because there is no host.
pub(crate) async fn create(
    servers: &mut ServersClient<Channel>,
    token: &str,
    count: u32,
) -> Result<v1::CreateServersResponse, Status> {
    let request = v1::CreateServersRequest {
        name: "s".to_owned(),
        request: Some(v1::PlacementRequest {
            count,
            flavor: "small".to_owned(),
            ..Default::default()
        }),
        ..Default::default()
    };
    Ok(servers
        .create_servers(with(request, token))
        .await?
        .into_inner())
}

pub(crate) fn with<T>(message: T, token: &str) -> Request<T> {
    let mut request = Request::new(message);
    let value = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", value);
    request
}

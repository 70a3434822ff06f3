//! The processes of a region, and the ways to reach and to hurt them.

use crate::ProcessEnvironment;
use anyhow::{Context, Result, bail};
use ebbtide_client::Credentials;
use ebbtide_client::Region as Clients;
pub use ebbtide_client::RegionChannel;
use ebbtide_harness::{Process, ProcessCommand, SharedBroker, SharedServers, Signal, eventually};
use ebbtide_proto::v1::admin_client::AdminClient;
use ebbtide_proto::v1::plugins_client::PluginsClient;
use ebbtide_proto::v1::scheduler_client::SchedulerClient;
use ebbtide_proto::v1::servers_client::ServersClient;
use std::any::Any;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

mod crashes;

/// Long enough for two busy cores; a test that needs it has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Where a program of the workspace is.
///
/// # Panics
/// If it was not built: the message says how.
#[must_use]
#[allow(clippy::panic)] // A test without its program has failed.
pub fn bin(name: &str) -> PathBuf {
    let beside_tests = || {
        let exe = std::env::current_exe().ok()?;
        // Programs lie where they are looked for, tests and examples one directory below.
        let here = exe.parent()?;
        let there = if here.join(name).exists() {
            Some(here)
        } else {
            here.parent()
        };
        there.map(Path::to_path_buf)
    };
    let dir = std::env::var_os("EBBTIDE_BIN_DIR")
        .map(PathBuf::from)
        .or_else(beside_tests);
    let path = dir.unwrap_or_default().join(name);
    assert!(
        path.exists(),
        "{} is missing: run `cargo build --workspace --bins` first",
        path.display()
    );
    path
}

/// Where a region keeps its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// A file.
    Sqlite,
    /// A database of its own on the shared MariaDB.
    MariaDb,
    /// A database of its own on the shared PostgreSQL.
    Postgres,
}

/// A simulated hypervisor that is quick.
pub const SIMULATED: &str = "\
[driver]
kind = \"simulated\"
[driver.simulated]
inventory = { VCPU = 8, MEMORY_MB = 16000, DISK_GB = 160 }
start_seconds = 0.05
terminate_seconds = 0.05
stop_seconds = 0.05
hibernate_seconds = 0.05
";

/// What a region looks like.
#[derive(Debug, Clone)]
pub struct RegionOptions {
    /// Where the state is kept.
    pub database: Database,
    /// A database that the test looks after itself, instead.
    pub database_url: Option<String>,
    /// Lines for the `[database]` section.
    pub database_options: String,
    /// A broker that the test looks after itself; of a cluster, the URLs of its nodes with commas.
    pub broker_url: Option<String>,
    /// How often broker and clients have to be heard by one another. Seconds; the broker's URL says
    /// nothing of it if this is not set.
    pub heartbeat_seconds: Option<u32>,
    /// The same broker, as the scheduler reaches it, if that is another way.
    pub scheduler_broker_url: Option<String>,
    /// Where the scheduler listens.
    pub listen: String,
    /// The port of its API, which a scheduler that is started again has again; any port if it is 0.
    pub grpc_port: u16,
    /// In what the scheduler runs.
    pub scheduler_in: ProcessEnvironment,
    /// In what agents run, by host.
    pub agents_in: BTreeMap<String, ProcessEnvironment>,
    /// Names of the hosts: 8 VCPU, 16000 MB, 160 GB each.
    pub hosts: Vec<String>,
    /// Lines for the `[region]` section of the scheduler's configuration.
    pub region: String,
    /// Lines for the `[engine]` section.
    pub engine: String,
    /// Lines for the `[bus]` section of scheduler and agents.
    pub bus: String,
    /// Lines for the `[bus]` section of the scheduler alone.
    pub scheduler_bus: String,
    /// Lines for the `[bus]` section of agents alone.
    pub agent_bus: String,
    /// Another broker URL for the agent of a host: its own user.
    pub agent_urls: BTreeMap<String, String>,
    /// What the scheduler logs.
    pub log: String,
    /// Further sections of the scheduler's configuration.
    pub sections: String,
    /// How the region's own helpers prove who they are.
    pub credentials: Credentials,
    /// The `[driver]` section of an agent's configuration, by host; simulated where there is none.
    pub drivers: BTreeMap<String, String>,
}

impl Default for RegionOptions {
    fn default() -> Self {
        Self {
            database: Database::Sqlite,
            database_url: None,
            database_options: String::new(),
            broker_url: None,
            heartbeat_seconds: None,
            scheduler_broker_url: None,
            listen: "127.0.0.1".to_owned(),
            grpc_port: 0,
            scheduler_in: ProcessEnvironment::default(),
            agents_in: BTreeMap::new(),
            hosts: ["host-A", "host-B", "host-C", "host-D"]
                .map(str::to_owned)
                .to_vec(),
            region: String::new(),
            engine: String::new(),
            bus: String::new(),
            scheduler_bus: String::new(),
            agent_bus: String::new(),
            agent_urls: BTreeMap::new(),
            log: "info".to_owned(),
            sections: String::new(),
            credentials: Credentials::default(),
            drivers: BTreeMap::new(),
        }
    }
}

/// A running region. Everything ends with it.
pub struct Region {
    dir: TempDir,
    options: RegionOptions,
    prefix: String,
    broker_url: String,
    database_url: String,
    _broker: Option<SharedBroker>,
    /// Keeps the database of its own on the shared server for as long as the region lives.
    _database: Option<Box<dyn Any + Send + Sync>>,
    scheduler: Option<Process>,
    agents: BTreeMap<String, Process>,
    /// How often the scheduler was started: each has a log of its own.
    starts: u32,
}

impl Region {
    /// Starts everything, and waits until all hosts are up.
    ///
    /// # Errors
    /// Whatever does not start.
    pub async fn start(options: RegionOptions) -> Result<Self> {
        let mut region = Self::prepare(options).await?;
        region.start_scheduler().await?;
        for host in region.options.hosts.clone() {
            region.start_agent(&host)?;
        }
        region.wait_for_hosts_up().await?;
        Ok(region)
    }

    /// Everything but the processes.
    ///
    /// # Errors
    /// A server that does not start.
    pub async fn prepare(options: RegionOptions) -> Result<Self> {
        let dir = tempfile::tempdir()?;
        let prefix = dir
            .path()
            .file_name()
            .map(|name| {
                format!(
                    "test{}",
                    name.to_string_lossy()
                        .replace(|c: char| !c.is_ascii_alphanumeric(), "")
                )
            })
            .unwrap_or_default();
        let (broker, broker_url) = match &options.broker_url {
            Some(url) => (None, url.clone()),
            None => {
                let broker = SharedServers::rabbitmq().await?;
                let url = broker.url().to_owned();
                (Some(broker), url)
            }
        };
        let (database, database_url): (Option<Box<dyn Any + Send + Sync>>, String) =
            match (&options.database_url, options.database) {
                (Some(url), _) => (None, url.clone()),
                (None, Database::Sqlite) => (
                    None,
                    format!("sqlite://{}", dir.path().join("region.db").display()),
                ),
                (None, Database::MariaDb) => {
                    let database = SharedServers::mariadb().await?;
                    let url = database.url().to_owned();
                    (Some(Box::new(database)), url)
                }
                (None, Database::Postgres) => {
                    let database = SharedServers::postgres().await?;
                    let url = database.url().to_owned();
                    (Some(Box::new(database)), url)
                }
            };
        Ok(Self {
            dir,
            options,
            prefix,
            broker_url,
            database_url,
            _broker: broker,
            _database: database,
            scheduler: None,
            agents: BTreeMap::new(),
            starts: 0,
        })
    }

    /// Where the region's state is.
    #[must_use]
    pub fn database_url(&self) -> &str {
        &self.database_url
    }

    /// The names of its hosts.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        self.options.hosts.clone()
    }

    /// Where the region's files are.
    #[must_use]
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// The first part of the names of this region's queues.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    #[must_use]
    pub fn broker_url(&self) -> &str {
        &self.broker_url
    }

    fn with_heartbeat(&self, url: &str) -> String {
        let nodes: Vec<String> = url
            .split(',')
            .map(|url| match self.options.heartbeat_seconds {
                Some(seconds) => format!("{url}?heartbeat={seconds}"),
                None => url.to_owned(),
            })
            .collect();
        nodes.join("\", \"")
    }

    fn ready_file(&self) -> PathBuf {
        self.dir.path().join("ready.json")
    }

    /// Writes the scheduler's configuration and returns its path.
    ///
    /// # Errors
    /// The file system's.
    pub fn scheduler_config(&self) -> Result<PathBuf> {
        let listen = &self.options.listen;
        let insecure = listen != "127.0.0.1";
        let text = format!(
            "[grpc]\nlisten = \"{listen}:{}\"\ninsecure = {insecure}\n[http]\nlisten = \"{listen}:0\"\ninsecure = {insecure}\n[database]\nurl = \"{}\"\n{}\n\
             [bus]\nurls = [\"{}\"]\nprefix = \"{}\"\n{}\n{}\n[log]\nfilter = \"{}\"\n[region]\n{}\n[engine]\n{}\n{}\n",
            self.options.grpc_port,
            self.database_url,
            self.options.database_options,
            self.with_heartbeat(
                self.options
                    .scheduler_broker_url
                    .as_ref()
                    .unwrap_or(&self.broker_url)
            ),
            self.prefix,
            self.options.bus,
            self.options.scheduler_bus,
            self.options.log,
            self.options.region,
            self.options.engine,
            self.options.sections
        );
        let path = self.dir.path().join("scheduler.toml");
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// Starts the scheduler and waits until it answers.
    ///
    /// # Errors
    /// It ends before, with its log.
    pub async fn start_scheduler(&mut self) -> Result<()> {
        let config = self.scheduler_config()?;
        let ready = self.ready_file();
        let _ = std::fs::remove_file(&ready);
        self.starts += 1;
        let log = self
            .dir
            .path()
            .join(format!("scheduler-{}.log", self.starts));
        let environment = &self.options.scheduler_in;
        let program = bin("ebbtide-scheduler");
        let launch = crate::peer::launch(
            "ebbtide-scheduler",
            &program,
            environment,
            &config,
            &ready,
            &log,
        );
        let process = launch.await?;
        self.scheduler = Some(process);
        Ok(())
    }

    /// Starts another scheduler beside the first one. Only on a shared database.
    ///
    /// # Errors
    /// It ends before it answers, with its log.
    pub async fn start_peer(&self, name: &str) -> Result<crate::Peer> {
        crate::Peer::start(self.dir.path(), &self.scheduler_config()?, name).await
    }

    /// The scheduler's process.
    ///
    /// # Errors
    /// It is not running.
    pub fn scheduler_process(&self) -> Result<&Process> {
        self.scheduler
            .as_ref()
            .context("the scheduler is not running")
    }

    /// Kills the scheduler without warning.
    pub fn kill_scheduler(&mut self) {
        if let Some(process) = self.scheduler.take() {
            process.kill();
        }
    }

    /// What the scheduler has said so far in this run of it.
    #[must_use]
    pub fn scheduler_log(&self) -> String {
        let log = self
            .dir
            .path()
            .join(format!("scheduler-{}.log", self.starts));
        std::fs::read_to_string(log).unwrap_or_default()
    }

    /// Where a host's simulated hypervisor keeps its state.
    #[must_use]
    pub fn agent_dir(&self, host: &str) -> PathBuf {
        self.dir.path().join("agents").join(host)
    }

    /// Starts the agent of a host, with the state that it had.
    ///
    /// # Errors
    /// The file system's, or no such program.
    pub fn start_agent(&mut self, host: &str) -> Result<()> {
        self.start_agent_of(&bin("ebbtide-agent"), host)
    }

    /// The same of a given program: another version.
    ///
    /// # Errors
    /// As [`Region::start_agent`].
    pub fn start_agent_of(&mut self, program: &Path, host: &str) -> Result<()> {
        let state = self.agent_dir(host);
        std::fs::create_dir_all(&state)?;
        let mut text = String::new();
        writeln!(
            text,
            "host = \"{host}\"\nstate_dir = \"{}\"\n[agent]\nheartbeat_seconds = 1.0",
            state.display()
        )?;
        writeln!(
            text,
            "[bus]\nurls = [\"{}\"]\nprefix = \"{}\"\n{}\n{}",
            self.with_heartbeat(
                self.options
                    .agent_urls
                    .get(host)
                    .unwrap_or(&self.broker_url)
            ),
            self.prefix,
            self.options.bus,
            self.options.agent_bus
        )?;
        let driver = self.options.drivers.get(host);
        text.push_str(driver.map_or(SIMULATED, String::as_str));
        let config = self.dir.path().join(format!("agent-{host}.toml"));
        std::fs::write(&config, text)?;
        let log = self.dir.path().join(format!("agent-{host}.log"));
        let environment = self.options.agents_in.get(host).cloned();
        let process = environment
            .unwrap_or_default()
            .command(&format!("ebbtide-agent {host}"), program.to_owned())
            .args(["run", "--config"])
            .arg(config)
            .spawn(&log)?;
        self.agents.insert(host.to_owned(), process);
        Ok(())
    }

    /// The processes of all agents that run.
    #[must_use]
    pub fn agent_pids(&self) -> Vec<u32> {
        self.agents.values().map(Process::pid).collect()
    }

    /// Kills an agent without warning; its hypervisor's state stays.
    pub fn kill_agent(&mut self, host: &str) {
        if let Some(process) = self.agents.remove(host) {
            process.kill();
        }
    }

    /// Sends a signal to the scheduler.
    ///
    /// # Errors
    /// It is not running.
    pub fn signal_scheduler(&self, signal: Signal) -> Result<()> {
        let scheduler = self.scheduler.as_ref().context("no scheduler")?;
        scheduler.signal(signal)?;
        Ok(())
    }

    /// Sends a signal to an agent.
    ///
    /// # Errors
    /// It is not running.
    pub fn signal_agent(&self, host: &str, signal: Signal) -> Result<()> {
        self.agents
            .get(host)
            .context("no such agent")?
            .signal(signal)?;
        Ok(())
    }

    /// Tells the simulated hypervisor of a host to misbehave, as a person would.
    ///
    /// # Errors
    /// The command's.
    pub async fn simulate(&self, host: &str, arguments: &[&str]) -> Result<()> {
        let log = self.dir.path().join("simulate.log");
        let process = ProcessCommand::new("ebbtide-agent simulate", bin("ebbtide-agent"))
            .args(["simulate", "--state-dir"])
            .arg(self.agent_dir(host))
            .args(arguments.iter().copied())
            .spawn(&log)?;
        let status = process.wait_exit(PATIENCE).await?;
        if !status.success() {
            bail!("simulate {arguments:?}: {}", process.log_tail());
        }
        Ok(())
    }

    /// An address of the ready file, `grpc` or `http`.
    ///
    /// # Errors
    /// The scheduler is not there.
    pub fn address(&self, key: &str) -> Result<String> {
        let text = std::fs::read_to_string(self.ready_file())?;
        let ready: serde_json::Value = serde_json::from_str(&text)?;
        ready[key]
            .as_str()
            .map(|address| {
                let tls = self.options.sections.contains(&format!("[{key}.tls]"));
                let scheme = if tls { "https" } else { "http" };
                format!("{scheme}://{address}")
            })
            .context("no such address")
    }

    /// Where the API is.
    ///
    /// # Errors
    /// The scheduler is not there.
    pub fn endpoint(&self) -> Result<String> {
        self.address("grpc")
    }

    /// Clients with these credentials.
    ///
    /// # Errors
    /// The scheduler does not answer, or the TLS handshake fails.
    pub async fn clients(&self, credentials: &Credentials) -> Result<Clients> {
        Ok(Clients::connect(&self.endpoint()?, credentials).await?)
    }

    /// The operator's calls.
    ///
    /// # Errors
    /// No answer.
    pub async fn admin(&self) -> Result<AdminClient<RegionChannel>> {
        Ok(self.clients(&self.options.credentials).await?.admin)
    }

    /// The calls about plugins.
    ///
    /// # Errors
    /// No answer.
    pub async fn plugins(&self) -> Result<PluginsClient<RegionChannel>> {
        Ok(self.clients(&self.options.credentials).await?.plugins)
    }

    /// The tenant's calls.
    ///
    /// # Errors
    /// No answer.
    pub async fn servers(&self) -> Result<ServersClient<RegionChannel>> {
        Ok(self.clients(&self.options.credentials).await?.servers)
    }

    /// The scheduler's calls.
    ///
    /// # Errors
    /// No answer.
    pub async fn scheduler(&self) -> Result<SchedulerClient<RegionChannel>> {
        Ok(self.clients(&self.options.credentials).await?.scheduler)
    }

    /// Waits until every host is up.
    ///
    /// # Errors
    /// The scheduler does not answer.
    pub async fn wait_for_hosts_up(&self) -> Result<()> {
        let mut admin = self.admin().await?;
        let wanted = self.options.hosts.len();
        eventually(PATIENCE, async || {
            match admin
                .list_hosts(ebbtide_proto::v1::ListHostsRequest {})
                .await
            {
                Ok(hosts) => {
                    let up = hosts
                        .into_inner()
                        .hosts
                        .iter()
                        .filter(|h| h.health == "up")
                        .count();
                    if up == wanted {
                        Ok(())
                    } else {
                        Err(format!("{up} of {wanted} hosts are up"))
                    }
                }
                Err(status) => Err(status.to_string()),
            }
        })
        .await;
        Ok(())
    }
}

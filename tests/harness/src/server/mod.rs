//! What the servers have in common: their directory, their ports, their life.
//!
//! What holds:
//! - A started server answers; a server that cannot be started leaves nothing behind and says why,
//!   with the end of its log.
//! - The URL of a server never changes, whatever is done to it.

pub(crate) mod keystone;
pub(crate) mod mariadb;
pub(crate) mod postgres;
pub(crate) mod rabbitmq;
#[cfg(test)]
mod tests;

use crate::cluster::Member;
use crate::data_directory::DataDirectory;
use crate::error::{Error, Result};
use crate::ports;
use crate::process::{Process, ProcessCommand, Signal};
use crate::programs;
use ebbtide_runtime::clock::Deadline;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::task::Poll;
use std::time::Duration;

/// How often a server is started on other ports after another process has taken the chosen ones.
const PORT_ATTEMPTS: u32 = 5;

/// A start takes 1 to 8 seconds on an idle machine; this is for one that builds at the same time.
const START_DEADLINE: Duration = Duration::from_secs(180);

/// A stop takes at most about a second.
const STOP_DEADLINE: Duration = Duration::from_secs(60);

/// What the servers say when their port is taken: RabbitMQ (two ways), MariaDB, PostgreSQL and
/// Keystone (the C library's text).
const PORT_TAKEN: [&str; 3] = [
    "eaddrinuse",
    "could not bind to distribution port",
    "ddress already in use",
];

/// How a server is to be run.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    directory: Option<PathBuf>,
    durable: bool,
    deadline: Duration,
    files: Vec<(String, String)>,
    member: Option<Member>,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self::temporary()
    }
}

impl ServerSettings {
    /// In a temporary directory that is removed in the end, and without flushing to disk: data
    /// survives the death of the server, but not that of the machine. For tests.
    #[must_use]
    pub fn temporary() -> Self {
        Self {
            directory: None,
            durable: false,
            deadline: START_DEADLINE,
            files: Vec::new(),
            member: None,
        }
    }

    /// In `directory`, which is made when it is not there, belongs to the server alone, and stays;
    /// data is flushed to disk as the server does by default. A later start with the same directory
    /// finds the data again, and the ports if they are free.
    #[must_use]
    pub fn persistent(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: Some(directory.into()),
            durable: true,
            deadline: START_DEADLINE,
            files: Vec::new(),
            member: None,
        }
    }

    /// In a temporary directory, as a node of a cluster.
    pub(crate) fn of_member(member: Member) -> Self {
        Self {
            member: Some(member),
            ..Self::temporary()
        }
    }

    /// Whether committed data must survive a power failure.
    #[must_use]
    pub fn durable(mut self, durable: bool) -> Self {
        self.durable = durable;
        self
    }

    /// How long the server may take to answer; default 180 seconds.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// A file in the server's directory before it starts, such as RabbitMQ's `rabbitmq.conf`.
    /// `{dir}` in its text becomes the directory.
    #[must_use]
    pub fn file(mut self, name: impl Into<String>, text: impl Into<String>) -> Self {
        self.files.push((name.into(), text.into()));
        self
    }
}

/// Where a server lives.
#[derive(Debug)]
pub struct ServerPlace {
    home: DataDirectory,
    /// The first one is for clients.
    ports: Vec<u16>,
    durable: bool,
    deadline: Duration,
    /// What it is in a cluster.
    member: Option<Member>,
}

impl ServerPlace {
    pub(crate) fn path(&self) -> &Path {
        self.home.path()
    }

    pub(crate) fn join(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    fn port(&self) -> u16 {
        self.ports[0]
    }

    /// A program of the server: in its directory, as its user, with nothing of the caller's
    /// environment.
    pub(crate) fn command(&self, name: &str, program: impl Into<PathBuf>) -> ProcessCommand {
        ProcessCommand::new(name, program)
            .env_clear()
            .env("PATH", programs::PATH)
            .env("HOME", self.path())
            .env("TMPDIR", self.path())
            .env("LC_ALL", "C.UTF-8")
            .env("TZ", "UTC")
            .current_dir(self.path())
            .run_as(self.home.run_as())
    }

    /// Runs a program that sets something up, to its end.
    pub(crate) async fn run(&self, name: &str, command: ProcessCommand) -> Result<()> {
        let process = command.spawn(self.join("setup.log"))?;
        let status = process.wait_exit(self.deadline).await?;
        if status.success() {
            return Ok(());
        }
        Err(Error::Failed {
            program: name.to_owned(),
            status: status.to_string(),
            output: process.log_tail(),
        })
    }
}

/// One kind of server. Implemented by [`crate::Rabbit`], [`crate::Maria`], [`crate::Postgresql`]
/// and [`crate::KeystoneServer`] only.
pub trait ServerKind: sealed::Sealed + Send + Sync + 'static {
    /// Its name for people.
    const NAME: &'static str;
    /// Its name for files.
    const SLUG: &'static str;
    /// How many ports it needs.
    #[doc(hidden)]
    const PORTS: usize;
    /// A part of the line in its log that says that it is ready.
    #[doc(hidden)]
    const READY: &'static str;
    /// How it is asked to end without waiting for its clients.
    #[doc(hidden)]
    const STOP: Signal;

    /// Whether root may run the server if the unprivileged account cannot reach the given
    /// directory.
    #[doc(hidden)]
    const ROOT_WILL_DO: bool;

    /// The URL for clients.
    #[doc(hidden)]
    fn url(port: u16) -> String;

    /// Makes the data directory when it is not there yet.
    #[doc(hidden)]
    fn prepare(place: &ServerPlace) -> impl Future<Output = Result<()>> + Send;

    /// Starts its processes; the server itself comes first, its helpers follow.
    #[doc(hidden)]
    fn launch(place: &ServerPlace, log: &Path)
    -> impl Future<Output = Result<Vec<Process>>> + Send;

    /// Logs in, and completes what can only be set up in a running server.
    #[doc(hidden)]
    fn answers(place: &ServerPlace) -> impl Future<Output = Result<()>> + Send;
}

mod sealed {
    /// Keeps [`super::ServerKind`] ours.
    pub trait Sealed {}
    impl Sealed for super::keystone::KeystoneServer {}
    impl Sealed for super::rabbitmq::Rabbit {}
    impl Sealed for super::mariadb::Maria {}
    impl Sealed for super::postgres::Postgresql {}
}

/// A private server: [`crate::RabbitMq`], [`crate::MariaDb`], [`crate::Postgres`] or
/// [`crate::Keystone`].
///
/// Dropping it kills it and removes its directory, unless that was given.
#[derive(Debug)]
pub struct PrivateServer<K: ServerKind> {
    /// Before `place`: processes end before their directory goes. Empty when the server is not
    /// running.
    processes: Vec<Process>,
    place: ServerPlace,
    kind: PhantomData<K>,
}

impl<K: ServerKind> PrivateServer<K> {
    /// Starts a server with [`ServerSettings::temporary`].
    ///
    /// # Errors
    ///
    /// As [`PrivateServer::start_with`].
    pub async fn start() -> Result<Self> {
        Self::start_with(ServerSettings::temporary()).await
    }

    /// Starts a server and waits until a login goes through.
    ///
    /// # Errors
    ///
    /// [`Error::ProgramMissing`] when it is not installed, [`Error::Exited`], [`Error::TooSlow`]
    /// and [`Error::BadAnswer`] when it does not come up, [`Error::PortsTaken`] when others were
    /// quicker five times, [`Error::DirectoryBusy`] and [`Error::Unreachable`] for a given
    /// directory, [`Error::Io`] and [`Error::Spawn`] when the machine does not do what it should.
    pub async fn start_with(settings: ServerSettings) -> Result<Self> {
        let mut server = Self::prepared(settings).await?;
        server.come_up().await?;
        Ok(server)
    }

    /// A server with its data directory and its ports, not yet started.
    pub(crate) async fn prepared(settings: ServerSettings) -> Result<Self> {
        let home = match &settings.directory {
            None => DataDirectory::temporary(K::SLUG)?,
            Some(directory) => DataDirectory::persistent(directory, K::ROOT_WILL_DO)?,
        };
        let mut server = Self {
            processes: Vec::new(),
            place: ServerPlace {
                home,
                ports: Vec::new(),
                durable: settings.durable,
                deadline: settings.deadline,
                member: settings.member,
            },
            kind: PhantomData,
        };
        for (name, text) in &settings.files {
            let dir = server.place.path().display().to_string();
            server
                .place
                .home
                .write(name, &text.replace("{dir}", &dir))?;
        }
        K::prepare(&server.place).await?;
        server.place.ports = match server.remembered_ports() {
            Some(ports) => ports,
            None => ports::free_ports(K::PORTS)?,
        };
        Ok(server)
    }

    /// Gives it another part in its cluster, with data made anew. It must not run.
    pub(crate) async fn begin_as(&mut self, member: Member) -> Result<()> {
        self.place.member = Some(member);
        let data = self.place.join("data");
        std::fs::remove_dir_all(&data).map_err(Error::io("remove", &data))?;
        K::prepare(&self.place).await?;
        self.launch().await
    }

    /// The first start: with other ports when those are taken.
    pub(crate) async fn come_up(&mut self) -> Result<()> {
        for attempt in 1.. {
            match self.launch().await {
                Err(Error::PortsTaken { .. }) if attempt < PORT_ATTEMPTS => {
                    self.place.ports = ports::free_ports(K::PORTS)?;
                }
                Err(Error::PortsTaken {
                    name, ports, tail, ..
                }) => {
                    return Err(Error::PortsTaken {
                        name,
                        ports,
                        tail,
                        attempts: attempt,
                    });
                }
                Err(other) => return Err(other),
                Ok(()) => break,
            }
        }
        self.remember_ports()
    }

    /// For clients, with the user's name and password.
    #[must_use]
    pub fn url(&self) -> String {
        K::url(self.place.port())
    }

    /// The port for clients, on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.place.port()
    }

    /// Its private directory.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.place.path()
    }

    /// The file with what it prints; all its lives append to it.
    #[must_use]
    pub fn log_path(&self) -> PathBuf {
        self.place.join(&format!("{}.log", K::SLUG))
    }

    /// Its process id; `None` when it is stopped or killed.
    #[must_use]
    pub fn pid(&self) -> Option<u32> {
        self.processes.first().map(Process::pid)
    }

    /// Ends it in the orderly way, and keeps its data for [`PrivateServer::restart`]. Does nothing
    /// when it does not run.
    ///
    /// # Errors
    ///
    /// [`Error::TooSlow`] when it did not end within 60 seconds and was killed.
    pub async fn stop(&mut self) -> Result<()> {
        let stopped = match self.processes.first() {
            Some(server) => server.stop(K::STOP, STOP_DEADLINE).await,
            None => Ok(()),
        };
        self.processes.clear();
        stopped
    }

    /// Ends it as a power failure of its host would: SIGKILL for all its processes, without
    /// warning. Its data stays for [`PrivateServer::restart`].
    pub fn kill(&mut self) {
        self.processes.clear();
    }

    /// Starts it again on the same data and the same ports, after an orderly stop if it still runs.
    ///
    /// # Errors
    ///
    /// As [`PrivateServer::start_with`].
    pub async fn restart(&mut self) -> Result<()> {
        self.stop().await?;
        self.launch().await
    }

    /// Makes it hang: it accepts nothing and says nothing, and its connections stay open. The end
    /// of it is [`PrivateServer::thaw`].
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`].
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::Stop)
    }

    /// Lets it go on after [`PrivateServer::freeze`].
    ///
    /// # Errors
    ///
    /// [`Error::NotRunning`].
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::Cont)
    }

    /// Waits until it ends by itself; returns at once when it does not run.
    pub async fn ended(&self) {
        if let Some(server) = self.processes.first() {
            server.ended().await;
        }
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        match self.processes.first() {
            Some(server) => server.signal(signal),
            None => Err(Error::NotRunning {
                name: K::NAME.to_owned(),
                status: "stopped or killed by its owner".to_owned(),
            }),
        }
    }

    /// Starts the processes on the ports that are set and waits until they answer.
    async fn launch(&mut self) -> Result<()> {
        let deadline = Deadline::after(self.place.deadline);
        let processes = K::launch(&self.place, &self.log_path()).await?;
        let [server, helpers @ ..] = processes.as_slice() else {
            return Err(Error::BadAnswer {
                name: K::NAME.to_owned(),
                reason: "it has no process".to_owned(),
            });
        };
        // RabbitMQ takes half a minute from "my port is taken" to its end.
        let outcomes = [&[K::READY], &PORT_TAKEN[..]].concat();
        let line = tokio::select! {
            // In this order: a broker that ends because its epmd could not start is no other
            // failure.
            biased;
            helper = one_ended(helpers) => return Err(self.taken(helper)),
            line = server.wait_for_any(&outcomes, deadline.remaining()) => line?,
        };
        if !line.contains(K::READY) {
            return Err(self.taken(server));
        }
        let answered = tokio::time::timeout(deadline.remaining(), K::answers(&self.place)).await;
        answered.unwrap_or_else(|_| {
            Err(Error::TooSlow {
                name: K::NAME.to_owned(),
                wanted: "an answer to a login".to_owned(),
                deadline: deadline.whole(),
                tail: server.log_tail(),
            })
        })?;
        // A helper that has lost its port to another copy's: the server would talk to that one.
        let ended = helpers.iter().find(|helper| helper.exit_status().is_some());
        if let Some(helper) = ended {
            return Err(self.taken(helper));
        }
        tracing::info!(
            server = K::NAME,
            port = self.port(),
            after_ms = u64::try_from(deadline.elapsed().as_millis()).unwrap_or(u64::MAX),
            "ready"
        );
        self.processes = processes;
        Ok(())
    }

    fn taken(&self, process: &Process) -> Error {
        Error::PortsTaken {
            name: process.name().to_owned(),
            attempts: 1,
            ports: self.place.ports.clone(),
            tail: process.log_tail(),
        }
    }

    /// The ports of an earlier life of a kept directory, if they are still free: clients that are
    /// configured with them find the server again.
    fn remembered_ports(&self) -> Option<Vec<u16>> {
        let text = std::fs::read_to_string(self.place.join("ports")).ok()?;
        let ports: Vec<u16> = text
            .split_ascii_whitespace()
            .map(str::parse)
            .collect::<std::result::Result<_, _>>()
            .ok()?;
        (ports.len() == K::PORTS && ports::are_free(&ports)).then_some(ports)
    }

    fn remember_ports(&self) -> Result<()> {
        let ports: Vec<String> = self.place.ports.iter().map(u16::to_string).collect();
        self.place.home.write("ports", &ports.join(" ")).map(drop)
    }
}

/// Waits until one of `processes` ends.
async fn one_ended(processes: &[Process]) -> &Process {
    let mut ends: Vec<_> = processes
        .iter()
        .map(|process| Box::pin(process.ended()))
        .collect();
    std::future::poll_fn(|context| {
        ends.iter_mut()
            .zip(processes)
            .find_map(|(end, process)| end.as_mut().poll(context).is_ready().then_some(process))
            .map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

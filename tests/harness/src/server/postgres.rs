//! A private PostgreSQL.

use super::{PrivateServer, ServerKind, ServerPlace};
use crate::cluster::Member;
use crate::error::{Error, Result};
use crate::process::{Process, Signal};
use crate::programs;
use crate::sql::{Access, Dialect};
use std::path::Path;

/// PostgreSQL; see [`Postgres`].
#[derive(Debug)]
pub enum Postgresql {}

/// A private PostgreSQL. Its URL is `postgres://ebbtide:ebbtide@127.0.0.1:PORT/ebbtide`; the user
/// is the superuser.
pub type Postgres = PrivateServer<Postgresql>;

impl ServerKind for Postgresql {
    const NAME: &'static str = "PostgreSQL";
    const SLUG: &'static str = "postgresql";
    const PORTS: usize = 1;
    /// `… connections`, or `… read-only connections` of a standby.
    const READY: &'static str = "database system is ready to accept ";
    /// "Fast shutdown": SIGTERM would wait until all clients have gone.
    const STOP: Signal = Signal::Int;
    /// It refuses root.
    const ROOT_WILL_DO: bool = false;

    fn url(port: u16) -> String {
        format!("postgres://ebbtide:ebbtide@127.0.0.1:{port}/ebbtide")
    }

    async fn prepare(place: &ServerPlace) -> Result<()> {
        let data = place.join("data");
        if data.exists() {
            return Ok(());
        }
        // Under another name first: an installation that was interrupted is no data directory.
        let unfinished = place.join("data.new");
        let _ = std::fs::remove_dir_all(&unfinished);
        if let Some(Member::Standby { primary }) = &place.member {
            let of = format!("host=127.0.0.1 port={primary} user=ebbtide password=ebbtide");
            let copy = place
                .command(
                    "pg_basebackup",
                    programs::postgresql()?.join("pg_basebackup"),
                )
                .args(["--checkpoint=fast", "--write-recovery-conf", "--no-sync"])
                .arg(format!("--dbname={of}"))
                .arg(format!("--pgdata={}", unfinished.display()));
            place.run("pg_basebackup", copy).await?;
            return std::fs::rename(&unfinished, &data).map_err(Error::io("rename", &unfinished));
        }
        let password = place.home.write("password", "ebbtide\n")?;
        let mut install = place
            .command("initdb", programs::postgresql()?.join("initdb"))
            .args(["--username=ebbtide", "--encoding=UTF8", "--no-locale"])
            // The password is asked for over TCP, in clear text: it is no secret and never leaves
            // the machine, and the thousands of hashes of SCRAM would cost each connection of an
            // unoptimised test some 50 ms.
            .args(["--auth-host=password", "--auth-local=trust"])
            .arg("--no-instructions")
            .arg(format!("--pwfile={}", password.display()))
            .arg(format!("--pgdata={}", unfinished.display()));
        if !place.durable {
            install = install.arg("--no-sync");
        }
        place.run("initdb", install).await?;
        std::fs::rename(&unfinished, &data).map_err(Error::io("rename", &unfinished))
    }

    async fn launch(place: &ServerPlace, log: &Path) -> Result<Vec<Process>> {
        let mut server = place
            .command(Self::NAME, programs::postgresql()?.join("postgres"))
            .arg("-D")
            .arg(place.join("data"));
        let port = format!("port={}", place.port());
        for setting in [
            port.as_str(),
            "listen_addresses=127.0.0.1",
            // The data directory. Relative, because the path of a socket may have 107 bytes only.
            "unix_socket_directories=.",
            // In the data directory and not in /dev/shm, where it would stay after SIGKILL.
            "dynamic_shared_memory_type=mmap",
            "shared_buffers=32MB",
            // Many tests share a server, each with a pool of connections.
            "max_connections=500",
            "logging_collector=off",
        ] {
            server = server.args(["-c", setting]);
        }
        if !place.durable {
            // Commits are still handed to the operating system, which survives SIGKILL.
            server = server.args(["-c", "fsync=off", "-c", "full_page_writes=off"]);
        }
        Ok(vec![server.spawn(log)?])
    }

    async fn answers(place: &ServerPlace) -> Result<()> {
        let access = access(place.port())?;
        match access.execute("SELECT 1").await {
            Err(Error::Failed { output, .. }) if output.contains("does not exist") => {
                access.create_database("ebbtide").await.map(drop)
            }
            other => other.map(drop),
        }
    }
}

impl PrivateServer<Postgresql> {
    /// Creates an empty database and returns its URL. `name`: 1 to 60 of a-z, 0-9 and _, beginning
    /// with a letter.
    ///
    /// # Errors
    ///
    /// [`Error::BadName`]; [`Error::Failed`] when it exists already or the server does not run.
    pub async fn create_database(&self, name: &str) -> Result<String> {
        access(self.port())?.create_database(name).await
    }

    /// Runs one statement as the superuser, and returns what it gave.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] with what the server says.
    pub async fn execute(&self, sql: &str) -> Result<String> {
        access(self.port())?.execute(sql).await
    }
}

fn access(port: u16) -> Result<Access> {
    Access::parse(Dialect::Postgres, &Postgresql::url(port))
}

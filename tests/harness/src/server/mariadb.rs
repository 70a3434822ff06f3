//! A private MariaDB, without any of the system's configuration files.

use super::{PrivateServer, ServerKind, ServerPlace};
use crate::cluster::{self, Member};
use crate::error::{Error, Result};
use crate::process::{Process, Signal};
use crate::programs;
use crate::sql::{Access, Dialect};
use std::path::Path;

/// MariaDB; see [`MariaDb`].
#[derive(Debug)]
pub enum Maria {}

/// A private MariaDB. Its URL is `mysql://ebbtide:ebbtide@127.0.0.1:PORT/ebbtide`; the user may do
/// everything.
pub type MariaDb = PrivateServer<Maria>;

/// Run at every start, before the first connection is accepted. The socket in the private directory
/// is root's.
const INIT: &str = "\
CREATE DATABASE IF NOT EXISTS ebbtide CHARACTER SET utf8mb4;
CREATE USER IF NOT EXISTS 'ebbtide'@'127.0.0.1' IDENTIFIED BY 'ebbtide';
GRANT ALL PRIVILEGES ON *.* TO 'ebbtide'@'127.0.0.1' WITH GRANT OPTION;
";

/// For both the installation and the server: a redo log of 8 MiB instead of 96 (a hundred tests
/// would write 10 GB), and ordinary file operations instead of io_uring, whose locked memory is
/// limited for ordinary users.
pub(crate) const STORAGE: [&str; 2] = ["--innodb-log-file-size=8M", "--innodb-use-native-aio=OFF"];

impl ServerKind for Maria {
    const NAME: &'static str = "MariaDB";
    const SLUG: &'static str = "mariadb";
    const PORTS: usize = 1;
    const READY: &'static str = "ready for connections";
    const STOP: Signal = Signal::Term;
    /// Its users can write files.
    const ROOT_WILL_DO: bool = false;

    fn url(port: u16) -> String {
        format!("mysql://ebbtide:ebbtide@127.0.0.1:{port}/ebbtide")
    }

    async fn prepare(place: &ServerPlace) -> Result<()> {
        place.home.write("init.sql", INIT)?;
        let data = place.join("data");
        if data.exists() {
            return Ok(());
        }
        // Under another name first: an installation that was interrupted is no data directory.
        let unfinished = place.join("data.new");
        let _ = std::fs::remove_dir_all(&unfinished);
        let install = place
            .command(
                "mariadb-install-db",
                programs::find("mariadb-install-db", "mariadb")?,
            )
            .args(["--no-defaults", "--basedir=/usr", "--skip-test-db"])
            .args([
                "--auth-root-authentication-method=normal",
                "--skip-name-resolve",
            ])
            .args(STORAGE)
            .arg(format!("--datadir={}", unfinished.display()));
        place.run("mariadb-install-db", install).await?;
        std::fs::rename(&unfinished, &data).map_err(Error::io("rename", &unfinished))
    }

    async fn launch(place: &ServerPlace, log: &Path) -> Result<Vec<Process>> {
        // Default: every commit is flushed. 2: every commit is handed to the operating system,
        // which survives SIGKILL.
        let flush = if place.durable { 1 } else { 2 };
        let init = format!("--init-file={}", place.join("init.sql").display());
        let beginning = match &place.member {
            Some(Member::Galera(node)) => cluster::galera_arguments(place, node, init).await?,
            _ => vec![init],
        };
        let server = place
            .command(Self::NAME, programs::find("mariadbd", "mariadb")?)
            .args(["--no-defaults", "--basedir=/usr"])
            .arg(format!("--datadir={}", place.join("data").display()))
            .arg(format!("--tmpdir={}", place.path().display()))
            .args(beginning)
            .arg(format!("--port={}", place.port()))
            .arg("--bind-address=127.0.0.1")
            // Both below the data directory. Relative, because the path of a socket may have 107
            // bytes only.
            .args(["--socket=mariadb.sock", "--pid-file=mariadb.pid"])
            .args(["--skip-name-resolve", "--skip-log-bin"])
            // As in Debian's configuration; upstream's default is latin1.
            .args([
                "--character-set-server=utf8mb4",
                "--collation-server=utf8mb4_general_ci",
            ])
            // Many tests share a server, each with a pool of connections.
            .args(["--max-connections=500", "--innodb-buffer-pool-size=64M"])
            .args(STORAGE)
            .arg(format!("--innodb-flush-log-at-trx-commit={flush}"))
            .spawn(log)?;
        Ok(vec![server])
    }

    async fn answers(place: &ServerPlace) -> Result<()> {
        access(place.port())?.execute("SELECT 1").await.map(drop)
    }
}

impl PrivateServer<Maria> {
    /// Creates an empty database (utf8mb4) and returns its URL. `name`: 1 to 60 of a-z, 0-9 and _,
    /// beginning with a letter.
    ///
    /// # Errors
    ///
    /// [`Error::BadName`]; [`Error::Failed`] when it exists already or the server does not run.
    pub async fn create_database(&self, name: &str) -> Result<String> {
        access(self.port())?.create_database(name).await
    }

    /// Does something as a user who may do everything: grants, global variables, ending other
    /// connections.
    ///
    /// # Errors
    ///
    /// [`Error::Failed`] with what the server says.
    pub async fn execute(&self, sql: &str) -> Result<()> {
        self.value(sql).await.map(drop)
    }

    /// The same, with what it gave.
    pub(crate) async fn value(&self, sql: &str) -> Result<String> {
        access(self.port())?.execute(sql).await
    }
}

fn access(port: u16) -> Result<Access> {
    Access::parse(Dialect::MariaDb, &Maria::url(port))
}

//! Statements for a database server, sent with the client program that comes with it.
//!
//! The client programs and not a driver: a driver would be sea-orm's, which lives in
//! `scheduler/common/store` only, and one start of a client (16 ms MariaDB, 50 ms PostgreSQL) is
//! cheap beside what a test does.

use crate::error::{Error, Result};
use crate::programs;
use crate::url::DatabaseUrl;
use std::process::{Command, Output, Stdio};

/// The two kinds of servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    MariaDb,
    Postgres,
}

/// A server that databases can be made on.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    dialect: Dialect,
    url: DatabaseUrl,
}

impl Access {
    /// From a URL as Ebbtide takes it.
    pub(crate) fn parse(dialect: Dialect, url: &str) -> Result<Self> {
        let url = match dialect {
            Dialect::MariaDb => DatabaseUrl::parse(
                url,
                &["mysql", "mariadb"],
                3306,
                "mysql://user:password@127.0.0.1:3306/ebbtide",
            ),
            Dialect::Postgres => DatabaseUrl::parse(
                url,
                &["postgres", "postgresql"],
                5432,
                "postgres://user:password@127.0.0.1:5432/ebbtide",
            ),
        }?;
        Ok(Self { dialect, url })
    }

    /// The URL of another database on the same server.
    pub(crate) fn url_of(&self, database: &str) -> String {
        self.url.with_database(database).to_string()
    }

    /// The same server, its maintenance database: one can neither create nor drop the database one
    /// is connected to.
    pub(crate) fn maintenance(&self) -> Self {
        let database = match self.dialect {
            Dialect::MariaDb => "information_schema",
            Dialect::Postgres => "postgres",
        };
        Self {
            dialect: self.dialect,
            url: self.url.with_database(database),
        }
    }

    /// Creates a database and returns its URL.
    pub(crate) async fn create_database(&self, name: &str) -> Result<String> {
        check_name(name)?;
        let statement = match self.dialect {
            // Not the server's default, which is latin1 where no configuration says otherwise.
            Dialect::MariaDb => format!("CREATE DATABASE {name} CHARACTER SET utf8mb4"),
            Dialect::Postgres => format!("CREATE DATABASE {name}"),
        };
        self.maintenance().execute(&statement).await?;
        Ok(self.url_of(name))
    }

    /// Drops a database, also when connections to it are still open. Blocks (tens of milliseconds);
    /// for Drop.
    pub(crate) fn drop_database(&self, name: &str) -> Result<()> {
        check_name(name)?;
        let statement = match self.dialect {
            Dialect::MariaDb => format!("DROP DATABASE IF EXISTS {name}"),
            Dialect::Postgres => format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)"),
        };
        let mut client = self.maintenance().client(&statement)?;
        let output = client.output();
        self.judge(output).map(drop)
    }

    /// Runs `statement` and returns what it prints: rows as lines, without headings.
    pub(crate) async fn execute(&self, statement: &str) -> Result<String> {
        let mut client = tokio::process::Command::from(self.client(statement)?);
        let output = client.kill_on_drop(true).output().await;
        self.judge(output)
    }

    fn judge(&self, output: std::io::Result<Output>) -> Result<String> {
        let program = self.program_name();
        let output = output.map_err(|source| Error::Spawn {
            name: program.to_owned(),
            source,
        })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout)
                .trim_end()
                .to_owned());
        }
        Err(Error::Failed {
            program: format!("{program} (port {})", self.url.port),
            status: output.status.to_string(),
            output: String::from_utf8_lossy(&output.stderr)
                .trim_end()
                .to_owned(),
        })
    }

    fn program_name(&self) -> &'static str {
        match self.dialect {
            Dialect::MariaDb => "mariadb",
            Dialect::Postgres => "psql",
        }
    }

    fn client(&self, statement: &str) -> Result<Command> {
        let url = &self.url;
        let mut client = match self.dialect {
            Dialect::MariaDb => {
                let mut client = Command::new(programs::find("mariadb", "mariadb")?);
                client
                    .env_clear()
                    .args(["--no-defaults", "--protocol=TCP", "--connect-timeout=30"])
                    .args(["--batch", "--skip-column-names"])
                    .args(["--host", &url.host, "--port", &url.port.to_string()])
                    .args(["--user", &url.user, "--database", &url.database])
                    .args(["--execute", statement])
                    .env("MYSQL_PWD", &url.password);
                client
            }
            Dialect::Postgres => {
                let mut client = Command::new(programs::postgresql()?.join("psql"));
                client
                    .env_clear()
                    .args(["--no-psqlrc", "--no-password", "--quiet"])
                    .args(["--tuples-only", "--no-align", "--set=ON_ERROR_STOP=1"])
                    .args(["--host", &url.host, "--port", &url.port.to_string()])
                    .args(["--username", &url.user, "--dbname", &url.database])
                    .args(["--command", statement])
                    .env("PGPASSWORD", &url.password)
                    .env("PGCONNECT_TIMEOUT", "30");
                client
            }
        };
        client
            .env("PATH", programs::PATH)
            .env("LC_ALL", "C.UTF-8")
            .current_dir("/")
            .stdin(Stdio::null());
        Ok(client)
    }
}

/// Names are put into statements as they are, so they may hold nothing that means something to a
/// server. 60: MySQL allows 64, PostgreSQL 63.
fn check_name(name: &str) -> Result<()> {
    let good = (1..=60).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if good {
        Ok(())
    } else {
        Err(Error::BadName(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_could_mean_more_than_a_name_is_refused() {
        for name in ["", "1a", "a-b", "a b", "A", "ä", "a;drop", &"a".repeat(61)] {
            assert_eq!(
                check_name(name).unwrap_err().code(),
                "EB-HARNESS-009",
                "{name}"
            );
        }
        for name in ["a", "t_0123", &"a".repeat(60)] {
            check_name(name).unwrap();
        }
    }
}

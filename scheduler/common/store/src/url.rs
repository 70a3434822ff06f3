//! Database URLs: which database, and never the password in anything that is printed.

use crate::StoreError;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Which kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// A file, or memory.
    Sqlite,
    /// MariaDB or MySQL.
    MySql,
    /// PostgreSQL.
    Postgres,
}

impl Backend {
    /// The name for people.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "SQLite",
            Self::MySql => "MariaDB",
            Self::Postgres => "PostgreSQL",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A database URL that was understood. `Debug` and `Display` show `***` for the password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    target: DatabaseTarget,
    shown: String,
}

/// What the URL points at.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum DatabaseTarget {
    SqliteFile(PathBuf),
    SqliteMemory,
    /// For each host, with the scheme that the driver knows, and the password.
    MySql(Vec<String>),
    Postgres(Vec<String>),
}

impl DatabaseUrl {
    /// The URL of an SQLite file.
    #[must_use]
    pub fn sqlite_file(path: &Path) -> Self {
        Self {
            target: DatabaseTarget::SqliteFile(path.to_owned()),
            shown: format!("sqlite:{}", path.display()),
        }
    }

    /// Which kind of database it is.
    #[must_use]
    pub fn backend(&self) -> Backend {
        match self.target {
            DatabaseTarget::SqliteFile(_) | DatabaseTarget::SqliteMemory => Backend::Sqlite,
            DatabaseTarget::MySql(_) => Backend::MySql,
            DatabaseTarget::Postgres(_) => Backend::Postgres,
        }
    }

    pub(crate) fn target(&self) -> &DatabaseTarget {
        &self.target
    }

    /// Whether both name the same database on the same servers, with the same parameters, whatever
    /// the login.
    #[must_use]
    pub fn is_same_place(&self, other: &Self) -> bool {
        use DatabaseTarget::{MySql, Postgres};
        match (&self.target, &other.target) {
            (MySql(ours), MySql(theirs)) | (Postgres(ours), Postgres(theirs)) => {
                let place = |servers: &[String]| -> Vec<String> {
                    servers.iter().map(|server| without_login(server)).collect()
                };
                place(ours) == place(theirs)
            }
            (ours, theirs) => ours == theirs,
        }
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({})", self.shown)
    }
}

impl FromStr for DatabaseUrl {
    type Err = StoreError;

    fn from_str(text: &str) -> Result<Self, StoreError> {
        let text = text.trim();
        let bad = |reason: &str| StoreError::BadUrl {
            url: redact(text),
            reason: reason.to_owned(),
        };
        let (scheme, rest) = text
            .split_once(':')
            .ok_or_else(|| bad("it has no scheme"))?;
        // oslo.db names the Python driver after a plus sign; the driver is ours.
        let dialect = scheme.split('+').next().unwrap_or(scheme);
        let target = match dialect.to_ascii_lowercase().as_str() {
            "sqlite" => {
                let path = rest.strip_prefix("//").unwrap_or(rest);
                match path {
                    ":memory:" => DatabaseTarget::SqliteMemory,
                    "" | "/" => return Err(bad("it names no file")),
                    _ if path.contains('?') => {
                        return Err(bad("an SQLite URL takes no parameters after '?'"));
                    }
                    _ => DatabaseTarget::SqliteFile(PathBuf::from(path)),
                }
            }
            "mysql" | "mariadb" => {
                DatabaseTarget::MySql(servers("mysql", server_part(rest, &bad)?))
            }
            "postgres" | "postgresql" => {
                let rest = server_part(rest, &bad)?;
                DatabaseTarget::Postgres(servers("postgres", &read_write(rest, &bad)?))
            }
            _ => return Err(bad("the scheme is unknown")),
        };
        Ok(Self {
            target,
            shown: redact(text),
        })
    }
}

/// Checks that a database is named: without one the drivers connect to whatever is the user's
/// default.
fn server_part<'a>(
    rest: &'a str,
    bad: &impl Fn(&str) -> StoreError,
) -> Result<&'a str, StoreError> {
    let body = rest
        .strip_prefix("//")
        .ok_or_else(|| bad("'//' is missing after the scheme"))?;
    let address = body.split('?').next().unwrap_or(body);
    let (authority, database) = address
        .split_once('/')
        .ok_or_else(|| bad("it names no database"))?;
    if database.is_empty() {
        return Err(bad("it names no database"));
    }
    // What follows an unencoded '@', '/' or '#' of a password would be taken for a host or a path,
    // and be shown.
    if authority.matches('@').count() > 1 || body.contains('#') {
        return Err(bad(
            "special characters in the user or password are not percent-encoded",
        ));
    }
    let hosts: Vec<&str> = hosts(authority).1.split(',').collect();
    for host in &hosts {
        if let Some((_, port)) = host.rsplit_once(':')
            && !port.ends_with(']')
            && port.parse::<u16>().is_err()
        {
            return Err(bad("the port is not a number from 1 to 65535"));
        }
        if hosts.len() > 1 && host.is_empty() {
            return Err(bad("a host of the list is empty"));
        }
    }
    Ok(rest)
}

/// The user with its `@`, and the hosts.
fn hosts(authority: &str) -> (&str, &str) {
    let at = authority.rfind('@').map_or(0, |at| at + 1);
    authority.split_at(at)
}

/// The URL of one server without user and password, in front of the host or as parameters.
fn without_login(server: &str) -> String {
    let (address, parameters) = server.split_once('?').unwrap_or((server, ""));
    let address = match address.rsplit_once('@') {
        Some((_, place)) => place,
        None => address.split_once("//").map_or(address, |(_, place)| place),
    };
    let is_login =
        |pair: &&str| ["user", "password"].contains(&pair.split('=').next().unwrap_or(""));
    let kept: Vec<&str> = parameters
        .split('&')
        .filter(|pair| !is_login(pair))
        .collect();
    format!("{address}?{}", kept.join("&"))
}

/// A URL for each host of the list.
fn servers(scheme: &str, rest: &str) -> Vec<String> {
    let body = rest.strip_prefix("//").unwrap_or(rest);
    let (authority, path) = body.split_once('/').unwrap_or((body, ""));
    let (user, hosts) = hosts(authority);
    let url = |host| format!("{scheme}://{user}{host}/{path}");
    hosts.split(',').map(url).collect()
}

/// Takes out libpq's parameter, which the driver does not know. Of several hosts the one is used
/// that takes writes, so that it may say nothing else.
fn read_write(rest: &str, bad: &impl Fn(&str) -> StoreError) -> Result<String, StoreError> {
    let Some((address, parameters)) = rest.split_once('?') else {
        return Ok(rest.to_owned());
    };
    let mut kept = Vec::new();
    for parameter in parameters.split('&') {
        match parameter.split_once('=') {
            Some(("target_session_attrs", "read-write" | "primary")) => {}
            Some(("target_session_attrs", _)) => {
                return Err(bad(
                    "target_session_attrs is neither read-write nor primary",
                ));
            }
            _ => kept.push(parameter),
        }
    }
    Ok(match kept.is_empty() {
        true => address.to_owned(),
        false => format!("{address}?{}", kept.join("&")),
    })
}

/// The URL with `***` for everything that may be a password: after the first `:` of the user part
/// up to the last `@`, and the value of a parameter `password`.
fn redact(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else {
        // No server is named, or it is not a URL at all and may be anything, even a password.
        return match text.split_once(':') {
            Some((scheme, _)) if !scheme.starts_with("sqlite") => format!("{scheme}:***"),
            Some(_) => text.to_owned(),
            None => "***".to_owned(),
        };
    };
    let rest = match rest.rsplit_once('@') {
        Some((user, address)) => match user.split_once(':') {
            Some((name, _)) => format!("{name}:***@{address}"),
            None => format!("{user}@{address}"),
        },
        None => rest.to_owned(),
    };
    let shown = format!("{scheme}://{rest}");
    let Some((address, parameters)) = shown.split_once('?') else {
        return shown;
    };
    let parameters: Vec<_> = parameters
        .split('&')
        .map(|pair| match pair.split_once('=') {
            Some((key, _)) if key.to_ascii_lowercase().contains("pass") => format!("{key}=***"),
            _ => pair.to_owned(),
        })
        .collect();
    format!("{address}?{}", parameters.join("&"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(url: &str) -> Backend {
        url.parse::<DatabaseUrl>().unwrap().backend()
    }

    #[test]
    fn every_usual_way_to_write_a_database_url_is_understood() {
        assert_eq!(backend("sqlite:/var/lib/x.db"), Backend::Sqlite);
        assert_eq!(backend("sqlite:///var/lib/x.db"), Backend::Sqlite);
        assert_eq!(backend("sqlite::memory:"), Backend::Sqlite);
        for url in [
            "mysql://u:p@h/d",
            "mariadb://u@h:3306/d",
            "mysql+pymysql://u:p@h/d?charset=utf8",
        ] {
            assert_eq!(backend(url), Backend::MySql, "{url}");
        }
        for url in [
            "postgres://u:p@h/d",
            "postgresql://h/d",
            "postgresql+psycopg2://u:p@[::1]:5432/d",
        ] {
            assert_eq!(backend(url), Backend::Postgres, "{url}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_with_the_reason() {
        for (url, reason) in [
            ("", "no scheme"),
            ("/var/lib/x.db", "no scheme"),
            ("oracle://u:secret@h/d", "scheme is unknown"),
            ("sqlite:", "no file"),
            ("sqlite:x.db?mode=ro", "no parameters"),
            ("mysql:u:secret@h/d", "'//' is missing"),
            ("mysql://u:secret@h", "no database"),
            ("mysql://u:secret@h/", "no database"),
            ("postgres://u:secret@h:port/d", "port"),
            ("postgres://u:secret@h1:1,h2:x,h3/d", "port"),
            ("mysql://u:secret@h1,,h3/d", "is empty"),
            (
                "postgres://u:secret@h/d?target_session_attrs=any",
                "read-write",
            ),
            ("postgres://u:secret@x@h/d", "percent-encoded"),
            ("postgres://u:secret#x@h/d", "percent-encoded"),
        ] {
            let error = url.parse::<DatabaseUrl>().unwrap_err();
            assert_eq!(error.code(), "EB-STORE-007", "{url}");
            let said = error.to_string();
            assert!(said.contains(reason), "{url}: {said}");
            assert!(!said.contains("secret"), "{url}: {said}");
        }
    }

    #[test]
    fn a_list_of_hosts_is_one_address_for_each() {
        let postgres = "postgresql://u:p,q@h1:5432,[::1]:5433,h3/d?target_session_attrs=read-write&sslmode=require";
        match postgres.parse::<DatabaseUrl>().unwrap().target() {
            DatabaseTarget::Postgres(servers) => assert_eq!(
                servers,
                &[
                    "postgres://u:p,q@h1:5432/d?sslmode=require",
                    "postgres://u:p,q@[::1]:5433/d?sslmode=require",
                    "postgres://u:p,q@h3/d?sslmode=require",
                ]
            ),
            _ => panic!("not PostgreSQL"),
        }
        let url: DatabaseUrl = "mysql+pymysql://u:geheim@h1,h2:3307/d".parse().unwrap();
        match url.target() {
            DatabaseTarget::MySql(servers) => assert_eq!(
                servers,
                &["mysql://u:geheim@h1/d", "mysql://u:geheim@h2:3307/d"]
            ),
            _ => panic!("not MariaDB"),
        }
        assert_eq!(url.to_string(), "mysql+pymysql://u:***@h1,h2:3307/d");
        match "postgres://h/d?target_session_attrs=primary"
            .parse::<DatabaseUrl>()
            .unwrap()
            .target()
        {
            DatabaseTarget::Postgres(servers) => assert_eq!(servers, &["postgres://h/d"]),
            _ => panic!("not PostgreSQL"),
        }
    }

    #[test]
    fn another_login_is_the_same_place() {
        let is_same = |one: &str, other: &str| {
            let (one, other): (DatabaseUrl, DatabaseUrl) =
                (one.parse().unwrap(), other.parse().unwrap());
            one.is_same_place(&other)
        };
        assert!(is_same(
            "mysql://u:old@h1,h2/d",
            "mysql+pymysql://v:new@h1,h2/d"
        ));
        assert!(is_same(
            "postgres://h/d?user=u&password=a",
            "postgres://v:b@h/d"
        ));
        assert!(is_same("sqlite:x.db", "sqlite:x.db"));
        for other in [
            "mysql://u:p@h2/d",
            "mysql://u:p@h1:3307/d",
            "mysql://u:p@h1/e",
            "mysql://u:p@h1/d?ssl-mode=REQUIRED",
            "postgres://u:p@h1/d",
            "sqlite:d",
        ] {
            assert!(!is_same("mysql://u:p@h1/d", other), "{other}");
        }
    }

    #[test]
    fn a_password_is_never_shown() {
        for url in [
            "mysql://u:secret@h/d",
            "mysql://u:sec%40ret:secret@h/d",
            "postgres://h/d?user=u&password=secret",
            "postgres://u:x@h/d?sslpassword=secret",
        ] {
            let parsed: DatabaseUrl = url.parse().unwrap();
            for shown in [parsed.to_string(), format!("{parsed:?}")] {
                assert!(
                    !shown.contains("secret") && shown.contains("***"),
                    "{shown}"
                );
                assert!(shown.contains('h') && shown.contains("/d"), "{shown}");
            }
        }
        let broken = redact("postgres://u:sec/ret@h/d");
        assert_eq!(broken, "postgres://u:***@h/d");
    }
}

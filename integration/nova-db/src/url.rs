//! Database URLs as oslo.db and SQLAlchemy take them:
//! `mysql+pymysql://user:password@host:port/name?charset=utf8`, `postgresql+psycopg2://…`,
//! `sqlite:////path`.

use std::fmt;
use std::path::PathBuf;

/// Which kind of database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// MariaDB or MySQL.
    MySql,
    /// PostgreSQL.
    Postgres,
    /// A file.
    Sqlite,
}

/// How the connection is encrypted and who is trusted, from the parameters of the Python drivers.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub(crate) struct Tls {
    /// Something about TLS was said, so that it is wanted.
    pub(crate) wanted: bool,
    /// PyMySQL's `ssl_ca`, psycopg2's `sslrootcert`.
    pub(crate) ca: Option<PathBuf>,
    /// `ssl_cert`, `sslcert`.
    pub(crate) certificate: Option<PathBuf>,
    /// `ssl_key`, `sslkey`.
    pub(crate) key: Option<PathBuf>,
    /// The server's name is checked: `ssl_verify_identity`, `ssl_check_hostname`,
    /// `sslmode=verify-full`.
    pub(crate) check_name: bool,
    /// psycopg2's `sslmode`.
    pub(crate) mode: Option<String>,
}

/// A database URL, understood. `Debug` and `Display` show `***` for the password.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseUrl {
    pub(crate) backend: Backend,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) host: Option<String>,
    pub(crate) port: Option<u16>,
    /// Name of the database, or the file.
    pub(crate) database: String,
    /// A unix socket: PyMySQL's `unix_socket`, or psycopg2's `host` that begins with a slash.
    pub(crate) socket: Option<PathBuf>,
    pub(crate) tls: Tls,
}

impl DatabaseUrl {
    /// Takes a URL apart by the rules of `sqlalchemy.engine.url`: user and password end at the
    /// first `@`, and are percent-decoded. Parameters that only concern the Python driver
    /// (`charset`, time-outs) are ignored.
    ///
    /// # Errors
    /// What is wrong with it, without any part of it that might be a password.
    pub fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (scheme, rest) = text
            .split_once("://")
            .ok_or("it is no URL: '://' is missing")?;
        let dialect = scheme.split('+').next().unwrap_or(scheme);
        let backend = match dialect.to_ascii_lowercase().as_str() {
            "mysql" | "mariadb" => Backend::MySql,
            "postgresql" | "postgres" => Backend::Postgres,
            "sqlite" => Backend::Sqlite,
            _ => return Err("the scheme is none of mysql, mariadb, postgresql and sqlite".into()),
        };
        let (body, query) = rest.split_once('?').unwrap_or((rest, ""));
        if backend == Backend::Sqlite {
            let path = body.strip_prefix('/').unwrap_or(body);
            if path.is_empty() || path == ":memory:" {
                return Err(
                    "an SQLite URL has to name a file: sqlite:////var/lib/nova/nova.db".into(),
                );
            }
            return Ok(Self::file(path));
        }
        // The password may hold a slash, so that the user part is cut off first.
        let (user_part, address) = match body.split_once('@') {
            Some((user, address)) => (Some(user), address),
            None => (None, body),
        };
        let (authority, database) = address.split_once('/').unwrap_or((address, ""));
        let (user, password) = match user_part {
            None => (None, None),
            Some(part) => match part.split_once(':') {
                Some((user, password)) => (Some(decode(user)?), Some(decode(password)?)),
                None => (Some(decode(part)?), None),
            },
        };
        let (host, port) = authority_parts(authority)?;
        let mut url = Self {
            backend,
            user: user.filter(|user| !user.is_empty()),
            password,
            host,
            port,
            database: decode(database)?,
            socket: None,
            tls: Tls::default(),
        };
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            url.parameter(name, &decode(&value.replace('+', " "))?)?;
        }
        if url.database.is_empty() {
            return Err("it names no database".into());
        }
        Ok(url)
    }

    /// Whether both name the same database of the same server, with the same parameters, whatever
    /// the login.
    pub(crate) fn is_same_place(&self, other: &Self) -> bool {
        let place = |url: &Self| Self {
            user: None,
            password: None,
            ..url.clone()
        };
        place(self) == place(other)
    }

    /// Which kind of database.
    #[must_use]
    pub fn backend(&self) -> Backend {
        self.backend
    }

    fn file(path: &str) -> Self {
        Self {
            backend: Backend::Sqlite,
            user: None,
            password: None,
            host: None,
            port: None,
            database: path.to_owned(),
            socket: None,
            tls: Tls::default(),
        }
    }

    fn parameter(&mut self, name: &str, value: &str) -> Result<(), String> {
        let truth = matches!(value.to_ascii_lowercase().as_str(), "1" | "true" | "yes");
        let path = || Some(PathBuf::from(value));
        match name {
            "unix_socket" => self.socket = path(),
            "host" if value.starts_with('/') => self.socket = path(),
            "host" => self.host = Some(value.to_owned()),
            "port" => self.port = Some(port(value)?),
            "user" => self.user = Some(value.to_owned()),
            "password" => self.password = Some(value.to_owned()),
            "ssl_ca" | "sslrootcert" => self.tls.ca = path(),
            "ssl_cert" | "sslcert" => self.tls.certificate = path(),
            "ssl_key" | "sslkey" => self.tls.key = path(),
            "ssl_verify_identity" | "ssl_check_hostname" => self.tls.check_name = truth,
            "sslmode" => {
                self.tls.check_name = value == "verify-full";
                self.tls.mode = Some(value.to_owned());
            }
            _ => {}
        }
        if name.starts_with("ssl") && !matches!(value, "disable" | "allow" | "prefer") {
            self.tls.wanted = true;
        }
        Ok(())
    }
}

fn authority_parts(authority: &str) -> Result<(Option<String>, Option<u16>), String> {
    let (host, port_text) = if let Some(rest) = authority.strip_prefix('[') {
        let (host, rest) = rest
            .split_once(']')
            .ok_or("the address in brackets does not end")?;
        (host, rest.strip_prefix(':'))
    } else {
        match authority.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (authority, None),
        }
    };
    let port = match port_text {
        None | Some("") => None,
        Some(text) => Some(port(text)?),
    };
    Ok((Some(host.to_owned()).filter(|host| !host.is_empty()), port))
}

fn port(text: &str) -> Result<u16, String> {
    text.parse::<u16>()
        .ok()
        .filter(|port| *port > 0)
        .ok_or_else(|| {
            "the port is no number from 1 to 65535; special characters in user and password have to be percent-encoded"
                .to_owned()
        })
}

/// Percent-decoding; a percent sign that begins nothing stands for itself, as in Python.
fn decode(text: &str) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digit = |offset: usize| {
            bytes
                .get(at + offset)
                .and_then(|b| char::from(*b).to_digit(16))
        };
        match (bytes[at], digit(1), digit(2)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, _, _) => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out)
        .map_err(|_| "it holds percent-encoded bytes that are no UTF-8".to_owned())
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.backend {
            Backend::MySql => "mysql",
            Backend::Postgres => "postgresql",
            Backend::Sqlite => return write!(f, "sqlite:///{}", self.database),
        };
        write!(f, "{scheme}://")?;
        if let Some(user) = &self.user {
            f.write_str(user)?;
            if self.password.is_some() {
                f.write_str(":***")?;
            }
            f.write_str("@")?;
        }
        match (&self.socket, &self.host) {
            (Some(socket), _) => write!(f, "{}", socket.display())?,
            (None, Some(host)) if host.contains(':') => write!(f, "[{host}]")?,
            (None, host) => f.write_str(host.as_deref().unwrap_or("localhost"))?,
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        write!(f, "/{}", self.database)
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DatabaseUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> DatabaseUrl {
        DatabaseUrl::parse(text).unwrap()
    }

    #[test]
    fn a_url_of_nova_conf_is_taken_apart_as_sqlalchemy_does() {
        let url =
            parsed("mysql+pymysql://nova:p%40ss/w%3ard@db.example:3307/nova_cell1?charset=utf8");
        assert_eq!(url.backend, Backend::MySql);
        assert_eq!(url.user.as_deref(), Some("nova"));
        assert_eq!(url.password.as_deref(), Some("p@ss/w:rd"));
        assert_eq!(url.host.as_deref(), Some("db.example"));
        assert_eq!(url.port, Some(3307));
        assert_eq!(url.database, "nova_cell1");
        assert!(!url.tls.wanted);
        let url = parsed("postgresql+psycopg2://u@[::1]/d?sslmode=verify-full&sslrootcert=/ca.pem");
        assert_eq!(
            (url.backend, url.host.as_deref()),
            (Backend::Postgres, Some("::1"))
        );
        assert!(url.tls.wanted && url.tls.check_name);
        let url = parsed("mysql://u:p@/d?unix_socket=/run/mysqld/mysqld.sock");
        assert_eq!(url.socket, Some("/run/mysqld/mysqld.sock".into()));
        assert_eq!(url.host, None);
        assert_eq!(
            parsed("sqlite:////var/lib/nova.db").database,
            "/var/lib/nova.db"
        );
        assert_eq!(parsed("sqlite:///nova.db").database, "nova.db");
        let url = parsed("mysql://u:p@h/d?ssl_ca=/ca.pem&ssl_verify_identity=true");
        assert!(url.tls.wanted && url.tls.check_name);
    }

    #[test]
    fn what_is_shown_of_a_url_never_holds_the_password() {
        for text in [
            "mysql+pymysql://nova:secret@h/d",
            "mysql://nova:se%63ret/secret@h:1/d?charset=utf8",
            "postgresql://h/d?user=u&password=secret",
        ] {
            let url = parsed(text);
            assert!(url.password.as_deref().unwrap().contains("secret"));
            let shown = format!("{url} {url:?}");
            assert!(!shown.contains("secret"), "{shown}");
            assert!(shown.contains("h") && shown.contains("/d"), "{shown}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_used_is_refused_without_its_password() {
        for (text, reason) in [
            ("", "no URL"),
            ("secret", "no URL"),
            ("oracle://u:secret@h/d", "scheme"),
            ("mysql://u:secret@h", "no database"),
            ("mysql://u:secret@h:secret/d", "port"),
            ("mysql://u:secret@x@h:1/d", "port"),
            ("mysql://u:%ff%fesecret@h/d", "UTF-8"),
            ("sqlite://", "file"),
            ("mysql://u:secret@[::1/d", "brackets"),
        ] {
            let said = DatabaseUrl::parse(text).err().unwrap_or_default();
            let host_with_at = text.contains("@x@");
            assert!(said.contains(reason) || host_with_at, "{text}: {said:?}");
            assert!(!said.contains("secret"), "{said}");
        }
    }
}

//! The little that the harness must know of database URLs:
//! `scheme://user:password@host:port/database?options`.

use crate::error::{Error, Result};

/// The parts of a database URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DatabaseUrl {
    scheme: String,
    /// As written, with its percent signs.
    userinfo: String,
    pub(crate) user: String,
    pub(crate) password: String,
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) database: String,
    /// With the question mark, or empty.
    options: String,
}

impl DatabaseUrl {
    /// Takes `url` apart; `schemes` are those allowed, `port` is what holds when there is none.
    pub(crate) fn parse(
        url: &str,
        schemes: &[&str],
        port: u16,
        example: &'static str,
    ) -> Result<Self> {
        let bad = |reason| {
            // The password stays out of messages.
            let shown = match (url.find("://"), url.rfind('@')) {
                (Some(start), Some(end)) if start < end => {
                    format!("{}://…{}", &url[..start], &url[end..])
                }
                _ => url.to_owned(),
            };
            Error::BadUrl {
                url: shown,
                reason,
                example,
            }
        };
        let (scheme, rest) = url
            .split_once("://")
            .ok_or_else(|| bad("it has no scheme"))?;
        if !schemes.contains(&scheme) {
            return Err(bad("its scheme is another one"));
        }
        let (userinfo, rest) = rest.rsplit_once('@').ok_or_else(|| bad("it has no user"))?;
        let (user, password) = userinfo.split_once(':').unwrap_or((userinfo, ""));
        let (address, path) = rest
            .split_once('/')
            .ok_or_else(|| bad("it has no database"))?;
        let (database, options) = match path.find('?') {
            Some(at) => path.split_at(at),
            None => (path, ""),
        };
        let (host, port) = match address.rsplit_once(':') {
            Some((host, digits)) => (
                host,
                digits.parse().map_err(|_| bad("its port is no number"))?,
            ),
            None => (address, port),
        };
        if host.is_empty() || database.is_empty() {
            return Err(bad("its host or its database is empty"));
        }
        let decode =
            |text: &str| percent_decoded(text).ok_or_else(|| bad("it has a broken percent sign"));
        Ok(Self {
            scheme: scheme.to_owned(),
            userinfo: userinfo.to_owned(),
            user: decode(user)?,
            password: decode(password)?,
            host: host.to_owned(),
            port,
            database: database.to_owned(),
            options: options.to_owned(),
        })
    }

    /// The same server and user, another database.
    pub(crate) fn with_database(&self, database: &str) -> Self {
        Self {
            database: database.to_owned(),
            ..self.clone()
        }
    }
}

impl std::fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}://{}@{}:{}/{}{}",
            self.scheme, self.userinfo, self.host, self.port, self.database, self.options
        )
    }
}

/// `None` for a percent sign that is not followed by two hexadecimal digits, or for what is not
/// UTF-8 afterwards.
fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = bytes.next() {
        if byte == b'%' {
            let high = char::from(bytes.next()?).to_digit(16)?;
            let low = char::from(bytes.next()?).to_digit(16)?;
            decoded.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            decoded.push(byte);
        }
    }
    String::from_utf8(decoded).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<DatabaseUrl> {
        DatabaseUrl::parse(url, &["postgres"], 5432, "postgres://u:p@h:1/d")
    }

    #[test]
    fn a_url_is_taken_apart_and_put_together_again() {
        let url = "postgres://me:a%40b@127.0.0.1:6000/one?sslmode=disable";
        let parsed = parse(url).unwrap();
        assert_eq!(
            (
                parsed.user.as_str(),
                parsed.password.as_str(),
                parsed.port,
                parsed.database.as_str()
            ),
            ("me", "a@b", 6000, "one")
        );
        assert_eq!(parsed.to_string(), url);
        assert_eq!(
            parsed.with_database("two").to_string(),
            url.replace("/one", "/two")
        );
    }

    #[test]
    fn a_bad_url_is_refused_without_showing_its_password() {
        for url in [
            "nonsense",
            "mysql://a:secret@h:1/d",
            "postgres://a:secret@h:port/d",
            "postgres://a:secret@h:1",
            "postgres://a:secret@h:1/",
            "postgres://a:secret%4@h:1/d",
        ] {
            let error = parse(url).unwrap_err();
            assert_eq!(error.code(), "EB-HARNESS-013", "{url}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }
}

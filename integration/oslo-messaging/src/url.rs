//! `transport_url` (oslo_messaging/transport.py, `TransportURL`; what becomes of it:
//! `_drivers/impl_rabbit.py`).

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::MessagingError;

/// AMQP's port, with and without TLS: oslo.messaging knows no other default.
const DEFAULT_PORT: u16 = 5672;

/// What kombu takes when nothing is said, for user and password.
const GUEST: &str = "guest";

/// The vhost is a short string on the wire (AMQP 0-9-1 section 1.4.2.6).
const MAX_VHOST_BYTES: usize = 255;

/// The brokers of one cluster, with credentials. `Debug` and `Display` show neither users nor
/// passwords.
#[derive(Clone, PartialEq, Eq)]
pub struct TransportUrl {
    hosts: Vec<TransportHost>,
    vhost: String,
    query: BTreeMap<String, String>,
}

/// One broker. `Debug` and `Display` show neither user nor password.
#[derive(Clone, PartialEq, Eq)]
pub struct TransportHost {
    host: String,
    port: u16,
    user: String,
    password: String,
}

impl TransportUrl {
    /// The brokers, in the order in which they are written. At least one.
    #[must_use]
    pub fn hosts(&self) -> &[TransportHost] {
        &self.hosts
    }

    /// The vhost; `/` if the URL names none.
    #[must_use]
    pub fn vhost(&self) -> &str {
        &self.vhost
    }

    /// The options in the query, which go before those of the configuration file.
    #[must_use]
    pub fn query(&self) -> &BTreeMap<String, String> {
        &self.query
    }
}

impl TransportHost {
    /// Name or address, an IPv6 one without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The user's name.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The password, for the login only.
    pub(crate) fn password(&self) -> &str {
        &self.password
    }
}

impl FromStr for TransportUrl {
    type Err = MessagingError;

    /// Parses `rabbit://USER:PASSWORD@HOST:PORT[,USER:PASSWORD@HOST:PORT…]/VHOST?OPTION=VALUE&…`.
    ///
    /// Without a path, or with an empty one, the vhost is `/`; `//` and `/%2F` say the same.
    /// Credentials of one host do not hold for the next: a host without any logs in as `guest`, as
    /// in oslo.messaging.
    fn from_str(text: &str) -> Result<Self, MessagingError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(invalid("it does not begin with rabbit://"));
        };
        if scheme != "rabbit" && scheme != "kombu" {
            // Whatever stands there may be part of a password, so it is not repeated.
            return Err(invalid("only the transport rabbit:// is supported"));
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(invalid("it contains white space"));
        }
        if rest.contains('#') {
            return Err(invalid("it contains '#'; inside a password write %23"));
        }
        let (before_query, query) = match rest.split_once('?') {
            Some((before, query)) => (before, query),
            None => (rest, ""),
        };
        let (netloc, path) = match before_query.split_once('/') {
            Some((netloc, path)) => (netloc, path),
            None => (before_query, ""),
        };
        let mut vhost = decode(path, false)?;
        if vhost.is_empty() {
            vhost.push('/');
        }
        if vhost.len() > MAX_VHOST_BYTES {
            return Err(invalid(format!(
                "its vhost has {} bytes, at most {MAX_VHOST_BYTES} are possible",
                vhost.len()
            )));
        }
        let mut hosts = Vec::new();
        for part in netloc.split(',').filter(|part| !part.is_empty()) {
            hosts.push(TransportHost::parse(part)?);
        }
        if hosts.is_empty() {
            hosts.push(TransportHost {
                host: "localhost".to_owned(),
                port: DEFAULT_PORT,
                user: GUEST.to_owned(),
                password: GUEST.to_owned(),
            });
        }
        Ok(Self {
            hosts,
            vhost,
            query: parse_query(query)?,
        })
    }
}

impl TransportHost {
    fn parse(part: &str) -> Result<Self, MessagingError> {
        // The last '@': a user name may contain one.
        let (credentials, address) = match part.rsplit_once('@') {
            Some((credentials, address)) => (credentials, address),
            None => ("", part),
        };
        let (user, password) = match credentials.split_once(':') {
            Some((user, password)) => (user, password),
            None => (credentials, ""),
        };
        let or_guest = |text: String| {
            if text.is_empty() {
                GUEST.to_owned()
            } else {
                text
            }
        };
        let (host, port) = host_and_port(address)?;
        Ok(Self {
            host,
            port,
            user: or_guest(decode(user, false)?),
            password: or_guest(decode(password, false)?),
        })
    }
}

fn host_and_port(address: &str) -> Result<(String, u16), MessagingError> {
    let (host, port) = if let Some(rest) = address.strip_prefix('[') {
        let Some((host, after)) = rest.split_once(']') else {
            return Err(invalid("a '[' has no ']'"));
        };
        if host.parse::<std::net::Ipv6Addr>().is_err() {
            return Err(invalid("the address in brackets is no IPv6 address"));
        }
        let port = match after.strip_prefix(':') {
            Some(port) => Some(port),
            None if after.is_empty() => None,
            None => return Err(invalid("after ']' there must be ':' and a port")),
        };
        (host, port)
    } else {
        match address.split_once(':') {
            None => (address, None),
            // More than one colon: an IPv6 address without port.
            Some((_, rest)) if rest.contains(':') => {
                if address.parse::<std::net::Ipv6Addr>().is_err() {
                    return Err(invalid("a host has several ':' and is no IPv6 address"));
                }
                (address, None)
            }
            Some((host, port)) => (host, Some(port)),
        }
    };
    let port = match port {
        None | Some("") => DEFAULT_PORT,
        Some(port) if port.bytes().all(|b| b.is_ascii_digit()) => match port.parse() {
            Ok(port) if port > 0 => port,
            _ => return Err(invalid("a port is not between 1 and 65535")),
        },
        Some(_) => {
            return Err(invalid(
                "a port is no number; inside a password write %3A for ':' and %40 for '@'",
            ));
        }
    };
    let host = if host.is_empty() { "localhost" } else { host };
    Ok((host.to_owned(), port))
}

/// As Python's `parse_qs`: empty values are dropped, repeated names are joined with a comma.
fn parse_query(query: &str) -> Result<BTreeMap<String, String>, MessagingError> {
    let mut options: BTreeMap<String, String> = BTreeMap::new();
    for pair in query.split('&') {
        let Some((name, value)) = pair.split_once('=') else {
            continue;
        };
        if value.is_empty() {
            continue;
        }
        let (name, value) = (decode(name, true)?, decode(value, true)?);
        options
            .entry(name)
            .and_modify(|all| {
                all.push(',');
                all.push_str(&value);
            })
            .or_insert(value);
    }
    Ok(options)
}

/// Takes `%nn` for a byte, and in a query `+` for a blank. Like Python's `unquote`, a `%` with
/// something else behind it stays.
fn decode(text: &str, plus_is_blank: bool) -> Result<String, MessagingError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let hex = |digit: u8| {
            char::from(digit)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        match (first, tail) {
            (b'%', &[high, low, ref after @ ..]) => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = after;
                    continue;
                }
                _ => bytes.push(b'%'),
            },
            (b'+', _) if plus_is_blank => bytes.push(b' '),
            (other, _) => bytes.push(other),
        }
        rest = tail;
    }
    String::from_utf8(bytes).map_err(|_| invalid("its percent-encoding is no UTF-8"))
}

fn invalid(reason: impl Into<String>) -> MessagingError {
    MessagingError::InvalidUrl {
        reason: reason.into(),
    }
}

impl fmt::Display for TransportHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Debug for TransportHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TransportHost({self})")
    }
}

impl fmt::Display for TransportUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rabbit://")?;
        for (index, host) in self.hosts.iter().enumerate() {
            let comma = if index > 0 { "," } else { "" };
            write!(f, "{comma}{host}")?;
        }
        write!(f, "/{}", if self.vhost == "/" { "" } else { &self.vhost })
    }
}

impl fmt::Debug for TransportUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TransportUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> TransportUrl {
        text.parse().unwrap()
    }

    fn parts(text: &str) -> Vec<(String, u16, String, String)> {
        parse(text)
            .hosts
            .into_iter()
            .map(|host| (host.host, host.port, host.user, host.password))
            .collect()
    }

    fn host(host: &str, port: u16, user: &str, password: &str) -> (String, u16, String, String) {
        (host.to_owned(), port, user.to_owned(), password.to_owned())
    }

    #[test]
    fn every_host_has_its_own_credentials() {
        let url = "rabbit://ann:p%40ss@h1:5672,bob:s%2Fe%3Acret@h2:5673/nova%2Fcell1?ssl=1&ssl_ca_file=%2Fetc%2Fca.pem";
        assert_eq!(
            parts(url),
            [
                host("h1", 5672, "ann", "p@ss"),
                host("h2", 5673, "bob", "s/e:cret")
            ]
        );
        let url = parse(url);
        assert_eq!(url.vhost(), "nova/cell1");
        assert_eq!(url.query()["ssl"], "1");
        assert_eq!(url.query()["ssl_ca_file"], "/etc/ca.pem");
    }

    #[test]
    fn what_is_left_out_has_kombus_default() {
        assert_eq!(
            parts("rabbit://"),
            [host("localhost", 5672, "guest", "guest")]
        );
        assert_eq!(
            parts("rabbit:///v"),
            [host("localhost", 5672, "guest", "guest")]
        );
        // Credentials of the first host do not hold for the second one.
        assert_eq!(
            parts("rabbit://u:p@h1,h2"),
            [
                host("h1", 5672, "u", "p"),
                host("h2", 5672, "guest", "guest")
            ]
        );
        assert_eq!(parts("rabbit://u@h:"), [host("h", 5672, "u", "guest")]);
        // A user name with '@', and a password with ':'.
        assert_eq!(
            parts("rabbit://u@realm:p:q@h:1"),
            [host("h", 1, "u@realm", "p:q")]
        );
    }

    #[test]
    fn the_default_vhost_can_be_written_in_several_ways() {
        for text in [
            "rabbit://h",
            "rabbit://h/",
            "rabbit://h//",
            "rabbit://h/%2F",
            "rabbit://h/%2f?a=b",
            "rabbit://h?a=b",
        ] {
            assert_eq!(parse(text).vhost(), "/", "{text}");
        }
        assert_eq!(parse("rabbit://h/v").vhost(), "v");
        assert_eq!(parse("rabbit://h//v").vhost(), "/v");
    }

    #[test]
    fn ipv6_addresses_are_taken_with_and_without_port() {
        assert_eq!(
            parts("rabbit://u:p@[2001:db8::7]:5673,u:p@[::1],u:p@::2/"),
            [
                host("2001:db8::7", 5673, "u", "p"),
                host("::1", 5672, "u", "p"),
                host("::2", 5672, "u", "p")
            ]
        );
        assert_eq!(
            parse("rabbit://u:p@[2001:db8::7]:5673,h2/v").to_string(),
            "rabbit://[2001:db8::7]:5673,h2:5672/v"
        );
    }

    #[test]
    fn a_query_is_read_as_pythons_parse_qs_reads_it() {
        let url = parse("rabbit://h/?a=1&a=2&b=&c&d=x+y%2Bz");
        let seen: Vec<_> = url
            .query()
            .iter()
            .map(|(n, v)| format!("{n}={v}"))
            .collect();
        assert_eq!(seen, ["a=1,2", "d=x y+z"]);
    }

    #[test]
    fn a_malformed_url_is_refused_without_repeating_it() {
        let long_vhost = format!("rabbit://u:geheim@h/{}", "v".repeat(256));
        for text in [
            "",
            "geheim",
            "amqp://u:geheim@h/",
            "kafka://u:geheim@h/",
            "geheim://u@h/",
            "rabbit:u:geheim",
            "rabbit://u:geheim@h:port/",
            "rabbit://u:geheim@h:0/",
            "rabbit://u:geheim@h:99999/",
            "rabbit://u:ge#heim@h/",
            "rabbit://u:ge heim@h/",
            "rabbit://u:geheim@[::1/",
            "rabbit://u:geheim@[zzz]/",
            "rabbit://u:geheim@[::1]5672/",
            "rabbit://u:geheim@a:b:c/",
            "rabbit://u:geheim%ff@h/",
            &long_vhost,
        ] {
            let error = text.parse::<TransportUrl>().unwrap_err();
            assert_eq!(error.code(), "EB-OSLO-001", "{text}");
            for shown in [error.to_string(), format!("{error:?}")] {
                assert!(
                    !shown.contains("geheim") && !shown.contains("heim@"),
                    "{shown}"
                );
            }
        }
    }

    fn encode(text: &str) -> String {
        text.bytes().map(|b| format!("%{b:02x}")).collect()
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic(text in "(rabbit://)?[a-z%:@/\\[\\]?#,.=&+0-9]{0,32}") {
            let _ = text.parse::<TransportUrl>();
        }

        #[test]
        fn every_user_password_and_vhost_can_be_written(user in "\\PC{1,12}", password in "\\PC{1,12}", vhost in "\\PC{1,12}") {
            let url = parse(&format!("rabbit://{}:{}@h:1/{}", encode(&user), encode(&password), encode(&vhost)));
            prop_assert_eq!(&url.hosts[0].user, &user);
            prop_assert_eq!(&url.hosts[0].password, &password);
            prop_assert_eq!(url.vhost(), vhost);
        }

        #[test]
        fn neither_user_nor_password_is_ever_shown(user in "[A-Z]{8}", password in "[A-Z]{8}") {
            let url = parse(&format!("rabbit://{user}:{password}@host:1,{user}:{password}@b:2/v?x=1"));
            for shown in [format!("{url}"), format!("{url:?}"), format!("{:?}", url.hosts())] {
                prop_assert!(!shown.contains(&password) && !shown.contains(&user));
            }
        }
    }
}

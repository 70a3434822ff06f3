//! Broker URLs: parsed once, with the password out of sight ever after.
//!
//! lapin's own parser is used underneath, but three of its habits would surprise an operator and
//! are corrected here: it puts the whole URL into some error texts (password included), it turns an
//! IPv6 address into `localhost`, and it takes the path `/` for a vhost with an empty name.

use std::fmt;
use std::str::FromStr;

use lapin::uri::{AMQPScheme, AMQPUri};

use crate::BusError;

/// The vhost is a short string on the wire (AMQP 0-9-1 section 1.4.2.6), and lapin panics on longer
/// ones.
const MAX_VHOST_BYTES: usize = 255;

/// Where a broker is and how to log in there. `Debug` and `Display` show neither user nor password.
#[derive(Clone, PartialEq, Eq)]
pub struct BrokerUrl {
    uri: AMQPUri,
}

impl FromStr for BrokerUrl {
    type Err = BusError;

    /// Parses `amqp://USER:PASSWORD@HOST:PORT/VHOST?heartbeat=SECONDS` (`amqps://` for TLS).
    ///
    /// Everything but the scheme may be left out: user and password are then `guest`, the host
    /// `localhost`, the port 5672 (5671 with TLS), the vhost `/`.
    fn from_str(text: &str) -> Result<Self, BusError> {
        let invalid = |reason: String| BusError::InvalidUrl { reason };
        let Some((scheme, rest)) = text.split_once("://") else {
            return Err(invalid(
                "it does not begin with amqp:// or amqps://".to_owned(),
            ));
        };
        if scheme != "amqp" && scheme != "amqps" {
            return Err(invalid(
                "it does not begin with amqp:// or amqps://".to_owned(),
            ));
        }
        if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(invalid("it contains white space".to_owned()));
        }
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        // An '@' in the password ends the user part early, and the rest of it would be the host
        // name.
        if authority.matches('@').count() > 1 {
            return Err(invalid(
                "it has more than one '@'; write %40 inside the password".to_owned(),
            ));
        }
        if authority.contains(',') {
            return Err(invalid(
                "it names several hosts; give one URL for each broker".to_owned(),
            ));
        }
        let mut uri: AMQPUri = text.parse().map_err(|error: String| {
            // Some of lapin's texts repeat the URL. None of ours does.
            if error.contains(text) {
                invalid("it is no URL".to_owned())
            } else {
                invalid(error)
            }
        })?;
        if let Some(address) = ipv6_host(authority) {
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(invalid(
                    "the address in brackets is no IPv6 address".to_owned(),
                ));
            }
            uri.authority.host = address.to_owned();
        }
        if uri.vhost.is_empty() {
            "/".clone_into(&mut uri.vhost);
        }
        if uri.vhost.len() > MAX_VHOST_BYTES {
            return Err(invalid(format!(
                "its vhost has {} bytes, at most {MAX_VHOST_BYTES} are possible",
                uri.vhost.len()
            )));
        }
        if uri.query.heartbeat == Some(0) {
            return Err(invalid(
                "heartbeat=0 would leave a dead broker unnoticed for ever; use 1 or more seconds"
                    .to_owned(),
            ));
        }
        Ok(Self { uri })
    }
}

impl BrokerUrl {
    /// The user name that is used to log in.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.uri.authority.userinfo.username
    }

    /// The name or address of the broker.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.uri.authority.host
    }

    /// The virtual host.
    #[must_use]
    pub fn vhost(&self) -> &str {
        &self.uri.vhost
    }

    /// Whether the connection is encrypted.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.uri.scheme == AMQPScheme::AMQPS
    }

    /// Refuses an unencrypted connection to another machine, unless `allow_plain` permits it.
    ///
    /// # Errors
    ///
    /// [`BusError::InvalidUrl`].
    pub fn check_secret(&self, allow_plain: bool) -> Result<(), BusError> {
        let host = self.uri.authority.host.as_str();
        let near = host == "localhost"
            || host
                .parse::<std::net::IpAddr>()
                .is_ok_and(|address| address.is_loopback());
        if allow_plain || near || self.is_tls() {
            return Ok(());
        }
        Err(BusError::InvalidUrl {
            reason: format!(
                "{self} is on another machine, and amqp:// sends everything in plain text, the password included; use amqps://, or set \
                 bus.insecure = true"
            ),
        })
    }

    /// The interval of heartbeats, in seconds: the URL's, or else this one.
    pub(crate) fn heartbeat(&self, default_seconds: u16) -> u16 {
        self.uri.query.heartbeat.unwrap_or(default_seconds)
    }

    /// What lapin is given: with our heartbeat unless the URL sets one.
    pub(crate) fn to_lapin(&self, heartbeat_seconds: u16) -> AMQPUri {
        let mut uri = self.uri.clone();
        uri.query.heartbeat.get_or_insert(heartbeat_seconds);
        uri
    }
}

/// The text between brackets in `user:password@[::1]:5672`.
fn ipv6_host(authority: &str) -> Option<&str> {
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    host.strip_prefix('[')?
        .split_once(']')
        .map(|(address, _)| address)
}

impl fmt::Display for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = match self.uri.scheme {
            AMQPScheme::AMQP => "amqp",
            AMQPScheme::AMQPS => "amqps",
        };
        let host = &self.uri.authority.host;
        let port = self.uri.authority.port;
        if host.contains(':') {
            write!(f, "{scheme}://[{host}]:{port}")?;
        } else {
            write!(f, "{scheme}://{host}:{port}")?;
        }
        // The default vhost is called "/", which would only look like a trailing slash.
        if self.uri.vhost != "/" {
            write!(f, "/{}", self.uri.vhost)?;
        }
        Ok(())
    }
}

impl fmt::Debug for BrokerUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BrokerUrl({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(text: &str) -> AMQPUri {
        text.parse::<BrokerUrl>().unwrap().to_lapin(17)
    }

    #[test]
    fn a_full_url_is_taken_apart() {
        let uri = parse("amqps://ann:p%40ss@mq.example.org:5999/region%2Fone?heartbeat=30");
        assert_eq!(uri.authority.userinfo.username, "ann");
        assert_eq!(uri.authority.userinfo.password, "p@ss");
        assert_eq!(uri.authority.host, "mq.example.org");
        assert_eq!(uri.authority.port, 5999);
        assert_eq!(uri.vhost, "region/one");
        assert_eq!(uri.query.heartbeat, Some(30));
    }

    #[test]
    fn what_is_left_out_has_a_default() {
        for text in [
            "amqp://localhost",
            "amqp://localhost/",
            "amqp://localhost/%2f",
        ] {
            let uri = parse(text);
            assert_eq!(uri.vhost, "/", "{text}");
            assert_eq!(uri.authority.port, 5672, "{text}");
            assert_eq!(uri.query.heartbeat, Some(17), "{text}");
        }
        assert_eq!(parse("amqps://localhost").authority.port, 5671);
    }

    #[test]
    fn an_ip_address_stays_what_it_is() {
        assert_eq!(
            parse("amqp://u:p@[2001:db8::7]:5673/v").authority.host,
            "2001:db8::7"
        );
        assert_eq!(parse("amqp://[::1]").authority.host, "::1");
        assert_eq!(parse("amqp://192.0.2.7:5673").authority.host, "192.0.2.7");
        let shown = "amqp://u:p@[2001:db8::7]:5673/v"
            .parse::<BrokerUrl>()
            .unwrap()
            .to_string();
        assert_eq!(shown, "amqp://[2001:db8::7]:5673/v");
    }

    #[test]
    fn plain_text_leaves_the_machine_only_where_that_was_decided() {
        let check = |text: &str, allow| text.parse::<BrokerUrl>().unwrap().check_secret(allow);
        for near in ["amqp://localhost", "amqp://127.0.0.2", "amqp://[::1]:5"] {
            assert_eq!(check(near, false), Ok(()), "{near}");
        }
        for far in [
            "amqp://u:geheim@mq",
            "amqp://192.0.2.7",
            "amqp://localhost.evil.org",
        ] {
            let error = check(far, false).unwrap_err();
            assert_eq!(error.code(), "EB-BUS-001");
            assert!(!error.to_string().contains("geheim"), "{error}");
            assert_eq!(check(far, true), Ok(()));
        }
        assert_eq!(check("amqps://mq", false), Ok(()));
    }

    #[test]
    fn a_malformed_url_is_refused_without_repeating_it() {
        let long_vhost = format!("amqp://u:geheim@h/{}", "v".repeat(256));
        for text in [
            "",
            "localhost",
            "localhost:5672",
            "guest:geheim@localhost",
            "http://u:geheim@localhost",
            "rabbit://u:geheim@localhost:5672/",
            "amqp:u:geheim",
            "amqp://u:geheim@host:port",
            "amqp://u:geheim@host:99999",
            "amqp://u:ge@heim@host",
            "amqp://u:geheim@a:5672,u:geheim@b:5672/",
            "amqp://u:geheim@host name/",
            "amqp://u:geheim@host/%ff",
            "amqp://u:geheim@host/?heartbeat=soon",
            "amqp://u:geheim@host/?heartbeat=0",
            "amqp://u:geheim@[::1",
            "amqp://u:geheim@[zzz]/",
            &long_vhost,
        ] {
            let error = text.parse::<BrokerUrl>().unwrap_err();
            assert_eq!(error.code(), "EB-BUS-001", "{text}: {error}");
            for shown in [error.to_string(), format!("{error:?}")] {
                assert!(
                    !shown.contains("geheim") && !shown.contains("heim@"),
                    "{shown}"
                );
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_makes_the_parser_panic_or_leak(text in "(amqps?://)?[a-z%:@/\\[\\]?#,.=0-9]{0,24}") {
            let _ = text.parse::<BrokerUrl>();
        }

        #[test]
        fn neither_user_nor_password_is_ever_shown(password in "[A-Z]{8}", user in "[A-Z]{8}") {
            let url: BrokerUrl = format!("amqp://{user}:{password}@host:1/v").parse().unwrap();
            for shown in [format!("{url}"), format!("{url:?}")] {
                prop_assert!(!shown.contains(&password) && !shown.contains(&user));
            }
        }
    }
}

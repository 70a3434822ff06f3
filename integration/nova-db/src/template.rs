//! Templates in the URLs of cells (`CellMapping._format_url`): an operator writes
//! `{scheme}://{username}:{password}@db1/nova` once and changes the password in nova.conf only.

use std::collections::HashMap;

/// Fills in a template: `{username}`, `{password}`, `{hostname}`, `{port}`, `{scheme}`, `{query}`,
/// `{fragment}`, `{path}`, and with several hosts `{username1}`, … from `default`. What is not a
/// good template comes back as it is, as in Nova. A part that `default` does not have reads `None`,
/// as Python writes it.
#[must_use]
pub fn format_url(template: &str, default: &str) -> String {
    let parts = parts(default);
    fill(template, &parts).unwrap_or_else(|| template.to_owned())
}

/// `str.format` with names only; `None` is what raises there.
fn fill(template: &str, parts: &HashMap<String, String>) -> Option<String> {
    let mut out = String::with_capacity(template.len() + 64);
    let mut chars = template.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '{' if chars.peek() == Some(&'{') => {
                chars.next();
                out.push('{');
            }
            '}' if chars.peek() == Some(&'}') => {
                chars.next();
                out.push('}');
            }
            '{' => {
                let mut name = String::new();
                loop {
                    match chars.next()? {
                        '}' => break,
                        c => name.push(c),
                    }
                }
                out.push_str(parts.get(&name)?);
            }
            '}' => return None,
            c => out.push(c),
        }
    }
    Some(out)
}

/// `urllib.parse.urlparse` and `_parse_netloc`.
fn parts(default: &str) -> HashMap<String, String> {
    const NONE: &str = "None";
    let (scheme, rest) = match default.split_once(':') {
        Some((scheme, rest)) if !scheme.is_empty() => (scheme.to_ascii_lowercase(), rest),
        _ => (String::new(), default),
    };
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (netloc, path) = match rest.strip_prefix("//") {
        Some(rest) => match rest.find('/') {
            Some(at) => rest.split_at(at),
            None => (rest, ""),
        },
        None => ("", rest),
    };
    // `username`, `password`: up to the last '@'; `hostname` is lower case.
    let (user_part, address) = match netloc.rsplit_once('@') {
        Some((user, address)) => (Some(user), address),
        None => (None, netloc),
    };
    let (user, password) = match user_part {
        None => (NONE.to_owned(), NONE.to_owned()),
        Some(part) => match part.split_once(':') {
            Some((user, password)) => (user.to_owned(), password.to_owned()),
            None => (part.to_owned(), NONE.to_owned()),
        },
    };
    let (host, port) = host_and_port(address);
    let or_none = |text: Option<&str>| text.filter(|t| !t.is_empty()).unwrap_or(NONE).to_owned();
    let mut parts = HashMap::from([
        ("scheme".to_owned(), scheme),
        ("query".to_owned(), query.to_owned()),
        ("fragment".to_owned(), fragment.to_owned()),
        ("path".to_owned(), path.trim_start_matches('/').to_owned()),
        ("username".to_owned(), user),
        ("password".to_owned(), password),
        (
            "hostname".to_owned(),
            or_none(host.map(str::to_ascii_lowercase).as_deref()),
        ),
        ("port".to_owned(), or_none(port)),
    ]);
    if netloc.contains(',') {
        for (index, netloc) in netloc.split(',').enumerate() {
            let (user_part, address) = netloc.split_once('@').unwrap_or(("", netloc));
            let (user, password) = match user_part.split_once(':') {
                Some((user, password)) => (user, password),
                None => (user_part, NONE),
            };
            let (host, port) = host_and_port(address);
            for (name, value) in [
                ("username", user.to_owned()),
                ("password", password.to_owned()),
                ("hostname", or_none(host)),
                ("port", or_none(port)),
            ] {
                parts.insert(format!("{name}{}", index + 1), value);
            }
        }
    }
    parts
}

fn host_and_port(address: &str) -> (Option<&str>, Option<&str>) {
    if let Some((host, rest)) = address
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        return (Some(host), rest.strip_prefix(':'));
    }
    match address.split_once(':') {
        Some((host, port)) => (Some(host), Some(port)),
        None => (Some(address), None),
    }
}

#[cfg(test)]
mod tests {
    use super::format_url;

    const CONF: &str = "mysql+pymysql://nova:p%40ss@DB1.example:3306/nova_cell0?charset=utf8";

    #[test]
    fn a_template_takes_its_parts_from_nova_conf() {
        assert_eq!(
            format_url(
                "{scheme}://{username}:{password}@db2:{port}/nova_cell1?{query}",
                CONF
            ),
            "mysql+pymysql://nova:p%40ss@db2:3306/nova_cell1?charset=utf8"
        );
        assert_eq!(
            format_url("{hostname} {path} {fragment}", CONF),
            "db1.example nova_cell0 "
        );
        assert_eq!(format_url("mysql://plain@h/d", CONF), "mysql://plain@h/d");
        assert_eq!(format_url("{{x}}", CONF), "{x}");
    }

    #[test]
    fn several_hosts_are_numbered() {
        let conf = "rabbit://u:p@h1:5671,u2:p2@h2:5672/vhost";
        assert_eq!(
            format_url(
                "rabbit://{username1}:{password1}@x:{port1},{username2}:{password2}@{hostname2}/{path}",
                conf
            ),
            "rabbit://u:p@x:5671,u2:p2@h2/vhost"
        );
    }

    #[test]
    fn a_bad_template_stays_as_it_is() {
        for bad in ["{unknown}@h", "{username", "username}", "{0}", "{}"] {
            assert_eq!(format_url(bad, CONF), bad);
        }
    }
}

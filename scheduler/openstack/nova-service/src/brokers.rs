//! The brokers between schedulers and agents, from a `transport_url` or an AMQP URL.

use crate::error::NovaServiceError;
use ebbtide_bus::BrokerUrl;

/// One URL for each host of a transport URL: `rabbit://u:p@h1:5672,u:p@h2:5672/nova?ssl=1`. AMQP
/// URLs are used unchanged, separated by commas.
pub(crate) fn brokers(url: &str) -> Result<Vec<BrokerUrl>, NovaServiceError> {
    let parsed: Result<Vec<BrokerUrl>, _> = texts(url).iter().map(|text| text.parse()).collect();
    parsed.map_err(|error| {
        NovaServiceError::Config(format!(
            "[ebbtide] bus_url, or [DEFAULT] transport_url: {error}"
        ))
    })
}

fn texts(url: &str) -> Vec<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        return vec![url.to_owned()];
    };
    if scheme.starts_with("amqp") {
        return url.split(',').map(|one| one.trim().to_owned()).collect();
    }
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let tls = query.split('&').any(|option| {
        option.split_once('=').is_some_and(|(name, value)| {
            name == "ssl"
                && matches!(
                    value.to_ascii_lowercase().as_str(),
                    "1" | "true" | "yes" | "on"
                )
        })
    });
    // A password cannot hold a slash unless it is encoded.
    let (hosts, vhost) = rest.split_once('/').unwrap_or((rest, ""));
    let vhost = if vhost.is_empty() { "%2f" } else { vhost };
    let scheme = if tls { "amqps" } else { "amqp" };
    hosts
        .split(',')
        .map(|host| format!("{scheme}://{}/{vhost}", host.trim()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_of_a_transport_url_is_a_broker() {
        assert_eq!(
            texts("rabbit://u:p%2Fq@h1:5671,v:w@[::1]:5672/nova?ssl=true&x=1"),
            [
                "amqps://u:p%2Fq@h1:5671/nova",
                "amqps://v:w@[::1]:5672/nova"
            ]
        );
    }

    #[test]
    fn no_virtual_host_is_the_default_one() {
        assert_eq!(texts("rabbit://u:p@h:5672/"), ["amqp://u:p@h:5672/%2f"]);
        assert_eq!(texts("rabbit://u:p@h"), ["amqp://u:p@h/%2f"]);
    }

    #[test]
    fn amqp_urls_are_taken_as_they_are() {
        assert_eq!(
            texts("amqp://a/%2f, amqp://b/%2f"),
            ["amqp://a/%2f", "amqp://b/%2f"]
        );
    }
}

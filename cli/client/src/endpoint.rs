//! Addresses of regions, as people write them.

use crate::ClientError;

/// Default address of the region.
pub const DEFAULT_ENDPOINT: &str = "http://127.0.0.1:7470";

/// An endpoint as it is used: `host:port` becomes `http://host:port`.
///
/// # Errors
/// [`ClientError::Usage`] for anything that is not an HTTP address.
pub fn parse(text: &str) -> Result<String, ClientError> {
    let with_scheme = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let uri: tonic::transport::Uri = with_scheme.parse().map_err(|error| {
        ClientError::Usage(format!(
            "{text:?} is not an endpoint ({error}); use something like {DEFAULT_ENDPOINT}"
        ))
    })?;
    match uri.scheme_str() {
        Some("http" | "https") if uri.host().is_some_and(|host| !host.is_empty()) => {
            Ok(with_scheme)
        }
        _ => Err(ClientError::Usage(format!(
            "{text:?} is not an endpoint; use something like {DEFAULT_ENDPOINT}"
        ))),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn endpoints_may_leave_out_the_scheme() {
        assert_eq!(parse("localhost:1").unwrap(), "http://localhost:1");
        assert_eq!(parse("http://[::1]:7470").unwrap(), "http://[::1]:7470");
        assert_eq!(parse("https://x:1").unwrap(), "https://x:1");
        for bad in ["", "ftp://x", "http://", "a b"] {
            assert!(parse(bad).is_err(), "{bad:?} was taken");
        }
    }
}

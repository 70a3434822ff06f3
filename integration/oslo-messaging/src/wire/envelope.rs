//! The outer layer of every message: `{"oslo.version": "2.0", "oslo.message": "<JSON>"}`.

use std::io::Read;

use flate2::read::ZlibDecoder;
use serde::Serialize;
use serde_json::Value;

use super::ENVELOPE_VERSION;
use super::json::to_python_json;
use crate::{Map, MessagingError, RpcVersion};

const VERSION_KEY: &str = "oslo.version";
const MESSAGE_KEY: &str = "oslo.message";

/// What the AMQP properties say about a body.
#[derive(Debug, Clone, Copy, Default)]
pub struct Properties<'a> {
    /// `content_type`; kombu sends `application/json`.
    pub content_type: Option<&'a str>,
    /// The header `compression` that kombu writes with the option `kombu_compression`.
    pub compression: Option<&'a str>,
}

/// Opens the envelope of a message from outside.
///
/// A message without envelope is taken as it is, as Python does: so were all messages once, and
/// notifications of the driver `messaging` still are.
///
/// # Errors
///
/// [`MessagingError::BadMessage`] and [`MessagingError::EnvelopeVersion`]; neither repeats the
/// content.
pub fn open(
    body: &[u8],
    properties: Properties<'_>,
    max_bytes: usize,
) -> Result<Map, MessagingError> {
    let too_large = || {
        MessagingError::bad(format!(
            "it has more than the {max_bytes} bytes that are allowed"
        ))
    };
    if body.len() > max_bytes {
        return Err(too_large());
    }
    if let Some(content_type) = properties.content_type
        && content_type != "application/json"
    {
        return Err(MessagingError::bad(format!(
            "its content type is {:?} instead of application/json",
            shortened(content_type)
        )));
    }
    let inflated;
    let body = match properties.compression {
        None | Some("") => body,
        // What kombu calls gzip and zlib is zlib.
        Some("application/x-gzip") => {
            inflated = inflate(body, max_bytes)?.ok_or_else(too_large)?;
            &inflated
        }
        Some(other) => {
            return Err(MessagingError::bad(format!(
                "it is compressed with {:?}; its sender must set kombu_compression to gzip or to nothing",
                shortened(other)
            )));
        }
    };
    let outer = object(body, "it")?;
    let (Some(version), Some(message)) = (outer.get(VERSION_KEY), outer.get(MESSAGE_KEY)) else {
        return Ok(outer);
    };
    let version = version
        .as_str()
        .ok_or_else(|| MessagingError::bad("its oslo.version is no string"))?;
    if !understood(version) {
        return Err(MessagingError::EnvelopeVersion {
            version: shortened(version),
        });
    }
    let message = message
        .as_str()
        .ok_or_else(|| MessagingError::bad("its oslo.message is no string"))?;
    object(message.as_bytes(), "its oslo.message")
}

/// Puts a message into its envelope, ready to be sent.
pub(super) fn seal<T: Serialize + ?Sized>(message: &T) -> Result<Vec<u8>, MessagingError> {
    #[derive(Serialize)]
    struct Envelope {
        #[serde(rename = "oslo.version")]
        version: &'static str,
        #[serde(rename = "oslo.message")]
        message: String,
    }
    let envelope = Envelope {
        version: ENVELOPE_VERSION,
        message: to_python_json(message)?,
    };
    to_python_json(&envelope).map(String::into_bytes)
}

fn understood(version: &str) -> bool {
    match (
        ENVELOPE_VERSION.parse::<RpcVersion>(),
        version.parse::<RpcVersion>(),
    ) {
        (Ok(own), Ok(wanted)) => own.understands(wanted),
        _ => false,
    }
}

fn object(body: &[u8], what: &str) -> Result<Map, MessagingError> {
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(MessagingError::bad(format!("{what} is no JSON object"))),
        // serde_json's texts name line and column, never the content.
        Err(error) => Err(MessagingError::bad(format!("{what} is no JSON: {error}"))),
    }
}

/// `None` if there is more than is allowed.
fn inflate(body: &[u8], max_bytes: usize) -> Result<Option<Vec<u8>>, MessagingError> {
    let mut inflated = Vec::new();
    let limit = u64::try_from(max_bytes)
        .unwrap_or(u64::MAX)
        .saturating_add(1);
    ZlibDecoder::new(body)
        .take(limit)
        .read_to_end(&mut inflated)
        .map_err(|_| MessagingError::bad("it is said to be compressed, but is not"))?;
    Ok((inflated.len() <= max_bytes).then_some(inflated))
}

/// So much of a text from outside that it can be shown.
pub(super) fn shortened(text: &str) -> String {
    text.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::Compression;
    use flate2::write::ZlibEncoder;

    use super::*;

    const PLAIN: Properties<'static> = Properties {
        content_type: Some("application/json"),
        compression: None,
    };

    fn code(body: &[u8], properties: Properties<'_>) -> &'static str {
        open(body, properties, 200).unwrap_err().code()
    }

    #[test]
    fn an_envelope_is_opened_and_what_has_none_is_taken_as_it_is() {
        let sealed = seal(&serde_json::json!({"method": "ping"})).unwrap();
        assert_eq!(
            sealed,
            br#"{"oslo.version": "2.0", "oslo.message": "{\"method\": \"ping\"}"}"#
        );
        assert_eq!(open(&sealed, PLAIN, 200).unwrap()["method"], "ping");
        assert_eq!(
            open(br#"{"method": "ping"}"#, PLAIN, 200).unwrap()["method"],
            "ping"
        );
    }

    #[test]
    fn what_cannot_be_used_is_refused_and_not_repeated() {
        let deep = "[".repeat(199);
        let bodies: [&[u8]; 11] = [
            b"",
            b"geheim",
            b"\xff\xfe",
            b"[1]",
            b"{\"a\": NaN}",
            b"{\"oslo.version\": 2.0, \"oslo.message\": \"{}\"}",
            b"{\"oslo.version\": \"2.0\", \"oslo.message\": {}}",
            b"{\"oslo.version\": \"2.0\", \"oslo.message\": \"geheim\"}",
            b"{\"oslo.version\": \"2.0\", \"oslo.message\": \"[]\"}",
            deep.as_bytes(),
            &[b' '; 201],
        ];
        for body in bodies {
            let error = open(body, PLAIN, 200).unwrap_err();
            assert_eq!(error.code(), "EB-OSLO-008", "{error}");
            assert!(!error.to_string().contains("geheim"));
        }
        for version in ["2.1", "3.0", "1.0", "", "x"] {
            let body = format!("{{\"oslo.version\": \"{version}\", \"oslo.message\": \"{{}}\"}}");
            assert_eq!(code(body.as_bytes(), PLAIN), "EB-OSLO-009");
        }
        let pickle = Properties {
            content_type: Some("application/x-python-serialize"),
            compression: None,
        };
        assert_eq!(code(b"{}", pickle), "EB-OSLO-008");
    }

    #[test]
    fn a_compressed_body_is_inflated_up_to_the_limit() {
        let deflate = |text: &[u8]| {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(text).unwrap();
            encoder.finish().unwrap()
        };
        let gzip = Properties {
            content_type: None,
            compression: Some("application/x-gzip"),
        };
        assert_eq!(open(&deflate(b"{\"a\": 1}"), gzip, 200).unwrap()["a"], 1);
        assert_eq!(code(&deflate(&[b' '; 1_000_000]), gzip), "EB-OSLO-008");
        assert_eq!(code(b"{}", gzip), "EB-OSLO-008");
        let bz2 = Properties {
            content_type: None,
            compression: Some("application/x-bz2"),
        };
        assert_eq!(code(b"{}", bz2), "EB-OSLO-008");
    }
}

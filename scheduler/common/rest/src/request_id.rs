//! Request ids as OpenStack's services use them.

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use ebbtide_runtime::ids;

/// The header of the answer with the id of this request, and of a request with the caller's id.
pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-openstack-request-id");
/// The metadata of a call with the caller's id.
const GLOBAL: HeaderName = HeaderName::from_static("x-openstack-global-request-id");

#[derive(Debug, Clone)]
pub(crate) struct RequestIds {
    /// New for every request.
    pub(crate) own: String,
    /// The id that the caller has sent, if it has the form of one. It is the same in all services
    /// that work for the caller's request.
    pub(crate) global: Option<String>,
}

impl RequestIds {
    /// A new id, and that of the caller.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let global = headers
            .get(HEADER)
            .and_then(|value| value.to_str().ok())
            .filter(|text| is_request_id(text))
            .map(str::to_owned);
        Self {
            own: ids::new_request_id(),
            global,
        }
    }

    /// Adds the ids to the metadata of a call.
    pub(crate) fn add_to(&self, metadata: &mut HeaderMap) {
        if let Ok(value) = HeaderValue::from_str(&self.own) {
            metadata.insert(HEADER, value);
        }
        if let Some(Ok(value)) = self.global.as_deref().map(HeaderValue::from_str) {
            metadata.insert(GLOBAL, value);
        }
    }
}

/// True for `req-` and a UUID in lower case, the form that oslo.middleware accepts.
fn is_request_id(text: &str) -> bool {
    let Some(id) = text.strip_prefix("req-") else {
        return false;
    };
    let groups: Vec<&str> = id.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    let hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    lengths == [8, 4, 4, 4, 12] && groups.iter().all(|group| group.bytes().all(hex))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_of_the_right_form_are_kept() {
        let good = "req-0a1b2c3d-0000-4000-8000-0123456789ab";
        for (text, kept) in [
            (good, true),
            ("req-0A1b2c3d-0000-4000-8000-0123456789ab", false),
            ("0a1b2c3d-0000-4000-8000-0123456789ab", false),
            ("req-0a1b2c3d-0000-4000-8000-0123456789ab-1", false),
            ("req-", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(HEADER, HeaderValue::from_str(text).unwrap());
            let ids = RequestIds::of(&headers);
            assert_eq!(ids.global.as_deref() == Some(text), kept, "{text}");
            assert!(is_request_id(&ids.own), "{}", ids.own);
            assert_ne!(ids.own, text);
        }
    }
}

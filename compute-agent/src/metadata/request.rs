//! The parts of a guest's request that the answer depends on.

use std::collections::BTreeMap;

/// A request of a guest.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MetadataRequest {
    /// The method, in capitals.
    pub method: String,
    /// The path as received.
    pub path: String,
    /// The query parameters; of a repeated key the last value.
    pub query: BTreeMap<String, String>,
    /// The headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl MetadataRequest {
    /// A request for a path with a query.
    #[must_use]
    pub fn new(method: &str, target: &str) -> Self {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
        Self {
            method: method.to_owned(),
            path: path.to_owned(),
            query: pairs
                .map(|(key, value)| (key.to_ascii_lowercase(), value.to_owned()))
                .collect(),
            headers: BTreeMap::new(),
            body: Vec::new(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers
            .insert(name.to_ascii_lowercase(), value.to_owned());
        self
    }

    /// Sets the body.
    #[must_use]
    pub fn with_body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    /// True if the header has this value, ignoring case.
    pub(super) fn header_is(&self, name: &str, value: &str) -> bool {
        self.header(name)
            .is_some_and(|v| v.eq_ignore_ascii_case(value))
    }

    /// True for methods that only read.
    pub(super) fn reads(&self) -> bool {
        matches!(self.method.as_str(), "GET" | "HEAD")
    }
}

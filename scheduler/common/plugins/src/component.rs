//! A component with its digest, which is worked out once.

use sha2::{Digest, Sha256};
use std::sync::Arc;

/// A component. Two are equal if their digests are.
#[derive(Debug, Clone)]
pub struct Component {
    bytes: Arc<[u8]>,
    digest: String,
}

impl Component {
    /// Of these bytes.
    #[must_use]
    pub fn new(bytes: Vec<u8>) -> Self {
        let digits = Sha256::digest(&bytes);
        Self {
            digest: digits.iter().map(|byte| format!("{byte:02x}")).collect(),
            bytes: bytes.into(),
        }
    }

    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its SHA-256 in hexadecimal digits.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

impl PartialEq for Component {
    fn eq(&self, other: &Self) -> bool {
        self.digest == other.digest
    }
}

//! What a token is, how it is made and recognised.
//!
//! `ebt_ID_SECRET`: a public identifier of 48 bits, which finds the row and names the token in
//! logs, and a secret of 256 bits from the system's generator. The file contains only the SHA-256
//! of the secret.
//!
//! **Why a plain hash is sufficient.** Slow functions (argon2, scrypt) make guessing expensive
//! where people choose the secret, because people choose from few. This secret is one of 2^256
//! equally likely values; 10^12 guesses a second would need more than 10^57 years for all of them.
//! A slow function would only let strangers keep the scheduler busy.

use crate::AccessError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ebbtide_runtime::ids;
use sha2::{Digest, Sha256};
use std::fmt;
use std::fmt::Write as _;
use subtle::ConstantTimeEq;

/// How every token begins: scanners for leaked secrets look for such a mark.
pub const MARK: &str = "ebt_";
/// Characters of an identifier: 48 bits in hexadecimal.
pub const ID_CHARACTERS: usize = 12;
/// Bytes of a secret.
const SECRET_BYTES: usize = 32;
/// Characters of a secret in base64 without padding.
const SECRET_CHARACTERS: usize = 43;

/// Unpredictable bytes.
///
/// # Errors
/// [`AccessError::NoRandomness`] if the system has none.
fn random<const N: usize>() -> Result<[u8; N], AccessError> {
    let mut bytes = [0; N];
    ids::fill(&mut bytes).map_err(|e| AccessError::NoRandomness(e.to_string()))?;
    Ok(bytes)
}

/// A whole token, in the hands of its owner. `Debug` shows the identifier only; there is no
/// `Display`.
#[derive(Clone, PartialEq, Eq)]
pub struct Token {
    id: String,
    secret: [u8; SECRET_BYTES],
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Token({})", self.id)
    }
}

impl Token {
    /// A new one.
    ///
    /// # Errors
    /// [`AccessError::NoRandomness`].
    pub fn create() -> Result<Self, AccessError> {
        let mut id = String::with_capacity(ID_CHARACTERS);
        for byte in random::<{ ID_CHARACTERS / 2 }>()? {
            let _ = write!(id, "{byte:02x}");
        }
        Ok(Self {
            id,
            secret: random()?,
        })
    }

    /// Parses a token that a client sent. Does not say what is wrong with it: that would only help
    /// an attacker.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (id, secret) = text.strip_prefix(MARK)?.split_once('_')?;
        if !is_id(id) || secret.len() != SECRET_CHARACTERS {
            return None;
        }
        let secret = URL_SAFE_NO_PAD.decode(secret).ok()?.try_into().ok()?;
        Some(Self {
            id: id.to_owned(),
            secret,
        })
    }

    /// The whole token, to be shown to its owner once.
    #[must_use]
    pub fn reveal(&self) -> String {
        format!("{MARK}{}_{}", self.id, URL_SAFE_NO_PAD.encode(self.secret))
    }

    /// The public part.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What is kept: SHA-256 of the secret, in hexadecimal.
    #[must_use]
    pub fn hash(&self) -> String {
        let mut text = String::with_capacity(64);
        for byte in Sha256::digest(self.secret) {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    /// True if `kept` is the hash of this token. Takes the same time wherever they differ.
    #[must_use]
    pub fn fits(&self, kept: &str) -> bool {
        self.hash().as_bytes().ct_eq(kept.as_bytes()).into()
    }
}

/// True for the identifier of a token.
#[must_use]
pub fn is_id(text: &str) -> bool {
    text.len() == ID_CHARACTERS && is_hex(text)
}

/// True for a hash as it is kept.
#[must_use]
pub fn is_hash(text: &str) -> bool {
    text.len() == 64 && is_hex(text)
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_token_is_recognised_by_its_hash_and_by_no_other() {
        let (one, two) = (Token::create().unwrap(), Token::create().unwrap());
        assert!(one.fits(&one.hash()) && !one.fits(&two.hash()) && !one.fits(""));
        assert_ne!(one.id(), two.id());
        assert!(is_id(one.id()) && is_hash(&one.hash()));
    }

    #[test]
    fn what_is_revealed_is_read_back() {
        let token = Token::create().unwrap();
        let text = token.reveal();
        assert_eq!(
            text.len(),
            MARK.len() + ID_CHARACTERS + 1 + SECRET_CHARACTERS
        );
        assert_eq!(Token::parse(&text), Some(token));
    }

    #[test]
    fn nothing_shows_the_secret() {
        let token = Token::create().unwrap();
        let secret = token.reveal().splitn(3, '_').nth(2).unwrap().to_owned();
        assert!(!format!("{token:?}").contains(&secret));
        assert!(!token.hash().contains(&secret));
    }

    #[test]
    fn the_hash_is_the_published_sha_256() {
        let token = Token {
            id: "000000000000".to_owned(),
            secret: *b"abcdefghijklmnopqrstuvwxyz012345",
        };
        // printf abcdefghijklmnopqrstuvwxyz012345 | sha256sum
        assert_eq!(token.hash(), HASH_OF_THE_ALPHABET);
    }

    const HASH_OF_THE_ALPHABET: &str =
        "653bb1245e828fcda4fa53fcd5a3def5bd7654e651f54b4132b73d74e64435c4";

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,80}") {
            let _ = Token::parse(&text);
        }

        #[test]
        fn a_token_with_one_character_changed_does_not_fit(at in 0usize..60, with in "[a-zA-Z0-9_-]") {
            let token = Token::create().unwrap();
            let mut text = token.reveal();
            prop_assume!(text[at..=at] != with);
            text.replace_range(at..=at, &with);
            let known = Token::parse(&text).is_some_and(|t| t.id() == token.id() && t.fits(&token.hash()));
            prop_assert!(!known, "{text}");
        }
    }
}

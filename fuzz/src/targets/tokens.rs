//! Token files and tokens: no text in a token file authenticates a caller.

use ebbtide_access::{Token, TokenFile};

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Some(token) = Token::parse(text) {
        assert_eq!(Token::parse(&token.reveal()).expect("its own text"), token);
        assert!(!format!("{token:?}").contains(token.reveal().as_str()));
    }
    if let Ok(file) = TokenFile::parse(text) {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        for row in file.rows() {
            assert!(file.caller(&row.sha256, now).is_err());
            assert!(file.caller(&row.id, now).is_err());
        }
    }
}

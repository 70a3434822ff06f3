//! Token files and tokens.
#![no_main]
use ebbtide_access::{Token, TokenFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Some(token) = Token::parse(text) {
        assert_eq!(Token::parse(&token.reveal()).expect("its own text"), token);
    }
    if let Ok(file) = TokenFile::parse(text) {
        let now = "2026-01-01T00:00:00Z".parse().expect("a time");
        for row in file.rows() {
            // Nobody comes in with what stands in the file.
            assert!(file.caller(&row.sha256, now).is_err());
        }
    }
});

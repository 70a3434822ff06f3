//! Bodies of REST: the first byte says which message, JSON follows. What is read is written, and
//! read as the same again.

const MESSAGES: [&str; 8] = [
    "CreateServersRequest",
    "SelectDestinationsRequest",
    "WhatIfRequest",
    "Flavor",
    "Aggregate",
    "AdoptServerRequest",
    "AddPluginRequest",
    "GetAdviceRequest",
];

pub(super) fn run(bytes: &[u8]) {
    let Some((kind, text)) = bytes.split_first() else {
        return;
    };
    let message = MESSAGES[usize::from(*kind) % MESSAGES.len()];
    let Ok(written) = ebbtide_rest::reread(message, text) else {
        return;
    };
    let again = ebbtide_rest::reread(message, written.to_string().as_bytes());
    assert_eq!(again.expect("what was written can be read"), written);
}

//! Bus messages (CloudEvents in JSON) from agents and from the scheduler: what is taken is written as it is read.
#![no_main]
use ebbtide_model::message::Message;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(message) = Message::from_bytes(bytes) {
        let written = message.to_bytes().expect("what was read can be written");
        let again = Message::from_bytes(&written).expect("what was written can be read");
        assert_eq!(again.to_bytes().expect("twice"), written);
    }
});

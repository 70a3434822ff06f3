//! Bus messages (CloudEvents in JSON) from agents and from the scheduler: what is taken is written
//! as it is read.

use ebbtide_model::message::Message;

pub(super) fn run(bytes: &[u8]) {
    match Message::from_bytes(bytes) {
        Ok(message) => {
            let written = message.to_bytes().expect("what was read can be written");
            let again = Message::from_bytes(&written).expect("what was written can be read");
            assert_eq!(again.to_bytes().expect("twice"), written);
        }
        Err(error) => assert!(
            error.to_string().len() < 2_000,
            "as much as {} bytes",
            error.to_string().len()
        ),
    }
}

//! oslo.messaging's envelopes, requests and replies: what is read has what a request or reply has,
//! and goes back out as it came.

use oslo_messaging::{RpcVersion, wire};

const MOST: usize = 1 << 20;

pub(super) fn run(bytes: &[u8]) {
    for compression in [None, Some("application/x-gzip"), Some("gzip")] {
        let properties = wire::Properties {
            content_type: Some("application/json"),
            compression,
        };
        match wire::decode_request(bytes, properties, MOST) {
            Ok(request) => {
                if let Some(to) = &request.reply_to {
                    assert!((1..=255).contains(&to.queue.len()) && !to.message_id.is_empty());
                }
                let version = request.version.as_deref().unwrap_or("1.0");
                if let Ok(version) = version.parse::<RpcVersion>() {
                    assert!(version.understands(version));
                }
                assert!(
                    wire::to_python_json(&request.args)
                        .expect("JSON")
                        .is_ascii()
                );
                if let Some(limit) = request.call_monitor_timeout {
                    assert!(limit.as_secs() >= 2);
                }
            }
            Err(bad) => assert!(bad.error.to_string().len() < 500),
        }
        if let Ok(reply) = wire::decode_reply(bytes, properties, MOST) {
            answer(&reply);
        }
    }
    // What is too long is refused before anything of it is looked at.
    assert!(bytes.len() < 9 || wire::open(bytes, wire::Properties::default(), 8).is_err());
}

fn answer(reply: &wire::RpcReply) {
    let again = |bytes: Vec<u8>| {
        wire::decode_reply(&bytes, wire::Properties::default(), 64 * MOST).expect("our own reply")
    };
    let written = wire::encode_result(&reply.result, &reply.message_id, "u").expect("a result");
    let read = again(written);
    assert_eq!(
        (&read.result, &read.message_id),
        (&reply.result, &reply.message_id)
    );
    if let Some(failure) = &reply.failure {
        let written = wire::encode_failure(failure, &reply.message_id, "u").expect("a failure");
        let read = again(written).failure.expect("one was written");
        assert_eq!(
            (&read.class, &read.message),
            (&failure.class, &failure.message)
        );
        assert_eq!((&read.args, &read.kwargs), (&failure.args, &failure.kwargs));
    }
}

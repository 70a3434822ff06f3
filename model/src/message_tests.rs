use super::*;

fn notice() -> Message {
    Message {
        id: MessageId(Uuid::from_u128(1)),
        source: "/ebbtide/scheduler".to_owned(),
        time: Timestamp::from_millis(1_771_000_000_000),
        body: Body::Notice(Notice {
            evacuation_id: EvacuationId(Uuid::from_u128(2)),
            server_id: ServerId(Uuid::from_u128(3)),
            behaviour: InterruptionBehaviour::Hibernate,
            grace_seconds: Seconds(30),
            attempt: 1,
            begin_before: Timestamp::from_millis(1_771_000_010_000),
        }),
    }
}

fn altered(change: impl FnOnce(&mut Map<String, Value>)) -> Result<Message, ModelError> {
    let mut event: Map<String, Value> =
        serde_json::from_slice(&notice().to_bytes().unwrap()).unwrap();
    change(&mut event);
    Message::from_bytes(&serde_json::to_vec(&event).unwrap())
}

#[test]
fn a_message_comes_back_as_it_was_sent() {
    assert_eq!(
        Message::from_bytes(&notice().to_bytes().unwrap()).unwrap(),
        notice()
    );
}

#[test]
fn a_message_is_a_cloud_event() {
    let event: Value = serde_json::from_slice(&notice().to_bytes().unwrap()).unwrap();
    assert_eq!(event["specversion"], "1.0");
    assert_eq!(event["type"], "org.ebbtide.evacuation.notice.v1");
    assert_eq!(event["time"], "2026-02-13T16:26:40Z");
    assert_eq!(event["subject"], "00000000-0000-0000-0000-000000000003");
    assert_eq!(event["data"]["grace_seconds"], 30);
}

#[test]
fn extensions_are_ignored() {
    assert!(altered(|e| drop(e.insert("traceparent".to_owned(), "00-ab".into()))).is_ok());
}

#[test]
fn every_missing_or_wrong_attribute_is_named() {
    for attribute in ["specversion", "id", "source", "time", "type", "data"] {
        let error = altered(|e| drop(e.remove(attribute))).unwrap_err();
        assert!(error.to_string().contains(attribute), "{error}");
        let error = altered(|e| drop(e.insert(attribute.to_owned(), 7.into()))).unwrap_err();
        assert!(error.code().starts_with("EB-MODEL-"), "{error}");
    }
}

#[test]
fn other_versions_and_types_are_refused() {
    assert!(altered(|e| drop(e.insert("specversion".to_owned(), "0.3".into()))).is_err());
    let error =
        altered(|e| drop(e.insert("type".to_owned(), "org.ebbtide.evacuation.notice.v2".into())))
            .unwrap_err();
    assert!(error.to_string().contains("notice.v1"), "{error}");
}

#[test]
fn what_is_refused_is_not_repeated_whole() {
    let endless = "x".repeat(1_000_000);
    for attribute in ["specversion", "id", "time", "type"] {
        let error = altered(|e| drop(e.insert(attribute.to_owned(), endless.clone().into())));
        assert!(error.unwrap_err().to_string().len() < 1_000, "{attribute}");
    }
    for field in ["behaviour", "server_id", "attempt", "begin_before"] {
        let error = altered(|e| e["data"][field] = endless.clone().into()).unwrap_err();
        assert!(error.to_string().len() < 1_000, "{field}");
    }
    // Also where it is the whole message.
    let text = format!("{:?}", "2".repeat(5000));
    let error = Message::from_bytes(text.as_bytes())
        .unwrap_err()
        .to_string();
    assert!(error.len() < 500, "{error}");
}

#[test]
fn junk_is_refused_without_panic() {
    for junk in [
        &b""[..],
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"{\"specversion\":\"1.0\"}",
    ] {
        assert_eq!(
            Message::from_bytes(junk).unwrap_err().code(),
            "EB-MODEL-009"
        );
    }
    assert!(Message::from_bytes(&vec![b' '; MAX_BYTES + 1]).is_err());
}

#[test]
fn absurd_numbers_are_refused() {
    for grace in [
        Value::from(-1),
        Value::from(901),
        Value::from(1e300),
        Value::Null,
    ] {
        assert!(
            altered(|e| e["data"]["grace_seconds"] = grace.clone()).is_err(),
            "{grace} was taken"
        );
    }
}

//! The contract of the bus as tests. Every transport passes all of it.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use ebbtide_bus::{Bus, BusStatus, MAX_BODY_BYTES, OutgoingMessage, QueueName};
use ebbtide_harness::eventually;
use uuid::Uuid;

use crate::support::{PATIENCE, message, next, soon, status, text, unique_prefix};
use crate::transports::BusTransport;

async fn publish_all(bus: &dyn Bus, queue: &QueueName, texts: &[&str]) {
    bus.declare(queue).await.unwrap();
    for text in texts {
        bus.publish(queue, &message(text)).await.unwrap();
    }
}

pub async fn a_message_arrives_as_it_was_sent(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().agent("host-1").unwrap();
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    let sent = OutgoingMessage {
        message_id: Uuid::new_v4(),
        content_type: "application/cloudevents+json".to_owned(),
        body: vec![0, 1, 2, 255, b'{', b'\n'],
        traceparent: Some("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".to_owned()),
    };
    bus.publish(&queue, &sent).await.unwrap();
    let got = next(&mut subscription).await;
    assert_eq!(got.message_id, sent.message_id);
    assert_eq!(got.content_type, sent.content_type);
    assert_eq!(got.body, sent.body);
    assert_eq!(got.traceparent, sent.traceparent);
    assert_eq!(got.queue, queue);
    assert_eq!(got.dead_letter, None);
    assert!(!got.redelivered);
    got.ack().await;
    bus.close().await;
}

pub async fn an_acked_message_never_comes_again(transport: &dyn BusTransport) {
    let queue = transport.prefix().scheduler();
    let first = transport.connect().await;
    publish_all(first.as_ref(), &queue, &["acked"]).await;
    let mut subscription = first.consume(&queue, 5).await.unwrap();
    next(&mut subscription).await.ack().await;
    first.close().await;

    let second = transport.connect().await;
    publish_all(second.as_ref(), &queue, &["sentinel"]).await;
    let mut subscription = second.consume(&queue, 5).await.unwrap();
    let got = next(&mut subscription).await;
    assert_eq!(text(&got), "sentinel");
    got.ack().await;
    second.close().await;
}

pub async fn messages_come_in_the_order_in_which_one_task_sent_them(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    let sent: Vec<String> = (0..300).map(|n| n.to_string()).collect();
    let texts: Vec<&str> = sent.iter().map(String::as_str).collect();
    publish_all(bus.as_ref(), &queue, &texts).await;
    let mut subscription = bus.consume(&queue, 7).await.unwrap();
    for expected in &sent {
        let got = next(&mut subscription).await;
        assert_eq!(text(&got), expected);
        got.ack().await;
    }
    bus.close().await;
}

pub async fn a_dropped_delivery_comes_again(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    publish_all(bus.as_ref(), &queue, &["x"]).await;
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    let first = next(&mut subscription).await;
    let id = first.message_id;
    drop(first);
    let again = next(&mut subscription).await;
    assert_eq!(again.message_id, id);
    assert!(again.redelivered);
    again.ack().await;
    bus.close().await;
}

pub async fn a_retried_delivery_comes_again_before_those_behind_it(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    publish_all(bus.as_ref(), &queue, &["a", "b"]).await;
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    next(&mut subscription).await.retry().await;
    for (expected, redelivered) in [("a", true), ("b", false)] {
        let got = next(&mut subscription).await;
        assert_eq!((text(&got), got.redelivered), (expected, redelivered));
        got.ack().await;
    }
    bus.close().await;
}

pub async fn unsettled_deliveries_come_again_after_the_connection_broke(
    transport: &dyn BusTransport,
) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    publish_all(bus.as_ref(), &queue, &["a", "b", "c"]).await;
    let mut subscription = bus.consume(&queue, 2).await.unwrap();
    let held = [next(&mut subscription).await, next(&mut subscription).await];
    transport.sever().await;
    let mut seen = HashMap::new();
    while seen.len() < 3 {
        let got = next(&mut subscription).await;
        seen.insert(text(&got).to_owned(), got.redelivered);
        got.ack().await;
    }
    assert!(seen["a"] && seen["b"], "{seen:?}");
    drop(held);
    // The subscription works on as before.
    publish_all(bus.as_ref(), &queue, &["d"]).await;
    let got = next(&mut subscription).await;
    assert_eq!(text(&got), "d");
    got.ack().await;
    bus.close().await;
}

pub async fn an_ack_on_a_broken_connection_does_nothing(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    publish_all(bus.as_ref(), &queue, &["x"]).await;
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    let stale = next(&mut subscription).await;
    let id = stale.message_id;
    transport.sever().await;
    soon("a stale ack returns", stale.ack()).await;
    let again = next(&mut subscription).await;
    assert_eq!(again.message_id, id);
    assert!(again.redelivered);
    again.ack().await;
    bus.close().await;
}

pub async fn a_subscription_holds_no_more_than_its_prefetch(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    publish_all(bus.as_ref(), &queue, &["1", "2", "3", "4", "5"]).await;
    let mut slow = bus.consume(&queue, 2).await.unwrap();
    let held = [next(&mut slow).await, next(&mut slow).await];
    // Everything that the slow reader may not hold goes to the quick one.
    let mut quick = bus.consume(&queue, 10).await.unwrap();
    let mut got = Vec::new();
    for _ in 0..3 {
        let delivery = next(&mut quick).await;
        got.push(text(&delivery).to_owned());
        delivery.ack().await;
    }
    assert_eq!(got, ["3", "4", "5"]);
    // Settling makes room again.
    drop(quick);
    for delivery in held {
        delivery.ack().await;
    }
    publish_all(bus.as_ref(), &queue, &["6"]).await;
    let delivery = next(&mut slow).await;
    assert_eq!(text(&delivery), "6");
    delivery.ack().await;
    bus.close().await;
}

pub async fn publishing_to_a_missing_queue_is_an_error(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().agent("never-registered").unwrap();
    let lost = message("without a recipient");
    let error = bus.publish(&queue, &lost).await.unwrap_err();
    assert_eq!(error.code(), "EB-BUS-009");
    assert!(error.to_string().contains(queue.as_str()), "{error}");
    assert!(
        error.to_string().contains(&lost.message_id.to_string()),
        "{error}"
    );
    bus.declare(&queue).await.unwrap();
    bus.publish(&queue, &lost).await.unwrap();
    bus.close().await;
}

pub async fn a_dead_letter_keeps_body_id_type_reason_and_origin(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().agent("host-1").unwrap();
    publish_all(bus.as_ref(), &queue, &["not JSON"]).await;
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    let bad = next(&mut subscription).await;
    let id = bad.message_id;
    bad.dead_letter("EB-MODEL-007: täglich grüßt das Murmeltier")
        .await
        .unwrap();

    let mut letters = bus.consume(&queue.dead_letter(), 1).await.unwrap();
    let letter = next(&mut letters).await;
    assert_eq!(letter.message_id, id);
    assert_eq!(letter.content_type, OutgoingMessage::CLOUD_EVENT);
    assert_eq!(text(&letter), "not JSON");
    let note = letter.dead_letter.clone().expect("a note");
    assert_eq!(note.reason, "EB-MODEL-007: täglich grüßt das Murmeltier");
    assert_eq!(note.queue, queue.as_str());
    letter.ack().await;

    // It is gone from its old queue.
    publish_all(bus.as_ref(), &queue, &["sentinel"]).await;
    let got = next(&mut subscription).await;
    assert_eq!(text(&got), "sentinel");
    got.ack().await;
    bus.close().await;
}

pub async fn a_dead_letter_can_itself_be_retried(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    publish_all(bus.as_ref(), &queue, &["x"]).await;
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    next(&mut subscription)
        .await
        .dead_letter("first look")
        .await
        .unwrap();
    let mut letters = bus.consume(&queue.dead_letter(), 1).await.unwrap();
    next(&mut letters).await.retry().await;
    let letter = next(&mut letters).await;
    assert!(letter.redelivered);
    assert_eq!(letter.dead_letter.as_ref().unwrap().reason, "first look");
    letter.ack().await;
    bus.close().await;
}

pub async fn concurrent_publishers_lose_nothing_and_keep_their_own_order(
    transport: &dyn BusTransport,
) {
    const PUBLISHERS: usize = 40;
    const EACH: usize = 25;
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    let mut subscription = bus.consume(&queue, 50).await.unwrap();
    let mut publishers = tokio::task::JoinSet::new();
    for publisher in 0..PUBLISHERS {
        let (bus, queue) = (Arc::clone(&bus), queue.clone());
        publishers.spawn(async move {
            for number in 0..EACH {
                let text = format!("{publisher} {number}");
                bus.publish(&queue, &message(&text)).await.unwrap();
            }
        });
    }
    let mut expected = [0; PUBLISHERS];
    for _ in 0..PUBLISHERS * EACH {
        let got = next(&mut subscription).await;
        let (publisher, number) = text(&got).split_once(' ').unwrap();
        let publisher: usize = publisher.parse().unwrap();
        assert_eq!(number.parse::<usize>().unwrap(), expected[publisher]);
        expected[publisher] += 1;
        got.ack().await;
    }
    assert_eq!(expected, [EACH; PUBLISHERS]);
    while let Some(done) = publishers.join_next().await {
        done.unwrap();
    }
    bus.close().await;
}

pub async fn declaring_twice_changes_nothing(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let other = transport.connect().await;
    let queue = transport.prefix().scheduler();
    publish_all(bus.as_ref(), &queue, &["kept"]).await;
    bus.declare(&queue).await.unwrap();
    other.declare(&queue).await.unwrap();
    let mut subscription = other.consume(&queue, 1).await.unwrap();
    let got = next(&mut subscription).await;
    assert_eq!(text(&got), "kept");
    got.ack().await;
    bus.close().await;
    other.close().await;
}

pub async fn a_queue_is_deleted_with_its_messages_if_it_has_no_reader(
    transport: &dyn BusTransport,
) {
    let queue = transport.prefix().agent("sold").unwrap();
    let bus = transport.connect().await;
    publish_all(bus.as_ref(), &queue, &["for a machine that is gone"]).await;
    let reader = transport.connect().await;
    let mut subscription = reader.consume(&queue, 1).await.unwrap();
    next(&mut subscription).await.retry().await;
    let error = bus.delete(&queue).await.unwrap_err();
    assert_eq!(error.code(), "EB-BUS-008", "{error}");
    drop(subscription);
    reader.close().await;
    // The broker notices the end of a reader a little later.
    eventually(PATIENCE, async || {
        bus.delete(&queue).await.map_err(|error| error.to_string())
    })
    .await;
    let lost = message("nothing declares the queue again");
    let error = bus.publish(&queue, &lost).await.unwrap_err();
    assert_eq!(error.code(), "EB-BUS-009", "{error}");
    bus.delete(&queue).await.expect("it is deleted already");
    bus.declare(&queue).await.unwrap();
    publish_all(bus.as_ref(), &queue, &["new"]).await;
    let again = transport.connect().await;
    let mut subscription = again.consume(&queue, 1).await.unwrap();
    let got = next(&mut subscription).await;
    assert_eq!(text(&got), "new", "the old message went with the queue");
    got.ack().await;
    again.close().await;
    bus.close().await;
}

pub async fn messages_wait_for_a_reader_that_comes_later(transport: &dyn BusTransport) {
    let queue = transport.prefix().agent("asleep").unwrap();
    let writer = transport.connect().await;
    publish_all(writer.as_ref(), &queue, &["1", "2", "3"]).await;
    writer.close().await;
    let reader = transport.connect().await;
    let mut subscription = reader.consume(&queue, 1).await.unwrap();
    for expected in ["1", "2", "3"] {
        let got = next(&mut subscription).await;
        assert_eq!(text(&got), expected);
        assert!(!got.redelivered);
        got.ack().await;
    }
    reader.close().await;
}

pub async fn cancelling_next_loses_nothing(transport: &dyn BusTransport) {
    const MESSAGES: usize = 100;
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    let mut subscription = bus.consume(&queue, 3).await.unwrap();
    let writer = {
        let (bus, queue) = (Arc::clone(&bus), queue.clone());
        tokio::spawn(async move {
            for number in 0..MESSAGES {
                bus.publish(&queue, &message(&number.to_string()))
                    .await
                    .unwrap();
            }
        })
    };
    let mut seen = Vec::new();
    soon("all messages, with impatient polling", async {
        while seen.len() < MESSAGES {
            // Far shorter than a round trip: most of these calls are cancelled half way.
            let patience = Duration::from_micros(300);
            if let Ok(got) = tokio::time::timeout(patience, subscription.next()).await {
                let got = got.expect("the subscription ended");
                assert!(!got.redelivered, "a cancelled call gave a message back");
                seen.push(text(&got).parse::<usize>().unwrap());
                got.ack().await;
            }
        }
    })
    .await;
    assert_eq!(seen, (0..MESSAGES).collect::<Vec<_>>());
    writer.await.unwrap();
    bus.close().await;
}

pub async fn a_delivery_outlives_its_subscription(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    publish_all(bus.as_ref(), &queue, &["in work", "waiting", "waiting too"]).await;
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    let held = next(&mut subscription).await;
    drop(subscription);
    let mut other = bus.consume(&queue, 5).await.unwrap();
    for expected in ["waiting", "waiting too"] {
        let got = next(&mut other).await;
        assert_eq!(text(&got), expected);
        got.ack().await;
    }
    held.ack().await;
    publish_all(bus.as_ref(), &queue, &["sentinel"]).await;
    let got = next(&mut other).await;
    assert_eq!(text(&got), "sentinel", "the message in work came again");
    got.ack().await;
    bus.close().await;
}

pub async fn closing_is_final_clean_and_idempotent(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    publish_all(bus.as_ref(), &queue, &["unsettled"]).await;
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    let unsettled = next(&mut subscription).await;
    assert_eq!(*bus.status().borrow(), BusStatus::Connected);

    soon("close", bus.close()).await;
    soon("close again", bus.close()).await;
    status(bus.as_ref(), "status closed", |s| *s == BusStatus::Closed).await;
    assert!(
        soon("next after close", subscription.next())
            .await
            .is_none()
    );
    assert!(
        soon("next after close", subscription.next())
            .await
            .is_none()
    );
    let codes = [
        bus.publish(&queue, &message("late"))
            .await
            .unwrap_err()
            .code(),
        bus.declare(&queue).await.unwrap_err().code(),
        bus.consume(&queue, 1).await.unwrap_err().code(),
    ];
    assert_eq!(codes, ["EB-BUS-011"; 3]);
    soon("a late ack", unsettled.ack()).await;

    let other = transport.connect().await;
    let mut subscription = other.consume(&queue, 1).await.unwrap();
    let again = next(&mut subscription).await;
    assert_eq!(text(&again), "unsettled");
    assert!(again.redelivered);
    again.ack().await;
    other.close().await;
}

pub async fn closing_one_bus_leaves_the_other_alone(transport: &dyn BusTransport) {
    let one = transport.connect().await;
    let two = transport.connect().await;
    let queue = transport.prefix().scheduler();
    let mut subscription = two.consume(&queue, 1).await.unwrap();
    one.close().await;
    two.publish(&queue, &message("x")).await.unwrap();
    next(&mut subscription).await.ack().await;
    assert_eq!(*two.status().borrow(), BusStatus::Connected);
    two.close().await;
}

pub async fn closing_wakes_a_waiting_reader(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let mut subscription = bus
        .consume(&transport.prefix().scheduler(), 1)
        .await
        .unwrap();
    let reader = tokio::spawn(async move { subscription.next().await.is_none() });
    bus.close().await;
    assert!(soon("the reader ends", reader).await.unwrap());
}

pub async fn regions_with_different_prefixes_do_not_meet(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let (north, south) = (transport.prefix(), unique_prefix());
    for (prefix, name) in [(&north, "north"), (&south, "south")] {
        publish_all(bus.as_ref(), &prefix.agent("host-1").unwrap(), &[name]).await;
    }
    let mut seen = HashSet::new();
    for (prefix, name) in [(&north, "north"), (&south, "south")] {
        let queue = prefix.agent("host-1").unwrap();
        let mut subscription = bus.consume(&queue, 5).await.unwrap();
        let got = next(&mut subscription).await;
        assert_eq!(text(&got), name);
        seen.insert(got.message_id);
        got.ack().await;
    }
    assert_eq!(seen.len(), 2);
    bus.close().await;
}

pub async fn senseless_requests_are_refused(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    assert_eq!(
        bus.consume(&queue, 0).await.unwrap_err().code(),
        "EB-BUS-005"
    );
    bus.declare(&queue).await.unwrap();
    let mut bad = message("x");
    bad.body = vec![0; MAX_BODY_BYTES + 1];
    assert_eq!(
        bus.publish(&queue, &bad).await.unwrap_err().code(),
        "EB-BUS-004"
    );
    let mut bad = message("x");
    bad.content_type = "x".repeat(256);
    assert_eq!(
        bus.publish(&queue, &bad).await.unwrap_err().code(),
        "EB-BUS-004"
    );
    bus.close().await;
}

pub async fn the_largest_body_and_the_empty_one_pass(transport: &dyn BusTransport) {
    let bus = transport.connect().await;
    let queue = transport.prefix().scheduler();
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    for size in [0, MAX_BODY_BYTES] {
        let mut sent = message("");
        sent.body = (0..size).map(|n| (n % 251) as u8).collect();
        bus.publish(&queue, &sent).await.unwrap();
        let got = next(&mut subscription).await;
        assert!(got.body == sent.body, "a body of {size} bytes was changed");
        got.ack().await;
    }
    bus.close().await;
}

//! Queues that another client deletes, declares differently, or fills with foreign messages.

use std::time::Duration;

use ebbtide_bus::{
    AmqpBus, BodyLimit, Bus, BusError, DEAD_LETTER_BODY_BYTES, MAX_BODY_BYTES, MAX_DEAD_LETTERS,
    MAX_DEAD_LETTERS_BYTES, QueueKind, QueueUse,
};
use ebbtide_harness::{RabbitMq, ServerSettings};
use lapin::options::{
    BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions, QueueDeleteOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};
use uuid::Uuid;

use crate::support::{PATIENCE, message, next, shared_broker, soon, text, unique_prefix};
use crate::transports::config;

/// Another client on the same broker, with full rights.
struct Stranger {
    _connection: Connection,
    channel: Channel,
}

impl Stranger {
    async fn new(url: &str) -> Self {
        let connection = Connection::connect(url, ConnectionProperties::default())
            .await
            .unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .unwrap();
        Self {
            _connection: connection,
            channel,
        }
    }

    async fn delete(&self, queue: &str) {
        self.channel
            .queue_delete(queue.into(), QueueDeleteOptions::default())
            .await
            .unwrap();
    }

    async fn publish(&self, queue: &str, body: &[u8], properties: BasicProperties) {
        let options = BasicPublishOptions::default();
        let sent = self
            .channel
            .basic_publish("".into(), queue.into(), options, body, properties);
        assert!(sent.await.unwrap().await.unwrap().is_ack());
    }
}

async fn connect(url: &str) -> AmqpBus {
    AmqpBus::connect(config(&[url]), PATIENCE).await.unwrap()
}

#[tokio::test]
async fn a_reader_whose_queue_is_deleted_gets_it_back() {
    let broker = shared_broker().await;
    let bus = connect(broker.url()).await;
    let queue = unique_prefix().agent("host-1").unwrap();
    let mut subscription = bus.consume(&queue, 3).await.unwrap();
    let stranger = Stranger::new(broker.url()).await;
    for round in ["first", "second", "third"] {
        stranger.delete(queue.as_str()).await;
        // Another bus that knows nothing of the queue can publish once the reader has healed it.
        let reading = tokio::spawn(async move {
            let got = next(&mut subscription).await;
            (subscription, got)
        });
        let other = connect(broker.url()).await;
        soon("the queue is there again", async {
            while other.publish(&queue, &message(round)).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        let (same, got) = soon("the message", reading).await.unwrap();
        subscription = same;
        assert_eq!(text(&got), round);
        got.ack().await;
        other.close().await;
    }
    bus.close().await;
}

#[tokio::test]
async fn a_declared_queue_that_vanished_is_declared_anew_by_publishing() {
    let broker = shared_broker().await;
    let bus = connect(broker.url()).await;
    let queue = unique_prefix().agent("host-1").unwrap();
    bus.declare(&queue).await.unwrap();
    Stranger::new(broker.url())
        .await
        .delete(queue.as_str())
        .await;
    bus.publish(&queue, &message("x")).await.unwrap();
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    let got = next(&mut subscription).await;
    assert_eq!(text(&got), "x");
    got.ack().await;
    bus.close().await;
}

#[tokio::test]
async fn what_is_in_a_queue_is_seen_without_making_it() {
    let broker = shared_broker().await;
    let queue = unique_prefix().scheduler();
    let bus = connect(broker.url()).await;
    let used = async || bus.queue_use(queue.as_str()).await.unwrap();
    assert_eq!(used().await, None);
    assert_eq!(used().await, None, "looking makes no queue");
    bus.declare(&queue).await.unwrap();
    bus.publish(&queue, &message("x")).await.unwrap();
    let waiting = QueueUse {
        messages: 1,
        consumers: 0,
    };
    assert_eq!(used().await, Some(waiting));
    assert!(!bus.is_read(&queue).await.unwrap());
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    next(&mut subscription).await.ack().await;
    let read = QueueUse {
        messages: 0,
        consumers: 1,
    };
    assert_eq!(used().await, Some(read));
    assert!(bus.is_read(&queue).await.unwrap());
    bus.close().await;
    let closed = bus.queue_use(queue.as_str()).await.unwrap_err();
    assert_eq!(closed.code(), BusError::Closed.code());
}

#[tokio::test]
async fn a_queue_of_another_kind_is_a_clear_error() {
    let broker = shared_broker().await;
    let queue = unique_prefix().scheduler();
    let stranger = Stranger::new(broker.url()).await;
    let transient = QueueDeclareOptions {
        exclusive: false,
        auto_delete: true,
        ..QueueDeclareOptions::default()
    };
    stranger
        .channel
        .queue_declare(queue.as_str().into(), transient, FieldTable::default())
        .await
        .unwrap();
    let bus = connect(broker.url()).await;
    let declare = soon("declare", bus.declare(&queue)).await.unwrap_err();
    let consume = soon("consume", bus.consume(&queue, 1)).await.unwrap_err();
    for error in [declare, consume] {
        assert_eq!(error.code(), "EB-BUS-010");
        assert!(error.to_string().contains("inequivalent arg"), "{error}");
    }
    // The bus itself is none the worse for it.
    let mut subscription = bus.consume(&unique_prefix().scheduler(), 1).await.unwrap();
    bus.publish(subscription.queue(), &message("x"))
        .await
        .unwrap();
    next(&mut subscription).await.ack().await;
    bus.close().await;
}

#[tokio::test]
async fn quorum_queues_carry_messages_and_dead_letters() {
    let broker = shared_broker().await;
    let mut config = config(&[broker.url()]);
    config.queue_kind = QueueKind::Quorum;
    let bus = AmqpBus::connect(config, PATIENCE).await.unwrap();
    let queue = unique_prefix().agent("host-1").unwrap();
    let mut subscription = bus.consume(&queue, 2).await.unwrap();
    bus.publish(&queue, &message("good")).await.unwrap();
    bus.publish(&queue, &message("bad")).await.unwrap();
    let got = next(&mut subscription).await;
    assert_eq!(text(&got), "good");
    got.ack().await;
    next(&mut subscription)
        .await
        .dead_letter("no use for it")
        .await
        .unwrap();
    let mut letters = bus.consume(&queue.dead_letter(), 1).await.unwrap();
    let letter = next(&mut letters).await;
    assert_eq!(text(&letter), "bad");
    letter.ack().await;
    bus.close().await;
}

#[tokio::test]
async fn a_message_that_a_quorum_queue_gives_up_becomes_a_dead_letter() {
    let broker = shared_broker().await;
    let mut config = config(&[broker.url()]);
    config.queue_kind = QueueKind::Quorum;
    let bus = AmqpBus::connect(config, PATIENCE).await.unwrap();
    let queue = unique_prefix().agent("host-1").unwrap();
    bus.declare(&queue).await.unwrap();
    // An operator's policy or RabbitMQ 4 limits redeliveries; a message's own expiry has the same
    // end.
    let stranger = Stranger::new(broker.url()).await;
    let id = Uuid::new_v4();
    let expiring = BasicProperties::default()
        .with_message_id(id.to_string().into())
        .with_expiration("1".into());
    let mut letters = bus.consume(&queue.dead_letter(), 1).await.unwrap();
    stranger.publish(queue.as_str(), b"too old", expiring).await;
    let letter = next(&mut letters).await;
    assert_eq!(letter.message_id, id);
    let note = letter
        .dead_letter
        .clone()
        .expect("a note made from the broker's headers");
    assert_eq!(note.queue, queue.as_str());
    assert_eq!(note.reason, "the broker gave it up: expired");
    letter.ack().await;
    bus.close().await;
}

#[tokio::test]
async fn a_foreign_message_without_a_usable_id_gets_a_stable_one() {
    let broker = shared_broker().await;
    let bus = connect(broker.url()).await;
    let queue = unique_prefix().scheduler();
    let mut subscription = bus.consume(&queue, 1).await.unwrap();
    let stranger = Stranger::new(broker.url()).await;
    let named = |id: &str| BasicProperties::default().with_message_id(id.into());
    for properties in [BasicProperties::default(), named("not-a-uuid"), named("")] {
        stranger
            .publish(queue.as_str(), b"whatever", properties)
            .await;
        let first = next(&mut subscription).await;
        let id = first.message_id;
        assert!(!id.is_nil());
        assert_eq!(first.content_type, "");
        first.retry().await;
        let again = next(&mut subscription).await;
        assert_eq!(again.message_id, id, "redelivery changed the derived id");
        again.dead_letter("no content type").await.unwrap();
    }
    let id = Uuid::new_v4();
    stranger
        .publish(queue.as_str(), b"{}", named(&id.to_string()))
        .await;
    let got = next(&mut subscription).await;
    assert_eq!(got.message_id, id);
    got.ack().await;
    bus.close().await;
}

#[tokio::test]
async fn unroutable_messages_among_many_are_attributed_to_their_own_publishers() {
    let broker = shared_broker().await;
    let bus = std::sync::Arc::new(connect(broker.url()).await);
    let prefix = unique_prefix();
    let (there, missing) = (
        prefix.agent("there").unwrap(),
        prefix.agent("missing").unwrap(),
    );
    bus.declare(&there).await.unwrap();
    let mut publishes = tokio::task::JoinSet::new();
    for number in 0..600 {
        let (bus, there, missing) = (bus.clone(), there.clone(), missing.clone());
        publishes.spawn(async move {
            let lost = number % 3 == 0;
            let queue = if lost { &missing } else { &there };
            (lost, bus.publish(queue, &message("x")).await)
        });
    }
    while let Some(done) = publishes.join_next().await {
        let (lost, outcome) = done.unwrap();
        match outcome {
            Ok(()) => assert!(!lost, "an unroutable message was reported as stored"),
            Err(error) => assert!(lost && error.code() == "EB-BUS-009", "{error}"),
        }
    }
    bus.close().await;
}

#[tokio::test]
async fn a_readers_successor_gets_all_that_comes_also_while_the_old_one_hangs() {
    let broker = shared_broker().await;
    for kind in [QueueKind::Classic, QueueKind::Quorum] {
        let mut config = config(&[broker.url()]);
        config.queue_kind = kind;
        let queue = unique_prefix().scheduler();
        let first = AmqpBus::connect(config.clone(), PATIENCE).await.unwrap();
        // It has its connection, and never looks at what it is given.
        let hangs = first.consume_before(&queue, 50, 1).await.unwrap();
        let second = AmqpBus::connect(config, PATIENCE).await.unwrap();
        let mut subscription = second.consume_before(&queue, 50, 2).await.unwrap();
        for at in 0..20 {
            let body = at.to_string();
            second.publish(&queue, &message(&body)).await.unwrap();
        }
        for at in 0..20 {
            let got = next(&mut subscription).await;
            assert_eq!(got.body, at.to_string().as_bytes(), "{kind:?}");
            got.ack().await;
        }
        drop(hangs);
        first.close().await;
        second.close().await;
    }
}

#[tokio::test]
async fn a_message_that_is_larger_than_any_of_ours_becomes_a_short_dead_letter() {
    let broker = shared_broker().await;
    for kind in [QueueKind::Classic, QueueKind::Quorum] {
        let mut config = config(&[broker.url()]);
        config.queue_kind = kind;
        let bus = AmqpBus::connect(config, PATIENCE).await.unwrap();
        let queue = unique_prefix().scheduler();
        let mut subscription = bus.consume(&queue, 4).await.unwrap();
        let stranger = Stranger::new(broker.url()).await;
        let body = vec![b'x'; MAX_BODY_BYTES + 1];
        let user = BasicProperties::default().with_user_id("guest".into());
        stranger.publish(queue.as_str(), &body, user).await;
        let got = next(&mut subscription).await;
        assert!(!got.redelivered);
        // Earlier versions returned EB-BUS-004 here, and the message came again at once, without
        // end.
        got.dead_letter("too large").await.unwrap();
        bus.publish(&queue, &message("the next one")).await.unwrap();
        let got = next(&mut subscription).await;
        assert_eq!(text(&got), "the next one", "{kind}");
        got.ack().await;
        let mut letters = bus.consume(&queue.dead_letter(), 1).await.unwrap();
        let letter = next(&mut letters).await;
        assert_eq!(letter.body, body[..DEAD_LETTER_BODY_BYTES]);
        let note = letter.dead_letter.clone().unwrap();
        assert_eq!(note.reason, "too large");
        assert_eq!(note.user.as_deref(), Some("guest"));
        assert_eq!(note.cut_from_bytes, Some(body.len() as u64));
        letter.ack().await;
        bus.close().await;
    }
}

/// The policy that `ebbtide-manage init` writes.
#[tokio::test]
async fn dead_letters_are_bounded_by_the_documented_policy_and_the_oldest_go() {
    let broker = RabbitMq::start().await.unwrap();
    let url = broker.url().to_owned();
    for kind in [QueueKind::Classic, QueueKind::Quorum] {
        let mut config = config(&[&url]);
        config.queue_kind = kind;
        let bus = AmqpBus::connect(config, PATIENCE).await.unwrap();
        let letters = unique_prefix().dead_letter();
        // A queue that is there already is bounded, too.
        bus.declare(&letters).await.unwrap();
        let policy = format!(
            "{{\"max-length\":{MAX_DEAD_LETTERS},\"max-length-bytes\":{MAX_DEAD_LETTERS_BYTES},\"overflow\":\"drop-head\"}}"
        );
        let name = letters.as_str();
        let set = ["set_policy", "--apply-to", "queues", name, name, &policy];
        broker.control(&set).await.unwrap();
        let stranger = Stranger::new(&url).await;
        let most = MAX_DEAD_LETTERS_BYTES / (1 << 20);
        for number in 0..most + 20 {
            let mut body = vec![b'x'; 1 << 20];
            body[..8].copy_from_slice(&number.to_be_bytes());
            stranger
                .publish(name, &body, BasicProperties::default())
                .await;
        }
        let mut subscription = bus.consume(&letters, 1).await.unwrap();
        let first = next(&mut subscription).await;
        let number = usize::from_be_bytes(first.body[..8].try_into().unwrap());
        assert!(number >= 20, "{kind}: letter {number} is still there");
        assert!(number < 60, "{kind}: letter {number} is the oldest");
        first.ack().await;
        bus.close().await;
    }
}

#[tokio::test]
async fn how_large_a_message_the_broker_takes_is_found_out() {
    let prefix = unique_prefix();
    let shared = shared_broker().await;
    let bus = connect(shared.url()).await;
    let found = soon("the limit", bus.body_limit(&prefix)).await;
    assert_eq!(found, Ok(BodyLimit::Larger));
    bus.close().await;

    for most in [MAX_BODY_BYTES, 1 << 20] {
        let conf = format!("max_message_size = {most}\n");
        let settings = ServerSettings::temporary().file("rabbitmq.conf", conf);
        let broker = RabbitMq::start_with(settings).await.unwrap();
        let bus = connect(&broker.url()).await;
        let found = soon("the limit", bus.body_limit(&prefix)).await;
        assert_eq!(found, Ok(BodyLimit::AtMost(most as u64)));
        // The bus is none the worse for it.
        bus.declare(&prefix.scheduler()).await.unwrap();
        bus.publish(&prefix.scheduler(), &message("x"))
            .await
            .unwrap();
        bus.close().await;
    }
}

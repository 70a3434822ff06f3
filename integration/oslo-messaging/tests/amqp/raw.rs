//! lapin at first hand: for sending what no client sends, and for looking at queues.

use lapin::options::{
    BasicGetOptions, BasicPublishOptions, ConfirmSelectOptions, QueueDeclareOptions,
    QueueDeleteOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Connection, ConnectionProperties};

use crate::support::{PATIENCE, Place};

pub struct Raw {
    connection: Connection,
    channel: Channel,
}

impl Raw {
    pub async fn open(place: &Place) -> Self {
        let url = place.url.replacen("rabbit://", "amqp://", 1);
        let url = url.split('?').next().unwrap();
        let connection = Connection::connect(url, ConnectionProperties::default())
            .await
            .unwrap();
        let channel = connection.create_channel().await.unwrap();
        channel
            .confirm_select(ConfirmSelectOptions::default())
            .await
            .unwrap();
        Self {
            connection,
            channel,
        }
    }

    /// Publishes to a queue, with a header if wanted.
    pub async fn publish(&self, queue: &str, body: &[u8], header: Option<(&str, &str)>) {
        let mut headers = FieldTable::default();
        if let Some((name, value)) = header {
            headers.insert(name.into(), AMQPValue::LongString(value.into()));
        }
        let properties = BasicProperties::default()
            .with_content_type("application/json".into())
            .with_headers(headers);
        self.channel
            .basic_publish(
                "".into(),
                queue.into(),
                BasicPublishOptions::default(),
                body,
                properties,
            )
            .await
            .unwrap()
            .await
            .unwrap();
    }

    /// Messages that are ready, and consumers. `None` if there is no such queue.
    pub async fn look(&self, queue: &str) -> Option<(u32, u32)> {
        let channel = self.connection.create_channel().await.unwrap();
        let options = QueueDeclareOptions {
            passive: true,
            ..QueueDeclareOptions::default()
        };
        let found = channel
            .queue_declare(queue.into(), options, FieldTable::default())
            .await
            .ok()?;
        Some((found.message_count(), found.consumer_count()))
    }

    /// Makes an exclusive queue for replies.
    pub async fn reply_queue(&self) -> String {
        let options = QueueDeclareOptions {
            exclusive: true,
            ..QueueDeclareOptions::default()
        };
        let queue = self
            .channel
            .queue_declare("".into(), options, FieldTable::default())
            .await
            .unwrap();
        queue.name().to_string()
    }

    /// Waits for the next message in a queue and takes it.
    pub async fn take(&self, queue: &str) -> Vec<u8> {
        let options = BasicGetOptions { no_ack: true };
        ebbtide_harness::eventually(PATIENCE, async || {
            let got = self.channel.basic_get(queue.into(), options).await.unwrap();
            got.map(|message| message.delivery.data).ok_or("nothing")
        })
        .await
    }

    pub async fn delete(&self, queue: &str) {
        self.channel
            .queue_delete(queue.into(), QueueDeleteOptions::default())
            .await
            .unwrap();
    }

    /// Waits until nothing is ready in the queue.
    pub async fn until_empty(&self, queue: &str) {
        ebbtide_harness::eventually(PATIENCE, async || match self.look(queue).await {
            Some((0, _)) => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
    }
}

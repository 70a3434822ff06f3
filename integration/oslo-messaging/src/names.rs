//! Names of queues and exchanges, and the arguments with which they are declared
//! (`_drivers/impl_rabbit.py`, `Consumer` and `_get_queue_arguments`).

use std::sync::atomic::{AtomicU64, Ordering};

use ebbtide_runtime::ids;
use lapin::types::{AMQPValue, FieldTable};

use crate::RabbitOptions;

/// How long a copy waits for its observer, and a queue of copies for one, in milliseconds. The
/// caller of a copied request has given up by then (`rpc_response_timeout`).
const COPY_MILLIS: u64 = 60_000;
/// Most copies that wait for their observer; the oldest is thrown away for the next.
const MOST_COPIES: u64 = 1000;

/// The kind of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ExchangeKind {
    Topic,
    Fanout,
}

/// An exchange as it is declared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ExchangeDeclaration {
    pub(crate) name: String,
    pub(crate) kind: ExchangeKind,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
}

impl ExchangeDeclaration {
    /// The control exchange, which all services of a project share.
    pub(crate) fn topic(name: &str, options: &RabbitOptions) -> Self {
        Self {
            name: name.to_owned(),
            kind: ExchangeKind::Topic,
            durable: options.topic_durable(),
            auto_delete: options.auto_delete,
        }
    }

    /// The exchange that copies to all servers of a topic.
    pub(crate) fn fanout(topic: &str, options: &RabbitOptions) -> Self {
        Self {
            name: format!("{topic}_fanout"),
            kind: ExchangeKind::Fanout,
            durable: options.transient_quorum_queue,
            auto_delete: true,
        }
    }
}

/// A queue as it is declared and bound.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Queue {
    pub(crate) name: String,
    pub(crate) durable: bool,
    pub(crate) auto_delete: bool,
    pub(crate) arguments: Vec<(&'static str, Argument)>,
    /// The exchange, and the key with which it is bound there. Reply queues hang on the default
    /// exchange.
    pub(crate) binding: Option<(ExchangeDeclaration, String)>,
}

/// The value of a queue argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Argument {
    Text(&'static str),
    Number(u64),
}

impl Queue {
    /// A queue on the control exchange: of a topic, of a server, or of notifications.
    pub(crate) fn topic(name: &str, exchange: &str, options: &RabbitOptions) -> Self {
        Self {
            name: name.to_owned(),
            durable: options.topic_durable(),
            auto_delete: options.auto_delete,
            arguments: arguments(options, options.quorum_queue, false),
            binding: Some((
                ExchangeDeclaration::topic(exchange, options),
                name.to_owned(),
            )),
        }
    }

    /// A server's queue for casts to all servers of a topic.
    pub(crate) fn fanout(topic: &str, options: &RabbitOptions) -> Self {
        Self {
            name: format!("{topic}_fanout_{}", unique(options)),
            durable: options.transient_quorum_queue,
            auto_delete: false,
            arguments: arguments(options, options.transient_quorum_queue, true),
            binding: Some((
                ExchangeDeclaration::fanout(topic, options),
                topic.to_owned(),
            )),
        }
    }

    /// A queue of one observer, which gets a copy of each message to a topic. Messages hold tokens,
    /// and their reader may die: the broker throws away what is old or too much, and then the
    /// queue.
    pub(crate) fn copy(topic: &str, exchange: &str, options: &RabbitOptions) -> Self {
        let quorum = options.transient_quorum_queue;
        let mut arguments = arguments(options, quorum, false);
        arguments.extend([
            ("x-expires", Argument::Number(COPY_MILLIS)),
            ("x-message-ttl", Argument::Number(COPY_MILLIS)),
            ("x-max-length", Argument::Number(MOST_COPIES)),
        ]);
        Self {
            name: format!("{topic}_copy_{}", unique(options)),
            durable: quorum,
            auto_delete: false,
            arguments,
            binding: Some((
                ExchangeDeclaration::topic(exchange, options),
                topic.to_owned(),
            )),
        }
    }

    /// A client's queue for replies.
    pub(crate) fn reply(options: &RabbitOptions) -> Self {
        Self {
            name: format!("reply_{}", unique(options)),
            durable: options.transient_quorum_queue,
            auto_delete: false,
            arguments: arguments(options, options.transient_quorum_queue, true),
            binding: None,
        }
    }

    /// The same queue without durability, for an exchange that another program has declared without
    /// it. An exchange name exists only once.
    pub(crate) fn not_durable(&self) -> Self {
        let mut queue = self.clone();
        queue.durable = false;
        if let Some((exchange, _)) = &mut queue.binding {
            exchange.durable = false;
        }
        queue
    }

    pub(crate) fn table(&self) -> FieldTable {
        let mut table = FieldTable::default();
        for (name, value) in &self.arguments {
            let value = match value {
                Argument::Text(text) => AMQPValue::LongString((*text).into()),
                // py-amqp writes the smallest of the signed types; RabbitMQ compares the numbers.
                Argument::Number(number) => match i32::try_from(*number) {
                    Ok(small) => AMQPValue::LongInt(small),
                    Err(_) => AMQPValue::LongLongInt(i64::try_from(*number).unwrap_or(i64::MAX)),
                },
            };
            table.insert((*name).into(), value);
        }
        table
    }
}

fn arguments(
    options: &RabbitOptions,
    quorum: bool,
    transient: bool,
) -> Vec<(&'static str, Argument)> {
    let mut arguments = Vec::new();
    if options.ha_queues {
        arguments.push(("x-ha-policy", Argument::Text("all")));
    }
    if quorum {
        arguments.push(("x-queue-type", Argument::Text("quorum")));
        for (name, value) in [
            ("x-delivery-limit", options.quorum_delivery_limit.into()),
            ("x-max-in-memory-length", options.quorum_max_memory_length),
            ("x-max-in-memory-bytes", options.quorum_max_memory_bytes),
        ] {
            if value > 0 {
                arguments.push((name, Argument::Number(value)));
            }
        }
    }
    let ttl = options.transient_queues_ttl.as_secs();
    if transient && ttl > 0 {
        arguments.push(("x-expires", Argument::Number(ttl * 1000)));
    }
    arguments
}

/// The part of a transient queue's name that no other process has.
///
/// With `use_queue_manager` it is the same after a restart, so that the queues are used again.
/// oslo.messaging counts through a file, for the sake of its worker processes; we are one process,
/// and count ourselves.
fn unique(options: &RabbitOptions) -> String {
    static COUNTER: AtomicU64 = AtomicU64::new(1);
    if options.use_queue_manager {
        let number = COUNTER.fetch_add(1, Ordering::Relaxed);
        format!("{}:{}:{number}", options.hostname, options.processname)
    } else {
        ids::hex()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn by_default_queues_are_declared_as_the_captured_scheduler_declares_them() {
        let options = RabbitOptions::default();
        let queue = Queue::topic("scheduler.vm", "nova", &options);
        assert_eq!(
            (queue.durable, queue.auto_delete, queue.arguments.len()),
            (false, false, 0)
        );
        let (exchange, key) = queue.binding.unwrap();
        assert_eq!(
            (
                exchange.name.as_str(),
                key.as_str(),
                exchange.durable,
                exchange.auto_delete
            ),
            ("nova", "scheduler.vm", false, false)
        );
        let fanout = Queue::fanout("scheduler", &options);
        assert_eq!(
            fanout.arguments,
            [("x-expires", Argument::Number(1_800_000))]
        );
        assert_eq!(fanout.name.len(), "scheduler_fanout_".len() + 32);
        let (exchange, key) = fanout.binding.unwrap();
        assert_eq!(
            (
                exchange.name.as_str(),
                key.as_str(),
                exchange.durable,
                exchange.auto_delete
            ),
            ("scheduler_fanout", "scheduler", false, true)
        );
        assert_eq!(exchange.kind, ExchangeKind::Fanout);
        let reply = Queue::reply(&options);
        assert!(reply.name.starts_with("reply_") && reply.binding.is_none());
        assert_eq!(
            reply.arguments,
            [("x-expires", Argument::Number(1_800_000))]
        );
    }

    #[test]
    fn quorum_options_make_quorum_queues_with_their_limits() {
        let options = RabbitOptions {
            quorum_queue: true,
            transient_quorum_queue: true,
            quorum_delivery_limit: 5,
            quorum_max_memory_bytes: 1 << 33,
            transient_queues_ttl: Duration::ZERO,
            ..RabbitOptions::default()
        };
        let expected = [
            ("x-queue-type", Argument::Text("quorum")),
            ("x-delivery-limit", Argument::Number(5)),
            ("x-max-in-memory-bytes", Argument::Number(1 << 33)),
        ];
        for queue in [
            Queue::topic("t", "nova", &options),
            Queue::fanout("t", &options),
            Queue::reply(&options),
        ] {
            assert!(queue.durable, "{}", queue.name);
            assert_eq!(queue.arguments, expected, "{}", queue.name);
        }
    }

    #[test]
    fn the_queue_manager_names_queues_after_host_and_process() {
        let options = RabbitOptions {
            use_queue_manager: true,
            hostname: "host1".to_owned(),
            processname: "ebbtide".to_owned(),
            ..RabbitOptions::default()
        };
        let names = [Queue::reply(&options).name, Queue::reply(&options).name];
        assert!(
            names[0].starts_with("reply_host1:ebbtide:") && names[0] != names[1],
            "{names:?}"
        );
        assert!(
            Queue::fanout("t", &options)
                .name
                .starts_with("t_fanout_host1:ebbtide:")
        );
    }
}

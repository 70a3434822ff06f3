//! Our server declares, binds and consumes as the captured nova-scheduler does, method by method.

use std::io::Read;

use flate2::read::GzDecoder;
use oslo_messaging::ServerOptions;
use serde_json::{Value, json};

use crate::support::{Book, Place, private_broker};
use crate::tap::Tap;

/// Reads the values of a method's arguments (AMQP 0-9-1, section 4.2.5).
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (head, tail) = self.0.split_at(count);
        self.0 = tail;
        head.to_vec()
    }

    fn number(&mut self, bytes: usize) -> u64 {
        self.take(bytes)
            .into_iter()
            .fold(0, |n, b| n << 8 | u64::from(b))
    }

    fn short(&mut self) -> String {
        let length = self.number(1) as usize;
        String::from_utf8(self.take(length)).unwrap()
    }

    fn bits(&mut self, names: &[&'static str]) -> Vec<(&'static str, Value)> {
        let byte = self.number(1);
        let bit = |(at, name): (usize, &&'static str)| (*name, json!(byte >> at & 1 == 1));
        names.iter().enumerate().map(bit).collect()
    }

    fn table(&mut self) -> Value {
        let length = self.number(4) as usize;
        let bytes = self.take(length);
        let mut inside = Reader(&bytes);
        let mut table = serde_json::Map::new();
        while !inside.0.is_empty() {
            let name = inside.short();
            let value = match inside.number(1) as u8 {
                b'I' => json!(inside.number(4)),
                b'l' => json!(inside.number(8)),
                b'S' => {
                    let length = inside.number(4) as usize;
                    json!(String::from_utf8(inside.take(length)).unwrap())
                }
                other => panic!("a table with a value of type {}", char::from(other)),
            };
            table.insert(name, value);
        }
        Value::Object(table)
    }
}

/// The methods of one connection that declare, bind or consume, as the captures write them.
fn methods(sent: &[u8]) -> Vec<Value> {
    let mut found = Vec::new();
    // The protocol header has 8 bytes.
    let mut stream = Reader(&sent[8..]);
    while stream.0.len() >= 7 {
        let kind = stream.number(1);
        let _channel = stream.number(2);
        let length = stream.number(4) as usize;
        let payload = stream.take(length);
        assert_eq!(stream.number(1), 0xCE, "the end of a frame");
        if kind != 1 {
            continue;
        }
        let mut method = Reader(&payload);
        let id = (method.number(2), method.number(2));
        let (name, mut fields): (&str, Vec<(&str, Value)>) = match id {
            (40, 10) => (
                "Exchange.Declare",
                vec![
                    ("ticket", json!(method.number(2))),
                    ("exchange", json!(method.short())),
                    ("type", json!(method.short())),
                ],
            ),
            (50, 10) => (
                "Queue.Declare",
                vec![
                    ("ticket", json!(method.number(2))),
                    ("queue", json!(method.short())),
                ],
            ),
            (50, 20) => (
                "Queue.Bind",
                vec![
                    ("ticket", json!(method.number(2))),
                    ("queue", json!(method.short())),
                    ("exchange", json!(method.short())),
                    ("routing_key", json!(method.short())),
                ],
            ),
            (60, 20) => (
                "Basic.Consume",
                vec![
                    ("ticket", json!(method.number(2))),
                    ("queue", json!(method.short())),
                    ("consumer_tag", json!(method.short())),
                ],
            ),
            _ => continue,
        };
        fields.extend(method.bits(match name {
            "Exchange.Declare" => &["passive", "durable", "auto_delete", "internal", "nowait"],
            "Queue.Declare" => &["passive", "durable", "exclusive", "auto_delete", "nowait"],
            "Queue.Bind" => &["nowait"],
            _ => &["no_local", "no_ack", "exclusive", "nowait"],
        }));
        fields.push(("arguments", method.table()));
        let args: serde_json::Map<_, _> =
            fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect();
        found.push(json!({"name": name, "args": args}));
    }
    found
}

/// The random part of the fanout queue's name, replaced.
fn without_chance(method: &mut Value) {
    if let Some(queue) = method["args"]["queue"].as_str()
        && let Some((before, unique)) = queue.split_once("_fanout_")
    {
        assert_eq!(
            (unique.len(), unique.chars().all(|c| c.is_ascii_hexdigit())),
            (32, true)
        );
        method["args"]["queue"] = json!(format!("{before}_fanout_UNIQUE"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn our_server_declares_binds_and_consumes_as_the_captured_scheduler_does() {
    let broker = private_broker().await;
    let place = Place::on(&broker);
    let tap = Tap::start(&place.address()).await;
    let transport = place.through(tap.address()).transport();
    // The captured host is called vm.
    let server = place
        .serve(&transport, "vm", ServerOptions::default(), &Book::default())
        .await;
    let mut ours: Vec<Value> = tap.sent().iter().flat_map(|sent| methods(sent)).collect();
    server.stop(std::time::Duration::ZERO).await;
    transport.close().await;

    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/vectors/start-methods.json.gz"
    );
    let mut text = String::new();
    GzDecoder::new(std::fs::File::open(path).unwrap())
        .read_to_string(&mut text)
        .unwrap();
    let mut captured: Vec<Value> = serde_json::from_str(&text).unwrap();
    captured.retain(|method| method["name"] != "Channel.Open");
    assert_eq!(captured.len(), 12);
    ours.iter_mut()
        .chain(&mut captured)
        .for_each(without_chance);
    assert_eq!(ours, captured);
}

//! As much of AMQP 0-9-1 as it takes to know that a broker is ready (a login and the opening of the
//! virtual host), and to do what no client of Ebbtide would: publish what is too large, purge and
//! delete queues.
//!
//! Not a client: Ebbtide talks to brokers through `ebbtide-bus`. The harness must not depend on
//! what it is there to test.

use std::net::Ipv4Addr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Class and method numbers (AMQP 0-9-1 specification, section 1.4, and the XML that comes with
/// it).
const START: (u16, u16) = (10, 10);
const START_OK: (u16, u16) = (10, 11);
const TUNE: (u16, u16) = (10, 30);
const TUNE_OK: (u16, u16) = (10, 31);
const OPEN: (u16, u16) = (10, 40);
const OPEN_OK: (u16, u16) = (10, 41);
const CLOSE: (u16, u16) = (10, 50);
const CLOSE_OK: (u16, u16) = (10, 51);

const CHANNEL_OPEN: (u16, u16) = (20, 10);
const CHANNEL_OPEN_OK: (u16, u16) = (20, 11);
const PUBLISH: (u16, u16) = (60, 40);
const ACK: (u16, u16) = (60, 80);
const PURGE: (u16, u16) = (50, 30);
const PURGE_OK: (u16, u16) = (50, 31);
const DELETE: (u16, u16) = (50, 40);
const DELETE_OK: (u16, u16) = (50, 41);
const CONFIRM: (u16, u16) = (85, 10);
const CONFIRM_OK: (u16, u16) = (85, 11);

/// Types of the frames that carry a message's properties and its body.
const HEADER_FRAME: u8 = 2;
const BODY_FRAME: u8 = 3;
/// Bits of the properties that are there: delivery mode and user id.
const PROPERTIES: u16 = (1 << 12) | (1 << 4);
/// Octets of a frame around its payload.
const AROUND: usize = 8;

/// The type octet of a method frame, and the octet at the end of every frame.
const METHOD_FRAME: u8 = 1;
const FRAME_END: u8 = 0xCE;

/// RabbitMQ's first frames are a few hundred bytes; more than this is not AMQP.
const MAX_FRAME: u32 = 131_072;

/// What a failed step looks like to a person.
type Result<T> = std::result::Result<T, String>;

/// A connection that has passed the login.
pub(crate) struct Connection {
    stream: TcpStream,
    /// The largest frame that the broker takes.
    frame: usize,
}

impl Connection {
    /// Connects to 127.0.0.1, logs in as guest and opens the virtual host `/`.
    pub(crate) async fn open(port: u16) -> Result<Self> {
        Self::open_as(port, "guest", "guest").await
    }

    /// The same with another login.
    pub(crate) async fn open_as(port: u16, user: &str, password: &str) -> Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))
            .await
            .map_err(|error| format!("connection to port {port}: {error}"))?;
        let mut connection = Self { stream, frame: 0 };
        connection.write(b"AMQP\x00\x00\x09\x01").await?;
        connection.expect(0, START).await?;

        let mut login = Vec::new();
        login.extend(0_u32.to_be_bytes()); // no client properties
        short_string(&mut login, "PLAIN");
        long_string(&mut login, &format!("\0{user}\0{password}"));
        short_string(&mut login, "en_US");
        connection.send(0, START_OK, &login).await?;

        // The server's limits suit us, but for the heartbeat (the last two octets), which we do not
        // send.
        let mut limits = connection.expect(0, TUNE).await?;
        let heartbeat = limits.len().saturating_sub(2);
        limits[heartbeat..].fill(0);
        if let [_, _, a, b, c, d, ..] = limits[..] {
            connection.frame = u32::from_be_bytes([a, b, c, d]) as usize;
        }
        connection.send(0, TUNE_OK, &limits).await?;

        let mut host = Vec::new();
        short_string(&mut host, "/");
        host.extend([0, 0]); // two reserved fields
        connection.send(0, OPEN, &host).await?;
        connection.expect(0, OPEN_OK).await?;
        Ok(connection)
    }

    /// Publishes a persistent message with confirmation, on channel 1, which it opens the first
    /// time.
    pub(crate) async fn publish(
        &mut self,
        (exchange, key): (&str, &str),
        user: &str,
        bodies: &[Vec<u8>],
    ) -> Result<()> {
        self.send(1, CHANNEL_OPEN, &[0]).await?;
        self.expect(1, CHANNEL_OPEN_OK).await?;
        self.send(1, CONFIRM, &[0]).await?;
        self.expect(1, CONFIRM_OK).await?;
        for body in bodies {
            let mut to = vec![0, 0];
            short_string(&mut to, exchange);
            short_string(&mut to, key);
            to.push(0);
            self.send(1, PUBLISH, &to).await?;
            let mut header = Vec::new();
            header.extend(60_u16.to_be_bytes());
            header.extend([0, 0]); // weight, unused
            header.extend((body.len() as u64).to_be_bytes());
            header.extend(PROPERTIES.to_be_bytes());
            header.push(2); // persistent
            short_string(&mut header, user);
            self.send_frame(HEADER_FRAME, 1, &header).await?;
            for part in body.chunks(self.frame.saturating_sub(AROUND).max(1)) {
                self.send_frame(BODY_FRAME, 1, part).await?;
            }
            self.expect(1, ACK).await?;
        }
        Ok(())
    }

    /// Throws away what is in a queue and not on its way to a consumer.
    pub(crate) async fn purge(&mut self, queue: &str) -> Result<()> {
        self.about(queue, PURGE, PURGE_OK).await
    }

    /// Removes a queue with all that is in it.
    pub(crate) async fn delete(&mut self, queue: &str) -> Result<()> {
        self.about(queue, DELETE, DELETE_OK).await
    }

    /// Asks for something that a queue's name says all of, on channel 1, which it opens.
    async fn about(&mut self, queue: &str, ask: (u16, u16), answer: (u16, u16)) -> Result<()> {
        self.send(1, CHANNEL_OPEN, &[0]).await?;
        self.expect(1, CHANNEL_OPEN_OK).await?;
        let mut arguments = vec![0, 0];
        short_string(&mut arguments, queue);
        arguments.push(0); // no conditions, and an answer
        self.send(1, ask, &arguments).await?;
        self.expect(1, answer).await.map(drop)
    }

    /// Says goodbye, so that the broker's log has no complaint.
    pub(crate) async fn close(mut self) -> Result<()> {
        let mut farewell = Vec::new();
        farewell.extend(200_u16.to_be_bytes());
        short_string(&mut farewell, "bye");
        farewell.extend([0; 4]); // no method is to blame
        self.send(0, CLOSE, &farewell).await?;
        self.expect(0, CLOSE_OK).await.map(drop)
    }

    async fn send(&mut self, channel: u16, method: (u16, u16), arguments: &[u8]) -> Result<()> {
        let mut payload = Vec::with_capacity(arguments.len() + 4);
        payload.extend(method.0.to_be_bytes());
        payload.extend(method.1.to_be_bytes());
        payload.extend(arguments);
        self.send_frame(METHOD_FRAME, channel, &payload).await
    }

    async fn send_frame(&mut self, kind: u8, channel: u16, payload: &[u8]) -> Result<()> {
        let size = u32::try_from(payload.len()).map_err(|error| error.to_string())?;
        let mut frame = vec![kind];
        frame.extend(channel.to_be_bytes());
        frame.extend(size.to_be_bytes());
        frame.extend(payload);
        frame.push(FRAME_END);
        self.write(&frame).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream
            .write_all(bytes)
            .await
            .map_err(|error| format!("sending failed: {error}"))
    }

    /// Reads frames up to the next method frame, which must be `method`; returns its arguments.
    async fn expect(&mut self, channel: u16, method: (u16, u16)) -> Result<Vec<u8>> {
        loop {
            let (kind, from, payload) = self.frame().await?;
            if kind != METHOD_FRAME {
                continue; // a heartbeat
            }
            let [c1, c2, m1, m2, arguments @ ..] = payload.as_slice() else {
                return Err(format!("a method frame of {} bytes", payload.len()));
            };
            let got = (
                u16::from_be_bytes([*c1, *c2]),
                u16::from_be_bytes([*m1, *m2]),
            );
            if got == method && from == channel {
                return Ok(arguments.to_vec());
            }
            return Err(format!(
                "method {method:?} on channel {channel} was expected, {got:?} on channel {from} came: {}",
                String::from_utf8_lossy(arguments).escape_debug()
            ));
        }
    }

    async fn frame(&mut self) -> Result<(u8, u16, Vec<u8>)> {
        let failed = |error: std::io::Error| format!("reading failed: {error}");
        let kind = self.stream.read_u8().await.map_err(failed)?;
        if kind == b'A' {
            // "AMQP" and a version: how a broker refuses the one that was asked for.
            return Err("the broker speaks another version of AMQP".to_owned());
        }
        let channel = self.stream.read_u16().await.map_err(failed)?;
        let size = self.stream.read_u32().await.map_err(failed)?;
        if size > MAX_FRAME {
            return Err(format!("a frame of {size} bytes: this is not AMQP"));
        }
        let mut payload = vec![0; size as usize];
        self.stream.read_exact(&mut payload).await.map_err(failed)?;
        match self.stream.read_u8().await.map_err(failed)? {
            FRAME_END => Ok((kind, channel, payload)),
            other => Err(format!("a frame that ends with {other:#x}")),
        }
    }
}

/// At most 255 bytes, which all of ours are.
fn short_string(to: &mut Vec<u8>, text: &str) {
    to.push(u8::try_from(text.len()).unwrap_or(u8::MAX));
    to.extend(text.bytes().take(usize::from(u8::MAX)));
}

fn long_string(to: &mut Vec<u8>, text: &str) {
    to.extend(u32::try_from(text.len()).unwrap_or(u32::MAX).to_be_bytes());
    to.extend(text.bytes());
}

#[cfg(test)]
impl Connection {
    /// Opens channel 1 and declares a durable queue, or asks (`passive`) whether it exists.
    pub(crate) async fn declare_queue(&mut self, name: &str, passive: bool) -> Result<()> {
        self.send(1, (20, 10), &[0]).await?;
        self.expect(1, (20, 11)).await?;
        let mut arguments = vec![0, 0];
        short_string(&mut arguments, name);
        arguments.push(2 | u8::from(passive)); // durable
        arguments.extend([0; 4]);
        self.send(1, (50, 10), &arguments).await?;
        self.expect(1, (50, 11)).await.map(drop)
    }
}

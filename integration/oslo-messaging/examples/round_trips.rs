//! Measures calls through a broker: client and server in this process, bodies of the size of
//! Nova's.
//!
//! ```text
//! cargo run --release -p oslo-messaging --example round_trips -- rabbit://guest:guest@localhost/
//! [CALLS] [IN_FLIGHT] [BYTES]
//! ```

use std::sync::Arc;
use std::time::Duration;

use ebbtide_runtime::clock;
use oslo_messaging::{
    AckMode, CallOptions, Endpoint, EndpointTarget, HandlerFuture, IncomingCall, Map,
    RabbitOptions, RpcClient, RpcServer, ServerOptions, Target, Transport, TransportUrl,
};
use serde_json::{Value, json};
use tokio::task::JoinSet;

struct Echo;

impl Endpoint for Echo {
    fn target(&self) -> EndpointTarget {
        EndpointTarget::version(1, 0)
    }

    fn methods(&self) -> &[&str] {
        &["echo"]
    }

    fn handle(&self, call: IncomingCall) -> HandlerFuture<'_> {
        Box::pin(async move { Ok(Value::Object(call.args)) })
    }
}

#[tokio::main]
// Measuring is what this program is for; it prints what it has measured.
#[allow(clippy::print_stdout)]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let url: TransportUrl = arguments
        .next()
        .ok_or("usage: round_trips TRANSPORT_URL [CALLS] [IN_FLIGHT] [BYTES]")?
        .parse()?;
    let mut number = |default: usize| arguments.next().map_or(Ok(default), |text| text.parse());
    let (calls, in_flight, bytes) = (number(2000)?, number(1)?.max(1), number(6000)?);
    let options = RabbitOptions::for_url(&url, |_| None)?;
    let transport = Transport::start(&url, options, "round-trips")?;
    let client = RpcClient::new(&transport);
    let args: Map = json!({"text": "x".repeat(bytes)})
        .as_object()
        .cloned()
        .unwrap_or_default();
    for ack in [AckMode::Late, AckMode::Early] {
        let target = Target::topic(format!("round-trips-{}", std::process::id())).version(1, 0);
        let options = ServerOptions {
            ack,
            ..ServerOptions::default()
        };
        let endpoints: Vec<Arc<dyn Endpoint>> = vec![Arc::new(Echo)];
        let server = RpcServer::start(
            &transport,
            &target.clone().server("here"),
            options,
            endpoints,
        )
        .await?;
        let began = clock::instant();
        let mut callers = JoinSet::new();
        for _ in 0..in_flight {
            let (client, target, args) = (client.clone(), target.clone(), args.clone());
            callers.spawn(async move {
                let mut times = Vec::new();
                for _ in 0..calls / in_flight {
                    let one = clock::instant();
                    client
                        .call(&target, &Map::new(), "echo", &args, &CallOptions::default())
                        .await?;
                    times.push(one.elapsed());
                }
                Ok::<_, oslo_messaging::MessagingError>(times)
            });
        }
        let mut times = Vec::new();
        while let Some(done) = callers.join_next().await {
            times.extend(done??);
        }
        let whole = began.elapsed();
        times.sort_unstable();
        let at = |part: usize| {
            times
                .get(times.len() * part / 100)
                .copied()
                .unwrap_or_default()
        };
        println!(
            "{ack:?}: {} calls, {in_flight} in flight, {bytes} bytes: median {:?}, p90 {:?}, p99 {:?}; {:.0} calls/s",
            times.len(),
            at(50),
            at(90),
            at(99),
            times.len() as f64 / whole.as_secs_f64()
        );
        server.stop(Duration::from_secs(5)).await;
    }
    transport.close().await;
    Ok(())
}

//! A server with three methods, for any oslo.messaging client.
//!
//! ```text
//! cargo run -p oslo-messaging --example echo_server -- rabbit://guest:guest@localhost/ demo host-1
//! ```
//!
//! Methods of version 1.2: `echo` gives its arguments back, `sleep` does so after `seconds`, `fail`
//! raises `ValueError`. Ctrl-C stops it.

use std::sync::Arc;
use std::time::Duration;

use oslo_messaging::{
    Endpoint, EndpointTarget, HandlerFuture, IncomingCall, RabbitOptions, RemoteError, RpcServer,
    ServerOptions, Target, Transport, TransportUrl,
};
use serde_json::{Value, json};

struct Echo;

impl Endpoint for Echo {
    fn target(&self) -> EndpointTarget {
        EndpointTarget::version(1, 2)
    }

    fn methods(&self) -> &[&str] {
        &["echo", "sleep", "fail"]
    }

    fn handle(&self, call: IncomingCall) -> HandlerFuture<'_> {
        Box::pin(async move {
            // People and tests want to see when the work begins.
            #[allow(clippy::print_stdout)]
            {
                println!("BEGIN {} redelivered={}", call.method, call.redelivered);
            }
            match call.method.as_str() {
                "sleep" => {
                    let seconds = call.args.get("seconds").and_then(Value::as_f64);
                    let seconds =
                        seconds
                            .filter(|s| (0.0..3600.0).contains(s))
                            .ok_or_else(|| {
                                RemoteError::builtin(
                                    "ValueError",
                                    "seconds must be between 0 and 3600",
                                )
                            })?;
                    tokio::select! {
                        () = tokio::time::sleep(Duration::from_secs_f64(seconds)) => {}
                        // The caller is gone and will not read the answer.
                        () = call.state.abandoned().cancelled() => {}
                    }
                }
                "fail" => {
                    return Err(RemoteError::builtin("ValueError", "as you asked for").expected());
                }
                _ => {}
            }
            Ok(json!({"args": call.args, "redelivered": call.redelivered}))
        })
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .init();
    let mut arguments = std::env::args().skip(1);
    let (Some(url), Some(topic), Some(server)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: echo_server TRANSPORT_URL TOPIC SERVER".into());
    };
    let url: TransportUrl = url.parse()?;
    let options = RabbitOptions::for_url(&url, |_| None)?;
    let transport = Transport::start(&url, options, "openstack")?;
    let target = Target::topic(topic).server(server);
    let endpoints: Vec<Arc<dyn Endpoint>> = vec![Arc::new(Echo)];
    let server = RpcServer::start(&transport, &target, ServerOptions::default(), endpoints).await?;
    #[allow(clippy::print_stdout)]
    {
        println!("READY");
    }
    tokio::signal::ctrl_c().await?;
    let report = server.stop(Duration::from_secs(10)).await;
    transport.close().await;
    tracing::info!(report.unfinished, "stopped");
    Ok(())
}

//! Calls a method of any oslo.messaging server and prints the result.
//!
//! ```text
//! cargo run -p oslo-messaging --example call -- rabbit://guest:guest@localhost/ demo 1.0 echo
//! '{"greeting": "hello"}'
//! ```

use std::time::Duration;

use oslo_messaging::{
    CallOptions, Map, MessagingError, RabbitOptions, RpcClient, Target, Transport, TransportUrl,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [url, topic, version, method, args] = arguments.as_slice() else {
        return Err("usage: call TRANSPORT_URL TOPIC VERSION METHOD JSON".into());
    };
    let url: TransportUrl = url.parse()?;
    let transport = Transport::start(&url, RabbitOptions::for_url(&url, |_| None)?, "openstack")?;
    transport.wait_connected(Duration::from_secs(10)).await?;
    let client = RpcClient::new(&transport);
    let mut target = Target::topic(topic);
    target.version = Some(version.parse()?);
    let args: Map = serde_json::from_str(args)?;
    let options = CallOptions {
        call_monitor_timeout: Some(Duration::from_secs(10)),
        ..CallOptions::default()
    };
    let outcome = client
        .call(&target, &Map::new(), method, &args, &options)
        .await;
    transport.close().await;
    #[allow(clippy::print_stdout)]
    match outcome {
        Ok(result) => println!("{result:#}"),
        Err(MessagingError::Remote(failure)) => {
            println!("{failure}");
            return Err("the method failed".into());
        }
        Err(error) => return Err(error.into()),
    }
    Ok(())
}

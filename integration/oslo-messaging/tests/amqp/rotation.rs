//! New logins for the broker, while a server and a client use it.

use crate::support::{Book, Place, args, private_broker, soon};
use ebbtide_harness::eventually;
use ebbtide_runtime::login::Renewal;
use oslo_messaging::{CallOptions, RpcClient, ServerOptions, TransportUrl};
use serde_json::json;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_new_password_counts_for_new_connections_and_a_wrong_one_for_none() {
    let broker = private_broker().await;
    let control = async |arguments: &[&str]| broker.control(arguments).await.unwrap();
    control(&["add_user", "nova", "old"]).await;
    control(&["set_permissions", "nova", ".*", ".*", ".*"]).await;
    let mut place = Place::on(&broker);
    let with = |url: &str, password: &str| url.replace("guest:guest", &format!("nova:{password}"));
    let guest = place.url.clone();
    place.url = with(&guest, "old");
    let (transport, book) = (place.transport(), Book::default());
    let _server = place
        .serve(&transport, "h1", ServerOptions::default(), &book)
        .await;
    let client = RpcClient::new(&transport);
    let call = async |what: &str| {
        let (target, none) = (place.target(), args(json!({})));
        let options = CallOptions::default();
        let call = client.call(&target, &none, "echo", &none, &options);
        soon(what, call)
            .await
            .unwrap_or_else(|error| panic!("{what}: {error}"));
    };
    let url = |password: &str| with(&guest, password).parse::<TransportUrl>().unwrap();
    // When a connection is cut, a request that is published before the server has its queue again
    // is an error that says so: the caller waits for the connection, as a conductor would.
    let cut = async || {
        control(&["close_all_user_connections", "nova", "the test rotates"]).await;
        soon(
            "the connection",
            transport.wait_connected(crate::support::PATIENCE),
        )
        .await
        .unwrap();
    };
    call("with the old password").await;

    let error = transport.renew_logins(&url("geheim")).await.unwrap_err();
    assert_eq!(error.code(), "EB-OSLO-005", "{error}");
    assert!(!error.to_string().contains("geheim"), "{error}");
    cut().await;
    call("with the old password after a wrong one").await;

    control(&["change_password", "nova", "new"]).await;
    call("on the connections of the old password").await;
    let renewed = soon("the renewal", transport.renew_logins(&url("new")))
        .await
        .unwrap();
    assert_eq!(renewed, Renewal::Accepted);
    cut().await;
    call("with the new password").await;

    // Nothing is valid, and the correction counts at once.
    control(&["change_password", "nova", "newest"]).await;
    control(&["close_all_user_connections", "nova", "the test rotates"]).await;
    let renewed = soon("the renewal", transport.renew_logins(&url("newest")))
        .await
        .unwrap();
    assert_eq!(renewed, Renewal::Accepted);
    // Until the link has tried the new login, its state is the refusal of the old one.
    eventually(crate::support::PATIENCE, async || {
        let connected = transport.wait_connected(crate::support::PATIENCE).await;
        connected.map_err(|error| error.to_string())
    })
    .await;
    call("with the newest password").await;
    transport.close().await;
}

//! The console on both clouds: who gets it, and what protects it.

use crate::curl::{HttpService, ask};
use crate::openstack::OpenStack;
use crate::region::Region;

/// What holds on either cloud, for a caller without a token.
async fn serves_the_console(cloud: &impl HttpService) {
    let page = ask(cloud, "", "/console/", &[]).await;
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(page.header("referrer-policy"), Some("no-referrer"));
    assert_eq!(page.header("set-cookie"), None);
    // A build without Node.js has a page that says how to get the console.
    let built = page.body.contains("/console/assets/");
    assert!(
        built || page.body.contains("./console/build"),
        "{}",
        page.body
    );
    assert_eq!(page.status, if built { 200 } else { 404 });

    let browser = ["--header", "accept: text/html,*/*;q=0.8"];
    let top = ask(cloud, "", "/", &browser).await;
    assert_eq!(
        (top.status, top.header("location")),
        (303, Some("/console/"))
    );
    let client = ask(cloud, "", "/", &[]).await;
    assert!(client.json()["versions"].is_array());

    // Its files need no token; what it reads does.
    let read = ask(cloud, "", "/v1/evacuations", &[]).await;
    assert_eq!(read.status, 401, "{}", read.body);
    assert_eq!(read.header("access-control-allow-origin"), None);
    assert_eq!(read.header("x-content-type-options"), Some("nosniff"));
}

#[tokio::test]
async fn a_region_serves_the_console_to_every_browser_and_data_only_to_tokens() {
    serves_the_console(&Region::start("").await).await;
}

#[tokio::test]
async fn an_openstack_serves_the_console_to_every_browser_and_data_only_to_tokens() {
    let cloud = OpenStack::start("").await;
    serves_the_console(&cloud).await;
    cloud.end().await;
}

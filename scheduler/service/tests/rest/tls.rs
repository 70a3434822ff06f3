//! REST by TLS: the port offers HTTP/2 and HTTP/1.1, and says so in its links.

use ebbtide_bus::InProcessBroker;
use ebbtide_scheduler::{Config, NamedBus};
use std::path::Path;
use std::sync::Arc;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn both_versions_of_http_are_spoken_by_tls() {
    let dir = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let write = |name: &str, text: String| {
        let path = dir.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let certificate = write("server.crt", made.cert.pem());
    let key = write("server.key", made.signing_key.serialize_pem());
    let database = format!("sqlite://{}", dir.path().join("region.db").display());
    let text = format!(
        "[grpc]\nlisten = \"127.0.0.1:0\"\n[grpc.tls]\ncertificate = {certificate:?}\n\
         key = {key:?}\n[http]\nlisten = \"127.0.0.1:0\"\n[database]\nurl = {database:?}\n"
    );
    let config: Config = toml::from_str(&text).unwrap();
    let stop = CancellationToken::new();
    let bus = NamedBus {
        name: "in-process",
        logins: None,
        bus: Arc::new(InProcessBroker::new().connect()),
    };
    let running = ebbtide_scheduler::start(config, bus, stop.clone());
    let running = running.await.unwrap();
    let port = running.grpc.port();
    for (option, version) in [("--http2", "HTTP/2 "), ("--http1.1", "HTTP/1.1")] {
        let answer = get(Path::new(&certificate), port, option).await;
        assert!(answer.starts_with(version), "{answer}");
        let link = format!("\"https://localhost:{port}/v1/\"");
        assert!(answer.contains(&link), "{answer}");
    }
    stop.cancel();
    running.finish().await.unwrap();
}

async fn get(certificate: &Path, port: u16, option: &str) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--include", "--max-time", "30"])
        .arg("--cacert")
        .arg(certificate)
        .args([option, &format!("https://localhost:{port}/")])
        .output()
        .await
        .expect("curl is needed for this test");
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

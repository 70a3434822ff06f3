//! `ebbtide batch submit --wait` against a batch service that the test plays: how it ends.

use crate::run::alone;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A work of two members, as the service shows it.
fn work(state: &str, deadline_met: Option<bool>) -> Value {
    json!({
        "id": 7, "name": "render", "state": state, "members": 2, "done": 2, "running": 0,
        "submitted_ms": 0, "deadline_ms": 60_000, "deadline_met": deadline_met,
        "spent": "0.01", "budget": null, "dir": "/shared", "list": [], "maps": [],
    })
}

/// Answers every call with this work; the service's address.
async fn service(work: Value) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = Vec::new();
            let mut part = [0; 4096];
            // The body of a call is an object, or there is none.
            while !asked.ends_with(b"}") && !asked.ends_with(b"\r\n\r\n") {
                let read = stream.read(&mut part).await.unwrap();
                asked.extend_from_slice(&part[..read]);
            }
            let body = work.to_string();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
                 connection: close\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    address
}

/// Hands a work in and waits; the exit code and what was said.
async fn submit(work: Value) -> (u8, String, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("work.json");
    std::fs::write(&file, json!({"name": "render"}).to_string()).unwrap();
    let service = service(work).await;
    let file = file.to_str().unwrap();
    let ran = alone(&["batch", "--service", &service, "submit", file, "--wait"]).await;
    (ran.code, ran.out, ran.err)
}

#[tokio::test]
async fn a_work_that_is_late_has_an_exit_code_of_its_own() {
    for met in [Some(true), None] {
        let (code, out, err) = submit(work("done", met)).await;
        assert_eq!(code, 0, "{err}");
        assert!(out.contains("render"), "{out}");
    }
    let (code, out, err) = submit(work("done", Some(false))).await;
    assert_eq!(code, 5, "{err}");
    assert!(out.contains("render"), "{out}");
    assert!(
        err.contains("EB-BATCH-018: work 7 is done, and missed its deadline")
            && err.contains("ebbtide batch report 7"),
        "{err}"
    );
    let (code, _, err) = submit(work("failed", Some(false))).await;
    assert_eq!(code, 1, "{err}");
    assert!(err.contains("EB-BATCH-015"), "{err}");
}

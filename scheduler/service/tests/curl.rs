//! Requests as a user sends them: by curl.

use serde_json::Value;
use std::net::SocketAddr;
use std::process::Stdio;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// An API that answers somewhere.
pub(crate) trait HttpService {
    fn address(&self) -> SocketAddr;
}

/// An answer.
#[derive(Debug)]
pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    /// Status line and headers, in lower case.
    pub(crate) head: String,
    pub(crate) body: String,
}

impl HttpAnswer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        let mut lines = self.head.lines();
        lines.find_map(|line| line.strip_prefix(&prefix))
    }
}

fn curl(region: &impl HttpService, token: &str, path: &str, options: &[&str]) -> Command {
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--show-error", "--max-time", "30"])
        .args(options)
        .arg(format!("http://{}{path}", region.address()))
        .kill_on_drop(true);
    if !token.is_empty() {
        command.args(["--header", &format!("authorization: Bearer {token}")]);
    }
    command
}

/// Sends a request with curl's options, and reads the answer.
pub(crate) async fn ask(
    region: &impl HttpService,
    token: &str,
    path: &str,
    options: &[&str],
) -> HttpAnswer {
    let mut command = curl(region, token, path, &[&["--include"], options].concat());
    let output = command
        .output()
        .await
        .expect("curl is needed for this test");
    assert!(output.status.success(), "{path}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    HttpAnswer {
        status: head.split(' ').nth(1).unwrap().parse().unwrap(),
        head: head.to_lowercase(),
        body: body.to_owned(),
    }
}

/// A reader of Server-Sent Events.
pub(crate) struct Events {
    lines: Lines<BufReader<ChildStdout>>,
    _curl: Child,
}

impl Events {
    /// Starts to read.
    pub(crate) fn of(region: &impl HttpService, token: &str, path: &str) -> Self {
        let mut command = curl(region, token, path, &["--no-buffer"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        Self {
            lines: BufReader::new(stdout).lines(),
            _curl: child,
        }
    }

    /// The lines of the next event; none if the stream has ended.
    pub(crate) async fn next(&mut self) -> Vec<String> {
        let mut event = Vec::new();
        while let Some(line) = self.lines.next_line().await.unwrap() {
            match line.as_str() {
                "" if event.is_empty() => {}
                "" => break,
                comment if comment.starts_with(':') => {}
                _ => event.push(line),
            }
        }
        event
    }
}

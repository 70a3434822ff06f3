//! The real Placement, as a process.

use serde_json::Value;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

pub(crate) struct Oracle {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Oracle {
    pub(crate) fn start() -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle/placement_server.py");
        let mut child = Command::new("/usr/bin/python3")
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("/usr/bin/python3 starts");
        let to = child.stdin.take().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap());
        Self { child, to, from }
    }

    pub(crate) fn ask(&mut self, line: &Value) -> Value {
        let said = writeln!(self.to, "{line}").and_then(|()| self.to.flush());
        let mut answer = String::new();
        let heard = said.and_then(|()| self.from.read_line(&mut answer));
        assert!(
            heard.is_ok_and(|bytes| bytes > 0),
            "the real Placement has ended; it needs Debian's python3-placement: `bash devstack/lib/packages.sh placement`"
        );
        serde_json::from_str(&answer).expect("an answer")
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

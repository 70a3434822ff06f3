//! The real Placement (Debian's python3-placement) as a process, which answers beside the model.

use serde_json::Value;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/oracle/placement_server.py");
const NEEDED: &str = "the real Placement has ended; it needs Debian's python3-placement: \
                      `bash devstack/lib/packages.sh placement`";

/// A Placement of its own, over a database in memory. It ends with this value.
#[derive(Debug)]
pub struct PlacementProcess {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl PlacementProcess {
    /// Starts it.
    ///
    /// # Errors
    /// When /usr/bin/python3 does not start. Whether Placement is installed the first answer tells.
    pub fn start() -> io::Result<Self> {
        let mut child = Command::new("/usr/bin/python3")
            .arg(SCRIPT)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let ends = child.stdin.take().zip(child.stdout.take());
        let (to, from) = ends.ok_or_else(|| io::Error::other("the process has no pipes"))?;
        let from = BufReader::new(from);
        Ok(Self { child, to, from })
    }

    /// The answer to one line: `{"reset": true}`, which removes everything but the standard classes
    /// and traits, or a request (`method`, `path`, `version`, `body`), answered by `status` and
    /// `body`.
    ///
    /// # Errors
    /// When the process has ended or its answer is not JSON.
    pub fn ask(&mut self, line: &Value) -> io::Result<Value> {
        let ended = |_| io::Error::other(NEEDED);
        writeln!(self.to, "{line}")
            .and_then(|()| self.to.flush())
            .map_err(ended)?;
        let mut answer = String::new();
        if self.from.read_line(&mut answer)? == 0 {
            return Err(io::Error::other(NEEDED));
        }
        serde_json::from_str(&answer).map_err(io::Error::other)
    }
}

impl Drop for PlacementProcess {
    fn drop(&mut self) {
        // It may have ended by itself, which the last answer has told.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

//! Network namespaces side by side. A test can drop packets between them in one direction, as a
//! broken switch, a full connection table of a firewall or a lost route does. Connections stay open
//! on both sides, and neither side is notified.
//!
//! The test calls [`in_private_network`](crate::hypervisor::in_private_network) first, so that the
//! rest of the machine is not affected and everything ends with the test. Then [`Network::beside`]
//! makes another network namespace, connected with a pair of virtual interfaces. Servers listen on
//! the loopback interface of the test's own network as always. Processes inside the other namespace
//! reach them at [`Network::gateway`].

use crate::error::{Error, Result};
use crate::process::{Process, ProcessCommand};
use crate::programs;
use std::io::Write;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// Which packets are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Those that the processes inside send.
    Out,
    /// Those that are sent to them.
    In,
    /// All.
    Both,
}

/// A network namespace beside the test's own.
#[derive(Debug)]
pub struct Network {
    /// Lives as long as the namespace is needed.
    holder: Process,
    number: u8,
    table: String,
}

impl Network {
    /// Makes one. `number`: another one for each network of the test. `ports`: what those inside
    /// may reach on the test's loopback interface.
    ///
    /// # Errors
    /// [`Error::ProgramMissing`]; [`Error::Failed`] with what `ip` or `nft` said, for instance
    /// because this is not root.
    pub fn beside(number: u8, ports: &[u16], log: &Path) -> Result<Self> {
        programs::find("ip", "network")?;
        programs::find("nft", "network")?;
        let holder = ProcessCommand::new(
            "a network of its own",
            programs::find("unshare", "network")?,
        )
        // It is there as soon as it has made its interface known.
        .args(["--net", "sh", "-c"])
        .arg("ip link set lo up && exec sleep infinity")
        .spawn(log)?;
        let network = Self {
            holder,
            number,
            table: format!("beside{number}"),
        };
        network.wait_until_it_is_there()?;
        network.connect(ports)?;
        Ok(network)
    }

    /// Until the holder has left the test's network, its path leads to that.
    fn wait_until_it_is_there(&self) -> Result<()> {
        let file = Path::new("/proc/self/ns/net");
        let ours = std::fs::read_link(file).map_err(Error::io("read", file))?;
        for _ in 0..500 {
            if std::fs::read_link(self.path()).is_ok_and(|theirs| theirs != ours) {
                return Ok(());
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        Err(Error::Failed {
            program: "unshare --net".to_owned(),
            status: "no namespace within 5 s".to_owned(),
            output: self.holder.log_tail(),
        })
    }

    fn connect(&self, ports: &[u16]) -> Result<()> {
        let (outer, pid) = (self.interface(), self.holder.pid());
        let (gateway, address) = (self.gateway(), self.address());
        run(
            "ip",
            &["-batch", "-"],
            &format!(
                "link add {outer} type veth peer name eth0 netns {pid}\n\
                 addr add {gateway}/30 dev {outer}\nlink set {outer} up\n"
            ),
        )?;
        run(
            "nsenter",
            &[
                &format!("--net={}", self.path().display()),
                "ip",
                "-batch",
                "-",
            ],
            &format!("addr add {address}/30 dev eth0\nlink set eth0 up\n"),
        )?;
        // What comes for the gateway may be handed to servers on the loopback interface, which take
        // those inside for neighbours.
        let file = format!("/proc/sys/net/ipv4/conf/{outer}/route_localnet");
        let file = Path::new(&file);
        std::fs::write(file, "1").map_err(Error::io("write", file))?;
        let table = &self.table;
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let ports = ports.join(", ");
        self.nft(&format!(
            "table ip {table} {{\n\
             chain way {{ type nat hook prerouting priority -100; iifname {outer} tcp dport {{ {ports} }} dnat to 127.0.0.1; }}\n\
             chain back {{ type nat hook input priority 100; iifname {outer} snat to 127.0.0.1; }}\n\
             chain out {{ type filter hook prerouting priority -300; }}\n\
             chain in {{ type filter hook postrouting priority 300; }}\n}}\n"
        ))
    }

    /// From now on packets between those inside and this port are dropped in this direction, also
    /// on connections that are open.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn cut(&self, port: u16, direction: Direction) -> Result<()> {
        let (table, outer) = (&self.table, self.interface());
        let out = format!("add rule ip {table} out iifname {outer} tcp dport {port} drop\n");
        let inward = format!("add rule ip {table} in oifname {outer} tcp sport {port} drop\n");
        self.nft(&match direction {
            Direction::Out => out,
            Direction::In => inward,
            Direction::Both => out + &inward,
        })
    }

    /// Packets get through again.
    ///
    /// # Errors
    /// [`Error::Failed`].
    pub fn heal(&self) -> Result<()> {
        let table = &self.table;
        self.nft(&format!(
            "flush chain ip {table} out\nflush chain ip {table} in\n"
        ))
    }

    /// The namespace, for `nsenter --net=`.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/{}/ns/net", self.holder.pid()))
    }

    /// Where those inside find the test's servers.
    #[must_use]
    pub fn gateway(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.number, 1)
    }

    /// Where those inside are found.
    #[must_use]
    pub fn address(&self) -> Ipv4Addr {
        Ipv4Addr::new(10, 213, self.number, 2)
    }

    fn interface(&self) -> String {
        format!("beside{}", self.number)
    }

    fn nft(&self, rules: &str) -> Result<()> {
        run("nft", &["-f", "-"], rules)
    }
}

/// Runs a small program to its end, with something on its standard input.
fn run(program: &str, arguments: &[&str], input: &str) -> Result<()> {
    let failed = |status: String, output: String| Error::Failed {
        program: format!("{program} {} <<<{input:?}", arguments.join(" ")),
        status,
        output,
    };
    let not_started = |error: std::io::Error| failed("not started".to_owned(), error.to_string());
    let mut child = std::process::Command::new(programs::find(program, "network")?)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(not_started)?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes()).map_err(not_started)?;
    }
    let output = child.wait_with_output().map_err(not_started)?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(failed(output.status.to_string(), said))
}

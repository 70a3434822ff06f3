//! What `ebbtide-batch` says of its own health: its pages, and what it tells a service manager.

use super::kit::flavor;
use ebbtide_harness::{Process, ProcessCommand, eventually, free_port};
use ebbtide_integration_tests::region::{PATIENCE, bin};
use ebbtide_integration_tests::{Region, RegionOptions};
use std::os::unix::net::UnixDatagram;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

/// A service on a region, as a rehearsal: there is no Slurm.
struct BatchService {
    process: Process,
    pages: String,
    /// What systemd would hear.
    manager: UnixDatagram,
}

impl BatchService {
    fn start(region: &Region) -> Self {
        let path = |name: &str| region.dir().join(name);
        let pages = format!("127.0.0.1:{}", free_port().unwrap());
        let text = format!(
            "state_dir = \"{}\"\nlisten = \"unix:{}\"\npoll_seconds = 0.25\nrehearse = true\n\
             [http]\nlisten = \"{pages}\"\n[slurm]\n\
             [region]\nendpoint = \"{}\"\nproject = \"batch\"\n\
             [[types]]\nname = \"spot\"\nnodes = \"c[1-4]\"\nflavor = \"spot\"\n\
             market = \"preemptible\"\nvcpus = 4\nmemory_mb = 4000\nprice = \"0.03\"\nmaps = true\n",
            path("batch").display(),
            path("batch.sock").display(),
            region.endpoint().unwrap(),
        );
        std::fs::write(path("batch.toml"), text).unwrap();
        let credentials = path("credentials");
        std::fs::create_dir(&credentials).unwrap();
        let token = credentials.join("ebbtide_token_file");
        std::fs::write(token, "a token of more than sixteen characters\n").unwrap();
        let manager = UnixDatagram::bind(path("notify.sock")).unwrap();
        manager.set_nonblocking(true).unwrap();
        let process = ProcessCommand::new("ebbtide-batch", bin("ebbtide-batch"))
            .args(["run", "--config"])
            .arg(path("batch.toml"))
            .env("NOTIFY_SOCKET", path("notify.sock"))
            .env("WATCHDOG_USEC", "9000000")
            .env("CREDENTIALS_DIRECTORY", &credentials)
            .spawn(path("batch.log"));
        Self {
            process: process.unwrap(),
            pages,
            manager,
        }
    }

    /// A page: its status and text.
    async fn page(&self, path: &str) -> Result<(u16, String), String> {
        let read = async {
            let mut stream = tokio::net::TcpStream::connect(&self.pages).await?;
            let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).await?;
            let mut text = String::new();
            stream.read_to_string(&mut text).await?;
            Ok::<_, std::io::Error>(text)
        };
        let text = read.await.map_err(|error| error.to_string())?;
        let (head, body) = text.split_once("\r\n\r\n").ok_or("no answer")?;
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Ok((status.ok_or("no status")?, body.to_owned()))
    }

    /// Waits until a page has this status and says this.
    async fn until(&self, path: &str, status: u16, words: &str) {
        eventually(PATIENCE, async || {
            let (is, text) = self.page(path).await?;
            match is == status && text.contains(words) {
                true => Ok(()),
                false => Err(format!("{path}: {is}\n{text}\n{}", self.process.log_tail())),
            }
        })
        .await;
    }

    /// Waits until the service manager hears this. What it heard before is not looked at again.
    async fn until_told(&self, words: &str) {
        eventually(PATIENCE, async || {
            let mut datagram = [0; 1_024];
            while let Ok(length) = self.manager.recv(&mut datagram) {
                if String::from_utf8_lossy(&datagram[..length]).contains(words) {
                    return Ok(());
                }
            }
            Err(format!("no {words}\n{}", self.process.log_tail()))
        })
        .await;
    }
}

#[tokio::test]
async fn a_service_shows_its_health() {
    let mut region = Region::start(RegionOptions {
        hosts: vec!["host-A".to_owned()],
        ..RegionOptions::default()
    })
    .await
    .unwrap();
    flavor(&region, "spot", 4, &[("ebbtide:preemptible", "true")]).await;
    let service = BatchService::start(&region);
    service.until("/readyz", 200, "ready").await;
    service.until_told("READY=1").await;
    service.until_told("WATCHDOG=1").await;
    for line in [
        "ebbtide_batch_ready 1",
        "ebbtide_batch_works{kind=\"active\"} 0",
        "ebbtide_batch_servers{kind=\"types\"} 0",
    ] {
        service.until("/metrics", 200, line).await;
    }

    // The region is away: the service goes on, and says so.
    region.stop_scheduler().await.unwrap();
    service.until("/readyz", 503, "look: ").await;
    let fault = "ebbtide_batch_faults{place=\"look\"";
    service.until("/metrics", 200, fault).await;
    service
        .until("/metrics", 200, "ebbtide_batch_ready 0")
        .await;
    service.until("/healthz", 200, "ok").await;
    service.until_told("WATCHDOG=1").await;

    // The token is the credential of systemd, whose file no key of batch.toml names.
    let socket = region.dir().join("batch.sock");
    let calls = |token: &str| {
        let mut stream = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let request = format!(
            "GET /v1/works HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n"
        );
        std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
        std::io::read_to_string(stream).unwrap()
    };
    assert!(calls("another").starts_with("HTTP/1.1 401"));
    let listed = calls("a token of more than sixteen characters");
    assert!(listed.starts_with("HTTP/1.1 200"), "{listed}");
}

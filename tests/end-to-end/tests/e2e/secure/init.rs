//! The short way to a region: `ebbtide-manage init`, and what it wrote used as it says, over TLS
//! with logins for each agent.

use ebbtide_harness::{Process, ProcessCommand, RabbitMq, ServerSettings, eventually, free_port};
use ebbtide_integration_tests::bin;
use ebbtide_integration_tests::region::PATIENCE;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A port whose next one, for metrics, is free as well.
fn two_free_ports() -> u16 {
    loop {
        let port = free_port().unwrap();
        let next = port.checked_add(1).map(|next| ("127.0.0.1", next));
        if next.is_some_and(|next| TcpListener::bind(next).is_ok()) {
            return port;
        }
    }
}

struct Place {
    dir: tempfile::TempDir,
    arguments: Vec<String>,
}

impl Place {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("region").join(name)
    }

    /// Runs a program to its end: whether it succeeded, and what it printed.
    async fn run(&self, program: &str, config: Option<&Path>, words: &[&str]) -> (bool, String) {
        let log = self.dir.path().join("command.log");
        // A log is continued, and only what this command says is looked at.
        let _ = std::fs::remove_file(&log);
        let mut command = ProcessCommand::new("command", bin(program))
            .env("HOME", self.dir.path())
            .args(words.iter().copied());
        if let Some(config) = config {
            command = command.env("EBBTIDE_CONFIG", config);
        }
        let process = command.spawn(&log).unwrap();
        let status = process.wait_exit(PATIENCE).await.unwrap();
        (status.success(), std::fs::read_to_string(&log).unwrap())
    }

    async fn init(&self, hosts: &[&str]) -> String {
        let region = self.path("").display().to_string();
        let mut words = vec!["-o", "json", "init", &region];
        words.extend(self.arguments.iter().map(String::as_str));
        for host in hosts {
            words.extend(["--host", host]);
        }
        let (good, said) = self.run("ebbtide-manage", None, &words).await;
        assert!(good, "{said}");
        said
    }

    async fn import(&self, broker: &RabbitMq) {
        // The broker's user cannot enter the operator's directory.
        let file = broker.directory().join("definitions.json");
        std::fs::copy(self.path("broker/definitions.json"), &file).unwrap();
        let mode = std::fs::Permissions::from_mode(0o644);
        std::fs::set_permissions(&file, mode).unwrap();
        let file = file.display().to_string();
        broker
            .control(&["import_definitions", &file])
            .await
            .unwrap();
    }

    fn start(&self, program: &str, words: &[&str], config: &str) -> Process {
        let log = self.dir.path().join(config.replace('/', "-"));
        ProcessCommand::new(program, bin(program))
            .env("HOME", self.dir.path())
            .args(words.iter().copied())
            .arg("--config")
            .arg(self.path(config))
            .spawn(log.with_added_extension("log"))
            .unwrap()
    }

    async fn hosts_up(&self, count: usize) {
        let config = self.path("operator/config.toml");
        let words = ["host", "list", "-o", "value", "-c", "health"];
        eventually(PATIENCE, async || {
            let (_, said) = self.run("ebbtide", Some(&config), &words).await;
            match said.lines().filter(|line| *line == "up").count() == count {
                true => Ok(()),
                false => Err(said),
            }
        })
        .await;
    }
}

#[tokio::test]
async fn one_command_makes_a_region_whose_parts_know_each_other_and_no_one_else() {
    let port = free_port().unwrap();
    let place = Place {
        dir: tempfile::tempdir().unwrap(),
        arguments: [
            "--driver",
            "simulated",
            "--listen",
            &format!("127.0.0.1:{}", two_free_ports()),
            "--broker",
            &format!("amqps://localhost:{port}"),
        ]
        .map(str::to_owned)
        .to_vec(),
    };
    place.init(&["host-a", "host-b.example"]).await;

    let text = |name: &str| std::fs::read_to_string(place.path(name)).unwrap();
    let conf = format!(
        "listeners.ssl.default = 127.0.0.1:{port}\nssl_options.cacertfile = {{dir}}/ca.pem\n\
         ssl_options.certfile = {{dir}}/broker.crt\nssl_options.keyfile = {{dir}}/broker.key\n\
         ssl_options.verify = verify_none\n"
    );
    let settings = ServerSettings::temporary()
        .file("rabbitmq.conf", conf)
        .file("ca.pem", text("broker/ca.pem"))
        .file("broker.crt", text("broker/broker.crt"))
        .file("broker.key", text("broker/broker.key"));
    let broker = RabbitMq::start_with(settings).await.unwrap();
    place.import(&broker).await;
    let scheduler = place.start("ebbtide-scheduler", &[], "scheduler/scheduler.toml");
    let agent = |host: &str| {
        place.start(
            "ebbtide-agent",
            &["run"],
            &format!("agents/{host}/agent.toml"),
        )
    };
    let _agents = [agent("host-a"), agent("host-b.example")];
    place.hosts_up(2).await;
    let said = scheduler.log_tail();
    for open in ["no [auth]", "agent_identity"] {
        assert!(!said.contains(open), "{said}");
    }

    // A caller who has the address and the root, and no token.
    let config = text("operator/config.toml");
    let without: Vec<&str> = config
        .lines()
        .filter(|line| !line.starts_with("token_file"))
        .collect();
    let stranger = place.path("stranger.toml");
    std::fs::write(&stranger, without.join("\n")).unwrap();
    let (good, said) = place
        .run("ebbtide", Some(&stranger), &["host", "list"])
        .await;
    assert!(!good && said.contains("EB-ACCESS"), "{said}");

    // Another host later: what was made stays, and the new agent is known to the broker.
    let kept = [
        "ca.key",
        "operator/token",
        "scheduler/scheduler.toml",
        "agents/host-a/agent.toml",
    ];
    let before = kept.map(text);
    place.init(&["host-a", "host-c"]).await;
    assert_eq!(kept.map(text), before);
    place.import(&broker).await;
    let _third = agent("host-c");
    place.hosts_up(3).await;

    for name in [
        "ca.key",
        "scheduler/server.key",
        "scheduler/scheduler.toml",
        "operator/token",
    ] {
        let mode = std::fs::metadata(place.path(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o077, 0, "{name}: {mode:o}");
    }
    assert!(!text("broker/definitions.json").contains("host-a:"));
}

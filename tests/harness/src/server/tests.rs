//! The servers themselves, as root and as an ordinary user.

use super::keystone::Keystone;
use super::mariadb::{Maria, MariaDb};
use super::postgres::{Postgres, Postgresql};
use super::rabbitmq::{Rabbit, RabbitMq};
use super::*;
use crate::amqp::Connection;
use crate::eventually;
use crate::shared::SharedServers;
use crate::sql::{Access, Dialect};
use std::net::{Ipv4Addr, TcpListener};

const LONG: Duration = Duration::from_secs(60);

/// Processes that have to do with `directory`: by their command line, environment or working
/// directory.
fn processes_of(directory: &Path) -> Vec<String> {
    let wanted = directory.to_str().unwrap();
    let mentions = |path: PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(wanted))
    };
    std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .map(|entry| entry.path())
        .filter(|process| process.join("cmdline").is_file())
        .filter(|process| {
            let cwd = std::fs::read_link(process.join("cwd")).unwrap_or_default();
            cwd.starts_with(directory)
                || mentions(process.join("cmdline"))
                || mentions(process.join("environ"))
        })
        .map(|process| {
            let command = std::fs::read(process.join("cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            format!("{}: {command}", process.display())
        })
        .collect()
}

/// Without the janitor, which lives as long as the directory.
fn servers_of(directory: &Path) -> Vec<String> {
    let mut all = processes_of(directory);
    all.retain(|process| !process.contains("ebbtide-janitor"));
    all
}

fn sql<K: ServerKind>(server: &PrivateServer<K>, dialect: Dialect) -> Access {
    Access::parse(dialect, &server.url()).unwrap()
}

/// Its parts follow each other in one test, because a start of RabbitMQ takes seconds.
#[tokio::test]
async fn rabbitmq_keeps_its_queues_through_a_kill_and_leaves_nothing_behind() {
    let mut server = RabbitMq::start().await.unwrap();
    let directory = server.directory().to_owned();
    let url = server.url();
    assert_eq!(
        url,
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", server.port())
    );
    let mut connection = Connection::open(server.port()).await.unwrap();
    connection.declare_queue("kept", false).await.unwrap();
    // The broker, epmd, Erlang's helpers: the looks below would mean nothing if they could not be
    // seen.
    assert!(servers_of(&directory).len() >= 3);

    // First in the orderly way. RabbitMQ may forget a durable queue that was declared some
    // milliseconds before SIGKILL (seen once in ten runs on a busy machine), although it has
    // confirmed the declaration.
    server.restart().await.unwrap();
    let mut connection = Connection::open(server.port()).await.unwrap();
    connection.declare_queue("kept", true).await.unwrap();

    server.kill();
    assert_eq!(servers_of(&directory), Vec::<String>::new());
    assert_eq!(server.pid(), None);
    assert!(Connection::open(server.port()).await.is_err());

    server.restart().await.unwrap();
    assert_eq!(server.url(), url);
    let mut connection = Connection::open(server.port()).await.unwrap();
    connection.declare_queue("kept", true).await.unwrap();
    let mut connection = Connection::open(server.port()).await.unwrap();
    let missing = connection.declare_queue("never declared", true).await;
    assert!(missing.unwrap_err().contains("NOT_FOUND"));

    server.stop().await.unwrap();
    assert_eq!(servers_of(&directory), Vec::<String>::new());
    assert!(directory.is_dir());
    drop(server);
    assert!(!directory.exists());
    assert_eq!(processes_of(&directory), Vec::<String>::new());
}

#[tokio::test]
async fn two_brokers_run_side_by_side_and_know_nothing_of_each_other() {
    let (one, two) = tokio::join!(RabbitMq::start(), RabbitMq::start());
    let (one, two) = (one.unwrap(), two.unwrap());
    let mut connection = Connection::open(one.port()).await.unwrap();
    connection.declare_queue("mine", false).await.unwrap();
    let mut connection = Connection::open(two.port()).await.unwrap();
    let missing = connection.declare_queue("mine", true).await;
    assert!(missing.unwrap_err().contains("NOT_FOUND"));
    let directory = two.directory().to_owned();
    drop(two);
    assert!(!directory.exists());
    assert_eq!(processes_of(&directory), Vec::<String>::new());
    Connection::open(one.port()).await.unwrap();
}

/// The same for both databases.
async fn database_life<K: ServerKind>(dialect: Dialect) {
    let (server, other) = tokio::join!(PrivateServer::<K>::start(), PrivateServer::<K>::start());
    let (mut server, other) = (server.unwrap(), other.unwrap());
    let directory = server.directory().to_owned();
    let url = server.url();

    sql(&server, dialect)
        .execute("CREATE TABLE kept (word VARCHAR(20)); INSERT INTO kept VALUES ('tide')")
        .await
        .unwrap();
    let missing = sql(&other, dialect).execute("SELECT * FROM kept").await;
    assert_eq!(missing.unwrap_err().code(), "EB-HARNESS-008");

    server.kill();
    assert_eq!(servers_of(&directory), Vec::<String>::new());
    server.restart().await.unwrap();
    server.restart().await.unwrap();
    assert_eq!(server.url(), url);
    let access = sql(&server, dialect);
    assert_eq!(
        access.execute("SELECT word FROM kept").await.unwrap(),
        "tide"
    );

    server.freeze().unwrap();
    let frozen = tokio::time::timeout(Duration::from_millis(300), access.execute("SELECT 1")).await;
    assert!(frozen.is_err(), "a frozen server answered: {frozen:?}");
    server.thaw().unwrap();
    assert_eq!(access.execute("SELECT 1").await.unwrap(), "1");

    // In the middle of a query that would take minutes.
    let sleep = match dialect {
        Dialect::MariaDb => "SELECT SLEEP(600)",
        Dialect::Postgres => "SELECT pg_sleep(600)",
    };
    let sleeping = access.execute(sleep);
    let kill = async {
        let seen = match dialect {
            Dialect::MariaDb => {
                "SELECT COUNT(*) FROM information_schema.processlist WHERE state = 'User sleep'"
            }
            Dialect::Postgres => {
                "SELECT COUNT(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"
            }
        };
        eventually(LONG, async || match access.execute(seen).await {
            Ok(count) if count == "1" => Ok(()),
            other => Err(format!("{other:?}")),
        })
        .await;
        server.kill();
        assert_eq!(servers_of(&directory), Vec::<String>::new());
    };
    let (slept, ()) = tokio::join!(sleeping, kill);
    assert_eq!(slept.unwrap_err().code(), "EB-HARNESS-008");

    server.restart().await.unwrap();
    assert_eq!(
        access.execute("SELECT word FROM kept").await.unwrap(),
        "tide"
    );
    server.stop().await.unwrap();
    assert_eq!(server.freeze().unwrap_err().code(), "EB-HARNESS-012");
    drop(server);
    assert!(!directory.exists());
    assert_eq!(processes_of(&directory), Vec::<String>::new());
}

#[tokio::test]
async fn mariadb_keeps_its_rows_through_kills_and_leaves_nothing_behind() {
    database_life::<Maria>(Dialect::MariaDb).await;
}

#[tokio::test]
async fn postgresql_keeps_its_rows_through_kills_and_leaves_nothing_behind() {
    database_life::<Postgresql>(Dialect::Postgres).await;
}

/// The id of the System V memory segment of a PostgreSQL.
fn segment_of(server: &Postgres) -> String {
    let file = server.directory().join("data/postmaster.pid");
    let text = std::fs::read_to_string(file).unwrap();
    let line = text.lines().nth(6).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().to_owned()
}

fn segment_exists(id: &str) -> bool {
    let all = std::fs::read_to_string("/proc/sysvipc/shm").unwrap();
    all.lines()
        .any(|line| line.split_ascii_whitespace().nth(1) == Some(id))
}

#[tokio::test]
async fn a_killed_postgresql_leaves_no_shared_memory() {
    let mut server = Postgres::start().await.unwrap();
    let segment = segment_of(&server);
    assert!(segment_exists(&segment));
    server.kill();
    drop(server);
    assert!(!segment_exists(&segment));
}

#[tokio::test]
async fn databases_are_made_by_name_and_are_separate() {
    let (maria, postgres) = tokio::join!(MariaDb::start(), Postgres::start());
    let (maria, postgres) = (maria.unwrap(), postgres.unwrap());
    let urls = [
        (
            Dialect::MariaDb,
            maria.create_database("one").await.unwrap(),
        ),
        (
            Dialect::MariaDb,
            maria.create_database("two").await.unwrap(),
        ),
        (
            Dialect::Postgres,
            postgres.create_database("one").await.unwrap(),
        ),
        (
            Dialect::Postgres,
            postgres.create_database("two").await.unwrap(),
        ),
    ];
    for (dialect, url) in urls {
        let access = Access::parse(dialect, &url).unwrap();
        // Would fail if it existed in a database of another name already.
        access
            .execute("CREATE TABLE t (word VARCHAR(20))")
            .await
            .unwrap();
        access
            .execute("INSERT INTO t VALUES ('größer 潮')")
            .await
            .unwrap();
        assert_eq!(
            access.execute("SELECT word FROM t").await.unwrap(),
            "größer 潮"
        );
    }
    for error in [
        maria.create_database("one").await.unwrap_err(),
        postgres.create_database("one").await.unwrap_err(),
    ] {
        assert!(error.to_string().contains("exists"), "{error}");
    }
    let bad = postgres.create_database("one; DROP DATABASE two").await;
    assert_eq!(bad.unwrap_err().code(), "EB-HARNESS-009");
}

#[tokio::test]
async fn a_kept_directory_has_the_data_and_the_port_again() {
    let base = DataDirectory::temporary("test").unwrap();
    let settings = || ServerSettings::persistent(base.path().join("postgresql"));
    let mut first = Postgres::start_with(settings()).await.unwrap();
    let url = first.create_database("kept").await.unwrap();
    let busy = Postgres::start_with(settings()).await;
    assert_eq!(busy.unwrap_err().code(), "EB-HARNESS-010");
    first.stop().await.unwrap();
    drop(first);
    let second = Postgres::start_with(settings()).await.unwrap();
    assert_eq!(sql(&second, Dialect::Postgres).url_of("kept"), url);
    let access = Access::parse(Dialect::Postgres, &url).unwrap();
    assert_eq!(access.execute("SELECT 1").await.unwrap(), "1");
}

/// A server that finds one of its ports taken says so, leaves no process, and comes up on other
/// ports.
async fn comes_up_elsewhere<K: ServerKind>(index: usize) -> PrivateServer<K> {
    let mut server = PrivateServer::<K>::prepared(ServerSettings::temporary())
        .await
        .unwrap();
    let ports = server.place.ports.clone();
    let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, ports[index])).unwrap();
    let error = server.launch().await.unwrap_err();
    assert_eq!(error.code(), "EB-HARNESS-006", "{error}");
    assert_eq!(servers_of(server.directory()), Vec::<String>::new());
    server.come_up().await.unwrap();
    assert!(!server.place.ports.contains(&ports[index]));
    server
}

#[tokio::test]
async fn a_database_whose_port_is_taken_comes_up_on_another() {
    tokio::join!(
        comes_up_elsewhere::<Maria>(0),
        comes_up_elsewhere::<Postgresql>(0)
    );
}

#[tokio::test]
async fn a_broker_whose_epmd_port_is_taken_comes_up_on_others() {
    let server = comes_up_elsewhere::<Rabbit>(2).await;
    Connection::open(server.port()).await.unwrap();
}

#[tokio::test]
async fn a_broker_tells_that_its_other_ports_are_taken() {
    let mut server = RabbitMq::prepared(ServerSettings::temporary())
        .await
        .unwrap();
    for index in [1, 0] {
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, server.place.ports[index])).unwrap();
        let error = server.launch().await.unwrap_err();
        assert_eq!(error.code(), "EB-HARNESS-006", "port {index}: {error}");
        assert_eq!(servers_of(server.directory()), Vec::<String>::new());
    }
}

/// Root's own home is such a directory: the unprivileged account may not enter it.
#[tokio::test]
async fn a_directory_that_is_closed_to_others_is_used_as_root_or_refused() {
    let closed = tempfile::tempdir().unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(closed.path(), mode).unwrap();
    let at = |slug: &str| ServerSettings::persistent(closed.path().join(slug));
    let (rabbitmq, mariadb, postgres) = tokio::join!(
        RabbitMq::start_with(at("rabbitmq")),
        MariaDb::start_with(at("mariadb")),
        Postgres::start_with(at("postgresql")),
    );
    let rabbitmq = rabbitmq.unwrap();
    Connection::open(rabbitmq.port()).await.unwrap();
    if rustix::process::geteuid().is_root() {
        for error in [mariadb.unwrap_err(), postgres.unwrap_err()] {
            assert_eq!(error.code(), "EB-HARNESS-011");
            assert!(
                error.to_string().contains(closed.path().to_str().unwrap()),
                "{error}"
            );
        }
    } else {
        mariadb.unwrap();
        postgres.unwrap();
    }
    let directory = rabbitmq.directory().to_owned();
    drop(rabbitmq);
    assert_eq!(processes_of(&directory), Vec::<String>::new());
}

#[tokio::test]
async fn a_server_that_does_not_come_up_says_why_with_the_end_of_its_log() {
    let base = DataDirectory::temporary("test").unwrap();
    let directory = base.path().join("postgresql");
    std::fs::create_dir_all(directory.join("data")).unwrap();
    let error = Postgres::start_with(ServerSettings::persistent(&directory))
        .await
        .unwrap_err();
    assert_eq!(error.code(), "EB-HARNESS-004");
    assert!(error.to_string().contains("postgresql.conf"), "{error}");
}

#[tokio::test]
async fn shared_servers_give_each_caller_a_corner_of_its_own() {
    let (one, two) = tokio::join!(SharedServers::postgres(), SharedServers::postgres());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.name(), two.name());
    let server = |url: &str| url.rsplit_once('/').unwrap().0.to_owned();
    assert_eq!(server(one.url()), server(two.url()));
    let access = Access::parse(Dialect::Postgres, one.url()).unwrap();
    access.execute("CREATE TABLE mine (n INT)").await.unwrap();
    let name = two.name().to_owned();
    drop(two);
    let gone = format!("SELECT COUNT(*) FROM pg_database WHERE datname = '{name}'");
    assert_eq!(access.execute(&gone).await.unwrap(), "0");

    let maria = SharedServers::mariadb().await.unwrap();
    let access = Access::parse(Dialect::MariaDb, maria.url()).unwrap();
    assert_eq!(
        access.execute("SELECT DATABASE()").await.unwrap(),
        maria.name()
    );
}

/// The variable by which the test below knows that it runs as the ordinary user.
const AS_USER: &str = "EBBTIDE_HARNESS_TEST_AS_USER";

#[tokio::test]
async fn an_ordinary_user_can_start_all_three() {
    if rustix::process::geteuid().is_root() {
        assert!(std::env::var_os(AS_USER).is_none(), "still root");
        // A copy, because the build directory may be closed to other users.
        let copy = DataDirectory::temporary("test").unwrap();
        let program = copy.path().join("test");
        std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
        let process = ProcessCommand::new("the test as an ordinary user", &program)
            .args(["--exact", "--nocapture"])
            .arg("server::tests::an_ordinary_user_can_start_all_three")
            .env(AS_USER, "1")
            .current_dir("/")
            .run_as(crate::user::RunAs::current())
            .spawn(copy.path().join("log"))
            .unwrap();
        let status = process.wait_exit(LONG).await.unwrap();
        assert!(status.success(), "{status}: {}", process.log_tail());
        assert!(
            process.wait_for_line("1 passed", LONG).await.is_ok(),
            "{}",
            process.log_tail()
        );
        return;
    }
    let (rabbitmq, mariadb, postgres) =
        tokio::join!(RabbitMq::start(), MariaDb::start(), Postgres::start());
    let (rabbitmq, mariadb, postgres) = (rabbitmq.unwrap(), mariadb.unwrap(), postgres.unwrap());
    let directories = [
        rabbitmq.directory().to_owned(),
        mariadb.directory().to_owned(),
        postgres.directory().to_owned(),
    ];
    let segment = segment_of(&postgres);
    drop((rabbitmq, mariadb, postgres));
    for directory in directories {
        assert!(!directory.exists());
        assert_eq!(processes_of(&directory), Vec::<String>::new());
    }
    assert!(!segment_exists(&segment));
}

#[tokio::test]
async fn keystone_keeps_its_keys_and_users_through_a_kill_and_leaves_nothing_behind() {
    let mut server = Keystone::start().await.unwrap();
    let directory = server.directory().to_owned();
    assert_eq!(server.url(), format!("http://127.0.0.1:{}", server.port()));
    server.kill();
    assert_eq!(servers_of(&directory), Vec::<String>::new());
    // The start ends with a login: the database of the first life.
    server.restart().await.unwrap();
    drop(server);
    assert!(!directory.exists());
    assert_eq!(processes_of(&directory), Vec::<String>::new());
}

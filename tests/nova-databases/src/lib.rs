//! A fresh cloud's databases for each test, and raw SQL for what Nova would do. For tests only.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use ebbtide_harness::SharedServers;
use ebbtide_nova::hosts::Ratios;
use ebbtide_nova_db::{CellDb, NovaDb, NovaDbConfig, PoolOptions, Secret};
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DbBackend};
use std::fmt::Write as _;
use std::io::Read as _;
use std::time::Duration;

pub const CELL0: &str = "00000000-0000-0000-0000-000000000000";
pub const CELL1: &str = "11111111-1111-4111-8111-111111111111";

/// The tables of one release.
#[derive(Clone, Copy)]
pub struct Schema {
    api: &'static [u8],
    cell: &'static [u8],
}

pub const NOVA_26: Schema = Schema {
    api: include_bytes!("../../../integration/nova-db/schema/api-26.sql.gz"),
    cell: include_bytes!("../../../integration/nova-db/schema/cell-26.sql.gz"),
};
pub const NOVA_34: Schema = Schema {
    api: include_bytes!("../../../integration/nova-db/schema/api-34.sql.gz"),
    cell: include_bytes!("../../../integration/nova-db/schema/cell-34.sql.gz"),
};

/// One database that a test may write into.
pub struct RawDatabase {
    pub url: String,
    connection: DatabaseConnection,
    _keep: Box<dyn Send + Sync>,
}

/// Two databases: the API's, and one cell's which is the scheduler's own, too.
pub struct CloudDatabases {
    pub api: RawDatabase,
    pub cell: RawDatabase,
}

fn unzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(bytes)
        .read_to_string(&mut text)
        .unwrap();
    text
}

impl RawDatabase {
    pub async fn over(url: String, keep: Box<dyn Send + Sync>) -> Self {
        // One connection, so that its settings hold for every statement.
        let mut options = ConnectOptions::new(url.clone());
        options
            .max_connections(1)
            .sqlx_logging(false)
            .connect_timeout(Duration::from_secs(30));
        Self {
            connection: Database::connect(options).await.unwrap(),
            url,
            _keep: keep,
        }
    }

    pub async fn fill(&self, dump: &[u8]) {
        let dump = unzip(dump);
        if self.connection.get_database_backend() == DbBackend::MySql {
            // Tables come in the order of their names, and refer to later ones.
            self.sql("SET FOREIGN_KEY_CHECKS = 0").await;
            for statement in dump.split(";\n").filter(|s| !s.trim().is_empty()) {
                self.sql(statement).await;
            }
        } else {
            for statement in translated(&dump, self.connection.get_database_backend()) {
                self.sql(&statement).await;
            }
        }
    }

    pub async fn sql(&self, statement: &str) {
        if let Err(error) = self.connection.execute_unprepared(statement).await {
            panic!("{error}: {statement}");
        }
    }

    pub fn quoted(&self, name: &str) -> String {
        match self.connection.get_database_backend() {
            DbBackend::MySql => format!("`{name}`"),
            _ => format!("\"{name}\""),
        }
    }

    /// Inserts a row; values are SQL.
    pub async fn insert(&self, table: &str, row: &[(&str, &str)]) {
        let columns: Vec<String> = row.iter().map(|(name, _)| self.quoted(name)).collect();
        let values: Vec<&str> = row.iter().map(|(_, value)| *value).collect();
        let statement = format!(
            "INSERT INTO {table} ({}) VALUES ({})",
            columns.join(", "),
            values.join(", ")
        );
        self.sql(&statement).await;
    }
}

/// Text as SQL. Backslashes mean something to MariaDB only.
pub fn quote(raw: &RawDatabase, text: &str) -> String {
    let text = text.replace('\'', "''");
    match raw.connection.get_database_backend() {
        DbBackend::MySql => format!("'{}'", text.replace('\\', "\\\\")),
        _ => format!("'{text}'"),
    }
}

/// The tables as PostgreSQL or SQLite would have them: names, types, and what is unique; no other
/// keys but the first.
fn translated(dump: &str, backend: DbBackend) -> Vec<String> {
    let moment = if backend == DbBackend::Postgres {
        "TIMESTAMP"
    } else {
        "DATETIME"
    };
    let float = if backend == DbBackend::Postgres {
        "DOUBLE PRECISION"
    } else {
        "FLOAT"
    };
    let key = if backend == DbBackend::Postgres {
        "SERIAL PRIMARY KEY"
    } else {
        "INTEGER PRIMARY KEY AUTOINCREMENT"
    };
    let mut tables = Vec::new();
    for statement in dump.split(";\n").filter(|s| s.contains("CREATE TABLE")) {
        let mut lines = statement.lines();
        let name = lines.next().unwrap().replace('`', "\"");
        let mut columns = Vec::new();
        for line in lines.map(str::trim) {
            if let Some((_, of)) = line.split_once("UNIQUE KEY ") {
                let (_, of) = of.split_once(' ').unwrap();
                let of = of.trim_end_matches(',').replace('`', "\"");
                columns.push(format!("UNIQUE {of}"));
            }
            if !line.starts_with('`') {
                continue;
            }
            let mut words = line.trim_end_matches(',').split_whitespace();
            let (column, kind) = (
                words.next().unwrap().replace('`', "\""),
                words.next().unwrap(),
            );
            let kind = match kind.split('(').next().unwrap() {
                "int" | "bigint" if line.contains("AUTO_INCREMENT") => key.to_owned(),
                "int" | "bigint" => "INTEGER".to_owned(),
                "tinyint" => "BOOLEAN".to_owned(),
                "datetime" => moment.to_owned(),
                "float" => float.to_owned(),
                "varchar" if column == "\"host_ip\"" && backend == DbBackend::Postgres => {
                    "INET".to_owned()
                }
                "varchar" => kind.to_owned(),
                _ => "TEXT".to_owned(),
            };
            columns.push(format!("{column} {kind}"));
        }
        tables.push(format!("{name} {})", columns.join(", ")));
    }
    tables
}

impl CloudDatabases {
    pub async fn mariadb(schema: Schema) -> Self {
        let database = async |dump| {
            let database = SharedServers::mariadb().await.expect("a MariaDB server");
            let raw = RawDatabase::over(database.url().to_owned(), Box::new(database)).await;
            raw.fill(dump).await;
            raw
        };
        Self::of(database(schema.api).await, database(schema.cell).await).await
    }

    pub async fn postgres() -> Self {
        let database = async |dump| {
            let database = SharedServers::postgres()
                .await
                .expect("a PostgreSQL server");
            let raw = RawDatabase::over(database.url().to_owned(), Box::new(database)).await;
            raw.fill(dump).await;
            raw
        };
        Self::of(database(NOVA_34.api).await, database(NOVA_34.cell).await).await
    }

    pub async fn sqlite() -> Self {
        let database = async |dump| {
            let directory = tempfile::tempdir().unwrap();
            let url = format!("sqlite:///{}", directory.path().join("nova.db").display());
            let file = format!(
                "sqlite://{}?mode=rwc",
                directory.path().join("nova.db").display()
            );
            let mut raw = RawDatabase::over(file, Box::new(directory)).await;
            raw.url = url;
            raw.sql("PRAGMA journal_mode = WAL").await;
            raw.fill(dump).await;
            raw
        };
        Self::of(database(NOVA_34.api).await, database(NOVA_34.cell).await).await
    }

    async fn of(api: RawDatabase, cell: RawDatabase) -> Self {
        let cloud = Self { api, cell };
        // cell0 and cell1 in one database would be two cells with the same hosts; cell0 has none
        // here.
        cloud.map_cell(1, CELL0, "cell0", &cloud.api.url).await;
        cloud.map_cell(2, CELL1, "cell1", &cloud.cell.url).await;
        cloud
    }

    pub async fn map_cell(&self, id: i64, uuid: &str, name: &str, url: &str) {
        let row = [
            ("id", id.to_string()),
            ("uuid", format!("'{uuid}'")),
            ("name", format!("'{name}'")),
            (
                "transport_url",
                "'rabbit://nova:rabbit-secret@h/'".to_owned(),
            ),
            ("database_connection", quote(&self.api, url)),
            ("disabled", "FALSE".to_owned()),
        ];
        let row: Vec<(&str, &str)> = row
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        self.api.insert("cell_mappings", &row).await;
    }

    pub fn config(&self) -> NovaDbConfig {
        NovaDbConfig {
            api_url: Secret::new(&self.api.url),
            main_url: Secret::new(&self.cell.url),
            transport_url: Some(Secret::new("rabbit://conf:conf-secret@broker:5672/nova")),
            ratios: Ratios {
                cpu: 4.0,
                ram: 1.0,
                disk: 1.0,
            },
            pool: PoolOptions {
                connect_timeout: Duration::from_secs(20),
                ..PoolOptions::default()
            },
        }
    }

    pub async fn open(&self) -> NovaDb {
        NovaDb::connect(&self.config()).await.unwrap()
    }

    pub async fn open_cell(&self) -> CellDb {
        self.open().await.cell(CELL1).unwrap()
    }

    /// A compute node and its service, both written at `at`.
    pub async fn add_host(&self, id: i64, at: &str) {
        let at = format!("'{at}'");
        let (id_text, host, node) = (
            id.to_string(),
            format!("'compute{id}'"),
            format!("'node{id}'"),
        );
        let uuid = format!("'{}'", compute_uuid(id));
        let row = [
            ("id", id_text.as_str()),
            ("uuid", &uuid),
            ("host", &host),
            ("hypervisor_hostname", &node),
            ("created_at", &at),
            ("updated_at", &at),
            ("deleted", "0"),
            ("vcpus", "8"),
            ("memory_mb", "16000"),
            ("local_gb", "160"),
            ("vcpus_used", "0"),
            ("memory_mb_used", "512"),
            ("local_gb_used", "0"),
            ("hypervisor_type", "'fake'"),
            ("hypervisor_version", "1000"),
            ("cpu_info", "'{}'"),
            ("free_ram_mb", "15488"),
            ("free_disk_gb", "160"),
            ("host_ip", "'10.0.0.1'"),
            ("supported_instances", "'[[\"x86_64\", \"fake\", \"hvm\"]]'"),
            ("stats", "'{}'"),
            ("cpu_allocation_ratio", "4.0"),
            ("ram_allocation_ratio", "0.9"),
            ("disk_allocation_ratio", "0.0"),
        ];
        self.cell.insert("compute_nodes", &row).await;
        self.add_service(id, "compute", &at, 64).await;
    }

    pub async fn add_service(&self, id: i64, name: &str, at: &str, version: i64) {
        let (id_text, host) = (id.to_string(), format!("'{name}{id}'"));
        let uuid = format!("'22222222-2222-4222-8222-{id:012}'");
        let (binary, version) = (format!("'nova-{name}'"), version.to_string());
        let row = [
            ("id", id_text.as_str()),
            ("uuid", &uuid),
            ("host", &host),
            ("binary", &binary),
            ("topic", &binary),
            ("report_count", "1"),
            ("disabled", "FALSE"),
            ("forced_down", "FALSE"),
            ("version", &version),
            ("deleted", "0"),
            ("created_at", at),
            ("updated_at", at),
            ("last_seen_up", at),
        ];
        self.cell.insert("services", &row).await;
    }

    /// An active instance with a flavor, on a host.
    pub async fn add_instance(&self, id: i64, host: &str, at: &str) -> String {
        let uuid = instance_uuid(id);
        let (id_text, at) = (id.to_string(), format!("'{at}'"));
        let (uuid_text, host) = (format!("'{uuid}'"), format!("'{host}'"));
        let row = [
            ("id", id_text.as_str()),
            ("uuid", &uuid_text),
            ("host", &host),
            ("node", &host),
            ("created_at", &at),
            ("updated_at", &at),
            ("launched_at", &at),
            ("deleted", "0"),
            ("hidden", "FALSE"),
            ("vm_state", "'active'"),
            ("power_state", "1"),
            ("project_id", "'p1'"),
            ("user_id", "'u1'"),
            ("vcpus", "2"),
            ("memory_mb", "1024"),
            ("root_gb", "10"),
            ("ephemeral_gb", "1"),
            ("locked", "FALSE"),
            ("display_name", "'a server'"),
        ];
        self.cell.insert("instances", &row).await;
        let flavor = quote(&self.cell, &flavor_json("true"));
        let extra = [
            ("instance_uuid", uuid_text.as_str()),
            ("deleted", "0"),
            ("flavor", &flavor),
            ("pci_requests", "'[]'"),
        ];
        self.cell.insert("instance_extra", &extra).await;
        uuid
    }
}

pub fn compute_uuid(id: i64) -> String {
    format!("00000000-0000-4000-8000-{id:012}")
}

pub fn instance_uuid(id: i64) -> String {
    format!("33333333-3333-4333-8333-{id:012}")
}

pub fn flavor_json(preemptible: &str) -> String {
    let mut text = String::new();
    write!(
        text,
        r#"{{"cur": {{"nova_object.name": "Flavor", "nova_object.namespace": "nova", "nova_object.version": "1.2",
        "nova_object.data": {{"name": "m1.small", "flavorid": "f1", "vcpus": 2, "memory_mb": 1024, "root_gb": 10,
        "ephemeral_gb": 1, "swap": 0, "extra_specs": {{"ebbtide:preemptible": "{preemptible}"}}}}}}, "old": null, "new": null}}"#
    )
    .unwrap();
    text
}

/// Microseconds since 1970 of a moment as SQL has it.
pub fn at(text: &str) -> i64 {
    ebbtide_nova::python::datetime::read(text).unwrap()
}

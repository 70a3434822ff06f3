//! The logins of a region on RabbitMQ and what each may do, as a definitions file.
//!
//! `rabbitmqctl import_definitions FILE` makes all of them with one call, and so does
//! `load_definitions` of rabbitmq.conf. The file holds hashes of passwords, so that it can be
//! copied to the broker. With these rights, and `bus.agent_identity = "user-id"`, an agent speaks
//! for its own host only.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{BusError, MAX_DEAD_LETTERS, MAX_DEAD_LETTERS_BYTES, QueuePrefix};

/// Two connections with up to 64 publishes in flight, and as many again whose loss the broker has
/// not noticed yet.
const AGENT_CONNECTIONS: u32 = 6;
const AGENT_CHANNELS: u32 = 256;
/// Above this the broker refuses agents' reports, and the agents try again.
const REPORT_BYTES: u32 = 1 << 30;

/// A login: its name, and the hash of its password.
#[derive(Debug, Clone)]
pub struct Login {
    user: String,
    password_hash: String,
}

impl Login {
    /// A login with a password. The salt has to be random; it protects equal passwords from being
    /// seen as equal.
    ///
    /// The hash is RabbitMQ's `rabbit_password_hashing_sha256`: base64 of the salt and of the
    /// SHA-256 of salt and password.
    #[must_use]
    pub fn new(user: &str, password: &str, salt: [u8; 4]) -> Self {
        let digest = Sha256::new().chain_update(salt).chain_update(password);
        let mut bytes = salt.to_vec();
        bytes.extend(digest.finalize());
        Self {
            user: user.to_owned(),
            password_hash: STANDARD.encode(bytes),
        }
    }
}

/// The logins of one region, in the form that RabbitMQ exports and imports. What it has besides
/// (other users, queues) RabbitMQ leaves alone when it imports this.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Definitions {
    #[serde(default)]
    users: Vec<Value>,
    #[serde(default)]
    permissions: Vec<Value>,
    #[serde(default)]
    topic_permissions: Vec<Value>,
    #[serde(default)]
    policies: Vec<Value>,
}

impl Definitions {
    /// Whether a login is there.
    #[must_use]
    pub fn has(&self, user: &str) -> bool {
        self.users.iter().any(|entry| entry["name"] == user)
    }

    /// Adds the scheduler's login, or gives it another password: it makes and reads its own queue,
    /// the dead letters and the exchange of reports, and writes to every agent's queue, by the
    /// default exchange. Bounds both queues.
    pub fn scheduler(&mut self, login: &Login, prefix: &QueuePrefix, vhost: &str) {
        let own = format!("^{prefix}\\.(scheduler|dead-letter|reports)$");
        let write = format!("^(amq\\.default|{prefix}\\.(scheduler|dead-letter|reports))$");
        self.user(login, &json!({}));
        self.permission(login, vhost, [&own, &write, &own]);
        let letters = json!({
            "max-length": MAX_DEAD_LETTERS, "max-length-bytes": MAX_DEAD_LETTERS_BYTES, "overflow": "drop-head",
        });
        let reports = json!({ "max-length-bytes": REPORT_BYTES, "overflow": "reject-publish" });
        self.policy(&format!("{prefix}.dead-letter"), vhost, &letters);
        self.policy(&format!("{prefix}.scheduler"), vhost, &reports);
    }

    /// Adds the login of a host's agent, or gives it another password: it makes and reads its
    /// host's queue, and reports under its own routing key.
    ///
    /// # Errors
    /// [`BusError::InvalidName`] if this is no name of a host.
    pub fn agent(
        &mut self,
        login: &Login,
        prefix: &QueuePrefix,
        vhost: &str,
        host: &str,
    ) -> Result<(), BusError> {
        let queue = pattern(prefix.agent(host)?.as_str());
        let exchange = format!("{prefix}.reports");
        self.user(
            login,
            &json!({ "max-connections": AGENT_CONNECTIONS, "max-channels": AGENT_CHANNELS }),
        );
        // To make a quorum queue that gives messages up to the exchange, RabbitMQ wants to see the
        // queue readable and the exchange writable.
        self.permission(login, vhost, [&queue, &pattern(&exchange), &queue]);
        let key = pattern(&login.user);
        let key = format!("^(report|dead-letter)\\.{}", key.trim_start_matches('^'));
        replace(
            &mut self.topic_permissions,
            json!({ "user": login.user, "vhost": vhost, "exchange": exchange, "write": key, "read": "^$" }),
            &["user", "vhost", "exchange"],
        );
        Ok(())
    }

    fn user(&mut self, login: &Login, limits: &Value) {
        let user = json!({
            "name": login.user,
            "password_hash": login.password_hash,
            "hashing_algorithm": "rabbit_password_hashing_sha256",
            // Neither impersonator nor administrator: the user-id of its messages is its own.
            "tags": [],
            "limits": limits,
        });
        replace(&mut self.users, user, &["name"]);
    }

    fn permission(&mut self, login: &Login, vhost: &str, rights: [&str; 3]) {
        let [configure, write, read] = rights;
        replace(
            &mut self.permissions,
            json!({
                "user": login.user, "vhost": vhost, "configure": configure, "write": write, "read": read,
            }),
            &["user", "vhost"],
        );
    }

    fn policy(&mut self, queue: &str, vhost: &str, definition: &Value) {
        let policy = json!({
            "vhost": vhost, "name": queue, "pattern": pattern(queue), "apply-to": "queues",
            "definition": definition, "priority": 0,
        });
        replace(&mut self.policies, policy, &["vhost", "name"]);
    }
}

/// A regular expression for exactly this name. Of the characters that names may have only the dot
/// means something in one.
fn pattern(name: &str) -> String {
    format!("^{}$", name.replace('.', "\\."))
}

/// Puts an entry in the place of the one with the same keys, or at the end.
fn replace(entries: &mut Vec<Value>, entry: Value, keys: &[&str]) {
    let same = |old: &&mut Value| keys.iter().all(|key| old[*key] == entry[*key]);
    match entries.iter_mut().find(same) {
        Some(old) => *old = entry,
        None => entries.push(entry),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_one_of_rabbitmqs_documentation() {
        let login = Login::new("u", "test12", [0x90, 0x8d, 0xc6, 0x0a]);
        assert_eq!(
            login.password_hash,
            "kI3GCqW5JLMJa4iX1lo7X4D6XbYqlLgxIs30+P6tENUV2POR"
        );
    }

    #[test]
    fn an_agent_has_the_rights_to_its_own_queue_and_key_and_a_second_call_replaces_them() {
        let prefix = QueuePrefix::new("region-1").unwrap();
        let mut made = Definitions::default();
        for password in ["old", "new"] {
            let login = Login::new("agent-a.example", password, [1, 2, 3, 4]);
            made.agent(&login, &prefix, "/", "a.example").unwrap();
        }
        let hash = Login::new("", "new", [1, 2, 3, 4]).password_hash;
        assert_eq!(made.users.len(), 1);
        assert_eq!(made.users[0]["password_hash"], hash.as_str());
        let queue = "^region-1\\.agent\\.a\\.example$";
        assert_eq!(
            made.permissions,
            [json!({
                "user": "agent-a.example", "vhost": "/", "configure": queue,
                "write": "^region-1\\.reports$", "read": queue,
            })]
        );
        assert_eq!(
            made.topic_permissions[0]["write"],
            "^(report|dead-letter)\\.agent-a\\.example$"
        );
        assert!(made.has("agent-a.example") && !made.has("agent-b"));
        assert!(
            made.agent(&Login::new("x", "y", [0; 4]), &prefix, "/", "..")
                .is_err()
        );
    }
}

//! The agent's configuration: no error shows the password of a URL, and what is taken can be used.

use crate::secret::{assert_no_login, finding_text};
use ebbtide_agent::Config;
use ebbtide_config_check::{ConfigKind, ThisMachine, check};
use std::path::Path;

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let path = Path::new("agent.toml");
    for kind in [None, Some(ConfigKind::Agent)] {
        for finding in check(path, text, kind, &ThisMachine::with(None)).findings {
            assert_no_login(&finding_text(&finding));
        }
    }
    match Config::parse(path, text, &[]) {
        Err(error) => {
            let _ = error.code();
            assert_no_login(&error.to_string());
        }
        Ok(config) => {
            let bus = format!("{:?} {:?}", config.bus, config.driver);
            assert!(!bus.contains("://"), "URLs are shown: {bus}");
            config.agent_config().expect("it was checked");
            config.amqp().expect("it was checked");
            config.queue_prefix().expect("it was checked");
        }
    }
}

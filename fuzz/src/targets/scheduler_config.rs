//! The scheduler's configuration file and environment: no error shows the password of a URL, and
//! what is taken is shown without. `ebbtide-manage config check` has an error exactly where the
//! scheduler has one.

use crate::secret::{assert_no_login, finding_text};
use ebbtide_config_check::{ConfigKind, Level, ThisMachine, check, code};
use ebbtide_scheduler::Config;
use std::path::Path;

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let path = Path::new("scheduler.toml");
    let parsed = Config::parse(path, text, std::iter::empty(), &[]);
    let report = check(
        path,
        text,
        Some(ConfigKind::Scheduler),
        &ThisMachine::with(None),
    );
    let mut errors = report.findings.iter().filter(|f| f.level == Level::Error);
    // The files of plugins are looked for by the scheduler after that.
    let refused = errors.any(|error| parsed.is_err() || error.code != code::PLUGIN_FILE);
    assert_eq!(refused, parsed.is_err(), "{:?}", report.findings);
    for finding in &report.findings {
        assert_no_login(&finding_text(finding));
    }
    match parsed {
        Err(error @ ebbtide_scheduler::config::ConfigError::Wrong(_)) => {
            assert_no_login(&error.to_string())
        }
        Err(error) => drop(error.code()),
        Ok(config) => {
            assert!(config.database.retention().0 > 0);
            let written = toml::to_string(&config).expect("what was read can be written");
            let again =
                Config::parse(path, &written, std::iter::empty(), &[]).expect("its own text");
            assert_eq!(again, config);
            let shown = config.without_passwords();
            assert_no_login(&shown.database.url);
            shown.bus.urls.iter().for_each(|url| assert_no_login(url));
            assert_no_login(&format!("{:?} {:?}", config.database, config.bus));
        }
    }
    // As one variable of the environment.
    if let Some((name, value)) = text.split_once('=') {
        let name = format!(
            "{}{}",
            ebbtide_scheduler::config::ENVIRONMENT_PREFIX,
            name.trim()
        );
        let variable = std::iter::once((name, value.trim().to_owned()));
        if let Err(error @ ebbtide_scheduler::config::ConfigError::Wrong(_)) =
            Config::parse(path, "", variable, &[])
        {
            assert_no_login(&error.to_string());
        }
    }
}

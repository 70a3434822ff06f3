//! Configuration files as oslo.config reads them, and nova.conf in them. Secret options are not
//! shown.

use crate::secret::{MARK, assert_no_mark};
use ebbtide_nova_objects::nova_conf::{Machine, NovaConf};
use std::io::Write;

pub(super) fn run(bytes: &[u8]) {
    // A fuzzer that looks at comparisons finds the word itself.
    if bytes
        .windows(MARK.len())
        .any(|part| part == MARK.as_bytes())
    {
        return;
    }
    // In memory, where there is such a file system.
    let folder = ["/dev/shm", "/tmp"]
        .into_iter()
        .find(|f| std::path::Path::new(f).is_dir());
    let Some(folder) = folder else { return };
    let mut file = tempfile::NamedTempFile::new_in(folder).expect("a file");
    file.write_all(bytes).expect("written");
    // Behind all that was written, so that it wins: a transport URL whose password is known here.
    let ends_well = bytes.last().is_none_or(|last| *last == b'\n');
    if ends_well {
        let last = format!(
            "[DEFAULT]\ntransport_url = rabbit://u:{MARK}@h\n[database]\nconnection = mysql://u:{MARK}@h/d\n"
        );
        file.write_all(last.as_bytes()).expect("written");
    }
    let machine = ebbtide_config_check::ThisMachine::with(None);
    if let (Ok(text), false) = (std::str::from_utf8(bytes), bytes.contains(&b'$')) {
        let nova = Some(ebbtide_config_check::ConfigKind::Nova);
        let secret = format!("{text}\n[DEFAULT]\ntransport_url = rabbit://u:{MARK}@h\n");
        for finding in ebbtide_config_check::check(file.path(), &secret, nova, &machine).findings {
            assert_no_mark(&format!("{finding:?}"));
        }
    }
    let files = [file.path().to_owned()];
    let mut config = match oslo_config::Config::load_with(&files, &[], []) {
        Ok(config) => config,
        Err(error) => return assert_no_mark(&error.to_string()),
    };
    for (group, name) in [
        ("DEFAULT", "transport_url"),
        ("filter_scheduler", "enabled_filters"),
        ("a", "b"),
    ] {
        let _ = config.get(group, name);
    }
    let _ = (config.section("DEFAULT"), config.section("a"));
    let machine = Machine {
        hostname: "h".to_owned(),
        ip: "192.0.2.1".to_owned(),
    };
    match NovaConf::read(&mut config, &machine) {
        Ok(conf) => assert_no_mark(&format!("{conf:?}")),
        // A variable may put a password anywhere, where the operator did.
        Err(error) if !bytes.contains(&b'$') => assert_no_mark(&error.to_string()),
        Err(_) => {}
    }
}

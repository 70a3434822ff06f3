//! Any text has an answer, and no answer shows a password.

use ebbtide_config_check::{ConfigKind, Level, ThisMachine, check};
use proptest::prelude::*;
use std::path::Path;

/// Pieces from which texts are made that get further than noise does.
fn piece() -> impl Strategy<Value = String> {
    let keys = ebbtide_config_check::registry::all();
    prop_oneof![
        ".{0,20}",
        prop::sample::select(keys).prop_map(|(kind, key)| match kind {
            ConfigKind::Nova => {
                let (section, option) = key.path.split_once('.').unwrap();
                format!("\n[{section}]\n{option} = {}\n", key.example)
            }
            _ => format!("\n{}\n", key.example_in_file()),
        }),
        prop::sample::select(vec![
            "[",
            "]",
            "[[plugins]]",
            "[engine]",
            "\nweighers = [{ name = \"ram\", multiplier = -1 }, { name = 3 }]\n",
            "= -1e400",
            "\u{0}",
            "\r\n ",
            "[driver.libvirt]",
            "host = ",
            "[filter_scheduler]\nram_weight_multiplier = nan\n",
            "$host",
            "ä[b]=",
            "[a.b.c]\n",
            "x[1].y = 2\n",
        ])
        .prop_map(str::to_owned),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_judged_as_any_kind(pieces in prop::collection::vec(piece(), 0..6)) {
        let text = pieces.concat();
        let files = ThisMachine::with(None);
        for kind in [None, Some(ConfigKind::Scheduler), Some(ConfigKind::Agent), Some(ConfigKind::Nova)] {
            let report = check(Path::new("any"), &text, kind, &files);
            for finding in &report.findings {
                prop_assert!(!finding.what.is_empty() && !finding.why.is_empty() && !finding.next.is_empty());
                if let Some(at) = finding.at {
                    prop_assert!(at.line >= 1 && at.line <= text.split(['\n', '\r']).count());
                }
            }
        }
    }

    /// What the daemon refuses has an error, and what it takes has none.
    #[test]
    fn a_file_has_errors_exactly_if_the_scheduler_refuses_it(pieces in prop::collection::vec(piece(), 0..5)) {
        let text = pieces.concat();
        let taken = ebbtide_config::Config::parse(Path::new("any"), &text, std::iter::empty(), &[]);
        let report = check(Path::new("any"), &text, Some(ConfigKind::Scheduler), &ThisMachine::with(None));
        // A plugin's file is looked for by the daemon after that.
        let plugin = report.findings.iter().any(|finding| finding.code == ebbtide_config_check::code::PLUGIN_FILE);
        prop_assert_eq!(taken.is_err(), report.count(Level::Error) > usize::from(plugin && taken.is_ok()), "{:?} {:?}", taken.err().map(|e| e.to_string()), report.findings);
    }

    #[test]
    fn no_finding_shows_a_password(before in piece(), after in piece(), which in 0_usize..6) {
        let line = [
            "[database]\nurl = \"mysql://u:geheim@h/d\"\n",
            "[database]\nurl = [\"mysql://u:geheim@h/d\"]\n",
            "[bus]\nurls = \"amqp://u:geheim@h/d\"\n",
            "[bus]\nqueue_type = \"amqp://u:geheim@h/d\"\n",
            "[DEFAULT]\ntransport_url = rabbit://u:geheim@h:x/\n",
            "[ebbtide]\nconnection = foo://u:geheim@h/\n",
        ][which];
        let text = format!("{before}\n{line}{after}");
        for kind in ConfigKind::ALL {
            let report = check(Path::new("any"), &text, Some(kind), &ThisMachine::with(None));
            for finding in &report.findings {
                let words = format!("{finding:?}");
                prop_assert!(!words.contains("geheim"), "{}", words);
            }
        }
    }
}

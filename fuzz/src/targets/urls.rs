//! URLs of brokers and databases: none shows its password, whether it is taken or refused.

use crate::secret::{MARK, assert_no_mark, marked};
use ebbtide_model::names::hide_logins;

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    // A fuzzer that looks at comparisons finds the word itself.
    if text.contains(MARK) {
        return;
    }
    read(text);
    // The same with a password that everybody would find in it.
    if let Some(url) = marked(text) {
        read(&url);
        assert_no_mark(&hide_logins(&url));
        let filled = ebbtide_nova_db::format_url("{scheme}://{username}@{hostname}/{path}", &url);
        let _ = ebbtide_nova_db::DatabaseUrl::parse(&filled);
    }
}

fn read(text: &str) {
    match text.parse::<ebbtide_bus::BrokerUrl>() {
        Ok(url) => {
            assert_no_mark(&format!("{url} {url:?}"));
            if let Err(error) = url.check_secret(false) {
                assert_no_mark(&error.to_string());
            }
        }
        Err(error) => assert_no_mark(&error.to_string()),
    }
    match text.parse::<oslo_messaging::TransportUrl>() {
        Ok(url) => {
            assert!(!url.hosts().is_empty() && (1..=255).contains(&url.vhost().len()));
            assert!(
                url.hosts()
                    .iter()
                    .all(|host| host.port() > 0 && !host.host().is_empty())
            );
            assert_no_mark(&format!("{url:?}"));
        }
        Err(error) => assert_no_mark(&error.to_string()),
    }
    match text.parse::<ebbtide_store::DatabaseUrl>() {
        Ok(url) => {
            assert_no_mark(&format!("{url} {url:?}"));
            let _ = url.backend();
        }
        Err(error) => assert_no_mark(&error.to_string()),
    }
    match ebbtide_nova_db::DatabaseUrl::parse(text) {
        Ok(url) => assert_no_mark(&format!("{url} {url:?}")),
        Err(error) => assert_no_mark(&error),
    }
    // Templates in the URLs of cells take their parts from nova.conf, and stay text whatever they
    // are.
    let conf = "mysql+pymysql://nova:p%40ss@db1:3306/nova_api?charset=utf8";
    let once = ebbtide_nova_db::format_url(text, conf);
    assert!(once.len() <= 64 * (text.len() + 64));
    let _ = ebbtide_nova_db::format_url("{username1}:{password}@{hostname}:{port}/{path}", text);
}

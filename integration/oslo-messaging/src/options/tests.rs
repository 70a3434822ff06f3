use std::collections::HashMap;

use super::*;

fn read(pairs: &[(&str, &str)]) -> Result<RabbitOptions, MessagingError> {
    let map: HashMap<String, String> = pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect();
    RabbitOptions::from_lookup(|name| map.get(name).cloned())
}

#[test]
fn without_any_option_the_defaults_are_oslo_messagings() {
    let options = read(&[]).unwrap();
    assert_eq!(options, RabbitOptions::default());
    assert_eq!(options.transient_queues_ttl, Duration::from_secs(1800));
    assert_eq!(options.heartbeat, Duration::from_secs(60));
    assert!(options.direct_mandatory && !options.topic_durable() && !options.ssl);
    assert!(!options.hostname.is_empty() && !options.processname.is_empty());
}

#[test]
fn options_are_read_as_oslo_config_reads_them() {
    let options = read(&[
        ("rabbit_quorum_queue", "True"),
        ("rabbit_transient_quorum_queue", "yes"),
        ("rabbit_quorum_delivery_limit", " 7 "),
        ("rabbit_quroum_max_memory_bytes", "11"),
        ("rabbit_transient_queues_ttl", "0"),
        ("kombu_reconnect_delay", "0.5"),
        ("kombu_failover_strategy", "shuffle"),
        ("kombu_reconnect_timeout", "9"),
        ("rabbit_login_method", "PLAIN"),
        ("ssl", "1"),
        ("ssl_ca_file", "/etc/ca.pem"),
        ("ssl_version", ""),
    ])
    .unwrap();
    assert!(options.topic_durable() && options.transient_quorum_queue && options.ssl);
    assert_eq!(options.quorum_delivery_limit, 7);
    // It was misspelt up to oslo.messaging 14.
    assert_eq!(options.quorum_max_memory_bytes, 11);
    assert_eq!(options.transient_queues_ttl, Duration::ZERO);
    assert_eq!(options.reconnect_delay, Duration::from_millis(500));
    assert_eq!(options.failover, FailoverStrategy::Shuffle);
    assert_eq!(options.missing_consumer_timeout, Duration::from_secs(9));
    assert_eq!(options.login_method, LoginMethod::Plain);
    assert_eq!(options.ssl_ca_file, Some(PathBuf::from("/etc/ca.pem")));
}

#[test]
fn every_wrong_value_is_refused_by_name() {
    let cases: [(&str, &[(&str, &str)]); 14] = [
        ("ssl", &[("ssl", "maybe")]),
        (
            "rabbit_quorum_delivery_limit",
            &[("rabbit_quorum_delivery_limit", "-1")],
        ),
        (
            "rabbit_qos_prefetch_count",
            &[("rabbit_qos_prefetch_count", "65536")],
        ),
        (
            "rabbit_transient_queues_ttl",
            &[("rabbit_transient_queues_ttl", "1.5")],
        ),
        (
            "rabbit_transient_queues_ttl",
            &[("rabbit_transient_queues_ttl", "99999999999999999999")],
        ),
        ("rabbit_retry_interval", &[("rabbit_retry_interval", "0")]),
        ("kombu_reconnect_delay", &[("kombu_reconnect_delay", "nan")]),
        ("kombu_reconnect_delay", &[("kombu_reconnect_delay", "5")]),
        (
            "kombu_failover_strategy",
            &[("kombu_failover_strategy", "random")],
        ),
        ("rabbit_stream_fanout", &[("rabbit_stream_fanout", "true")]),
        (
            "rabbit_ha_queues",
            &[
                ("rabbit_ha_queues", "true"),
                ("rabbit_quorum_queue", "true"),
            ],
        ),
        ("ssl_key_file", &[("ssl_cert_file", "/c.pem")]),
        (
            "heartbeat_timeout_threshold",
            &[("heartbeat_timeout_threshold", "70000")],
        ),
        (
            "rabbit_login_method",
            &[("rabbit_login_method", "RABBIT-CR-DEMO")],
        ),
    ];
    for (option, pairs) in cases {
        let error = read(pairs).unwrap_err();
        assert_eq!(error.code(), "EB-OSLO-002");
        assert!(error.to_string().contains(option), "{error}");
    }
}

#[test]
fn the_url_goes_before_the_file_and_may_not_name_unknown_options() {
    let file =
        |name: &str| (name == "ssl" || name == "amqp_durable_queues").then(|| "true".to_owned());
    let url: TransportUrl = "rabbit://h/?ssl=0&rabbit_quorum_queue=1".parse().unwrap();
    let options = RabbitOptions::for_url(&url, file).unwrap();
    assert!(!options.ssl && options.durable_queues && options.quorum_queue);
    let url: TransportUrl = "rabbit://h/?sll=1".parse().unwrap();
    let error = RabbitOptions::for_url(&url, file).unwrap_err();
    assert!(error.to_string().contains("sll"), "{error}");
}

#[test]
fn a_file_that_cannot_be_used_is_named_with_its_option() {
    let folder = tempfile::tempdir().unwrap();
    let binary = folder.path().join("ca.der");
    std::fs::write(&binary, [0x30, 0x82, 0xff]).unwrap();
    for path in [folder.path().join("missing.pem"), binary] {
        let options = RabbitOptions {
            ssl_ca_file: Some(path.clone()),
            ..RabbitOptions::default()
        };
        let error = MessagingError::from(options.tls_files().check().unwrap_err());
        assert_eq!(error.code(), "EB-OSLO-003");
        let text = error.to_string();
        assert!(
            text.contains("ssl_ca_file") && text.contains(&path.display().to_string()),
            "{text}"
        );
    }
}

//! Flavors as operators write them: `VCPUS RAM DISK` in the first line, then an extra spec a line,
//! `KEY=VALUE`. What is understood is within its limits.

use ebbtide_model::flavor::{MAX_GRACE, MAX_PRIORITY, MAX_PROTECTED};
use ebbtide_model::{Flavor, FlavorId};
use uuid::Uuid;

pub(super) fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let mut lines = text.lines();
    let mut sizes = lines
        .next()
        .unwrap_or_default()
        .split(' ')
        .map(|word| word.parse().unwrap_or(1));
    let mut size = || sizes.next().unwrap_or(1);
    let mut flavor = Flavor {
        id: FlavorId(Uuid::nil()),
        name: "m1.small".to_owned(),
        vcpus: size(),
        ram_mb: size(),
        disk_gb: size(),
        extra_specs: lines
            .filter_map(|line| line.split_once('='))
            .map(|(key, value)| (key.to_owned(), value.to_owned()))
            .collect(),
    };
    match flavor.properties() {
        Ok(found) => {
            assert_eq!(found.preemptible, flavor.is_preemptible());
            assert!(found.grace.is_none_or(|grace| grace <= MAX_GRACE));
            assert!(found.protected.is_none_or(|long| long <= MAX_PROTECTED));
            assert!(found.priority <= MAX_PRIORITY && !found.resources.is_empty());
            let price = found.price_per_hour;
            assert_eq!(price.to_string().parse().ok(), Some(price));
            let retained = found.retained();
            assert_eq!(retained.at_most(&found.resources), retained);
            let json = serde_json::to_string(&found.resources).expect("written");
            assert_eq!(serde_json::from_str(&json).ok(), Some(found.resources));
        }
        Err(error) => {
            assert!(error.to_string().len() < 2_000, "an endless error");
            let _ = error.code();
        }
    }
    // Its name is the tenant's to read.
    flavor.name = text.chars().take(300).collect();
    if flavor.properties().is_ok() {
        assert!(!flavor.name.chars().any(char::is_control));
    }
}

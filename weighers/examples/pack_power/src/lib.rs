//! A weigher for Ebbtide: fills hosts and racks that are running anyway, so that the others can
//! sleep.
//!
//! What it works out is here, where `cargo test` reaches it natively; `component.rs` is what
//! Ebbtide calls.

#[cfg(target_family = "wasm")]
mod component;

/// The smallest number: a host that the request would overcommit.
pub const OVERCOMMITTED: f64 = -1.0;
/// A host without instances in a rack without instances.
pub const DARK: f64 = 0.0;
/// A host without instances in a rack where others run something.
pub const RACK_AWAKE: f64 = 1.0;
/// From here on hosts that run something; at most one more for those that the request fills.
pub const AWAKE: f64 = 2.0;
/// The largest number.
pub const FULL: f64 = 3.0;

/// What the operator sets.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The key in the aggregates' metadata that says which hosts get their power together.
    pub domain: String,
    /// Memory that should stay free on a host, in MiB; where less would be left it counts as
    /// overcommitted.
    pub keep_free_mb: f64,
}

impl Settings {
    /// Reads them; says what is wrong.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut settings = Self {
            domain: "rack".to_owned(),
            keep_free_mb: 0.0,
        };
        for (key, value) in pairs {
            match (key, value) {
                ("domain", "") => {
                    return Err("domain = \"\": it has to be a key of aggregates' metadata, for example rack".to_owned());
                }
                ("domain", _) => settings.domain = value.to_owned(),
                ("keep_free_mb", _) => match value.parse() {
                    Ok(mb) if mb >= 0.0 && f64::is_finite(mb) => settings.keep_free_mb = mb,
                    _ => {
                        return Err(format!(
                            "keep_free_mb = {value:?}: it has to be a number of MiB, 0 or more"
                        ));
                    }
                },
                _ => {
                    return Err(format!(
                        "{key:?} is not a setting of it; there are domain and keep_free_mb"
                    ));
                }
            }
        }
        Ok(settings)
    }
}

/// What one instance takes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Taken {
    /// VCPU and PCPU.
    pub vcpus: f64,
    /// MiB.
    pub memory_mb: f64,
}

/// What is known of one host.
#[derive(Debug, Clone, Copy)]
pub struct Host {
    /// Which rack it stands in, if that is known.
    pub domain: Option<u32>,
    pub instances: f64,
    /// Processors × allocation ratio − used.
    pub free_vcpus: f64,
    /// Memory − used, MiB.
    pub free_ram_mb: f64,
}

/// For each rack number, whether any host of the rack runs an instance.
pub fn awake(hosts: impl Iterator<Item = Host>) -> Vec<bool> {
    let mut awake = Vec::new();
    for host in hosts {
        let Some(domain) = host.domain.filter(|_| host.instances > 0.0) else {
            continue;
        };
        let domain = domain as usize;
        if awake.len() <= domain {
            awake.resize(domain + 1, false);
        }
        awake[domain] = true;
    }
    awake
}

/// How little has to be woken for the request there; among hosts that run something, how full it
/// makes them.
pub fn score(host: Host, taken: Taken, keep_free_mb: f64, awake: &[bool]) -> f64 {
    let vcpus_left = host.free_vcpus - taken.vcpus;
    if vcpus_left < 0.0 || host.free_ram_mb - taken.memory_mb < keep_free_mb {
        return OVERCOMMITTED;
    }
    if host.instances > 0.0 {
        return AWAKE + 1.0 / (1.0 + vcpus_left);
    }
    let neighbours = host.domain.and_then(|domain| awake.get(domain as usize));
    match neighbours {
        Some(true) => RACK_AWAKE,
        _ => DARK,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Taken = Taken {
        vcpus: 2.0,
        memory_mb: 4096.0,
    };

    fn host(domain: u32, instances: f64, free_vcpus: f64) -> Host {
        Host {
            domain: Some(domain),
            instances,
            free_vcpus,
            free_ram_mb: 65536.0,
        }
    }

    fn scores(hosts: &[Host]) -> Vec<f64> {
        let awake = awake(hosts.iter().copied());
        hosts
            .iter()
            .map(|host| score(*host, SMALL, 0.0, &awake))
            .collect()
    }

    #[test]
    fn the_fullest_running_host_first_then_racks_that_are_awake_then_dark_ones() {
        let numbers = scores(&[
            host(0, 9.0, 4.0),
            host(0, 1.0, 32.0),
            host(0, 0.0, 64.0),
            host(1, 0.0, 64.0),
        ]);
        assert!(
            numbers.windows(2).all(|pair| pair[0] > pair[1]),
            "{numbers:?}"
        );
    }

    #[test]
    fn rather_wake_a_rack_than_overcommit_a_host() {
        let numbers = scores(&[host(0, 9.0, 1.0), host(1, 0.0, 64.0)]);
        assert_eq!(numbers, [OVERCOMMITTED, DARK]);
        let mut little_memory = host(0, 9.0, 8.0);
        little_memory.free_ram_mb = 5000.0;
        assert_eq!(score(little_memory, SMALL, 1024.0, &[true]), OVERCOMMITTED);
        assert!(score(little_memory, SMALL, 0.0, &[true]) > AWAKE);
    }

    #[test]
    fn a_host_with_an_unknown_rack_does_not_count_as_awake() {
        let unknown = Host {
            domain: None,
            ..host(0, 0.0, 64.0)
        };
        assert_eq!(scores(&[unknown, host(0, 3.0, 8.0)])[0], DARK);
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let read = |key, value| Settings::read([(key, value)]);
        assert_eq!(
            read("keep_free_mb", "512").map(|settings| settings.keep_free_mb),
            Ok(512.0)
        );
        assert!(read("keep_free_mb", "-1").is_err() && read("keep_free_mb", "inf").is_err());
        assert!(read("domain", "").is_err() && read("colour", "red").is_err());
    }
}

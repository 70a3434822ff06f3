//! A weigher for Ebbtide: keeps the members of a server group, and then everything else, in
//! different failure domains (racks, rooms, power feeds).
//!
//! What it works out is here, where `cargo test` reaches it natively; `component.rs` is what
//! Ebbtide calls.

#[cfg(target_family = "wasm")]
mod component;

/// What the operator sets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The key in the aggregates' metadata that says where a host stands.
    pub domain: String,
    /// Whether domains with few instances come first among those with equally many members of the
    /// group.
    pub balance: bool,
}

impl Settings {
    /// Reads them; says what is wrong.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut settings = Self {
            domain: "rack".to_owned(),
            balance: true,
        };
        for (key, value) in pairs {
            match (key, value) {
                ("domain", "") => {
                    return Err("domain = \"\": it has to be a key of aggregates' metadata, for example rack".to_owned());
                }
                ("domain", _) => settings.domain = value.to_owned(),
                ("balance", "yes") => settings.balance = true,
                ("balance", "no") => settings.balance = false,
                ("balance", _) => {
                    return Err(format!("balance = {value:?}: it has to be yes or no"));
                }
                _ => {
                    return Err(format!(
                        "{key:?} is not a setting of it; there are domain and balance"
                    ));
                }
            }
        }
        Ok(settings)
    }
}

/// Whether the members of a group with this policy are to be kept apart.
pub fn keeps_apart(policy: Option<&str>) -> bool {
    matches!(policy, Some("anti-affinity" | "soft-anti-affinity"))
}

/// The hosts of one domain, together.
#[derive(Debug, Clone, Copy, Default)]
struct Domain {
    hosts: f64,
    members: f64,
    instances: f64,
}

/// What is known of the hosts: one entry a host in each.
#[derive(Debug, Clone, Copy)]
pub struct Hosts<'a> {
    /// Which domain it is in. Those of which no domain is known share one: they could fall
    /// together.
    pub domain: &'a [u32],
    /// Members of the group on it.
    pub members: &'a [f64],
    pub instances: &'a [f64],
}

/// One number a host: minus the members of the group in its whole domain, and less than one for how
/// full the domain is.
pub fn scores(hosts: Hosts<'_>, apart: bool, balance: bool) -> Vec<f64> {
    let most = hosts.domain.iter().max().map_or(0, |most| *most as usize);
    let mut domains = vec![Domain::default(); most + 1];
    for ((code, members), instances) in hosts.domain.iter().zip(hosts.members).zip(hosts.instances)
    {
        let domain = &mut domains[*code as usize];
        domain.hosts += 1.0;
        domain.members += members;
        domain.instances += instances;
    }
    // All of these are whole numbers until here, so their sums do not depend on the order of hosts.
    let load = |domain: &Domain| domain.instances / domain.hosts.max(1.0);
    let fullest = domains.iter().map(load).fold(0.0, f64::max);
    let number: Vec<f64> = domains
        .iter()
        .map(|domain| {
            let members = if apart { domain.members } else { 0.0 };
            let fullness = if balance {
                load(domain) / (fullest + 1.0)
            } else {
                0.0
            };
            -(members + fullness)
        })
        .collect();
    hosts
        .domain
        .iter()
        .map(|code| number[*code as usize])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOSTS: Hosts<'_> = Hosts {
        domain: &[0, 0, 1, 1],
        members: &[1.0, 0.0, 0.0, 0.0],
        instances: &[1.0, 1.0, 9.0, 9.0],
    };

    #[test]
    fn a_rack_without_members_comes_first_however_full_it_is() {
        let numbers = scores(HOSTS, true, true);
        assert!(numbers[2] > numbers[1], "{numbers:?}");
        assert_eq!(numbers[0], numbers[1], "hosts of one rack are alike");
    }

    #[test]
    fn without_a_group_that_is_kept_apart_the_emptier_rack_comes_first() {
        let numbers = scores(HOSTS, false, true);
        assert!(numbers[0] > numbers[2], "{numbers:?}");
    }

    #[test]
    fn what_is_not_asked_for_makes_no_difference() {
        assert_eq!(scores(HOSTS, false, false), [0.0; 4]);
    }

    #[test]
    fn only_policies_that_keep_apart_keep_apart() {
        assert!(keeps_apart(Some("anti-affinity")) && keeps_apart(Some("soft-anti-affinity")));
        assert!(!keeps_apart(Some("soft-affinity")) && !keeps_apart(None));
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        let read = |key, value| Settings::read([(key, value)]);
        assert_eq!(
            read("domain", "room").map(|settings| settings.domain),
            Ok("room".to_owned())
        );
        assert!(read("domain", "").is_err() && read("balance", "maybe").is_err());
        assert!(
            read("rack", "r1")
                .unwrap_err()
                .contains("there are domain and balance")
        );
    }
}

//! A cost module for Ebbtide: the loss of an instance costs what it earns in an hour less what its
//! power costs in that hour. While power is dear the large instances that pay little go first.
//!
//! What it works out is here, where `cargo test` reaches it natively; `component.rs` is what
//! Ebbtide calls.

#[cfg(target_family = "wasm")]
mod component;

const WATTS_IN_KW: f64 = 1000.0;
const MIB_IN_GIB: f64 = 1024.0;
/// Ebbtide takes no cost above this.
const MOST: f64 = 1e9;

/// What the operator sets.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Power {
    /// Price of a kilowatt-hour, in the currency of `ebbtide:price_per_hour`.
    pub price_per_kwh: f64,
    /// What a busy processor takes, in watts.
    pub watts_per_vcpu: f64,
    /// What memory takes, in watts.
    pub watts_per_gib: f64,
    /// Power usage effectiveness: what the building takes for each watt of a host.
    pub pue: f64,
}

impl Power {
    /// Reads the operator's settings; says what is wrong.
    pub fn read<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, String> {
        let mut price = None;
        let mut power = Self {
            price_per_kwh: 0.0,
            watts_per_vcpu: 4.0,
            watts_per_gib: 0.4,
            pue: 1.5,
        };
        for (key, value) in pairs {
            let number = |least: f64, most: f64, words: &str| match value.parse::<f64>() {
                Ok(number) if number >= least && number <= most => Ok(number),
                _ => Err(format!("{key} = {value:?}: it has to be {words}")),
            };
            match key {
                "price_per_kwh" => price = Some(number(0.0, 1e6, "a price from 0 to 1000000")?),
                "watts_per_vcpu" => {
                    power.watts_per_vcpu = number(0.0, 1e4, "watts from 0 to 10000")?
                }
                "watts_per_gib" => power.watts_per_gib = number(0.0, 1e4, "watts from 0 to 10000")?,
                "pue" => power.pue = number(1.0, 10.0, "a number from 1 to 10")?,
                _ => {
                    return Err(format!(
                        "{key:?} is not a setting of it; there are price_per_kwh, watts_per_vcpu, watts_per_gib and pue"
                    ));
                }
            }
        }
        power.price_per_kwh = price.ok_or(
            "price_per_kwh is missing: set what a kilowatt-hour costs now, for example \"0.25\"",
        )?;
        Ok(power)
    }

    /// What an instance's power costs in an hour at `here` for a kilowatt-hour; `None`: the
    /// operator's setting.
    pub fn of(&self, vcpus: f64, memory_mb: f64, here: Option<f64>) -> f64 {
        let watts = vcpus * self.watts_per_vcpu + memory_mb / MIB_IN_GIB * self.watts_per_gib;
        watts * self.pue / WATTS_IN_KW * here.unwrap_or(self.price_per_kwh)
    }

    /// What an hour of it earns after its power is paid; nothing if that costs more.
    pub fn margin(&self, vcpus: f64, memory_mb: f64, price: f64, here: Option<f64>) -> f64 {
        (price - self.of(vcpus, memory_mb, here)).clamp(0.0, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(price: &str) -> Power {
        Power::read([
            ("price_per_kwh", price),
            ("watts_per_vcpu", "10"),
            ("watts_per_gib", "0"),
            ("pue", "1"),
        ])
        .unwrap()
    }

    #[test]
    fn a_hundred_processors_of_ten_watts_take_a_kilowatt() {
        assert_eq!(at("0.25").of(100.0, 4096.0, None), 0.25);
    }

    #[test]
    fn who_goes_first_turns_with_the_price() {
        let (small, large) = ((2.0, 0.02), (64.0, 0.16));
        let margin = |price: &str, (vcpus, pays): (f64, f64)| at(price).margin(vcpus, 0.0, pays, None);
        assert!(
            margin("0.05", small) < margin("0.05", large),
            "cheap power: the one that pays less"
        );
        assert!(
            margin("0.24", small) > margin("0.24", large),
            "dear power: the one that takes more of it"
        );
    }

    #[test]
    fn who_does_not_pay_for_its_power_costs_nothing() {
        assert_eq!(at("0.5").margin(64.0, 0.0, 0.16, None), 0.0);
        assert_eq!(at("0.5").margin(1.0, 0.0, 0.0, None), 0.0);
    }

    #[test]
    fn what_a_host_says_counts_more_than_the_setting() {
        let power = at("0.5");
        assert_eq!(power.of(100.0, 0.0, Some(0.1)), 0.1);
        assert!(power.margin(4.0, 0.0, 0.02, Some(0.1)) > power.margin(4.0, 0.0, 0.02, None));
    }

    #[test]
    fn without_a_price_it_does_not_begin() {
        assert!(
            Power::read([])
                .unwrap_err()
                .contains("price_per_kwh is missing")
        );
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        for (key, value) in [
            ("price_per_kwh", "-1"),
            ("pue", "0.9"),
            ("watts_per_vcpu", "NaN"),
            ("watts_per_gib", "few"),
        ] {
            let refused = Power::read([("price_per_kwh", "1"), (key, value)]).unwrap_err();
            assert!(refused.contains("it has to be"), "{refused}");
        }
        assert!(
            Power::read([("kwh", "1")])
                .unwrap_err()
                .contains("is not a setting")
        );
    }
}

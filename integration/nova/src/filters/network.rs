//! Networks as netaddr 1.3 reads them (`IPNetwork`, `IPAddress`).

use crate::fault::NovaException;
use crate::python::number;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A network: an address of 32 or 128 bits and how many of them count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network {
    value: u128,
    prefix: u32,
    width: u32,
}

fn bad(what: &str) -> NovaException {
    NovaException::new(
        "AddrFormatError",
        format!("{what:?} is no address or network"),
    )
}

/// An address of one family. An address with a slash is a ValueError.
fn address(text: &str, width: u32) -> Result<u128, NovaException> {
    if text.contains('/') {
        return Err(NovaException::new(
            "ValueError",
            format!("{text:?} is no address: it has a slash"),
        ));
    }
    if text.contains('\0') {
        return Err(NovaException::new("ValueError", "an address has no NUL"));
    }
    let parsed = if width == 32 {
        text.parse::<Ipv4Addr>()
            .map(|address| u128::from(u32::from(address)))
            .ok()
    } else {
        text.parse::<Ipv6Addr>().map(u128::from).ok()
    };
    parsed.ok_or_else(|| bad(text))
}

/// The prefix of a netmask such as 255.255.255.0, or of a hostmask such as 0.0.0.255.
fn mask_prefix(mask: u128, width: u32) -> Option<u32> {
    let all = if width == 32 {
        u128::from(u32::MAX)
    } else {
        u128::MAX
    };
    let inverse = mask ^ all;
    if inverse & inverse.wrapping_add(1) == 0 {
        Some(width - inverse.count_ones())
    } else if mask & mask.wrapping_add(1) == 0 {
        Some(width - mask.count_ones())
    } else {
        None
    }
}

impl Network {
    /// Reads `10.0.0.1/24`, `10.0.0.1/255.255.255.0`, `fe80::1/64`, or one address alone.
    ///
    /// # Errors
    /// AddrFormatError; ValueError for two slashes behind a good address.
    pub(super) fn read(text: &str) -> Result<Self, NovaException> {
        match Self::of_family(text, 32) {
            Err(fault) if fault.class == "AddrFormatError" => Self::of_family(text, 128),
            read => read,
        }
    }

    fn of_family(text: &str, width: u32) -> Result<Self, NovaException> {
        let (base, suffix) = match text.split_once('/') {
            Some((base, suffix)) => (base, Some(suffix)),
            None => (text, None),
        };
        let value = address(base, width)?;
        let prefix = match suffix {
            None => width,
            Some(suffix) => match number::int(suffix) {
                Some(prefix) => u32::try_from(prefix)
                    .ok()
                    .filter(|prefix| *prefix <= width)
                    .ok_or_else(|| bad(text))?,
                None => mask_prefix(address(suffix, width)?, width).ok_or_else(|| bad(text))?,
            },
        };
        Ok(Self {
            value,
            prefix,
            width,
        })
    }

    /// Whether an address lies in the network.
    ///
    /// # Errors
    /// AddrFormatError, ValueError for what is no address; TypeError for none at all.
    pub(super) fn contains(&self, host_ip: Option<&str>) -> Result<bool, NovaException> {
        let host_ip =
            host_ip.ok_or_else(|| NovaException::new("TypeError", "the host has no address"))?;
        let address: IpAddr = host_ip.parse().map_err(|_| bad(host_ip))?;
        let (value, width) = match address {
            IpAddr::V4(address) => (u128::from(u32::from(address)), 32),
            IpAddr::V6(address) => (u128::from(address), 128),
        };
        let shift = self.width - self.prefix;
        let network = |value: u128| value.checked_shr(shift).unwrap_or(0);
        Ok(width == self.width && network(value) == network(self.value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(network: &str, host: &str) -> Result<bool, &'static str> {
        Network::read(network)
            .and_then(|network| network.contains(Some(host)))
            .map_err(|fault| fault.class)
    }

    #[test]
    fn a_prefix_may_be_a_number_a_netmask_or_a_hostmask() {
        for mask in ["24", " 2_4 ", "255.255.255.0", "0.0.0.255"] {
            assert_eq!(
                within(&format!("10.0.0.9/{mask}"), "10.0.0.200"),
                Ok(true),
                "{mask:?}"
            );
            assert_eq!(
                within(&format!("10.0.0.9/{mask}"), "10.0.1.200"),
                Ok(false),
                "{mask:?}"
            );
        }
        assert_eq!(within("10.0.0.9/0.0.0.0", "11.0.0.1"), Ok(true));
        assert_eq!(within("10.0.0.9", "10.0.0.9"), Ok(true));
        assert_eq!(within("::1/0", "fe80::1"), Ok(true));
        assert_eq!(within("::1/0", "10.0.0.1"), Ok(false));
    }

    #[test]
    fn junk_is_an_address_format_error() {
        for junk in [
            "10.0.0/24",
            "10.0.0.1/33",
            "10.0.0.1/-1",
            "10.0.0.1/",
            "010.0.0.1/8",
            "x/24",
            "10.0.0.1/255.0.255.0",
            "",
        ] {
            assert_eq!(within(junk, "10.0.0.1"), Err("AddrFormatError"), "{junk:?}");
        }
        assert_eq!(within("10.0.0.1/24/8", "10.0.0.1"), Err("ValueError"));
        assert_eq!(within("x/24/8", "10.0.0.1"), Err("AddrFormatError"));
    }
}

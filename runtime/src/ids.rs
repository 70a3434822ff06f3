//! Identifiers and chance from the operating system's generator.
#![allow(clippy::disallowed_methods)] // This is the module that clippy.toml points to.

use uuid::Uuid;

/// An identifier that sorts by the time of its creation (UUID version 7), which suits database
/// indexes.
#[must_use]
pub fn new() -> Uuid {
    Uuid::now_v7()
}

/// An identifier without a time (UUID version 4).
#[must_use]
pub fn random() -> Uuid {
    Uuid::new_v4()
}

/// A random identifier of 32 hexadecimal digits, as oslo.messaging uses for `_msg_id`, `_unique_id`
/// and queue names.
#[must_use]
pub fn hex() -> String {
    random().simple().to_string()
}

/// Twelve hexadecimal digits (48 random bits) for names with a length limit, such as MySQL database
/// names and Unix socket paths. Enough that the few thousand names of a test run differ.
#[must_use]
pub fn short() -> String {
    let mut name = hex();
    name.truncate(12);
    name
}

/// A request id as OpenStack's services write and accept it: `req-` and a UUID.
#[must_use]
pub fn new_request_id() -> String {
    format!("req-{}", random())
}

/// A random number with 64 random bits, for seeds and choices. Not for secrets.
#[must_use]
pub fn seed() -> u64 {
    // Each half of a UUID has fixed bits, in different places.
    let (high, low) = random().as_u64_pair();
    high ^ low
}

/// A random number of at least 0 and below 1, for delays that must not coincide.
#[must_use]
pub fn fraction() -> f64 {
    let bits = u32::try_from(random().as_u128() & 0xffff_ffff).unwrap_or(0);
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

/// Unpredictable bytes for secrets, 244 of whose bits are random.
#[must_use]
pub fn secret() -> [u8; 32] {
    // Each half has 122 random bits of the system's generator.
    let mut bytes = [0; 32];
    for half in bytes.chunks_mut(16) {
        half.copy_from_slice(random().as_bytes());
    }
    bytes
}

/// A [`secret`] as 64 hexadecimal digits.
#[must_use]
pub fn secret_hex() -> String {
    hex() + &hex()
}

/// Fills a buffer with unpredictable bytes, all of whose bits are random.
///
/// # Errors
/// The system has no random numbers.
pub fn fill(bytes: &mut [u8]) -> Result<(), getrandom::Error> {
    getrandom::fill(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_identifiers_have_their_lengths() {
        assert_eq!(hex().len(), 32);
        assert_eq!(short().len(), 12);
        assert_eq!(secret_hex().len(), 64);
        let request = new_request_id();
        assert!(Uuid::parse_str(request.strip_prefix("req-").unwrap()).is_ok());
    }

    #[test]
    fn newer_identifiers_sort_behind_older_ones() {
        let made: Vec<Uuid> = (0..1000).map(|_| new()).collect();
        assert!(made.is_sorted());
    }

    #[test]
    fn every_bit_of_a_seed_varies() {
        let seeds: Vec<u64> = (0..200).map(|_| seed()).collect();
        let (all, any) = seeds
            .iter()
            .fold((u64::MAX, 0), |(all, any), seed| (all & seed, any | seed));
        assert_eq!((all, any), (0, u64::MAX));
    }

    #[test]
    fn fractions_cover_zero_to_one() {
        let made: Vec<f64> = (0..1000).map(|_| fraction()).collect();
        assert!(made.iter().all(|part| (0.0..1.0).contains(part)));
        assert!(made.iter().any(|&part| part < 0.25));
        assert!(made.iter().any(|&part| part > 0.75));
    }
}

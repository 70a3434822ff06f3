//! A plugin that does what its setting `do` says, for the tests of the sandbox.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant, SystemTime};

#[cfg(not(any(feature = "cost", feature = "filter")))]
mod weigher;
#[cfg(feature = "filter")]
mod filter;
#[cfg(feature = "cost")]
mod cost;

/// What is to be done, and what the settings say besides.
struct Orders(HashMap<String, String>);

impl Orders {
    fn get(&self, key: &str) -> &str {
        self.0.get(key).map_or("", String::as_str)
    }
}

/// Numbers for so many rows, whatever else happens.
fn misbehave(orders: &Orders, rows: usize) -> Result<Vec<f64>, String> {
    match orders.get("do") {
        "panic" => panic!("I was told to"),
        "loop" => loop {
            std::hint::black_box(rows);
        },
        "recurse" => Ok(vec![deeper(rows as u64) as f64]),
        "memory" => {
            let mut all: Vec<Vec<u8>> = Vec::new();
            loop {
                all.push(Vec::with_capacity(1 << 20));
                std::hint::black_box(&all);
            }
        }
        "nan" => Ok(vec![f64::NAN; rows]),
        "infinity" => Ok(vec![f64::INFINITY; rows]),
        "short" => Ok(vec![1.0; rows.saturating_sub(1)]),
        "long" => Ok(vec![1.0; rows + 1]),
        "error" => Err("I have no opinion".to_owned()),
        "exit" => std::process::exit(3),
        "time" => Ok(vec![SystemTime::UNIX_EPOCH.elapsed().map_or(0.0, |since| since.as_secs_f64()); rows]),
        "instant" => Ok(vec![Instant::now().elapsed().as_secs_f64(); rows]),
        "sleep" => {
            std::thread::sleep(Duration::from_secs(3600));
            Ok(vec![0.0; rows])
        }
        "file" => Ok(vec![f64::from(u8::from(std::fs::read("/etc/passwd").is_ok())); rows]),
        "network" => Ok(vec![f64::from(u8::from(std::net::TcpStream::connect("127.0.0.1:80").is_ok())); rows]),
        "environment" => Ok(vec![std::env::vars().count() as f64; rows]),
        "random" => Ok(vec![(RandomState::new().hash_one(1) >> 12) as f64; rows]),
        "remember" => {
            static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
            Ok(vec![CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) as f64; rows])
        }
        other => Err(format!("I do not know how to {other:?}")),
    }
}

fn deeper(n: u64) -> u64 {
    let here = [n; 64];
    std::hint::black_box(&here);
    deeper(n + 1) + here[(n % 64) as usize]
}

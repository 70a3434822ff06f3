#![no_main]
ebbtide_libfuzzer::program!("batch");

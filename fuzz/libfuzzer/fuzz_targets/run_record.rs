#![no_main]
ebbtide_libfuzzer::program!("run_record");

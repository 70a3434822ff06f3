#![no_main]
ebbtide_libfuzzer::program!("region_record");

#![no_main]
ebbtide_libfuzzer::program!("metadata_request");

#![no_main]
ebbtide_libfuzzer::program!("small_texts");

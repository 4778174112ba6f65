#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| mingle_fuzz::plan::check_json(input));

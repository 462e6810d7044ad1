// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads any bytes as a trace. The metadata ends at the first 0x1d, which text never contains; a
//! stream follows. Every event is visited. `scripts/fuzz` builds and runs it.
#![no_main]

use std::fs;

use libfuzzer_sys::fuzz_target;
use lt_ctf::{Item, Options};

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|b| *b == 0x1d).unwrap_or(bytes.len());
    let (metadata, stream) = bytes.split_at(at);
    let growing = bytes.len() % 2 == 1;
    let dir = std::env::temp_dir().join(format!("lt-ctf-fuzz-{}", std::process::id()));
    fs::create_dir_all(&dir).expect("a directory");
    // Supplies the starts of JSON and of packets, which the fuzzer would find only by chance.
    let metadata = match metadata {
        [b'{', ..] => [b"\x1e", metadata].concat(),
        [b'W', rest @ ..] => [b"\x57\x1d\xd1\x75", rest].concat(),
        text => text.to_vec(),
    };
    fs::write(dir.join("metadata"), metadata).expect("metadata");
    fs::write(dir.join("stream"), stream.get(1..).unwrap_or_default()).expect("a stream");
    let Ok(mut reader) = Options::default().growing(growing).open(&dir) else {
        return;
    };
    let mut line = Vec::new();
    let mut errors = 0;
    while errors < 100 {
        match reader.next() {
            Ok(None) => break,
            Ok(Some(Item::Event(event))) => {
                line.clear();
                lt_ctf::text::line(&event, &mut line);
            }
            Ok(Some(Item::Lost(_))) => {}
            Err(_) => errors += 1,
        }
    }
    let _ = reader.spans();
    let _ = reader.seek(0);
});

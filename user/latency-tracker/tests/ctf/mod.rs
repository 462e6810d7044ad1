// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A small trace of disk requests, as LTTng's kernel tracer writes it (CTF 1.8).

use std::fs;
use std::path::Path;

/// The time of day at which the trace's clock was 0, seconds since 1970.
pub(crate) const SECONDS: u64 = 1_795_000_000;
/// The boot of the host.
pub(crate) const BOOT: &str = "11111111-2222-3333-4444-555555555555";

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; byte_order = le; } := u32;
typealias integer { size = 64; align = 8; signed = false; byte_order = le; } := u64;
typealias integer { size = 64; align = 8; signed = false; byte_order = le; map = clock.monotonic.value; } := stamp;
trace {
    major = 1; minor = 8; byte_order = le; uuid = "01234567-89ab-cdef-0123-456789abcdef";
    packet.header := struct { u32 magic; u32 stream_id; };
};
env { hostname = "disks-1"; domain = "kernel"; kernel_release = "7.2.12"; tracer_name = "lttng-modules"; };
clock { name = "monotonic"; uuid = "BOOT"; freq = 1000000000; offset_s = SECONDS; offset = 0; };
stream {
    id = 0;
    packet.context := struct {
        stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size; u64 packet_seq_num;
        u64 events_discarded; u32 cpu_id;
    };
    event.header := struct { u32 id; stamp timestamp; };
};
event { name = "block_rq_insert"; id = 0; stream_id = 0;
    fields := struct { u32 dev; u64 sector; u32 nr_sector; u32 rwbs; u32 tid; string comm; }; };
event { name = "block_rq_issue"; id = 1; stream_id = 0;
    fields := struct { u32 dev; u64 sector; u32 nr_sector; u32 rwbs; u32 tid; string comm; }; };
event { name = "block_rq_complete"; id = 2; stream_id = 0;
    fields := struct { u32 dev; u64 sector; u32 nr_sector; u32 error; u32 rwbs; }; };
event { name = "lttng_statedump_block_device"; id = 3; stream_id = 0;
    fields := struct { u32 dev; string diskname; }; };
"#;

fn put(bytes: &mut Vec<u8>, numbers: &[u32]) {
    numbers
        .iter()
        .for_each(|number| bytes.extend(number.to_le_bytes()));
}

fn put_long(bytes: &mut Vec<u8>, numbers: &[u64]) {
    numbers
        .iter()
        .for_each(|number| bytes.extend(number.to_le_bytes()));
}

/// Writes three requests, each with its time in the queue and at the device, and last the name of the disk.
pub(crate) fn requests(directory: &Path) {
    const DISK: u32 = 253 << 20;
    let mut body = Vec::new();
    let mut time = 1_000_000_u64;
    let mut event = |id: u32, fields: &dyn Fn(&mut Vec<u8>)| {
        time += 1234;
        put(&mut body, &[id]);
        put_long(&mut body, &[time]);
        fields(&mut body);
        time
    };
    let mut last = 0;
    for (request, rwbs) in [(1_u64, 1_u32), (2, 1 << 2), (3, 1 << 10)] {
        for id in 0..2 {
            event(id, &|body| {
                put(body, &[DISK]);
                put_long(body, &[request * 64]);
                put(body, &[8, rwbs, 77]);
                body.extend(b"fio\0");
            });
        }
        event(2, &|body| {
            put(body, &[DISK]);
            put_long(body, &[request * 64]);
            put(body, &[8, 0, rwbs]);
        });
        last = event(3, &|body| {
            put(body, &[DISK + 1]);
            body.extend(b"other\0");
        });
    }
    last = last.max(event(3, &|body| {
        put(body, &[DISK]);
        body.extend(b"vda\0");
    }));
    let bits = 8 * (8 + 6 * 8 + 4 + body.len() as u64);
    let mut bytes = Vec::new();
    put(&mut bytes, &[0xc1fc_1fc1, 0]);
    put_long(&mut bytes, &[1_000_000, last + 10, bits, bits, 0, 0]);
    put(&mut bytes, &[0]);
    bytes.extend(body);
    fs::create_dir_all(directory).unwrap();
    let metadata = METADATA
        .replace("BOOT", BOOT)
        .replace("SECONDS", &SECONDS.to_string());
    fs::write(directory.join("metadata"), metadata).unwrap();
    fs::write(directory.join("channel_0"), bytes).unwrap();
}

// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Small traces of disk requests, locks, work items, reclaim and packets, as LTTng's kernel tracer writes them (CTF 1.8).
//! Some events of network packets have perf's names.

use std::fs;
use std::path::Path;

use self::Value::{Long, Short, Text};

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
event { name = "sched_switch"; id = 4; stream_id = 0;
    fields := struct { string prev_comm; u32 prev_tid; u32 prev_prio; u64 prev_state;
        string next_comm; u32 next_tid; u32 next_prio; }; };
event { name = "sched_waking"; id = 5; stream_id = 0;
    fields := struct { string comm; u32 tid; u32 prio; u32 target_cpu; }; };
event { name = "irq_softirq_entry"; id = 6; stream_id = 0; fields := struct { u32 vec; }; };
event { name = "irq_softirq_exit"; id = 7; stream_id = 0; fields := struct { u32 vec; }; };
event { name = "lock_contention_begin"; id = 8; stream_id = 0; fields := struct { u64 lock_addr; u32 flags; }; };
event { name = "lock_contention_end"; id = 9; stream_id = 0; fields := struct { u64 lock_addr; u32 ret; }; };
event { name = "workqueue_queue_work"; id = 10; stream_id = 0; fields := struct { u64 work; u64 function; }; };
event { name = "workqueue_execute_start"; id = 11; stream_id = 0; fields := struct { u64 work; u64 function; }; };
event { name = "workqueue_execute_end"; id = 12; stream_id = 0; fields := struct { u64 work; u64 function; }; };
event { name = "mm_vmscan_direct_reclaim_begin"; id = 13; stream_id = 0; fields := struct { u32 order; }; };
event { name = "mm_vmscan_direct_reclaim_end"; id = 14; stream_id = 0; fields := struct { u64 nr_reclaimed; }; };
event { name = "mm_vmscan_kswapd_wake"; id = 15; stream_id = 0; fields := struct { u32 nid; }; };
event { name = "mm_vmscan_kswapd_sleep"; id = 16; stream_id = 0; fields := struct { u32 nid; }; };
event { name = "net_if_rx"; id = 17; stream_id = 0; fields := struct { u64 skbaddr; u32 len; string name; }; };
event { name = "net_if_receive_skb"; id = 18; stream_id = 0; fields := struct { u64 skbaddr; u32 len; string name; }; };
event { name = "net_dev_queue"; id = 19; stream_id = 0; fields := struct { u64 skbaddr; u32 len; string name; }; };
event { name = "net:net_dev_start_xmit"; id = 20; stream_id = 0; fields := struct { string name; u64 skbaddr; u32 len; }; };
event { name = "net_dev_xmit"; id = 21; stream_id = 0; fields := struct { u64 skbaddr; u32 rc; u32 len; string name; }; };
event { name = "skb_kfree"; id = 22; stream_id = 0; fields := struct { u64 skbaddr; }; };
event { name = "skb:consume_skb"; id = 23; stream_id = 0; fields := struct { u64 skbaddr; }; };
event { name = "skb_copy_datagram_iovec"; id = 24; stream_id = 0; fields := struct { u64 skbaddr; u32 len; }; };
event { name = "fprobes:__kfree_skb"; id = 25; stream_id = 0; fields := struct { u64 skbaddr; }; };
event { name = "fprobes:skb_attempt_defer_free"; id = 26; stream_id = 0; fields := struct { u64 skbaddr; }; };
event { name = "fprobes:kfree_skb_partial"; id = 27; stream_id = 0; fields := struct { u64 skbaddr; }; };
event { name = "net:napi_gro_receive_entry"; id = 28; stream_id = 0; fields := struct { string name; u64 skbaddr; }; };
"#;

const DISK: u32 = 253 << 20;

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
    write(directory, &body, last);
}

/// A value of a field.
#[derive(Clone, Copy)]
enum Value<'a> {
    Short(u32),
    Long(u64),
    Text(&'a str),
}

/// Events of CPU 0, 1 us apart.
struct Events {
    body: Vec<u8>,
    time: u64,
}

impl Events {
    fn new() -> Self {
        Self {
            body: Vec::new(),
            time: 1_000_000,
        }
    }

    fn event(&mut self, id: u32, fields: &[Value<'_>]) {
        self.time += 1000;
        put(&mut self.body, &[id]);
        put_long(&mut self.body, &[self.time]);
        for field in fields {
            match field {
                Short(number) => put(&mut self.body, &[*number]),
                Long(number) => put_long(&mut self.body, &[*number]),
                Text(text) => {
                    self.body.extend(text.bytes());
                    self.body.push(0);
                }
            }
        }
    }

    /// `prev` falls asleep.
    fn switch(&mut self, prev: (&str, u32), next: (&str, u32)) {
        self.event(
            4,
            &[
                Text(prev.0),
                Short(prev.1),
                Short(20),
                Long(u64::from(prev.1 != 0)),
                Text(next.0),
                Short(next.1),
                Short(20),
            ],
        );
    }

    fn write(&self, directory: &Path) {
        write(directory, &self.body, self.time);
    }
}

const IDLE: (&str, u32) = ("swapper/0", 0);
const SERVER: (&str, u32) = ("server", 77);

/// Writes a trace in which a thread waits for three requests of a disk, whose name comes last.
pub(crate) fn waits(directory: &Path) {
    let mut events = Events::new();
    events.switch(IDLE, SERVER);
    for sector in [64, 128, 192] {
        let request = [Short(DISK), Long(sector), Short(8), Short(1 << 2)];
        let issue = [&request[..], &[Short(SERVER.1), Text(SERVER.0)]].concat();
        events.event(0, &issue);
        events.event(1, &issue);
        events.switch(SERVER, IDLE);
        events.event(6, &[Short(4)]);
        let [dev, first, count, operation] = request;
        events.event(2, &[dev, first, count, Short(0), operation]);
        events.event(5, &[Text(SERVER.0), Short(SERVER.1), Short(20), Short(0)]);
        events.event(7, &[Short(4)]);
        events.switch(IDLE, SERVER);
    }
    events.event(3, &[Short(DISK), Text("vda")]);
    events.write(directory);
}

/// Writes a trace in which a thread waits for two locks, a mutex and a spinlock, twice each.
pub(crate) fn locks(directory: &Path) {
    let mut events = Events::new();
    events.switch(IDLE, SERVER);
    for (lock, flags) in [(0x1000, 32), (0x2000, 1), (0x1000, 32), (0x2000, 1)] {
        events.event(8, &[Long(lock), Short(flags)]);
        events.event(9, &[Long(lock), Short(0)]);
    }
    events.switch(SERVER, IDLE);
    events.write(directory);
}

/// Writes a trace in which a thread runs four work items of two functions.
pub(crate) fn works(directory: &Path) {
    let mut events = Events::new();
    events.switch(IDLE, SERVER);
    for (work, function) in [(1, 0xa0), (2, 0xb0), (1, 0xa0), (3, 0xb0)] {
        for id in 10..=12 {
            events.event(id, &[Long(work), Long(function)]);
        }
    }
    events.switch(SERVER, IDLE);
    events.write(directory);
}

/// Writes a trace in which a thread reclaims memory twice, and kswapd once.
pub(crate) fn reclaims(directory: &Path) {
    const KSWAPD: (&str, u32) = ("kswapd0", 40);
    let mut events = Events::new();
    events.switch(IDLE, SERVER);
    for _ in 0..2 {
        events.event(13, &[Short(0)]);
        events.event(14, &[Long(32)]);
    }
    events.switch(SERVER, KSWAPD);
    for id in [15, 15, 16] {
        events.event(id, &[Short(0)]);
    }
    events.switch(KSWAPD, IDLE);
    events.write(directory);
}

/// Writes a trace in which three packets are sent and received by `lo`: a thread reads the first packet, and the
/// other two are freed, the last one after it has been merged into its predecessor. A fourth packet is received, passed
/// to GRO, and freed there.
pub(crate) fn packets(directory: &Path) {
    let mut events = Events::new();
    events.switch(IDLE, SERVER);
    // With perf's names, the packets of the first second are not measured.
    events.time += 1_000_000_000;
    for skb in [0xa0, 0xb0, 0xc0] {
        events.event(19, &[Long(skb), Short(100), Text("lo")]);
        events.event(20, &[Text("lo"), Long(skb), Short(100)]);
        events.event(17, &[Long(skb), Short(86), Text("lo")]);
        events.event(21, &[Long(skb), Short(0), Short(100), Text("lo")]);
        events.event(18, &[Long(skb), Short(86), Text("lo")]);
    }
    events.event(27, &[Long(0xc0)]);
    events.event(24, &[Long(0xa0), Short(34)]);
    for (id, skb) in [(26, 0xa0), (25, 0xb0), (25, 0xc0)] {
        events.event(id, &[Long(skb)]);
    }
    events.event(18, &[Long(0xd0), Short(86), Text("lo")]);
    events.event(28, &[Text("lo"), Long(0xd0)]);
    events.event(25, &[Long(0xd0)]);
    events.switch(SERVER, IDLE);
    events.write(directory);
}

/// Writes a trace whose stream is one CTF packet.
fn write(directory: &Path, body: &[u8], last: u64) {
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

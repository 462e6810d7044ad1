// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Tests CTF 1.8 metadata written by hand. The expected text is what babeltrace2 2.1.2 prints for
//! the same trace.

use std::fs;

use lt_ctf::Reader;

use crate::made::{Bits, Dir, told, write};

/// Metadata with most features of TSDL; integers are big-endian unless declared otherwise.
pub const MANY: &str = r#"/* CTF 1.8 */
typealias integer { size = 8; align = 8; } := uint8_t;
typealias integer { size = 32; } := unsigned int;
typealias integer { size = 32; signed = TRUE; } := int;
typedef integer { size = 010; encoding = UTF8; signed = false; } letter, word[4];
typealias integer { size = 64; map = clock.it.value; } := stamp;
trace {
    major = 1; minor = 8; byte_order = be;
    uuid = "01234567-89ab-cdef-0123-456789abcdef";
    packet.header := struct { unsigned int magic; uint8_t uuid[16]; uint8_t stream_id; };
};
env { hostname = "ho\x73t"; vpid = -7; procname = "p\"\101"; };
clock { name = it; freq = 1000; offset_s = 3; offset = 2500; };
callsite { name = "x"; func = "y"; ip = 0x1; };
struct inner { uint8_t a; integer { size = 3; align = 1; } b; integer { size = 5; align = 1; base = hex; } c; };
enum colors : uint8_t { RED, "GREEN", blue = 0x10 ... 0x1f, "RED" = 0x20, };
variant either { uint8_t small; struct { unsigned int x; string s; } large; };
stream {
    id = 4;
    packet.context := struct {
        stamp timestamp_begin; stamp timestamp_end; uint8_t cpu_id;
        unsigned int content_size, packet_size;
    };
    event.header := struct { uint8_t id; stamp timestamp; } align(16);
    event.context := struct { uint8_t _how_many; };
};
event {
    name = "all:of it"; id = 1; stream_id = 4;
    model.emf.uri = "http://example.com/"; loglevel = 3;
    context := struct { enum colors own; };
    fields := struct {
        typedef uint8_t byte;
        struct inner in, pair[2];
        enum colors _color;
        enum : integer { size = 8; signed = true; } { below = -2 ... -1, small = 0, large } tag;
        variant either <tag> one;
        variant <_color> { string RED; uint8_t GREEN; struct {} blue; } two;
        byte rows[2][3];
        unsigned int many;
        struct { uint8_t n; unsigned int list[n]; } outer[many];
        word text;
        letter how[stream.event.context._how_many];
        floating_point { exp_dig = 8; mant_dig = 24; align = 32; } half;
        floating_point { exp_dig = 11; mant_dig = 53; byte_order = le; } whole;
        integer { size = 16; signed = 1; byte_order = le; base = octal; } _swapped;
        int low;
        variant <_color> { uint8_t RED; uint8_t GREEN; uint8_t blue; } last;
    };
};
event { name = plain; id = 2; stream_id = 4; };
"#;

/// Returns a stream of `MANY` with three events; its last byte belongs to the third event.
pub fn stream() -> Vec<u8> {
    let mut bits = Bits::default();
    let head = |bits: &mut Bits, size: u64| {
        bits.align(8).put(0xc1fc_1fc1, 32, true);
        bits.raw(&[
            0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
            0xcd, 0xef,
        ]);
        bits.u8(4).put(10, 64, true).put(20, 64, true).u8(3);
        bits.put(size, 32, true).put(size, 32, true);
    };
    let event = |bits: &mut Bits, id: u8, time: u64| {
        bits.align(16).u8(id).put(time, 64, true);
    };
    let body = |bits: &mut Bits| {
        event(bits, 1, 11);
        // The contexts: how_many and own.
        bits.u8(2).u8(1).align(32);
        for _ in 0..3 {
            bits.u8(7).put(5, 3, true).put(0x1a, 5, true);
        }
        // The color, the tag, and the options that they select.
        bits.u8(0x20)
            .u8(1)
            .put(77, 32, true)
            .raw(b"why\0")
            .raw(b"red\0");
        bits.raw(&[1, 2, 3, 4, 5, 6]).put(2, 32, true);
        bits.u8(1).put(9, 32, true).u8(0);
        bits.raw(b"ab\0d").raw(b"no");
        bits.align(32).put(1.5f32.to_bits().into(), 32, true);
        bits.put(2.25f64.to_bits(), 64, false)
            .put(0xfffe, 16, false);
        bits.put((-5i32) as u32 as u64, 32, true).u8(6);
        event(bits, 2, 12);
        bits.u8(0);
        event(bits, 1, 13);
        bits.u8(0).u8(0x11).align(32);
        for _ in 0..3 {
            bits.u8(0).put(0, 3, true).put(1, 5, true);
        }
        bits.u8(0x12).u8(0).u8(9);
        bits.raw(&[0; 6]).put(0, 32, true).raw(b"\0\0\0\0");
        bits.align(32).put(0, 32, true).put(0, 64, false);
        bits.put(8, 16, false).put(1, 32, true).u8(250);
    };
    let mut sized = Bits::default();
    head(&mut sized, 0);
    body(&mut sized);
    head(&mut bits, sized.bits as u64);
    body(&mut bits);
    bits.bytes
}

const EXPECTED: [&str; 3] = [
    "[00000000000000000011] host:p\"A:(-7) all:of it: { cpu_id = 3 }, { how_many = 2 }, { own = ( \
     \"GREEN\" : container = 1 ) }, { in = { a = 7, b = 5, c = 0x1A }, pair = [ [0] = { a = 7, b = 5, c = \
     0x1A }, [1] = { a = 7, b = 5, c = 0x1A } ], color = ( \"RED\" : container = 32 ), tag = ( \"large\" \
     : container = 1 ), one = { { x = 77, s = \"why\" } }, two = { \"red\" }, rows = [ [0] = [ [0] = 1, \
     [1] = 2, [2] = 3 ], [1] = [ [0] = 4, [1] = 5, [2] = 6 ] ], many = 2, outer = [ [0] = { n = 1, list = \
     [ [0] = 9 ] }, [1] = { n = 0, list = [ ] } ], text = \"ab\", how = \"no\", half = 1.5, whole = 2.25, \
     swapped = 0777776, low = -5, last = { 6 } }",
    "[00000000000000000012] host:p\"A:(-7) plain: { cpu_id = 3 }, { how_many = 0 }",
    "[00000000000000000013] host:p\"A:(-7) all:of it: { cpu_id = 3 }, { how_many = 0 }, { own = ( \
     \"blue\" : container = 17 ) }, { in = { a = 0, b = 0, c = 0x1 }, pair = [ [0] = { a = 0, b = 0, c = \
     0x1 }, [1] = { a = 0, b = 0, c = 0x1 } ], color = ( \"blue\" : container = 18 ), tag = ( \"small\" : \
     container = 0 ), one = { 9 }, two = { { } }, rows = [ [0] = [ [0] = 0, [1] = 0, [2] = 0 ], [1] = [ \
     [0] = 0, [1] = 0, [2] = 0 ] ], many = 0, outer = [ ], text = \"\", how = \"\", half = 0, whole = 0, \
     swapped = 010, low = 1, last = { 250 } }",
];

#[test]
fn all_of_tsdl_is_read_as_babeltrace2_reads_it() {
    let dir = Dir::new();
    write(&dir.0, MANY, &[stream()]);
    assert_eq!(told(&dir.0, false).unwrap(), EXPECTED);
}

/// Returns `text` in packets of metadata, as LTTng writes them for a kernel, with at most `each`
/// bytes of text per packet.
pub fn packets(text: &str, big: bool, each: usize) -> Vec<u8> {
    let mut bits = Bits::default();
    for piece in text.as_bytes().chunks(each) {
        let begin = bits.bytes.len();
        bits.align(8).put(0x75d1_1d57, 32, big).raw(&[7; 16]).u32(0);
        let content = 8 * (37 + piece.len() as u64);
        bits.put(content, 32, big).put(content + 64, 32, big);
        bits.raw(&[0, 0, 0, 1, 8]).raw(piece).raw(&[0; 8]);
        assert_eq!(bits.bytes.len() - begin, 37 + piece.len() + 8);
    }
    bits.bytes
}

#[test]
fn metadata_in_packets_is_read_as_their_text() {
    let dir = Dir::new();
    write(&dir.0, "", &[stream()]);
    let file = dir.0.join("metadata");
    for (big, each) in [(false, 4000), (true, 4000), (true, 100), (false, 7)] {
        let bytes = packets(MANY, big, each);
        fs::write(&file, &bytes).unwrap();
        assert_eq!(told(&dir.0, false).unwrap(), EXPECTED);
        // A file that ends within a packet is damaged, unless it is still being written.
        fs::write(&file, &bytes[..bytes.len() - 60]).unwrap();
        assert!(told(&dir.0, false).is_err());
    }
    let bytes = packets(MANY, false, MANY.len() - 20);
    fs::write(&file, &bytes[..bytes.len() - 20]).unwrap();
    let seen = told(&dir.0, true).unwrap();
    assert_eq!(seen[..1], EXPECTED[..1]);
    assert!(
        seen[1].contains("an event of class 2, which is not in the metadata"),
        "{seen:#?}"
    );
    // The offset of the fault is the offset in the file, after the headers of one or two packets.
    let broken = MANY.replace("low;", "low?");
    let at = broken.find('?').unwrap();
    for each in [at - 5, at + 5] {
        fs::write(&file, packets(&broken, false, each)).unwrap();
        let error = Reader::open(&dir.0).err().unwrap();
        let headers = if each < at { 37 + 8 + 37 } else { 37 };
        assert_eq!(error.offset as usize, at + headers, "{error}");
    }
}

#[test]
fn plain_text_needs_no_signature() {
    let dir = Dir::new();
    let (_, text) = MANY.split_once('\n').unwrap();
    write(&dir.0, text, &[stream()]);
    assert_eq!(told(&dir.0, false).unwrap(), EXPECTED);
}

#[test]
fn an_error_names_the_fault_in_the_metadata() {
    let cases = [
        (
            "trace { byte_order = le; ",
            "the metadata ends where a name is expected",
        ),
        ("trace { byte_order = middle; };", "byte order \"middle\""),
        ("nonsense { };", "a block `nonsense`"),
        (
            "trace { byte_order = le; }; trace { byte_order = be; };",
            "a second block `trace`",
        ),
        ("typealias integer { } := x;", "an integer without a size"),
        ("event { fields := struct { x y; }; };", "no type `x`"),
        (
            "event { fields := struct { string a, a; }; };",
            "a second member `a`",
        ),
        (
            "event { fields := struct { string a[n]; }; };",
            "there is no field `n` before",
        ),
        (
            "event { fields := struct { integer { size = 8; } n; variant <n> { string a; } v; }; };",
            "is not an enumeration",
        ),
        (
            "event { fields := struct { enum : integer { size = 8; } { b } n; variant <n> { string a; } v; }; };",
            "no value selects the option `a`",
        ),
        (
            "event { fields := struct { integer { size = 65; } n; }; };",
            "of more than 64 bits",
        ),
        (
            "event { fields := struct { integer { size = 8; align = 3; } n; }; };",
            "not a power of two",
        ),
        (
            "event { fields := struct { integer { size = 8; signed = true; } n; string a[n]; }; };",
            "not an unsigned integer",
        ),
        ("/* open", "a comment without an end"),
        ("clock { freq = 0; name = x; };", "a clock of frequency 0"),
    ];
    let dir = Dir::new();
    for (text, what) in cases {
        let order = if text.starts_with("trace") {
            ""
        } else {
            "trace { byte_order = le; };\n"
        };
        write(&dir.0, &format!("/* CTF 1.8 */\n{order}{text}"), &[]);
        let error = Reader::open(&dir.0)
            .err()
            .unwrap_or_else(|| panic!("{text} is read"));
        assert!(error.to_string().contains(what), "{text}: {error}");
        assert!(error.to_string().contains("metadata: byte "), "{error}");
    }
}

/// Without a limit, each of these would use up the memory or the stack.
#[test]
fn hostile_metadata_is_refused() {
    let mut doubled =
        "/* CTF 1.8 */ trace { byte_order = le; }; struct s0 { string a; };\n".to_string();
    let mut chained = doubled.clone();
    for n in 0..60 {
        doubled += &format!("struct s{} {{ struct s{n} a, b; }};\n", n + 1);
    }
    for n in 0..100_000 {
        chained += &format!("struct s{} {{ struct s{n} a; }};\n", n + 1);
    }
    let name = "n".repeat(1 << 20);
    let long = format!(
        "/* CTF 1.8 */ trace {{ byte_order = le; }}; typealias integer {{ size = 8; }} := u8; \
         struct s {{ u8 {name}; }}; event {{ fields := struct {{ {} }}; }};",
        (0..1000)
            .map(|n| format!("struct s m{n};"))
            .collect::<String>()
    );
    let cases = [
        (
            doubled + "event { fields := struct s60; };",
            "bytes of field classes",
        ),
        (chained, "nest"),
        (
            format!("/* CTF 1.8 */ {}", "struct { ".repeat(100_000)),
            "nest",
        ),
        (
            format!("/* CTF 1.8 */ {}", "enum : ".repeat(100_000)),
            "nest",
        ),
        (
            format!("/* CTF 1.8 */ typedef string a{};", "[1]".repeat(100_000)),
            "nest",
        ),
        (long, "bytes of field classes"),
    ];
    let dir = Dir::new();
    for (text, what) in cases {
        write(&dir.0, &text, &[]);
        let error = Reader::open(&dir.0).err().unwrap().to_string();
        assert!(error.contains(what), "{error}");
    }
}

// SPDX-License-Identifier: GPL-2.0

use crate::control::{
    fault,
    names::{is_listed, is_named},
    parse_line, Device, Disk, Kind, Line, LookupTarget, Number, Param, ALL as EVERY, ALL_DEVICES,
    DURATION_MAX,
};
use kernel::{error::Error, prelude::*};
use proptest::prelude::*;

const WORDS: [&str; 3] = ["issue", "insert", "all"];

const fn param(kind: Kind) -> Param {
    Param {
        name: "p",
        kind,
        default: 0,
        fixed: false,
        help: "",
    }
}

const DURATION: Param = param(Kind::Duration);
const SWITCH: Param = param(Kind::Switch);
const COUNT: Param = param(Kind::Count { min: 5, max: 1000 });
const POWER: Param = param(Kind::Power { min: 2, max: 1024 });
const WORD: Param = param(Kind::Word(&WORDS));
const DISK: Param = param(Kind::Disk);
/// 8:1
const PARTITION: u32 = 8 << 20 | 1;
/// 253:0
const MAPPED: u32 = 253 << 20;
const ID: Param = param(Kind::Id { max: 4_194_303 });
const COMM: Param = param(Kind::Comm);
const CGROUP: Param = param(Kind::Cgroup);
const FUNCTION: Param = param(Kind::Function);
const ANY_FUNCTION: Param = param(Kind::FunctionOrAll);
const POINT: Param = param(Kind::Point);
const FIELDS: Param = param(Kind::Fields {
    empty: Some("same"),
});
const KEY: Param = param(Kind::Fields { empty: None });
const NET_DEVICE: Param = param(Kind::NetDevice);
const ALL: [Param; 13] = [
    DURATION, SWITCH, COUNT, POWER, WORD, DISK, ID, COMM, CGROUP, NET_DEVICE, FUNCTION, POINT,
    FIELDS,
];

/// Looks up the names that the tests use.
fn lookup(target: LookupTarget<'_>) -> Result<u64> {
    match target {
        LookupTarget::Disk(disk) => lookup_disk(disk).map(u64::from),
        LookupTarget::Cgroup(b"/a.slice/b") => Ok(4711),
        LookupTarget::Cgroup(b"/a.slice/b/cpu.max") => Err(ENOTDIR),
        LookupTarget::Cgroup(_) => Err(ENOENT),
        LookupTarget::Function(b"vfs_fsync" | b"show.isra.0") => Ok(0),
        LookupTarget::Function(b"asm_exc_nmi") => Err(EINVAL),
        LookupTarget::Function(b"coming") => Err(EBUSY),
        LookupTarget::Function(b"lt_current") => Err(EPERM),
        LookupTarget::Function(b"unfollowed") => Err(ENOTSUPP),
        LookupTarget::Function(_) => Err(ENOENT),
        LookupTarget::Tracepoint(b"sched_switch" | b"jbd2_start_commit") => Ok(0),
        LookupTarget::Tracepoint(b"coming") => Err(EBUSY),
        LookupTarget::Tracepoint(b"twice") => Err(EEXIST),
        LookupTarget::Tracepoint(b"alert") => Err(EPERM),
        LookupTarget::Tracepoint(_) => Err(ENOENT),
    }
}

fn lookup_disk(disk: Disk<'_>) -> Result<u32> {
    let name = match disk {
        Disk::Name(name) => name,
        Disk::Number(PARTITION) => return Err(ENOTBLK),
        Disk::Number(MAPPED) => return Err(ENOTSUPP),
        Disk::Number(dev) => return Ok(dev),
    };
    match name {
        b"sda" => Ok(8 << 20),
        b"vdb" => Ok(254 << 20 | 16),
        b"tape" => Err(ENXIO),
        b"gone" => Err(ENODEV),
        b"sda1" => Err(ENOTBLK),
        b"odd" => Err(EINVAL),
        b"busy" => Err(EBUSY),
        b"dm-0" => Err(ENOTSUPP),
        _ => Err(ENOENT),
    }
}

fn number(param: &Param, text: &str) -> core::result::Result<Number, Error> {
    param
        .parse(text.as_bytes(), &lookup)
        .map_err(|fault| fault.error)
}

fn value(param: &Param, text: &str) -> core::result::Result<u64, Error> {
    number(param, text).map(|number| u64::try_from(number).unwrap())
}

fn refused(param: &Param, error: Error, texts: &[&str]) {
    for text in texts {
        assert_eq!(value(param, text), Err(error), "{text:?}");
    }
}

fn line_error(line: &[u8]) -> Error {
    match parse_line(line) {
        Err(fault) => fault.error,
        Ok(Line::Set { settings, .. }) => settings
            .filter_map(|setting| setting.err())
            .map(|fault| fault.error)
            .next()
            .unwrap_or_else(|| panic!("accepted: {line:?}")),
        Ok(line) => panic!("accepted: {line:?}"),
    }
}

#[test]
fn durations() {
    for (text, ns) in [
        ("0", 0),
        ("7", 7),
        ("007ns", 7),
        ("1us", 1_000),
        ("10ms", 10_000_000),
        ("2s", 2_000_000_000),
        ("31536000s", DURATION_MAX),
        ("31536000000000000", DURATION_MAX),
    ] {
        assert_eq!(value(&DURATION, text), Ok(ns), "{text}");
    }
    refused(
        &DURATION,
        EINVAL,
        &[
            "", "ms", "-1", "+1", "1.5s", "1 s", "1S", "1m", "1h", "10msx", "0x10", "s10", "１s",
            "1\n",
        ],
    );
    refused(
        &DURATION,
        ERANGE,
        &[
            "31536001s",
            "31536000000000001",
            "18446744073709551615",
            "18446744073709551616",
            "18446744073709551615s",
            "99999999999999999999999999ns",
        ],
    );
}

#[test]
fn switches_and_words() {
    assert_eq!(value(&SWITCH, "0"), Ok(0));
    assert_eq!(value(&SWITCH, "1"), Ok(1));
    refused(&SWITCH, EINVAL, &["", "2", "00", "yes", "on", "-1", "1 "]);
    for (at, word) in WORDS.iter().enumerate() {
        assert_eq!(value(&WORD, word), Ok(at as u64));
    }
    refused(&WORD, EINVAL, &["", "Issue", "issu", "issued", "0"]);
}

#[test]
fn counts_and_powers() {
    assert_eq!(value(&COUNT, "5"), Ok(5));
    assert_eq!(value(&COUNT, "1000"), Ok(1000));
    refused(
        &COUNT,
        ERANGE,
        &[
            "0",
            "4",
            "1001",
            "18446744073709551615",
            "18446744073709551616",
        ],
    );
    refused(&COUNT, EINVAL, &["", "-5", "5k", "1e3", "0x20", " 5"]);
    for power in [2, 4, 512, 1024] {
        assert_eq!(value(&POWER, &power.to_string()), Ok(power));
    }
    refused(&POWER, EINVAL, &["", "3", "1000", "two", "-2"]);
    refused(&POWER, ERANGE, &["0", "1", "2048", "99999999999999999999"]);
}

#[test]
fn disks() {
    assert_eq!(value(&DISK, "all"), Ok(ALL_DEVICES));
    assert_eq!(value(&DISK, "sda"), Ok(8 << 20));
    assert_eq!(value(&DISK, "254:16"), Ok(254 << 20 | 16));
    assert_eq!(value(&DISK, "4095:1048575"), Ok(u64::from(u32::MAX)));
    refused(&DISK, ENOENT, &["sdz", "tape", "gone"]);
    refused(
        &DISK,
        EINVAL,
        &[
            "", "sda1", "odd", "/dev/sda", "..", ".", ".x", "a/b", "8:", ":0", "8:0:0", "8:-1",
            "x:y", "sd a",
        ],
    );
    refused(&DISK, EBUSY, &["busy"]);
    refused(&DISK, EINVAL, &["8:1", "08:01"]);
    let said = DISK.parse(b"8:1", &lookup).unwrap_err().to_string();
    assert_eq!(said, "p: expected a whole disk, not a partition: \"8:1\"");
    refused(&DISK, EINVAL, &["dm-0", "253:0"]);
    for text in ["dm-0", "253:0"] {
        let said = DISK.parse(text.as_bytes(), &lookup).unwrap_err();
        let expected = "p: expected a disk with requests";
        assert!(said.to_string().starts_with(expected), "{said}");
    }
    assert_eq!(value(&DISK, "8"), Err(ENOENT), "a name like any other");
    refused(&DISK, EINVAL, &[&"a".repeat(32)]);
    refused(&DISK, ENOENT, &[&"a".repeat(31)]);
    refused(
        &DISK,
        ERANGE,
        &["4096:0", "0:1048576", "99999999999999999999:0"],
    );
    assert_eq!(Device(254 << 20 | 16).to_string(), "254:16");
}

#[test]
fn ids() {
    assert_eq!(value(&ID, "all"), Ok(EVERY));
    assert_eq!(value(&ID, "0"), Ok(0));
    assert_eq!(value(&ID, "4194303"), Ok(4_194_303));
    refused(&ID, ERANGE, &["4194304", "18446744073709551615"]);
    refused(&ID, EINVAL, &["", "-1", "All", "0x1"]);
}

#[test]
fn names_of_commands() {
    let name = |text: &str| {
        let mut bytes = [0; 16];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Ok(Number::from_le_bytes(bytes))
    };
    assert_eq!(number(&COMM, "all"), Ok(0));
    assert_eq!(number(&COMM, "sh"), name("sh"));
    assert_eq!(number(&COMM, "kworker/1:1H-kb"), name("kworker/1:1H-kb"));
    assert_eq!(number(&COMM, r"Web\x20Content"), name("Web Content"));
    assert_eq!(number(&COMM, r"\x61ll"), name("all"));
    refused(
        &COMM,
        EINVAL,
        &[
            "",
            "sixteen_letters_",
            r"\",
            r"\x",
            r"\x2",
            r"\xAB",
            r"a\x00b",
            r"\n",
        ],
    );
    let shown = |text: &str| COMM.display(number(&COMM, text).unwrap()).to_string();
    for text in ["all", "sh", r"\x61ll", "allx", "a=b#c", r"a\x20b\x5c\xff"] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn cgroups() {
    assert_eq!(value(&CGROUP, "all"), Ok(EVERY));
    assert_eq!(value(&CGROUP, "/a.slice/b"), Ok(4711));
    assert_eq!(value(&CGROUP, "4711"), Ok(4711));
    refused(&CGROUP, ENOENT, &["/", "/none"]);
    refused(&CGROUP, ENOTDIR, &["/a.slice/b/cpu.max"]);
    refused(&CGROUP, ERANGE, &["0", "18446744073709551615"]);
    refused(&CGROUP, EINVAL, &["", "a.slice", "-1"]);
    let said = CGROUP.parse(b"/none", &lookup).unwrap_err().to_string();
    assert_eq!(said, "p: no such cgroup of version 2: \"/none\"");

    // A kernel without cgroups has none under a number, either.
    let none = |_: LookupTarget<'_>| Err(ENOTSUPP);
    for text in ["/a.slice/b", "4711"] {
        let said = CGROUP.parse(text.as_bytes(), &none).unwrap_err();
        let why = "this kernel is built without CONFIG_CGROUPS, which this filter needs";
        assert_eq!(said.to_string(), format!("p: {why}: \"{text}\""));
    }
    assert!(CGROUP.parse(b"all", &none).is_ok());
}

/// Names like the names of system calls: two with the same code, and the lowest and the highest
/// code.
static NAMES: [(&str, u16); 14] = [
    ("read", 0),
    ("write", 1),
    ("open", 2),
    ("close", 3),
    ("stat", 4),
    ("fstat", 5),
    ("lstat", 6),
    ("poll", 7),
    ("lseek", 8),
    ("mmap", 9),
    ("mprotect", 10),
    ("munmap", 511),
    ("brk", 1022),
    ("sbrk", 1022),
];
const NAMED: Param = param(Kind::Names(&NAMES));

#[test]
fn lists_of_names() {
    let codes = |text: &str| {
        let list = number(&NAMED, text).unwrap();
        let halves = [list as u64, (list >> 64) as u64];
        (0..=1023).filter(move |&code| is_listed(halves, code))
    };
    assert_eq!(number(&NAMED, "all"), Ok(0));
    for (name, code) in NAMES {
        assert_eq!(Vec::from_iter(codes(name)), [code], "{name}");
        let all_but = codes(&format!("!{name}"));
        assert!(
            all_but.eq((0..=1023).filter(|&other| other != code)),
            "!{name}"
        );
    }
    let twelve = "read,write,open,close,stat,fstat,lstat,poll,lseek,munmap,mmap,brk";
    let expected = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 511, 1022];
    assert_eq!(Vec::from_iter(codes(twelve)), expected);
    assert_eq!(codes(&format!("!{twelve}")).count(), 1024 - 12);
    // A system call is named by its own name, but not by `all` or by the exclusion of others.
    for (text, expected) in [
        ("read,write", true),
        ("write", false),
        ("all", false),
        ("!write", false),
        ("!read", false),
    ] {
        let list = number(&NAMED, text).unwrap();
        assert_eq!(
            is_named([list as u64, (list >> 64) as u64], 0),
            expected,
            "{text}"
        );
    }
    let shown = |text: &str| NAMED.display(number(&NAMED, text).unwrap()).to_string();
    for text in ["all", "read", "write,read", "!read", "!brk,read", twelve] {
        assert_eq!(shown(text), text);
    }
}

#[test]
fn invalid_lists_of_names_are_refused() {
    for (text, word) in [
        ("reed", "reed"),
        ("read,Write", "Write"),
        ("", ""),
        ("!", "!"),
        ("read,,write", "read,,write"),
        ("read,", "read,"),
        ("read,!write", "!write"),
        ("!all", "all"),
    ] {
        let fault = NAMED.parse(text.as_bytes(), &lookup).unwrap_err();
        assert_eq!(
            (fault.error, fault.word.to_vec()),
            (EINVAL, word.as_bytes().to_vec()),
            "{text}"
        );
    }
    let thirteen = b"read,read,read,read,read,read,read,read,read,read,read,read,poll";
    let fault = NAMED.parse(thirteen, &lookup).unwrap_err();
    assert_eq!(fault.to_string(), "p: expected at most 12 names: \"poll\"");
}

#[test]
fn functions() {
    for name in ["vfs_fsync", "show.isra.0"] {
        assert_eq!(
            value(&FUNCTION, name),
            Ok(0),
            "the text is the value: {name}"
        );
    }
    assert!(FUNCTION.kind.is_text(b"all") && !CGROUP.kind.is_text(b"all"));
    assert!(FUNCTION.kind.is_required() && !ANY_FUNCTION.kind.is_required());
    assert!(ANY_FUNCTION.kind.is_text(b"vfs_fsync") && !ANY_FUNCTION.kind.is_text(b"all"));
    assert_eq!(value(&ANY_FUNCTION, "all"), Ok(0));
    assert_eq!(value(&ANY_FUNCTION, "vfs_fsync"), Ok(0));
    assert_eq!(ANY_FUNCTION.display(0).to_string(), "all");
    refused(&ANY_FUNCTION, ENOENT, &["none"]);
    refused(&FUNCTION, ENOENT, &["none", &"a".repeat(127)]);
    refused(
        &FUNCTION,
        EINVAL,
        &["asm_exc_nmi", "lt_current", "unfollowed"],
    );
    refused(&FUNCTION, EBUSY, &["coming"]);
    let odd = [
        "",
        "vfs_*",
        "vfs fsync",
        "a+0x10",
        "a:b",
        "[ext4]",
        &"a".repeat(128),
    ];
    refused(&FUNCTION, EINVAL, &odd);
    for (name, expected) in [
        ("none", "p: no such function: \"none\""),
        (
            "asm_exc_nmi",
            "p: this function cannot be traced: \"asm_exc_nmi\"",
        ),
        (
            "coming",
            "p: the module of this function is being loaded or unloaded (try again): \"coming\"",
        ),
        (
            "lt_current",
            "p: a function of latency_tracker that a probe may call cannot be traced: \"lt_current\"",
        ),
        (
            "unfollowed",
            "p: this kernel is built without CONFIG_FPROBE, which follows functions: \"unfollowed\"",
        ),
        ("vfs_*", "p: expected the name of a function: \"vfs_*\""),
    ] {
        let said = FUNCTION.parse(name.as_bytes(), &lookup).unwrap_err();
        assert_eq!(said.to_string(), expected);
    }
}

#[test]
fn points() {
    for text in [
        "tracepoint:sched_switch",
        "tracepoint:jbd2_start_commit",
        "function:vfs_fsync",
        "return:vfs_fsync",
    ] {
        assert_eq!(value(&POINT, text), Ok(0), "the text is the value: {text}");
    }
    assert!(POINT.kind.is_text(b"all"));
    refused(
        &POINT,
        ENOENT,
        &["tracepoint:none", "function:none", "return:none"],
    );
    let odd = [
        "",
        "sched_switch",
        "tracepoint:",
        "tracepoint:a b",
        "event:sched_switch",
    ];
    refused(&POINT, EINVAL, &odd);
    refused(
        &POINT,
        EINVAL,
        &[
            "function:asm_exc_nmi",
            "return:lt_current",
            "tracepoint:sched_*",
            "tracepoint:twice",
            "tracepoint:alert",
        ],
    );
    refused(&POINT, EBUSY, &["tracepoint:coming", "function:coming"]);
    for (name, why) in [
        (
            "none",
            "no such tracepoint in the kernel or a loaded module (load its module first)",
        ),
        (
            "coming",
            "the module of this tracepoint is being loaded or unloaded (try again)",
        ),
        (
            "twice",
            "several loaded modules have a tracepoint of this name (unload the others)",
        ),
        ("alert", "cannot trace latency_tracker's own tracepoints"),
    ] {
        let text = format!("tracepoint:{name}");
        let fault = POINT.parse(text.as_bytes(), &lookup).unwrap_err();
        assert_eq!(fault.to_string(), format!("p: {why}: \"{text}\""));
    }
}

#[test]
fn fields_of_a_point() {
    use crate::control::fields::{of, Field, Width};

    for text in [
        "tid",
        "cpu",
        "ret",
        "arg0",
        "arg4",
        "arg1:32",
        "arg2:16",
        "arg3:8",
        "tid,cpu",
        "arg0,arg0:8",
    ] {
        for param in [FIELDS, KEY] {
            let list = value(&param, text).unwrap();
            assert_eq!(param.display(list.into()).to_string(), text);
        }
    }
    let list = value(&KEY, "arg4:16,cpu").unwrap();
    let argument = Field::Argument {
        nth: 4,
        width: Width::Bits16,
    };
    assert_eq!(of(list), [Some(argument), Some(Field::Cpu)]);
    assert_eq!(of(value(&KEY, "tid").unwrap()), [Some(Field::Tid), None]);
    assert_eq!(of(Field::TID), [Some(Field::Tid), None]);
    assert_eq!(Width::Bits16.of(0x1234_5678_9abc_def0), 0xdef0);
    assert_eq!(Width::All.of(u64::MAX), u64::MAX);

    assert_eq!(value(&FIELDS, "same"), Ok(0));
    assert_eq!(FIELDS.display(0).to_string(), "same");
    refused(&KEY, EINVAL, &["same", "", "none"]);
    let odd = [
        "",
        ",",
        "tid,",
        ",tid",
        "tid,cpu,ret",
        "arg5",
        "arg",
        "arg00",
        "arg1:64",
        "arg1:",
        "arg-1",
        "same,tid",
        "TID",
    ];
    refused(&FIELDS, EINVAL, &odd);
}

#[test]
fn network_devices() {
    assert_eq!(number(&NET_DEVICE, "all"), Ok(0));
    assert_eq!(number(&NET_DEVICE, "eth0"), number(&COMM, "eth0"));
    assert_eq!(
        NET_DEVICE
            .display(number(&NET_DEVICE, "eth0").unwrap())
            .to_string(),
        "eth0"
    );
    refused(&NET_DEVICE, EINVAL, &["", "sixteen_letters_", r"\x0"]);
    let said = NET_DEVICE
        .parse(b"sixteen_letters_", &lookup)
        .unwrap_err()
        .to_string();
    assert!(said.starts_with("p: expected a network device"), "{said}");
    assert!(said.ends_with("\"sixteen_letters_\""), "{said}");
}

#[test]
fn kinds_are_named() {
    let names: Vec<_> = ALL
        .iter()
        .map(|param| param.kind_name().to_string())
        .collect();
    let expected = [
        "duration",
        "0|1",
        "5-1000",
        "power-of-two 2-1024",
        "issue|insert|all",
        "disk",
        "0-4194303|all",
        "command|all",
        "cgroup|all",
        "net-device|all",
        "function",
        "tracepoint:NAME|function:NAME|return:NAME",
        "arg0-arg4|tid|cpu|ret|same",
    ];
    assert_eq!(names, expected);
    assert_eq!(NAMED.kind_name().to_string(), "names|!names|all");
}

#[test]
fn lines() {
    for empty in ["", " ", "\t \t", "#", "# slow block", "  #x y=z"] {
        assert!(
            matches!(parse_line(empty.as_bytes()), Ok(Line::Empty)),
            "{empty:?}"
        );
    }
    assert!(matches!(parse_line(b"-slow"), Ok(Line::Remove(b"slow"))));
    assert!(matches!(
        parse_line(b"  -a_1-b \t"),
        Ok(Line::Remove(b"a_1-b"))
    ));
    match parse_line(b"\tslow  block a=1\tb= c==2 ") {
        Ok(Line::Set {
            name: b"slow",
            tracker: b"block",
            settings,
        }) => {
            let settings: Vec<_> = settings.map(Result::unwrap).collect();
            let expected: [(&[u8], &[u8]); 3] = [(b"a", b"1"), (b"b", b""), (b"c", b"=2")];
            assert_eq!(settings, expected);
        }
        line => panic!("{line:?}"),
    }
    let longest = format!("{} block", "n".repeat(31));
    assert!(matches!(
        parse_line(longest.as_bytes()),
        Ok(Line::Set { .. })
    ));
}

#[test]
fn bad_lines_are_refused() {
    let too_long = format!("{} block", "n".repeat(32));
    for line in [
        b"slow".as_slice(),
        b"slow ",
        b"-",
        b"- slow",
        b"--slow",
        b"-slow block",
        b"-slow -slow",
        b"1slow block",
        b"../slow block",
        b"a/b block",
        b"a.b block",
        b"a\nb block",
        b"sl\xc3\xb6w block",
        b"slow\0 block",
        b"\0",
        b"slow block threshold",
        b"slow block =1",
        b"slow block a=1 =",
        b"trackers block",
        b"control block",
        b"wakeup block",
        b"alerts block",
        b"version block",
        b"stats block",
        b"work_begin block",
        b"-work_done",
        b"-measure",
        too_long.as_bytes(),
    ] {
        assert_eq!(line_error(line), EINVAL, "{line:?}");
    }
}

#[test]
fn a_bad_value_is_reported_with_the_parameter_and_its_values() {
    for (param, text, said) in [
        (&COUNT, "4", "p: expected a whole number from 5 to 1000"),
        (&COUNT, "many", "p: expected a whole number from 5 to 1000"),
        (&POWER, "2048", "p: expected a power of two from 2 to 1024"),
        (&POWER, "3", "p: expected a power of two from 2 to 1024"),
        (
            &ID,
            "x",
            "p: expected a whole number from 0 to 4194303, or all",
        ),
        (&WORD, "Issue", "p: expected one of issue|insert|all"),
        (&SWITCH, "2", "p: expected 0 or 1"),
        (
            &DURATION,
            "9000000000s",
            "p: expected a duration of at most a year",
        ),
        (
            &DURATION,
            "99999999999999999999",
            "p: expected a duration of at most a year",
        ),
        (
            &DURATION,
            "5m",
            "p: expected a duration such as 10ms, 500us, 2s or nanoseconds",
        ),
        (
            &DISK,
            "4096:0",
            "p: expected MAJOR from 0 to 4095 and MINOR from 0 to 1048575",
        ),
        (&NAMED, "nosuch", "p: no such name"),
        (
            &NAMED,
            "read,",
            "p: expected names separated by commas, or all",
        ),
        (
            &KEY,
            "same",
            "p: expected one or two of arg0 to arg4 (or arg0:32, :16, :8), tid, cpu, ret, comma-separated",
        ),
        (
            &FIELDS,
            "none",
            "p: expected one or two of arg0 to arg4 (or arg0:32, :16, :8), tid, cpu, ret, comma-separated, or same",
        ),
    ] {
        let fault = param.parse(text.as_bytes(), &lookup).unwrap_err();
        assert_eq!(fault.to_string(), format!("{said}: \"{text}\""));
    }
}

#[test]
fn an_error_quotes_the_word_and_cuts_it() {
    let refused = parse_line(b"-slow extra\x01").unwrap_err();
    assert_eq!(
        refused.to_string(),
        r#"expected nothing after -NAME: "extra\x01""#
    );
    let long = [b'x'; 100];
    assert_eq!(
        fault(ENOENT, "no such tracker", &long).to_string(),
        format!(r#"no such tracker: "{}"..."#, "x".repeat(48))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn any_bytes_are_read_or_refused(line: Vec<u8>) {
        match parse_line(&line) {
            Err(fault) => { fault.to_string(); }
            Ok(Line::Set { settings, .. }) => settings.for_each(|setting| {
                if let Err(fault) = setting { fault.to_string(); }
            }),
            Ok(_) => {}
        }
        for param in &ALL {
            if let Err(fault) = param.parse(&line, &lookup) {
                fault.to_string();
            }
        }
    }

    /// Random bytes that resemble a line.
    #[test]
    fn any_words_are_read_or_refused(line in "[-#a-z_0-9=:. \t]{0,60}") {
        match parse_line(line.as_bytes()) {
            Err(fault) => prop_assert_eq!(fault.error, EINVAL),
            Ok(Line::Set { name, tracker, settings }) => {
                // Nothing is dropped, and nothing is added.
                let mut words = line.split_ascii_whitespace();
                prop_assert_eq!(words.next().map(str::as_bytes), Some(name));
                prop_assert_eq!(words.next().map(str::as_bytes), Some(tracker));
                for setting in settings {
                    let word = words.next().unwrap().as_bytes();
                    match setting {
                        Ok((key, value)) => prop_assert_eq!([key, value].join(&b'='), word),
                        Err(fault) => prop_assert_eq!(fault.word, word),
                    }
                }
                prop_assert_eq!(words.next(), None);
            }
            Ok(Line::Remove(name)) => prop_assert_eq!(line.trim().as_bytes(), [b"-", name].concat()),
            Ok(Line::Empty) => prop_assert!(line.trim().is_empty() || line.trim().starts_with('#')),
        }
    }

    #[test]
    fn the_canonical_text_has_the_same_value(number: u64, shift in 0u32..64, which in 0usize..10) {
        let param = &ALL[which];
        let number = number >> shift;
        let value = match param.kind {
            Kind::Duration => number % (DURATION_MAX + 1),
            Kind::Switch => number % 2,
            Kind::Count { min, max } => min + number % (max - min + 1),
            Kind::Power { .. } => 2 << (number % 10),
            Kind::Word(words) => number % words.len() as u64,
            Kind::Disk if number % 7 == 0 => ALL_DEVICES,
            Kind::Disk => (number & u64::from(u32::MAX) & !u64::from(PARTITION)) | 2,
            Kind::Id { .. } | Kind::Cgroup if number % 7 == 0 => EVERY,
            Kind::Id { max } => number % (max + 1),
            Kind::Cgroup => number.max(1),
            // Any bytes but NUL.
            Kind::Comm | Kind::NetDevice => number | 0x0101_0101_0101_0101,
            Kind::Function | Kind::FunctionOrAll | Kind::Point | Kind::Fields { .. } => unreachable!("the last ones"),
            // Has a test of its own.
            Kind::Names(_) => 0,
        };
        let value = Number::from(value);
        let text = param.display(value).to_string();
        prop_assert_eq!(param.parse(text.as_bytes(), &lookup).ok(), Some(value), "{}", text);
    }

    #[test]
    fn a_number_is_what_it_says(number: u64, unit in 0usize..4) {
        let (name, scale) = [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000)][unit];
        let expected = number.checked_mul(scale).filter(|&ns| ns <= DURATION_MAX).ok_or(ERANGE);
        prop_assert_eq!(value(&DURATION, &format!("{number}{name}")), expected);
    }
}

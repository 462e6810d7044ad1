// SPDX-License-Identifier: GPL-2.0

//! `accept`: how long a server takes from accepting a connection to its first byte.
//!
//! ```text
//!   waiting for a connection      accept() returns              first bytes are sent
//!   ------------------------------------>|--- server at work --->|
//!                                        |<------- delay ------->|
//! ```
//!
//! The key is the socket that was accepted, by its address. The event ends when the first bytes of
//! it were passed to the protocol: by write(2), send(2), sendfile(2) or in any other way, by any
//! task. A socket that is closed before that has no first byte (`gone`, `closed`): this is noticed
//! when its last file is closed, not when the peer closes.
//!
//! The owner is the task that has accepted, and the filter looks at it.
//!
//! # Contexts
//!
//! See sys/accept.rs.

use super::tasks;
use crate::{
    alert::record::{Owner, DETAIL},
    control::{Kind as ParamKind, Param, ALL},
    engine::{
        event::EventCopy,
        platform::Platform,
        tracker::{Late, Verdict},
    },
    instance::{
        common,
        kind::{all_right, Kind},
        params,
        probed::{self, Live, Probed},
        Core,
        Details, //
    },
    sys::{
        accept::{self, family_name, Address, Attachment, Socket},
        platform::Kernel,
        symbol::Hashed,
        task::TaskRef, //
    }, //
};
use kernel::{fmt, prelude::*, seq_file::SeqFile, seq_print, sync::Arc};

const PORT: usize = common::COUNT + tasks::FILTER;

static PARAMS: [Param; PORT + 1] = {
    let [a, b, c, d, e, f, g] = tasks::filter(true);
    let port = Param {
        name: "port",
        kind: ParamKind::Id {
            max: u16::MAX as u64,
        },
        default: ALL,
        fixed: false,
        help: "only connections to this local port",
    };
    params(100_000_000, [a, b, c, d, e, f, g, port])
};

/// The entry in the list of trackers.
pub(crate) static KIND: Kind = Kind {
    name: "accept",
    c_name: c"accept",
    help: "connections, from accept to the first bytes sent (key: the socket)",
    params: &PARAMS,
    counters: &[tasks::READERS, "closed"],
    detail_words: Detail::WORDS,
    tail: None,
    detail: |alert, f| f.write_fmt(fmt!(" {}", Detail::from_words(&alert.detail))),
    check: all_right,
    missing: accept::missing::<Probes>,
    create: Some(Probed::<Accept, _, _>::create),
};

/// Our own counters, after the common one.
#[derive(Clone, Copy)]
enum Extra {
    /// Of gone: closed without having sent anything.
    Closed = 1,
}

struct Accept;

type Probes = Live<Accept, 1, WORDS>;

/// The owner, and the socket.
const WORDS: usize = Owner::WORDS + SOCKET;
const SOCKET: usize = 6;

fn socket_to_words(socket: &Socket) -> [u64; SOCKET] {
    let (local, remote) = (socket.local, socket.remote);
    let ports = u64::from(local.family) << 32 | u64::from(local.port) << 16;
    [
        local.bytes[0],
        local.bytes[1],
        remote.bytes[0],
        remote.bytes[1],
        ports | u64::from(remote.port),
        socket.fd.into(),
    ]
}

fn socket_from_words(id: u64, [l0, l1, r0, r1, ports, fd]: [u64; SOCKET]) -> Socket {
    let address = |bytes, port| Address {
        family: (ports >> 32) as u16,
        port,
        bytes,
    };
    Socket {
        id,
        fd: fd as u32,
        local: address([l0, l1], (ports >> 16) as u16),
        remote: address([r0, r1], ports as u16),
    }
}

fn unpack(id: u64, data: &[u64; WORDS]) -> (Owner, Socket) {
    let [o0, o1, o2, socket @ ..] = *data;
    (
        Owner::from_words([o0, o1, o2]),
        socket_from_words(id, socket),
    )
}

/// Our fields of an alert.
struct Detail {
    socket: Socket,
    /// How many bytes were sent first; 0 with a timeout.
    bytes: u32,
}

impl Detail {
    const WORDS: usize = 1 + SOCKET + 1;

    fn to_words(&self) -> [u64; DETAIL] {
        let [w0, w1, w2, w3, w4, w5] = socket_to_words(&self.socket);
        let used: [u64; Self::WORDS] = [self.socket.id, w0, w1, w2, w3, w4, w5, self.bytes.into()];
        let mut words = [0; DETAIL];
        words[..Self::WORDS].copy_from_slice(&used);
        words
    }

    fn from_words(words: &[u64; DETAIL]) -> Self {
        let [id, w0, w1, w2, w3, w4, w5, bytes, ..] = *words;
        Self {
            socket: socket_from_words(id, [w0, w1, w2, w3, w4, w5]),
            bytes: bytes as u32,
        }
    }
}

struct Named<'a>(&'a Socket);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Socket {
            id,
            fd,
            local,
            remote,
        } = self.0;
        let family = family_name(local.family);
        f.write_fmt(fmt!(
            "socket={} family={family} local={local} remote={remote} fd={fd}",
            Hashed(*id)
        ))
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_fmt(fmt!("{} bytes={}", Named(&self.socket), self.bytes))
    }
}

impl accept::Observer for Probes {
    fn accepted(&self, socket: &Socket) {
        let guard = Kernel::guard();
        let now = Kernel::now();
        let tracker = self.core.tracker();
        TaskRef::with_current(|current| {
            let port = self.core.value(PORT);
            let is_port = port == ALL || port == u64::from(socket.local.port);
            let cpu = Kernel::cpu(&guard) as u32;
            if !is_port
                || !tasks::may_be_wanted(&self.core, &current)
                || !tasks::is_wanted(&self.core, &current, cpu)
            {
                tracker.filtered(&guard);
                return;
            }
            let [o0, o1, o2] = tasks::owner(&current).to_words();
            let [w0, w1, w2, w3, w4, w5] = socket_to_words(socket);
            let data = [o0, o1, o2, w0, w1, w2, w3, w4, w5];
            tracker.event_in_unique(&guard, &[socket.id], now, &data);
        });
    }

    fn sent(&self, socket: u64, bytes: u32) {
        let guard = Kernel::guard();
        self.core.tracker().event_out_if_known(
            &guard,
            &[socket],
            Kernel::now,
            |_| true,
            |late| {
                let details = details(late, bytes);
                tasks::raise(&self.core, &guard, late, &details, &[]);
            },
        );
    }

    fn closed(&self, socket: u64) {
        let guard = Kernel::guard();
        let tracker = self.core.tracker();
        if tracker
            .update(&guard, &[socket], |_| Verdict::Gone)
            .is_some()
        {
            self.core.count_extra(&guard, Extra::Closed as usize);
        }
    }
}

fn details(late: &Late<1, WORDS>, bytes: u32) -> Details {
    let [id] = late.key;
    let (owner, socket) = unpack(id, &late.data);
    Details {
        owner,
        words: Detail { socket, bytes }.to_words(),
    }
}

impl probed::Probes<1, WORDS> for Accept {
    type Attachment = Attachment<Probes>;

    fn kind() -> &'static Kind {
        &KIND
    }

    fn attach(live: Arc<Probes>) -> Result<Self::Attachment> {
        Attachment::new(live)
    }

    fn owner(data: &[u64; WORDS]) -> Owner {
        unpack(0, data).0
    }

    fn details(core: &Core<1, WORDS>, late: &Late<1, WORDS>, _: u64) -> Option<Details> {
        tasks::reported(core, details(late, 0))
    }

    fn show_fields(_: &Core<1, WORDS>, event: &EventCopy<1, WORDS>, out: &SeqFile) {
        let [id] = event.key;
        let (owner, socket) = unpack(id, &event.data);
        seq_print!(out, "{owner} {}", Named(&socket));
    }
}

// SPDX-License-Identifier: GPL-2.0

//! `accept`: how long a server takes from accepting a connection to sending its first bytes.
//!
//! ```text
//!   waiting for a connection      accept() returns              first bytes are sent
//!   ------------------------------------>|--- server at work --->|
//!                                        |<------- delay ------->|
//! ```
//!
//! The key is the address of the accepted socket. The event ends when the socket's first bytes
//! have been passed to the protocol: by write(2), send(2), sendfile(2) or by any other means, in
//! any task. A socket that is closed before that has no first byte (`gone`, `closed`); this is
//! detected when the last reference to its file is dropped, not when the peer closes.
//!
//! The owner is the task that accepted the connection; the filter applies to it.
//!
//! # Contexts
//!
//! See sys/accept.rs.

use super::declare::*;
use crate::{
    record::{self, Ip},
    sys::accept::{self, family_name, Socket},
};

tracker! {
    accept: "connections, from accept to the first bytes sent (key: the socket)";
    key: 1;
    threshold: 100_000_000;
    tasks: true;
    counters {
        /// Connections closed before anything was sent; included in `gone`.
        closed,
        /// Calls of accept(2) that fprobe could not follow, successful or not.
        missed,
    }
    params {
        port: ParamKind::Id { max: u16::MAX as u64 } => ALL, "only connections to this local port";
    }
    keeps: [9];
    stored: socket family local_port remote_port local remote fd bytes;
    alert {
        /// 16 hexadecimal digits that stand for the socket, as %p prints its address.
        socket: Address at 0,
        /// The family of its addresses: ip, ipv6, unix or other.
        family: u16 at 5:32 = |it, _| family_name(it.family),
        /// The local address: ADDRESS:PORT, [ADDRESS]:PORT, or nothing.
        local: Ip at 1 = |it, _| it.address(it.local, it.local_port),
        local_port: u16 at 5:16 if traced,
        /// The remote address, written like local.
        remote: Ip at 3 = |it, _| it.address(it.remote, it.remote_port),
        remote_port: u16 at 5 if traced,
        /// The file descriptor that accept(2) returned.
        fd: i32 at 6,
        /// Number of bytes sent first; 0 with a timeout.
        bytes: u64 at 7 if alert,
    }
    attach: accept::Attachment<Probes> = accept::Attachment::new, accept::missing::<Probes>;
    impl {
        const NO_USER_STACK: &str = NOT_RECORDED;

        fn collect_missed(attached: &mut accept::Attachment<Probes>) {
            attached.collect_missed();
        }

        // An address is printed with its family and port. `bytes` is known only at the end.
        const LABELS: labels::Rules = labels::Rules::ALL.without(&["local", "remote", "bytes"]);
    }
}

impl Detail {
    /// Returns the fields of an event. An event keeps the owner and the words of the fields,
    /// except the first (the key) and the last (`bytes`).
    fn of(key: &[u64; 1], data: &[u64; WORDS]) -> Self {
        record::keyed(key, &data[Owner::WORDS..])
    }

    fn of_socket(fd: i32, socket: &Socket) -> Self {
        Self {
            family: socket.family,
            local: socket.local,
            local_port: socket.local_port,
            remote: socket.remote,
            remote_port: socket.remote_port,
            fd,
            ..Self::default()
        }
    }

    fn address(&self, bytes: [u64; 2], port: u16) -> accept::Address {
        accept::Address {
            family: self.family,
            port,
            bytes,
        }
    }
}

impl accept::Observer for Probes {
    fn accepted(&self, fd: i32, socket: &Socket) {
        let guard = Kernel::guard();
        let now = Kernel::now();
        let engine = self.core.engine();
        TaskRef::with_current(|current| {
            let port = self.core.value(PARAM_PORT);
            let is_port = port == ALL || port == u64::from(socket.local_port);
            let cpu = Kernel::cpu(&guard) as u32;
            if !is_port
                || !tasks::may_be_wanted(&self.core, &current)
                || !tasks::is_wanted(&self.core, &current, cpu)
            {
                engine.filtered(&guard);
                return;
            }
            let [o0, o1, o2] = tasks::owner(&current).to_words();
            let [_, w0, w1, w2, w3, w4, w5] = Detail::of_socket(fd, socket).words();
            let data = [o0, o1, o2, w0, w1, w2, w3, w4, w5];
            engine.event_in_unique(&guard, &[socket.id], now, &data);
        });
    }

    fn sent(&self, socket: u64, bytes: u32) {
        let guard = Kernel::guard();
        self.end(&guard, &[socket], |alert| alert.bytes = bytes.into());
    }

    fn closed(&self, socket: u64) {
        let guard = Kernel::guard();
        let engine = self.core.engine();
        if engine
            .update(&guard, &[socket], |_| Verdict::Gone)
            .is_some()
        {
            self.core.count_extra(&guard, COUNT_CLOSED);
        }
    }

    fn missed(&self, calls: u64) {
        self.core.add_extra(&Kernel::guard(), COUNT_MISSED, calls);
    }
}

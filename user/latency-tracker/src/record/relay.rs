// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Sends a copy of each trace to an LTTng relay daemon on another machine.
//!
//! The local capture comes first and does not depend on the network. LTTng cannot send files, so it sends a second
//! snapshot, taken right after the local one. The alerts and the evidence are written to LTTng's logger, and thus become
//! events of that snapshot. `explain` reads them from a trace without alert.json or evidence.json.
//!
//! LTTng's session daemon serves one command at a time, so a host that does not answer would hold up all recorders for
//! minutes. The recorder tries the connection first.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lt_proc::Alert;
use lt_proc::evidence::Evidence;
use nix::errno::Errno;

use crate::carried::{LOGGER, evidence_pieces, pieces};

/// Control port of a relay daemon, unless the URL has one.
const PORT: u16 = 5342;

/// Timeout of a connection to the relay daemon.
const PATIENCE: Duration = Duration::from_secs(3);

/// The URL of a relay daemon: `net://HOST[:PORT[:PORT]][/PATH]`, or `net6://`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Relay {
    pub(crate) url: String,
    host: String,
    port: u16,
}

impl std::str::FromStr for Relay {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let wrong = || "expected net://HOST[:PORT[:PORT]][/PATH]".to_string();
        let rest = url.strip_prefix("net://").or(url.strip_prefix("net6://"));
        let place = rest.ok_or_else(wrong)?.split('/').next().unwrap_or("");
        let (host, ports) = match place.strip_prefix('[') {
            Some(six) => six.split_once(']').ok_or_else(wrong)?,
            None => place.split_at(place.find(':').unwrap_or(place.len())),
        };
        let mut ports = ports.split(':').skip(1).map(str::parse);
        let port = ports.next().unwrap_or(Ok(PORT)).map_err(|_| wrong())?;
        let fine = |c: char| c.is_ascii_graphic() && c != ',';
        if host.is_empty()
            || !url.chars().all(fine)
            || ports.any(|port: Result<u16, _>| port.is_err())
        {
            return Err(wrong());
        }
        Ok(Self {
            url: url.to_string(),
            host: host.to_string(),
            port,
        })
    }
}

impl Relay {
    /// Checks that the relay daemon accepts connections. Succeeds if this process may not connect, since the session
    /// daemon may.
    pub(crate) fn check(&self) -> Result<()> {
        let addresses = match (self.host.as_str(), self.port).to_socket_addrs() {
            Ok(addresses) => addresses,
            Err(_) if !may_connect() => return Ok(()),
            Err(error) => bail!("{}: no address of {} ({error})", self.url, self.host),
        };
        let mut last = None;
        for address in addresses {
            match TcpStream::connect_timeout(&address, PATIENCE) {
                Ok(_) => return Ok(()),
                Err(error) if is_forbidden(&error) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        let error = last.unwrap_or_else(|| io::ErrorKind::NotFound.into());
        bail!("no relay daemon answers at {}: {error}", self.url)
    }

    /// Prepares the copy of a capture: checks that the relay daemon answers, and puts the alerts and their evidence into
    /// the next snapshot.
    pub(crate) fn prepare(
        &self,
        capture: u64,
        alerts: &[Alert],
        evidence: &Evidence,
    ) -> Result<()> {
        self.check()?;
        log(capture, alerts, evidence).context("cannot write the alerts to LTTng's logger")
    }

    /// The path of the snapshot `name` of `session` below the output directory of the relay daemon. The daemon adds
    /// dates and numbers.
    pub(crate) fn place(&self, session: &str, name: &str) -> String {
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let path = self.url.splitn(4, '/').nth(3);
        let path = path
            .filter(|path| !path.is_empty())
            .map_or_else(|| format!("{session}-*"), str::to_string);
        format!("{}/{path}/{name}-*", host.trim_end())
    }
}

/// Writes the alerts and their evidence to LTTng's logger. Each write is an event.
fn log(capture: u64, alerts: &[Alert], evidence: &Evidence) -> Result<()> {
    let logger = OpenOptions::new().write(true).open(LOGGER);
    let mut logger = logger.context(LOGGER)?;
    let pid = std::process::id();
    let alerts = alerts.iter().flat_map(|alert| pieces(pid, capture, alert));
    for piece in evidence_pieces(pid, capture, evidence)?
        .into_iter()
        .chain(alerts)
    {
        logger.write_all(piece.as_bytes())?;
    }
    Ok(())
}

/// Whether a unit's RestrictAddressFamilies= or IPAddressDeny= forbids the connection.
fn is_forbidden(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw);
    matches!(
        code,
        Some(Errno::EAFNOSUPPORT | Errno::EPERM | Errno::EACCES)
    )
}

/// Whether this process may open network sockets; the resolver's error does not show this.
fn may_connect() -> bool {
    std::net::UdpSocket::bind(("127.0.0.1", 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_host_and_may_have_ports_and_a_path() {
        let parse = |url: &str| {
            let relay: Result<Relay, String> = url.parse();
            relay.map(|relay| (relay.host, relay.port))
        };
        let fine = |host: &str, port| Ok((host.to_string(), port));
        assert_eq!(parse("net://192.0.2.7"), fine("192.0.2.7", 5342));
        assert_eq!(parse("net://relay:1:2/slow/disks"), fine("relay", 1));
        assert_eq!(parse("net6://[::1]/x"), fine("::1", 5342));
        assert_eq!(parse("net6://[::1]:7"), fine("::1", 7));
        for bad in [
            "relay",
            "file:///tmp",
            "net://",
            "net:///path",
            "net://a:b",
            "net://a:1:99999",
            "net6://[::1",
            "net://a b",
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_place_of_a_copy_has_the_path_or_the_session() {
        let place = |url: &str| url.parse::<Relay>().unwrap().place("s-1", "0007");
        let ends = |place: String, end: &str| assert!(place.ends_with(end), "{place}");
        ends(place("net://a"), "/s-1-*/0007-*");
        ends(place("net://a:1:2/"), "/s-1-*/0007-*");
        ends(place("net6://[::1]/slow/disks"), "/slow/disks/0007-*");
    }

    #[test]
    fn a_relay_daemon_that_is_away_is_named_with_the_reason() {
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let relay: Relay = format!("net://127.0.0.1:{port}").parse().unwrap();
        relay.check().unwrap();
        drop(listener);
        let error = format!("{:#}", relay.check().unwrap_err());
        assert!(
            error.contains(&relay.url) && error.contains("refused"),
            "{error}"
        );
    }
}

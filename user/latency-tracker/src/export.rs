// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `export`: the counters and histograms of all instances for a Prometheus, at an address or once.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use lt_common::Outcome;
use lt_common::out;
use lt_common::wait::{Signals, Wake};
use lt_export::Server;
use lt_proc::ProcRoot;

use crate::service::Service;

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Where to listen. Another machine needs an address that it can reach: there is no encryption, and no password.
    #[arg(
        short,
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:9817"
    )]
    listen: SocketAddr,
    /// Print the page once, as for the textfile collector of node_exporter, and end.
    #[arg(long, conflicts_with = "listen")]
    once: bool,
}

pub(crate) fn run(root: &ProcRoot, args: &ExportArgs) -> Result<Outcome> {
    // What cannot be read at all is said now. The module may be loaded later.
    let first = lt_export::page(root)?;
    if args.once {
        out::line(first.trim_end())?;
        return Ok(Outcome::Fine);
    }
    let signals = Signals::catch()?;
    let server =
        Server::bind(args.listen).with_context(|| format!("cannot listen on {}", args.listen))?;
    let address = server.address().context("the address")?;
    if !address.ip().is_loopback() {
        out::note("anybody who reaches this address can read the counters");
    }
    let ready = File::from(OwnedFd::from(server.listener().try_clone()?));
    let service = Service::find();
    out::line(&format!("http://{address}/metrics (Ctrl-C ends)"))?;
    service.ready();
    let root = root.clone();
    let page: Arc<dyn Fn() -> Result<String, String> + Send + Sync> = Arc::new(move || {
        lt_export::page(&root).map_err(|error| format!("{:#}", anyhow::Error::from(error)))
    });
    loop {
        service.alive();
        match signals.wait(Some(&ready), service.next(None))? {
            Wake::Ready => server.serve(&page).context("cannot accept a connection")?,
            Wake::Timeout => {}
            Wake::Signal => break,
        }
    }
    service.stopping();
    Ok(Outcome::Fine)
}

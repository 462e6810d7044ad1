// SPDX-License-Identifier: GPL-2.0

//! One type for trackers of all size classes. Any context unless noted; `clear`, `holders` and
//! `run` visit all cells, and are for tasks; `run` may sleep.

use super::{Client, Config, SHORT_KEY};
use crate::{
    alert::{record::Name, stream::Alerts},
    engine::{held::Reference, Ended},
    instance::Values,
    sys::periodic::Periodic,
    trackers::module::KEY_MAX,
};
use kernel::{prelude::*, sync::Arc};

/// A tracker of any size class.
///
/// Most of its functions implement functions of include/latency_tracker.h, which documents them.
/// The clients are boxed, since an engine is too large for the stack.
pub(crate) enum Any {
    K1D2(KBox<Client<1, 2>>),
    K1D9(KBox<Client<1, 9>>),
    K1D33(KBox<Client<1, 33>>),
    K2D2(KBox<Client<2, 2>>),
    K2D9(KBox<Client<2, 9>>),
    K2D33(KBox<Client<2, 33>>),
    K9D2(KBox<Client<9, 2>>),
    K9D9(KBox<Client<9, 9>>),
    K9D33(KBox<Client<9, 33>>),
}

/// Evaluates an expression with the [`Client`] of the actual class.
macro_rules! each_class {
    ($any:expr, $client:ident => $body:expr) => {{
        use $crate::api::Any;
        match $any {
            Any::K1D2($client) => $body,
            Any::K1D9($client) => $body,
            Any::K1D33($client) => $body,
            Any::K2D2($client) => $body,
            Any::K2D9($client) => $body,
            Any::K2D33($client) => $body,
            Any::K9D2($client) => $body,
            Any::K9D9($client) => $body,
            Any::K9D33($client) => $body,
        }
    }};
}
pub(super) use each_class;

impl Any {
    /// Creates a tracker of the smallest class that is large enough. May sleep.
    pub(super) fn new(
        name: Name,
        values: &Values,
        config: Config,
        all: Arc<Alerts>,
    ) -> Result<Self> {
        let key = if config.variable_keys || config.key_size > SHORT_KEY {
            1 + KEY_MAX / 8
        } else {
            config.key_size.div_ceil(8)
        };
        let data = 1 + config.data_size.div_ceil(8);
        macro_rules! make {
            ($class:ident) => {
                Self::$class(Client::boxed(name, values, config, all)?)
            };
        }
        Ok(match (key, data) {
            (..=1, ..=2) => make!(K1D2),
            (..=1, ..=9) => make!(K1D9),
            (..=1, _) => make!(K1D33),
            (2, ..=2) => make!(K2D2),
            (2, ..=9) => make!(K2D9),
            (2, _) => make!(K2D33),
            (_, ..=2) => make!(K9D2),
            (_, ..=9) => make!(K9D9),
            (_, _) => make!(K9D33),
        })
    }
}

macro_rules! forward {
    ($($vis:vis fn $name:ident($($arg:ident: $type:ty),*) $(-> $result:ty)?;)*) => {
        impl Any {
            $($vis fn $name(&self, $($arg: $type),*) $(-> $result)? {
                each_class!(self, client => client.$name($($arg),*))
            })*
        }
    };
}

forward! {
    pub(crate) fn event_in(key: &[u8], data: Option<&[u8]>, start: u64, timeout: u64) -> Result;
    pub(crate) fn event_in_held(key: &[u8], data: Option<&[u8]>, start: u64, timeout: u64)
        -> Result<Reference>;
    pub(crate) fn event_out(key: &[u8], id: u64, end: u64) -> Result<Ended>;
    pub(crate) fn event_out_all(key: &[u8], id: u64, end: u64) -> Result<u64>;
    pub(crate) fn event_out_held(event: &Reference, id: u64, end: u64) -> Result<Ended>;
    pub(crate) fn lookup(key: &[u8]) -> Result<Reference>;
    pub(crate) fn get_ref_again(event: &Reference) -> Result<Reference>;
    pub(crate) fn reference(number: u32) -> Option<Reference>;
    pub(crate) fn put_ref(event: Reference);
    pub(crate) fn is_live(event: &Reference) -> bool;
    pub(crate) fn start(event: &Reference) -> u64;
    pub(crate) fn with_key(event: &Reference, f: impl FnOnce(&[u64], usize) -> usize) -> usize;
    pub(crate) fn with_data(event: &Reference, f: impl FnOnce(&[u64], usize) -> usize) -> usize;
    pub(crate) fn each_of(key: &[u8], see: impl FnMut(&Reference) -> bool) -> Result<u64>;
    pub(crate) fn clear() -> u64;
    pub(crate) fn set_threshold(ns: u64);
    pub(super) fn holders() -> u64;
}

impl Any {
    /// Returns the size of an event's private data, in bytes.
    pub(crate) fn data_size(&self) -> usize {
        each_class!(self, client => client.config.data_size)
    }
}

impl Periodic for Any {
    const WATCHED: bool = true;

    fn run(&self) -> Option<u64> {
        each_class!(self, client => client.run())
    }
}

// SPDX-License-Identifier: GPL-2.0 OR MIT

//! A trace event as the explanation of a block request needs it: the fields are text, found by name.

/// One event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Event {
    /// `CLOCK_MONOTONIC`, ns.
    pub(crate) time: u64,
    /// The CPU that recorded it.
    pub(crate) cpu: u32,
    /// `sched_switch`, `block_rq_issue`, ...; empty if irrelevant to requests.
    pub(crate) name: String,
    /// Fields of all scopes.
    pub(crate) fields: Vec<(String, String)>,
}

impl Event {
    /// The field `key` as text.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        let found = self.fields.iter().find(|(k, _)| k == key);
        found.map(|(_, v)| v.as_str())
    }

    /// The field `key` as an unsigned number.
    pub(crate) fn unsigned(&self, key: &str) -> Option<u64> {
        self.text(key)?.parse().ok()
    }

    /// The block device of the event.
    pub(crate) fn dev(&self) -> Option<Dev> {
        let number = u32::try_from(self.unsigned("dev")?).ok()?;
        Some(Dev::from_kernel(number))
    }
}

/// A block device. LTTng records the kernel's own `dev_t`, major << 20 | minor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dev {
    major: u32,
    minor: u32,
}

impl Dev {
    fn from_kernel(dev: u32) -> Self {
        Self {
            major: dev >> 20,
            minor: dev & ((1 << 20) - 1),
        }
    }

    /// Parses `8:0`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (major, minor) = text.split_once(':')?;
        Some(Self {
            major: major.parse().ok()?,
            minor: minor.parse().ok()?,
        })
    }
}

/// Parses a line that babeltrace2 printed; no field may contain a comma.
#[cfg(test)]
pub(crate) fn of_line(line: &str) -> Event {
    let (time, rest) = line[1..].split_once("] ").unwrap();
    let (head, fields) = rest.split_once(": ").unwrap();
    let fields = fields.split([',', '{', '}']);
    let pairs = fields.filter_map(|field| field.trim().split_once(" = "));
    let fields: Vec<_> = pairs
        .map(|(key, value)| (key.to_string(), value.trim_matches('"').to_string()))
        .collect();
    let cpu = fields.iter().find(|(key, _)| key == "cpu_id").unwrap();
    Event {
        time: time.parse().unwrap(),
        cpu: cpu.1.parse().unwrap(),
        name: head.rsplit(' ').next().unwrap().to_string(),
        fields,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_numbers_are_split_as_in_the_kernel() {
        let sda = Dev { major: 8, minor: 0 };
        assert_eq!(Dev::from_kernel(8_388_608), sda);
        assert_eq!(Dev::parse("8:0"), Some(sda));
        assert_eq!(Dev::parse("sda"), None);
    }
}

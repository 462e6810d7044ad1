// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Checks that the real traces cover all kinds of fields: each kind that LTTng's metadata describes
//! occurs in the events that are compared with babeltrace2's text.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use lt_ctf::{Item, Part, Reader};
use serde_json::Value;

use crate::real::unpack;

/// The path of a field in an event: `net_dev_queue/network_header/ipv4/tot_len`; `*` is an element.
type Place = String;

/// Adds the properties that affect decoding or printing, for each field in and below `class`.
fn kinds(class: &Value, place: &str, found: &mut BTreeMap<Place, String>) {
    let text = |key| class.get(key).and_then(Value::as_str).unwrap_or_default();
    let list = |key| {
        class
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
    };
    let of = |class: &'_ Value| class.get("field-class").cloned().unwrap_or_default();
    let named = |item: &Value| {
        let name = item.get("name").and_then(Value::as_str);
        format!("{place}/{}", name.unwrap_or_default())
    };
    let kind = text("type");
    for member in list("member-classes") {
        kinds(&of(member), &named(member), found);
    }
    for option in list("options") {
        kinds(&of(option), &named(option), found);
    }
    if let Some(element) = class.get("element-field-class") {
        kinds(element, &format!("{place}/*"), found);
    }
    let number = |key| class.get(key).map(Value::to_string).unwrap_or_default();
    let more = match kind {
        "structure" => return,
        _ if kind.starts_with("fixed-length-") => format!(
            " of {} bits, aligned to {}, {}, base {}{}",
            number("length"),
            number("alignment"),
            text("byte-order"),
            class
                .get("preferred-display-base")
                .unwrap_or(&Value::from(10)),
            match class.get("mappings") {
                Some(_) => ", with names",
                None => "",
            }
        ),
        _ => text("encoding").to_string(),
    };
    found.insert(place.to_string(), format!("{kind}{more}"));
}

/// Returns the kinds of the fields of all events in the metadata of a trace, by path.
fn described(metadata: &Path) -> BTreeMap<Place, String> {
    let text = fs::read_to_string(metadata).unwrap();
    let mut found = BTreeMap::new();
    for fragment in text.split('\u{1e}').filter(|f| !f.trim().is_empty()) {
        let fragment: Value = serde_json::from_str(fragment).unwrap();
        for scope in ["payload-field-class", "specific-context-field-class"] {
            let name = fragment.get("name").and_then(Value::as_str);
            if let (Some(class), Some(name)) = (fragment.get(scope), name) {
                kinds(class, name, &mut found);
            }
        }
    }
    found
}

/// Returns the paths of all fields in the events of a trace.
fn there(trace: &Path) -> BTreeSet<Place> {
    /// The container around a part.
    enum Around {
        Struct,
        Array,
        Variant,
    }
    let mut places = BTreeSet::new();
    let mut reader = Reader::open(trace).unwrap();
    while let Some(item) = reader.next().unwrap() {
        let Item::Event(event) = item else { continue };
        for (index, field) in event.class().fields() {
            let mut place = vec![event.name().to_string(), field.name.clone()];
            let mut around = Vec::new();
            event.visit(index, &mut |part| {
                if matches!(around.last(), Some(Around::Array)) && part != Part::End {
                    place.push("*".into());
                }
                places.insert(place.join("/"));
                match part {
                    Part::Member(name) => place.push(name.to_string()),
                    Part::Struct => around.push(Around::Struct),
                    Part::Array(_) => around.push(Around::Array),
                    Part::Variant(name) => {
                        around.push(Around::Variant);
                        place.push(name.unwrap_or_default().to_string());
                    }
                    _ => {
                        if part == Part::End
                            && let Some(Around::Variant) = around.pop()
                        {
                            place.pop();
                        }
                        // A member or an element has ended, and the path ends with its name. When the
                        // field itself ends, this is the name of the field.
                        if !matches!(around.last(), Some(Around::Variant)) {
                            place.pop();
                        }
                    }
                }
            });
        }
    }
    places
}

#[test]
fn every_kind_of_field_that_lttng_describes_is_in_an_event() {
    let dir = unpack();
    let (mut seen, mut missing) = (BTreeSet::new(), BTreeMap::new());
    let metadata = |path: &Path| -> Option<std::path::PathBuf> {
        let mut below = vec![path.to_path_buf()];
        while let Some(path) = below.pop() {
            if path.join("metadata").is_file() {
                return Some(path.join("metadata"));
            }
            below.extend(fs::read_dir(path).ok()?.flatten().map(|e| e.path()));
        }
        None
    };
    for entry in fs::read_dir(&dir.0).unwrap() {
        let path = entry.unwrap().path();
        // The older format describes the same fields in another language.
        if !path.is_dir() || path.to_string_lossy().contains("-1.8") {
            continue;
        }
        let there = there(&path);
        for (place, kind) in described(&metadata(&path).unwrap()) {
            match there.contains(&place) {
                true => drop(seen.insert(kind)),
                false => drop(missing.insert(kind, place)),
            }
        }
    }
    missing.retain(|kind, _| !seen.contains(kind));
    assert!(missing.is_empty(), "only described: {missing:#?}");
    assert!(seen.len() > 40, "{seen:#?}");
}

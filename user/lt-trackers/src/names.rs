// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The names of the trackers, and their tracepoints, for C.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Result, bail};

use crate::BY;
use crate::declaration::{Point, Tracker};

const HEAD: &str = " * The trackers, their tracepoints with the types of the arguments, and the
 * headers that declare these; each part for a file that defines its macro.
 */
";

/// Returns the list.
pub(crate) fn list(trackers: &[Tracker]) -> Result<String> {
    let mut points = BTreeMap::new();
    let mut headers = BTreeSet::new();
    let mut structs = BTreeSet::new();
    for point in trackers.iter().flat_map(|tracker| &tracker.points) {
        headers.insert(format!("#include <trace/events/{}.h>\n", point.header));
        structs.extend(point.types.iter().filter_map(|ty| structure(ty)));
        let other = points.insert(&point.name, point).unwrap_or(point);
        if (&other.types, &other.config) != (&point.types, &point.config) {
            bail!("two kinds of {}", point.name);
        }
    }
    let names: String = trackers
        .iter()
        .map(|tracker| format!("LT_TRACED({})\n", tracker.name))
        .collect();
    let structs: String = structs
        .iter()
        .map(|name| format!("struct {name};\n"))
        .collect();
    let headers = String::from_iter(headers);
    let c: String = points
        .values()
        .map(|point| line(point, str::to_owned))
        .collect();
    let rust: String = points.values().map(|point| line(point, for_rust)).collect();
    Ok(format!(
        "{BY}{HEAD}#ifdef LT_TRACED\n{names}#endif\n\n\
         #if defined(LT_STRUCTS) || defined(LT_HEADERS)\n{structs}#endif\n\n\
         #ifdef LT_HEADERS\n{headers}#endif\n\n\
         #if defined(LT_TRACEPOINT) && !defined(__BINDGEN__)\n{c}\
         #elif defined(LT_TRACEPOINT)\n/* For Rust, a pointer to a structure is a void *. */\n\
         {rust}#endif\n"
    ))
}

fn line(point: &Point, converted: fn(&str) -> String) -> String {
    let types: Vec<String> = point.types.iter().map(|ty| converted(ty)).collect();
    let line = format!("LT_TRACEPOINT({}, {});\n", point.name, types.join(", "));
    match &point.config {
        Some(config) => format!("#ifdef {config}\n{line}#endif\n"),
        None => line,
    }
}

/// Returns the name of the structure in a type.
fn structure(ty: &str) -> Option<&str> {
    let (_, name) = ty.split_once("struct ")?;
    name.split(' ').next()
}

fn for_rust(ty: &str) -> String {
    match ty.split_once(" *") {
        Some((_, rest)) if structure(ty).is_some() => format!("void *{rest}"),
        _ => ty.to_owned(),
    }
}

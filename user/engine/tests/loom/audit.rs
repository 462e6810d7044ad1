// SPDX-License-Identifier: GPL-2.0

//! Audits which orderings the models need: each ordering in [`FILES`] is removed in turn, and the
//! first model that fails is printed.
//!
//! This is not a test, but a table for changes of an ordering: if no model notices the removal of
//! an ordering, the ordering is not needed, or it needs a model. It takes minutes:
//! `RUSTFLAGS="--cfg loom" cargo test --profile loom --test loom -- --ignored --nocapture audit`.

use crate::{
    early_model, event_model, freelist_model, held_model, labels_model, machine::run, reap_model,
    rename_model, ring_model, step_model, table_model, timeout_model,
};
use kernel::model::{mutate, Change, Mutation};

/// All files of the module with an ordering other than relaxed, except sys/ and alert/notify.rs.
const FILES: [(&str, &str); 8] = [
    (
        "rust/freelist.rs",
        include_str!("../../../../rust/freelist.rs"),
    ),
    (
        "rust/freelist/exhausted.rs",
        include_str!("../../../../rust/freelist/exhausted.rs"),
    ),
    (
        "rust/freelist/index.rs",
        include_str!("../../../../rust/freelist/index.rs"),
    ),
    ("rust/rcu_ht.rs", include_str!("../../../../rust/rcu_ht.rs")),
    (
        "rust/engine/event.rs",
        include_str!("../../../../rust/engine/event.rs"),
    ),
    (
        "rust/engine/labels.rs",
        include_str!("../../../../rust/engine/labels.rs"),
    ),
    (
        "rust/alert/ring.rs",
        include_str!("../../../../rust/alert/ring.rs"),
    ),
    (
        "rust/trackers/offcpu/early.rs",
        include_str!("../../../../rust/trackers/offcpu/early.rs"),
    ),
];

/// Whether a line, without its comment, has an atomic operation that is not relaxed.
fn has_ordering(code: &str) -> bool {
    ["Acquire)", "Release)", "Full)"]
        .iter()
        .any(|name| code.contains(name) && !code.contains("Begin::"))
}

/// [`FILES`] is complete.
#[test]
fn the_audit_has_all_files() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../rust");
    let mut dirs = vec![root.to_owned()];
    let (mut found, mut known) = (Vec::new(), FILES.map(|(file, _)| file.to_owned()).to_vec());
    while let Some(dir) = dirs.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path().to_str().unwrap().to_owned();
            if std::path::Path::new(&path).is_dir() {
                dirs.push(path);
                continue;
            }
            let file = format!("rust{}", &path[root.len()..]);
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let code = |line: &str| line.split("//").next().unwrap_or_default().to_owned();
            // The files of sys are the kernel's side. Documentation/design/alerts.md justifies the
            // orderings of the wakeup.
            if file.ends_with(".rs")
                && !file.starts_with("rust/sys/")
                && file != "rust/alert/notify.rs"
                && text.lines().any(|line| has_ordering(&code(line)))
            {
                found.push(file);
            }
        }
    }
    found.sort();
    known.sort();
    assert_eq!(found, known);
}

#[test]
#[ignore = "minutes; prints a table"]
fn audit() {
    let models = [
        freelist_model::MODELS,
        table_model::MODELS,
        event_model::MODELS,
        ring_model::MODELS,
        timeout_model::MODELS,
        held_model::MODELS,
        rename_model::MODELS,
        step_model::MODELS,
        reap_model::MODELS,
        early_model::MODELS,
        labels_model::MODELS,
    ];
    std::panic::set_hook(Box::new(|_| ()));
    for (file, source) in FILES {
        let mut end = 0;
        for (number, line) in source.lines().enumerate() {
            end += line.len() + 1;
            let code = line.split("//").next().unwrap_or_default();
            if !has_ordering(code) {
                continue;
            }
            let mut changes = vec![Change::Relax];
            if code.contains("Full)") {
                changes.extend([Change::Acquire, Change::Release]);
            }
            for change in changes {
                let place = Mutation {
                    file,
                    source,
                    // from the start of the file, so that the text is unique
                    text: &source[..end - 1],
                    change,
                };
                assert!(mutate(&[place]).is_empty());
                let mut all = models.iter().flat_map(|models| models.iter());
                let noticed = all.find_map(|(name, bound, body)| {
                    run(*bound, *body).err().map(|message| (name, message))
                });
                let what = format!("{file}:{}: {} -> {change:?}", number + 1, code.trim());
                match noticed {
                    Some((name, message)) => {
                        let message = message.lines().next().unwrap_or_default().to_owned();
                        println!("{what}\n    {name}: {message}");
                    }
                    None => println!("{what}\n    not noticed"),
                }
            }
        }
    }
}

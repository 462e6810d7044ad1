// SPDX-License-Identifier: GPL-2.0

//! Which orderings the models notice: each in the source is removed in turn.
//!
//! Not a test but a table, for whoever changes an ordering: one that no model notices is not
//! needed, or needs a model. Takes minutes:
//! `cargo test --release --test loom -- --ignored --nocapture audit`.

use crate::{
    event_model, freelist_model, held_model, machine::run, rename_model, ring_model, table_model,
    timeout_model,
};
use kernel::model::{mutate, Change, Mutation};

const FILES: [(&str, &str); 4] = [
    (
        "rust/freelist.rs",
        include_str!("../../../../rust/freelist.rs"),
    ),
    ("rust/rcu_ht.rs", include_str!("../../../../rust/rcu_ht.rs")),
    ("rust/event.rs", include_str!("../../../../rust/event.rs")),
    ("rust/alert.rs", include_str!("../../../../rust/alert.rs")),
];

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
    ];
    std::panic::set_hook(Box::new(|_| ()));
    for (file, source) in FILES {
        let mut end = 0;
        for (number, line) in source.lines().enumerate() {
            end += line.len() + 1;
            let code = line.split("//").next().unwrap_or_default();
            if !["Acquire)", "Release)", "Full)"]
                .iter()
                .any(|name| code.contains(name))
            {
                continue;
            }
            let mut changes = vec![Change::Relax];
            if code.contains("Full)") {
                changes.push(Change::Acquire);
            }
            for change in changes {
                let place = Mutation {
                    file,
                    source,
                    // from the start of the file, so it is there once
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

// SPDX-License-Identifier: GPL-2.0 OR MIT

//! `recipes`: lists the recipes, or shows one.

use anyhow::{Result, bail};
use lt_common::Outcome;
use lt_common::instance::nearest;
use lt_common::out::{self, Colour, note};

use crate::cli::RecipesArgs;
use crate::recipes::{Need, Recipe, Recipes};

pub(crate) fn run(args: &RecipesArgs) -> Result<Outcome> {
    let recipes = Recipes::read();
    if let Some(name) = &args.name {
        return one(&recipes, name, args.json);
    }
    let is_listed = |recipe: &&Recipe| {
        let about = args.about.as_ref();
        about.is_none_or(|word| recipe.is_about(word))
    };
    let listed: Vec<_> = recipes.all.iter().filter(is_listed).collect();
    if let (Some(word), true) = (&args.about, listed.is_empty()) {
        bail!("no recipe has {word:?} in its text; `latency-tracker recipes` lists them");
    }
    if args.json {
        listed.iter().try_for_each(out::json)?;
    } else {
        let row = |recipe: &&Recipe| vec![recipe.name.clone(), recipe.question.clone()];
        let rows: Vec<_> = listed.iter().map(row).collect();
        for line in out::table(&["NAME", "QUESTION"], &rows) {
            out::line(&line)?;
        }
    }
    for (_, fault) in &recipes.faults {
        note(fault);
    }
    Ok(match recipes.faults.is_empty() {
        true => Outcome::Fine,
        false => Outcome::Wrong,
    })
}

fn one(recipes: &Recipes, name: &str, json: bool) -> Result<Outcome> {
    recipes.unread().into_iter().for_each(note);
    let found = recipes
        .find(name)
        .map_err(|fault| anyhow::anyhow!("{fault}"))?;
    let Some(recipe) = found else {
        match nearest(name, recipes.names()).as_slice() {
            [] => bail!("unknown recipe {name:?}; `latency-tracker recipes` lists them"),
            near => bail!(
                "unknown recipe {name:?}; did you mean {}?",
                near.join(" or ")
            ),
        }
    };
    if json {
        out::json(recipe)?;
        return Ok(Outcome::Fine);
    }
    out::line(&out::paint(Colour::Bold, &recipe.name))?;
    let needs = match &recipe.needs {
        None => String::new(),
        Some(Need::Module(module)) => format!("the module {module}"),
        Some(Need::Option(option)) => format!("a kernel with {option}"),
    };
    let file = recipe.file.as_ref();
    let file = file.map_or_else(String::new, |file| file.display().to_string());
    for (title, text) in [
        ("question", &recipe.question),
        ("run", &recipe.line()),
        ("normal", &recipe.normal),
        ("next", &recipe.next),
        ("needs", &needs),
        ("from", &file),
    ] {
        for (i, line) in out::wrap(text, 12).iter().enumerate() {
            let title = if i == 0 { title } else { "" };
            out::line(&format!("  {title:<8}  {}", line.trim_start()))?;
        }
    }
    Ok(Outcome::Fine)
}

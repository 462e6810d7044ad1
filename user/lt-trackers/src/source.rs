// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Reads Rust files: their macro calls, and their constants that are lists of words.

use anyhow::{Result, anyhow};
use syn::parse::ParseStream;
use syn::{Error, Expr, ExprLit, Item, Lit, Stmt};

use crate::text;

/// A Rust file.
pub(crate) struct Source {
    path: String,
    text: String,
    items: Vec<Item>,
}

impl Source {
    pub(crate) fn read(path: &str) -> Result<Self> {
        Source::new(path, text::read(path)?)
    }

    pub(crate) fn new(path: &str, text: String) -> Result<Self> {
        let parsed = syn::parse_file(&text);
        let mut source = Source {
            path: path.to_owned(),
            text,
            items: Vec::new(),
        };
        source.items = parsed.map_err(|error| source.refusal(&error))?.items;
        Ok(source)
    }

    /// Parses the contents of the braces of each call of a macro.
    pub(crate) fn calls<T>(
        &self,
        name: &str,
        mut parse: impl FnMut(ParseStream) -> syn::Result<T>,
    ) -> Result<Vec<T>> {
        let macros = self.items.iter().filter_map(|item| match item {
            Item::Macro(item) if item.mac.path.is_ident(name) => Some(&item.mac),
            _ => None,
        });
        macros
            .map(|it| it.parse_body_with(|input: ParseStream| parse(input)))
            .map(|parsed| parsed.map_err(|error| self.refusal(&error)))
            .collect()
    }

    /// Returns the words of a constant.
    pub(crate) fn constant(&self, name: &str) -> Option<Vec<String>> {
        self.items.iter().find_map(|item| match item {
            Item::Const(item) if item.ident == name => strings(&item.expr),
            _ => None,
        })
    }

    /// Returns the error with its place: the file, the line and the text of the line.
    pub(crate) fn refusal(&self, error: &Error) -> anyhow::Error {
        let line = error.span().start().line;
        let code = self.text.lines().nth(line.saturating_sub(1)).unwrap_or("");
        anyhow!("{}:{line}: {error}: {}", self.path, code.trim())
    }
}

/// Returns the strings in `["...", ...]`. If they depend on the architecture, these are the strings
/// of the first branch, x86, which has all of them.
pub(crate) fn strings(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Reference(reference) => strings(&reference.expr),
        Expr::If(choice) => match choice.then_branch.stmts.as_slice() {
            [Stmt::Expr(expr, None)] => strings(expr),
            _ => None,
        },
        Expr::Array(array) => array.elems.iter().map(string).collect(),
        _ => None,
    }
}

/// Returns the text of a string literal.
pub(crate) fn string(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Lit(ExprLit {
            lit: Lit::Str(text),
            ..
        }) => Some(text.value()),
        _ => None,
    }
}

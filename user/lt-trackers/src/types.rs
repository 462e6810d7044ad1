// SPDX-License-Identifier: GPL-2.0 OR MIT

//! The types of fields, from `fields!`.

use std::collections::BTreeMap;
use std::rc::Rc;

use anyhow::Result;
use syn::parse::{Parse, ParseStream};
use syn::{Error, Expr, Ident, LitInt, LitStr, Token};

use crate::source::Source;
use crate::text;

/// All types, by name.
pub(crate) type Types = BTreeMap<String, Rc<Type>>;

/// A type; the default is the type of a field that has no place in the alert.
#[derive(Default)]
pub(crate) struct Type {
    pub(crate) name: String,
    pub(crate) bits: usize,
    pub(crate) c: C,
}

/// A type in the trace event.
#[derive(Default)]
pub(crate) enum C {
    /// No field of the trace event.
    #[default]
    Absent,
    /// A number: its type; its format; the conversion from the word of the alert, which may be
    /// empty; and the value in the text, in which `X` stands for the entry's field.
    Number([String; 4]),
    /// Any other type: the entry, the assignment, the format, the values and LTTng's fields; and
    /// `FIELD: TYPE; PLACE` for each row in the page of the ABI. [`fill_in`] replaces names in them.
    Wide([String; 5], Vec<String>),
}

/// Reads all calls of `fields!`.
pub(crate) fn read() -> Result<Types> {
    let mut types = Types::new();
    let mut paths = text::files("rust/record", ".rs")?;
    paths.extend(text::files("rust/trackers", ".rs")?);
    paths.push("rust/record.rs".to_owned());
    for path in paths {
        // Searching all files is faster than parsing them.
        if text::read(&path)?.contains("fields! {") {
            Source::read(&path)?.calls("fields", |input| rows(input, &mut types))?;
        }
    }
    Ok(types)
}

pub(crate) fn rows(input: ParseStream, types: &mut Types) -> syn::Result<()> {
    while !input.is_empty() {
        let span = input.span();
        let ty: Type = input.parse()?;
        if types.insert(ty.name.clone(), Rc::new(ty)).is_some() {
            return Err(Error::new(span, "a second type of this name"));
        }
    }
    Ok(())
}

/// Parses `NAME, BITS, EXPRESSION, ..., "C" "C" ...;`.
impl Parse for Type {
    fn parse(input: ParseStream) -> syn::Result<Self> {
        let name: Ident = input.parse()?;
        input.parse::<Token![,]>()?;
        let bits = match input.peek(LitInt) {
            true => input.parse::<LitInt>()?.base10_parse()?,
            false => bits_of_integer(input)?,
        };
        let mut c = Vec::new();
        while input.parse::<Option<Token![,]>>()?.is_some() {
            if !input.peek(LitStr) {
                input.parse::<Expr>()?;
            }
            while let Some(text) = input.parse::<Option<LitStr>>()? {
                c.push(text.value());
            }
        }
        input.parse::<Token![;]>()?;
        let message = "expected a C type and its format, or all texts of a field that is no number";
        Ok(Type {
            bits,
            c: C::new(c).ok_or_else(|| Error::new(name.span(), message))?,
            name: name.to_string(),
        })
    }
}

/// Parses `u32::BITS`.
fn bits_of_integer(input: ParseStream) -> syn::Result<usize> {
    let ty: Ident = input.parse()?;
    input.parse::<Token![::]>()?;
    let bits: Ident = input.parse()?;
    match ty.to_string().trim_start_matches(['i', 'u']).parse() {
        Ok(number) if bits == "BITS" => Ok(number),
        _ => Err(Error::new(ty.span(), "expected a number of bits")),
    }
}

impl C {
    fn new(mut texts: Vec<String>) -> Option<Self> {
        let is_wide = texts.first().is_some_and(|text| text.contains("NAME"));
        match texts.len() {
            0 => Some(C::Absent),
            6.. if is_wide => {
                let rows = texts.split_off(5);
                let is_complete = rows.iter().all(|row| row.contains(": "));
                is_complete.then_some(C::Wide(texts.try_into().ok()?, rows))
            }
            len @ 2..=4 if !is_wide => {
                texts.extend(["", "", "", "X"].map(str::to_owned).into_iter().skip(len));
                Some(C::Number(texts.try_into().ok()?))
            }
            _ => None,
        }
    }
}

/// Replaces the names in a text of [`C::Wide`]: `NAME` stands for the field, `WORDS` for its words,
/// `WORD` for the first one, and `NEXT` for the words after that.
pub(crate) fn fill_in(text: &str, name: &str, words: &str, word: &str, next: &str) -> String {
    text.replace("NAME", name)
        .replace("WORDS", words)
        .replace("WORD", word)
        .replace("NEXT", next)
}

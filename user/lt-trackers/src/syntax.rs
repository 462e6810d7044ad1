// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Building blocks of parsers.

use proc_macro2::Span;
use syn::parse::{Parse, ParseBuffer, ParseStream};
use syn::{Attribute, Error, LitInt, Result, Token, braced};

use crate::source::string;

/// Parses the comment of a field or counter, and joins its lines.
pub(crate) fn comment(input: ParseStream) -> Result<String> {
    let mut lines = Vec::new();
    for attribute in input.call(Attribute::parse_outer)? {
        let pair = attribute.meta.require_name_value()?;
        lines.extend(string(&pair.value).map(|line| line.trim().to_owned()));
    }
    Ok(lines.join(" "))
}

/// Parses rows with `End` between them.
pub(crate) fn rows<End: Parse, T>(
    input: ParseStream,
    mut row: impl FnMut(ParseStream) -> Result<T>,
) -> Result<Vec<T>> {
    let mut rows = Vec::new();
    while !input.is_empty() {
        rows.push(row(input)?);
        if !input.is_empty() {
            input.parse::<End>()?;
        }
    }
    Ok(rows)
}

/// Enters braces.
pub(crate) fn block<'a>(input: ParseStream<'a>) -> Result<ParseBuffer<'a>> {
    let content;
    braced!(content in input);
    Ok(content)
}

/// Parses everything before the next semicolon.
pub(crate) fn until_semicolon<T: Parse>(input: ParseStream) -> Result<Vec<T>> {
    let mut all = Vec::new();
    while !input.peek(Token![;]) {
        all.push(input.parse()?);
    }
    Ok(all)
}

/// Parses what follows the token `K`, if that is next.
pub(crate) fn after<K, T: Parse>(input: ParseStream) -> Result<Option<T>>
where
    Option<K>: Parse,
{
    let token: Option<K> = input.parse()?;
    token.map(|_| input.parse()).transpose()
}

/// Parses an integer.
pub(crate) fn number<N>(input: ParseStream) -> Result<N>
where
    N: std::str::FromStr<Err: std::fmt::Display>,
{
    input.parse::<LitInt>()?.base10_parse()
}

/// Returns an error about a place.
pub(crate) fn fail<T>(span: Span, message: &str) -> Result<T> {
    Err(Error::new(span, message))
}

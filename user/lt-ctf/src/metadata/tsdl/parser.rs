// SPDX-License-Identifier: GPL-2.0 OR MIT

//! Parses TSDL declarations: type specifiers, aliases, and the assignments of a block.

use std::collections::HashMap;
use std::rc::Rc;

use super::token::{Token, Tokens};
use super::types::{Float, Int, Kind, Length, Mapping, Named, Names, Type};
use crate::bits::Order;
use crate::metadata::field::DEPTH;

/// The words that make up the names of C's own types.
const C_WORDS: [&str; 12] = [
    "void",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "signed",
    "unsigned",
    "_Bool",
    "_Complex",
    "_Imaginary",
];

/// A value assigned with `=`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Assigned {
    Number(i128),
    Text(String),
    /// Words separated by dots.
    Names(Names),
}

impl Assigned {
    /// Returns text, or a single word.
    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            Self::Names(names) => match names.as_slice() {
                [name] => Some(name),
                _ => None,
            },
            Self::Number(_) => None,
        }
    }
}

/// The contents of a block, such as `trace { ... }` or `stream { ... }`.
#[derive(Debug, Default)]
pub(super) struct Block {
    values: Vec<(String, Assigned)>,
    types: Vec<Named>,
}

impl Block {
    pub(super) fn value(&self, key: &str) -> Option<&Assigned> {
        let found = self.values.iter().find(|(k, _)| k == key);
        found.map(|(_, value)| value)
    }

    pub(super) fn values(&self) -> &[(String, Assigned)] {
        &self.values
    }

    pub(super) fn unsigned(&self, key: &str) -> Result<Option<u64>, String> {
        let unsigned = |value: &Assigned| match value {
            Assigned::Number(n) => u64::try_from(*n).ok(),
            _ => None,
        };
        let wrong = || format!("`{key}` is not an unsigned integer");
        let value = self.value(key);
        value
            .map(|value| unsigned(value).ok_or_else(wrong))
            .transpose()
    }

    pub(super) fn text(&self, key: &str) -> Option<&str> {
        self.value(key)?.text()
    }

    pub(super) fn order(&self) -> Result<Option<Order>, String> {
        match self.text("byte_order") {
            Some("le") => Ok(Some(Order::Little)),
            Some("be" | "network") => Ok(Some(Order::Big)),
            None | Some("native") => Ok(None),
            Some(other) => Err(format!("byte order {other:?}")),
        }
    }

    /// Returns the type of a scope.
    pub(super) fn scope(&self, key: &str) -> Option<&Rc<Type>> {
        let found = self.types.iter().find(|(k, _)| k == key);
        found.map(|(_, scope)| scope)
    }
}

pub(super) struct Parser<'a> {
    tokens: Tokens<'a>,
    /// Start of `token`; after an error in a token, the place of the error.
    pub(super) at: usize,
    pub(super) token: Token,
    /// Named types by scope, the current scope last.
    scopes: Vec<HashMap<String, Rc<Type>>>,
    depth: usize,
}

type Parsed<T> = Result<T, String>;

impl<'a> Parser<'a> {
    pub(super) fn new(text: &'a [u8]) -> Self {
        Self {
            tokens: Tokens::new(text),
            at: 0,
            token: Token::End,
            scopes: vec![HashMap::new()],
            depth: 0,
        }
    }

    /// Whether the text ended where more was expected.
    pub(super) fn is_at_end(&self) -> bool {
        self.token == Token::End || self.tokens.is_at_end()
    }

    /// Consumes `token` and returns it; `token` becomes the one after it.
    pub(super) fn advance(&mut self) -> Parsed<Token> {
        let next = self.tokens.next();
        self.at = match &next {
            Ok((at, _)) => *at,
            Err(_) => self.tokens.place(),
        };
        let (_, next) = next?;
        Ok(std::mem::replace(&mut self.token, next))
    }

    /// Consumes this mark if it is next; returns whether it was.
    pub(super) fn takes(&mut self, mark: &str) -> Parsed<bool> {
        let is = matches!(self.token, Token::Mark(m) if m == mark);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    /// Consumes this word if it is next; returns whether it was.
    fn takes_word(&mut self, word: &str) -> Parsed<bool> {
        let is = self.is_word(word);
        if is {
            self.advance()?;
        }
        Ok(is)
    }

    fn is_word(&self, word: &str) -> bool {
        matches!(&self.token, Token::Word(w) if w == word)
    }

    pub(super) fn expect(&mut self, mark: &str) -> Parsed<()> {
        if self.takes(mark)? {
            return Ok(());
        }
        Err(self.unexpected(&format!("`{mark}`")))
    }

    fn unexpected(&self, wanted: &str) -> String {
        match &self.token {
            Token::Word(found) => format!("`{found}` where {wanted} is expected"),
            Token::Text(found) => format!("{found:?} where {wanted} is expected"),
            Token::Number(found) => format!("`{found}` where {wanted} is expected"),
            Token::Mark(found) => format!("`{found}` where {wanted} is expected"),
            Token::End => format!("the metadata ends where {wanted} is expected"),
        }
    }

    pub(super) fn word(&mut self) -> Parsed<String> {
        match &mut self.token {
            Token::Word(word) => {
                let word = std::mem::take(word);
                self.advance()?;
                Ok(word)
            }
            _ => Err(self.unexpected("a name")),
        }
    }

    /// Parses words separated by dots (or arrows).
    fn names(&mut self) -> Parsed<Names> {
        let mut names = vec![self.word()?];
        while self.takes(".")? || self.takes("->")? {
            names.push(self.word()?);
        }
        Ok(names)
    }

    fn number(&mut self) -> Parsed<i128> {
        let negative = self.takes("-")?;
        if !negative {
            self.takes("+")?;
        }
        let Token::Number(number) = self.token else {
            return Err(self.unexpected("a number"));
        };
        self.advance()?;
        let number = i128::from(number);
        Ok(if negative { -number } else { number })
    }

    fn assigned(&mut self) -> Parsed<Assigned> {
        match &mut self.token {
            Token::Text(text) => {
                let text = std::mem::take(text);
                self.advance()?;
                Ok(Assigned::Text(text))
            }
            Token::Word(_) => self.names().map(Assigned::Names),
            _ => self.number().map(Assigned::Number),
        }
    }

    /// Parses the assignments and declarations of a block, with its braces.
    pub(super) fn block(&mut self) -> Parsed<Block> {
        self.expect("{")?;
        self.scopes.push(HashMap::new());
        let mut block = Block::default();
        while !self.takes("}")? {
            if self.declaration()? {
                continue;
            }
            let key = match &mut self.token {
                // Names of the environment may be quoted.
                Token::Text(text) => {
                    let text = std::mem::take(text);
                    self.advance()?;
                    text
                }
                _ => self.names()?.join("."),
            };
            if self.takes(":=")? {
                block.types.push((key, self.specifier()?));
            } else {
                self.expect("=")?;
                block.values.push((key, self.assigned()?));
            }
            self.expect(";")?;
        }
        self.scopes.pop();
        Ok(block)
    }

    /// Parses a declaration that names a type, if there is one.
    pub(super) fn declaration(&mut self) -> Parsed<bool> {
        if self.takes_word("typealias")? {
            let of = self.specifier()?;
            let of = self.dimensions(of)?;
            self.expect(":=")?;
            let mut name = Vec::new();
            while !self.takes(";")? {
                match self.advance()? {
                    Token::Word(word) => name.push(word),
                    Token::Mark("*") => name.push("*".into()),
                    token => {
                        self.token = token;
                        return Err(self.unexpected("the name of a type"));
                    }
                }
            }
            name.retain(|word| word != "const");
            self.declare(name.join(" "), of);
        } else if self.takes_word("typedef")? {
            let of = self.specifier()?;
            loop {
                let name = self.word()?;
                let of = self.dimensions(Rc::clone(&of))?;
                self.declare(name, of);
                if !self.takes(",")? {
                    break;
                }
            }
            self.expect(";")?;
        } else if ["struct", "enum", "variant"]
            .iter()
            .any(|kind| self.is_word(kind))
        {
            self.specifier()?;
            self.expect(";")?;
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn declare(&mut self, name: String, of: Rc<Type>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name, of);
        }
    }

    fn find(&self, name: &str) -> Parsed<Rc<Type>> {
        let found = self.scopes.iter().rev().find_map(|scope| scope.get(name));
        found.cloned().ok_or_else(|| format!("no type `{name}`"))
    }

    /// Parses a type: a definition, or the name of a type.
    fn specifier(&mut self) -> Parsed<Rc<Type>> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(format!("fields nest more than {DEPTH} deep"));
        }
        while self.takes_word("const")? {}
        let first = self.word()?;
        let found = match first.as_str() {
            "integer" => {
                let int = self.integer()?;
                self.made(Kind::Int(int))
            }
            "floating_point" => self.float(),
            "string" => {
                self.attributes()?;
                self.made(Kind::Text)
            }
            "struct" => self.structure(),
            "variant" => self.variant(),
            "enum" => self.enumeration(),
            word if C_WORDS.contains(&word) => {
                let mut name = first;
                while let Token::Word(next) = &self.token {
                    let is_c = C_WORDS.contains(&next.as_str());
                    if is_c {
                        name = format!("{name} {next}");
                    } else if next != "const" {
                        break;
                    }
                    self.advance()?;
                }
                self.find(&name)
            }
            name => self.find(name),
        }?;
        while self.takes_word("const")? {}
        self.depth -= 1;
        Ok(found)
    }

    fn made(&self, kind: Kind) -> Parsed<Rc<Type>> {
        Type::new(kind, DEPTH)
    }

    /// Parses the attributes of an integer, a floating-point number or a string, in braces, if there are any.
    fn attributes(&mut self) -> Parsed<Block> {
        match self.token {
            Token::Mark("{") => self.block(),
            _ => Ok(Block::default()),
        }
    }

    fn integer(&mut self) -> Parsed<Int> {
        let block = self.attributes()?;
        let size = block.unsigned("size")?.ok_or("an integer without a size")?;
        let signed = match block.value("signed") {
            None => false,
            Some(Assigned::Number(n)) => *n != 0,
            Some(value) => match value.text() {
                Some("true" | "TRUE") => true,
                Some("false" | "FALSE") => false,
                _ => return Err("`signed` is neither true nor false".into()),
            },
        };
        let base = match block.value("base") {
            None => 10,
            Some(Assigned::Number(base)) => u64::try_from(*base).unwrap_or(0),
            Some(value) => match value.text() {
                Some("decimal" | "dec" | "d" | "i" | "u") => 10,
                Some("hexadecimal" | "hex" | "x" | "X" | "p") => 16,
                Some("octal" | "oct" | "o") => 8,
                Some("binary" | "b") => 2,
                other => return Err(format!("display base {other:?}")),
            },
        };
        let clock = match block.value("map") {
            Some(Assigned::Names(names)) => match names.as_slice() {
                [clock, name, value] if clock == "clock" && value == "value" => Some(name.clone()),
                _ => return Err(format!("`map` to `{}`, not a clock", names.join("."))),
            },
            Some(_) => return Err("`map` to a constant, not a clock".into()),
            None => None,
        };
        let encoding = block.text("encoding");
        Ok(Int {
            size,
            align: natural(&block, size)?,
            signed,
            order: block.order()?,
            base,
            is_text: matches!(
                encoding,
                Some("UTF8" | "utf8" | "UTF-8" | "ASCII" | "ascii")
            ),
            clock,
        })
    }

    fn float(&mut self) -> Parsed<Rc<Type>> {
        let block = self.attributes()?;
        let digits = |key| block.unsigned(key)?.ok_or_else(|| format!("no `{key}`"));
        let size = digits("exp_dig")?.saturating_add(digits("mant_dig")?);
        self.made(Kind::Float(Float {
            size,
            align: natural(&block, size)?,
            order: block.order()?,
        }))
    }

    /// Parses the name of a structure, an enumeration or a variant, if there is one.
    fn tag(&mut self) -> Parsed<Option<String>> {
        match self.token {
            Token::Word(_) => self.word().map(Some),
            _ => Ok(None),
        }
    }

    /// Parses the members between braces, if there are any.
    fn members(&mut self) -> Parsed<Option<Vec<Named>>> {
        if !self.takes("{")? {
            return Ok(None);
        }
        self.scopes.push(HashMap::new());
        let mut members = Vec::new();
        while !self.takes("}")? {
            if (self.is_word("typedef") || self.is_word("typealias")) && self.declaration()? {
                continue;
            }
            let of = self.specifier()?;
            // `struct name { ... };` declares a type, not a member.
            if self.takes(";")? {
                continue;
            }
            loop {
                let name = self.word()?;
                let of = self.dimensions(Rc::clone(&of))?;
                members.push((name, of));
                if !self.takes(",")? {
                    break;
                }
            }
            self.expect(";")?;
        }
        self.scopes.pop();
        Ok(Some(members))
    }

    fn structure(&mut self) -> Parsed<Rc<Type>> {
        let name = self.tag()?.map(|name| format!("struct {name}"));
        let Some(members) = self.members()? else {
            return self.find(&name.unwrap_or("struct".into()));
        };
        let mut align = 1;
        if self.takes_word("align")? {
            self.expect("(")?;
            align = u64::try_from(self.number()?).unwrap_or(0);
            self.expect(")")?;
        }
        let made = self.made(Kind::Struct { members, align })?;
        if let Some(name) = name {
            self.declare(name, Rc::clone(&made));
        }
        Ok(made)
    }

    fn variant(&mut self) -> Parsed<Rc<Type>> {
        let name = self.tag()?.map(|name| format!("variant {name}"));
        let mut tag = None;
        if self.takes("<")? {
            tag = Some(self.names()?);
            self.expect(">")?;
        }
        if let Some(options) = self.members()? {
            let options = Rc::new(options);
            let made = self.made(Kind::Variant { tag, options })?;
            if let Some(name) = name {
                self.declare(name, Rc::clone(&made));
            }
            return Ok(made);
        }
        let found = self.find(&name.unwrap_or("variant".into()))?;
        match (&found.kind, tag) {
            (Kind::Variant { options, .. }, Some(tag)) => self.made(Kind::Variant {
                tag: Some(tag),
                options: Rc::clone(options),
            }),
            _ => Ok(found),
        }
    }

    fn enumeration(&mut self) -> Parsed<Rc<Type>> {
        let name = self.tag()?.map(|name| format!("enum {name}"));
        let carrier = if self.takes(":")? {
            Some(self.specifier()?)
        } else {
            None
        };
        if !self.takes("{")? {
            return self.find(&name.unwrap_or("enum".into()));
        }
        let carrier = match carrier {
            Some(carrier) => carrier,
            None => self.find("int")?,
        };
        let int = carrier.int().cloned();
        let int = int.ok_or("an enumeration whose type is not an integer")?;
        let mut mappings: Vec<Mapping> = Vec::new();
        while !self.takes("}")? {
            let label = match &mut self.token {
                Token::Text(text) => {
                    let text = std::mem::take(text);
                    self.advance()?;
                    text
                }
                _ => self.word()?,
            };
            let mut low = mappings.last().map_or(0, |last| last.high + 1);
            let mut high = low;
            if self.takes("=")? {
                low = self.number()?;
                high = if self.takes("...")? {
                    self.number()?
                } else {
                    low
                };
            }
            mappings.push(Mapping { label, low, high });
            if !self.takes(",")? {
                self.expect("}")?;
                break;
            }
        }
        let made = self.made(Kind::Enum(int, mappings))?;
        if let Some(name) = name {
            self.declare(name, Rc::clone(&made));
        }
        Ok(made)
    }

    /// Parses any number of `[length]` after a name. The last length belongs to the innermost
    /// array.
    fn dimensions(&mut self, mut of: Rc<Type>) -> Parsed<Rc<Type>> {
        let mut lengths = Vec::new();
        while self.takes("[")? {
            lengths.push(match self.token {
                Token::Word(_) => Length::Of(self.names()?),
                _ => {
                    let count = u64::try_from(self.number()?);
                    Length::Fixed(count.map_err(|_| "an array of a negative length")?)
                }
            });
            self.expect("]")?;
        }
        while let Some(length) = lengths.pop() {
            of = self.made(Kind::Array { of, length })?;
        }
        Ok(of)
    }
}

/// Returns the alignment that the block sets, in bits. The default is 8 if the size is a multiple of 8, otherwise 1.
fn natural(block: &Block, size: u64) -> Result<u64, String> {
    let align = block.unsigned("align")?;
    Ok(align.unwrap_or(if size.is_multiple_of(8) { 8 } else { 1 }))
}
